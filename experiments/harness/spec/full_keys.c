#include "spec/full_keys.h"

#include <string.h>

#include "spec/graph_file.h"

struct full_key_list {
    struct region *region;
    int count;
    struct full_key *key;
};

/* Once, though several rows have it. setting NULL: as in struct full_key. */
static void add(struct full_key_list *list, const char *section, const char *key, const char *doc,
                const struct setting *setting)
{
    const char *full = section ? region_text(list->region, "%s.%s", section, key) : key;
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->key[i].key, full)) return;
    region_grow(list->region, &list->key, list->count, sizeof *list->key);
    list->key[list->count++] = (struct full_key){full, doc, setting};
}

static void add_all(struct full_key_list *list, const char *section, const struct setting *keys)
{
    for (const struct setting *f = keys; f && f->key; f++) add(list, section, f->key, f->doc, f);
}

/* The setting of the bare word that stands for the section; NULL: none does. */
static const struct setting *word_setting(const struct section *section, struct region *region)
{
    struct setting *names;
    if (!section->registry) return section->word ? setting_find(section->keys, section->word) : NULL;
    NEW(region, names, 1);
    *names = registry_setting(section->registry, region);
    return names;
}

/* The name of the row that root chooses; NULL: none. */
static const char *chosen_row(const struct yaml_tree *root, const struct section *section)
{
    const struct yaml_tree *value = yaml_tree_get(root, section->key);
    if (value && value->kind == YAML_MAP) value = yaml_tree_get(value, "name");
    if (root && !value) return section->registry->preset;
    return value && value->kind == YAML_TEXT ? value->text : NULL;
}

static void add_rows(struct full_key_list *list, const struct yaml_tree *root, const struct section *section)
{
    const struct registry *registry = section->registry;
    const char *name = chosen_row(root, section);
    bool found = false;
    for (int i = 0; registry->choice(i).name; i++) found |= name && !strcmp(name, registry->choice(i).name);
    for (int i = 0; registry->choice(i).name; i++)
        if (!found || !strcmp(name, registry->choice(i).name)) add_all(list, section->key, registry->choice(i).keys);
}

static void add_top(struct full_key_list *list, const char *key)
{
    const struct setting *setting = setting_find(spec_keys, key);
    const struct section *section = spec_section(key);
    const struct other_key *other = spec_other_keys;
    while (other->key && strcmp(other->key, key) != 0) other++;
    add(list, NULL, key,
        setting   ? setting->doc
        : section ? section->doc
                  : other->doc,
        section ? word_setting(section, list->region) : setting);
}

struct full_key *full_keys(const struct yaml_tree *root, bool graph, struct region *region)
{
    static const char policy[] = "policy";
    struct full_key_list list = {.region = region};
    if (graph) add_all(&list, NULL, graph_file_keys);
    for (const char *const *key = spec_order; *key; key++)
        if (!graph || !strcmp(*key, policy)) add_top(&list, *key);
    for (const struct section *section = spec_sections; section->key; section++) {
        if (graph && strcmp(section->key, policy) != 0) continue;
        if (section->registry) {
            add(&list, section->key, "name", section->doc, word_setting(section, region));
            add_rows(&list, root, section);
        } else {
            add_all(&list, section->key, section->keys);
        }
    }
    if (!graph) add_all(&list, "model.init", init_keys);
    region_grow(region, &list.key, list.count, sizeof *list.key);
    list.key[list.count] = (struct full_key){.key = NULL};
    return list.key;
}

const char *const *full_key_names(struct region *region)
{
    const struct full_key *key = full_keys(NULL, false, region);
    const char **names = NULL;
    int count = 0;
    do {
        region_grow(region, &names, count, sizeof *names);
        names[count] = key[count].key;
    } while (names[count++]);
    return names;
}
