/* Contract: an override is a part of the tree like any other, so what is wrong with it is found when the tree is read,
 * and told at the argument. */
#include "spec/overrides.h"

#include <string.h>

#include "base/text.h"
#include "spec/spec_settings.h"

/* ---- one assignment ---- */

static bool is_name(const char *part) { return !strcmp(part, "name"); }

/* A map to be edited in place of what stands at key in map. */
static struct yaml_tree *own_map(struct yaml_reader *r, struct yaml_tree *map, struct yaml_tree *key, bool top)
{
    struct yaml_tree *old = yaml_tree_get(map, key->text), *own;
    const struct section *section = top ? spec_section(key->text) : NULL;
    own = old && old->kind == YAML_MAP ? yaml_tree_copy(old, r->region)
                                       : yaml_tree_make(YAML_MAP, NULL, key->mark, r->region);
    const char *bare = !top ? "name" : section ? section->word : NULL; /* what a bare word stands for */
    if (own && old && old->kind == YAML_TEXT && bare) {
        struct yaml_tree *word = yaml_tree_make(YAML_TEXT, bare, old->mark, r->region);
        if (!word || yaml_tree_set(own, word, old, r->region) != ST_OK) return NULL;
    }
    return own && yaml_tree_set(map, key, own, r->region) == ST_OK ? own : NULL;
}

void yaml_tree_assign(struct yaml_reader *r, struct yaml_tree *root, const struct yaml_tree *key,
                      struct yaml_tree *value)
{
    struct yaml_tree *map = root;
    const char *part = key->text;
    while (map) {
        size_t length = strcspn(part, ".");
        struct mark mark = key->mark;
        mark.column += (int)(part - key->text);
        mark.width = (int)length;
        const char *text = region_text(r->region, "%.*s", (int)length, part);
        struct yaml_tree *node = text ? yaml_tree_make(YAML_TEXT, text, mark, r->region) : NULL;
        if (!node) return;
        if (!part[length]) {
            if (map != root && is_name(text)) map->count = 0, map->mark = mark; /* what is missing now is missed here */
            (void)yaml_tree_set(map, node, value, r->region);
            return;
        }
        map = own_map(r, map, node, map == root);
        part += length + 1;
    }
}

const struct yaml_tree *yaml_tree_follow(const struct yaml_tree *root, const char *key)
{
    char part[64];
    for (size_t length; root && *key; key += length + (key[length] == '.')) {
        length = strcspn(key, ".");
        if (length >= sizeof part) return NULL;
        snprintf(part, sizeof part, "%.*s", (int)length, key);
        root = yaml_tree_get(root, part);
    }
    return root;
}

/* ---- arguments ---- */

/* key sets a section as a whole: "policy", "policy.name". */
static bool sets_whole(const char *key)
{
    const char *dot = strrchr(key, '.');
    return !dot || is_name(dot + 1);
}

/* Axes that key, or the section it replaces, decides are swept no more. */
static void unsweep(struct yaml_reader *r, struct yaml_tree *root, const char *key)
{
    struct yaml_tree *sweep = yaml_tree_get(root, "sweep");
    size_t length = strlen(key);
    if (!sweep || sweep->kind != YAML_MAP) return;
    if (sets_whole(key)) length = strcspn(key, ".");
    struct yaml_tree *kept = yaml_tree_make(YAML_MAP, NULL, sweep->mark, r->region);
    for (int i = 0; kept && i < sweep->count; i++) {
        const char *axis = sweep->key[i]->text;
        bool decided = !strncmp(axis, key, length) && (!axis[length] || axis[length] == '.');
        if (!decided && yaml_tree_set(kept, sweep->key[i], sweep->item[i], r->region) != ST_OK) return;
    }
    if (!kept || kept->count == sweep->count) return;
    struct yaml_tree *word = yaml_tree_make(YAML_TEXT, "sweep", sweep->mark, r->region);
    if (word) (void)yaml_tree_set(root, word, kept->count ? kept : NULL, r->region);
}

/* The key of the number-th argument as a TEXT node, and its value (*value NULL: to be removed); NULL: told. */
static struct yaml_tree *parse(struct yaml_reader *r, const char *argument, int number, struct yaml_tree **value)
{
    struct source *source = region_array(r->region, 1, sizeof *source);
    const char *equals = strchr(argument, '=');
    *value = NULL;
    if (!source) return NULL;
    *source = (struct source){argument, argument, number};
    size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
    struct mark mark = {source, 1, 1, (int)length};
    const char *key = region_text(r->region, "%.*s", (int)length, argument);
    if (!key) return NULL;
    bool plain = strspn(key, "abcdefghijklmnopqrstuvwxyz_.") == length;
    if (!equals || !length || !plain || *key == '.' || key[length - 1] == '.' || strstr(key, "..")) {
        errors_add(r->errors, mark, NULL, "expected key=value, as in batch=8 or policy.segments=3");
        return NULL;
    }
    if (equals[1] && !(*value = yaml_tree_parse(source, length + 1, r->region, r->errors))) return NULL;
    return yaml_tree_make(YAML_TEXT, key, mark, r->region);
}

/* Of these pairs a spec has one: an argument that sets the first replaces the second, unless one sets that too. */
static const char *const either[][2] = {{"steps", "epochs"}, {"epochs", "steps"}};

static void replace_other(struct yaml_reader *r, struct yaml_tree *root, struct yaml_tree *key, int count,
                          const char *const *keys)
{
    for (size_t i = 0; i < sizeof either / sizeof *either; i++) {
        bool both = strcmp(key->text, either[i][0]) != 0;
        for (int j = 0; j < count; j++) both |= !strcmp(keys[j], either[i][1]);
        struct yaml_tree *other = both ? NULL : yaml_tree_make(YAML_TEXT, either[i][1], key->mark, r->region);
        if (!other) continue;
        unsweep(r, root, other->text);
        (void)yaml_tree_set(root, other, NULL, r->region);
    }
}

void overrides_apply(struct yaml_reader *r, struct yaml_tree *root, int count, const char *const *arguments,
                     const char **keys)
{
    struct yaml_tree **key, **value;
    if (NEWLY(r->region, key, (size_t)count) != ST_OK || NEWLY(r->region, value, (size_t)count) != ST_OK) return;
    for (int i = 0; i < count; i++) {
        key[i] = parse(r, arguments[i], i + 1, &value[i]);
        keys[i] = key[i] ? key[i]->text : "";
        for (int j = 0; key[i] && j < i; j++)
            if (key[j] && !strcmp(keys[i], keys[j])) errors_add(r->errors, key[i]->mark, keys[i], "given twice");
    }
    for (int whole = 1; whole >= 0; whole--)
        for (int i = 0; i < count; i++) {
            if (!key[i] || sets_whole(keys[i]) != whole) continue;
            unsweep(r, root, keys[i]);
            if (value[i]) replace_other(r, root, key[i], count, keys);
            yaml_tree_assign(r, root, key[i], value[i]);
        }
}
