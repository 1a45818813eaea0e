/* Contract: overrides change the tree before it is read, so their errors are found by the same checks as the file's and
 * are reported at the argument. */
#include "spec/spec_read.h"

#include <string.h>

#include "spec/spec_settings.h"

/* ---- one assignment ---- */

static bool is_name(const char *part) { return !strcmp(part, "name"); }

/* The map at key in map, replaced by a copy that can be edited; a bare word there becomes {word: it}. */
static struct yaml_tree *own_map(struct yaml_tree *map, const char *key, struct mark mark, bool top,
                                 struct region *region)
{
    struct yaml_tree *old = yaml_tree_get(map, key);
    const struct section *section = top ? spec_section(key) : NULL;
    const char *word = !top ? "name" : section ? section->word : NULL;
    struct yaml_tree *own =
        old && old->kind == YAML_MAP ? yaml_tree_copy(old, region) : yaml_tree_make(YAML_MAP, NULL, mark, region);
    if (old && old->kind == YAML_TEXT && word) yaml_tree_set(own, word, old->mark, old, region);
    yaml_tree_set(map, key, mark, own, region);
    return own;
}

void yaml_tree_assign(struct yaml_tree *root, const struct yaml_tree *key, struct yaml_tree *value,
                      struct region *region)
{
    struct yaml_tree *map = root;
    for (const char *part = key->text;;) {
        const size_t length = strcspn(part, ".");
        const char *name = region_text(region, "%.*s", (int)length, part);
        struct mark mark = key->mark;
        mark.column += (int)(part - key->text);
        mark.width = (int)length;
        if (!part[length]) {
            if (map != root && is_name(name)) map->count = 0, map->mark = mark; /* missing keys are reported here */
            yaml_tree_set(map, name, mark, value, region);
            return;
        }
        map = own_map(map, name, mark, map == root, region);
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

/* Removes the axes that key, or the section it replaces, sets. value NULL: it is removed. */
static void unsweep(struct yaml_tree *root, const char *key, const struct yaml_tree *value, struct region *region)
{
    const size_t length = sets_whole(key) ? strcspn(key, ".") : strlen(key);
    sweep_remove(root, key, length, value ? yaml_tree_print(value, region) : NULL, region);
}

/* The key of the number-th argument as a TEXT node, and its value (*value NULL: to be removed); NULL: an error was
 * reported. */
static struct yaml_tree *parse(struct yaml_reader *r, const char *argument, int number, struct yaml_tree **value)
{
    struct source *source = region_array(r->region, 1, sizeof *source);
    const size_t length = strcspn(argument, "=");
    const char *key = region_text(r->region, "%.*s", (int)length, argument);
    *value = NULL;
    *source = (struct source){argument, argument, number};
    const struct mark mark = {source, 1, 1, (int)length};
    const bool plain = strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_.") == length;
    if (!argument[length] || !length || !plain || *key == '.' || key[length - 1] == '.' || strstr(key, "..")) {
        errors_add(r->errors, mark, NULL, "expected key=value, as in batch=8 or policy.segments=3");
        return NULL;
    }
    if (argument[length + 1] && !(*value = yaml_tree_parse(source, length + 1, r->region, r->errors))) return NULL;
    return yaml_tree_make(YAML_TEXT, key, mark, r->region);
}

/* A spec has steps or epochs: an argument that sets one removes the other, unless another argument sets that too. */
static void replace_other(struct yaml_tree *root, const struct yaml_tree *key, int count, const char *const *keys,
                          struct region *region)
{
    const char *other = !strcmp(key->text, "steps") ? "epochs" : !strcmp(key->text, "epochs") ? "steps" : NULL;
    for (int j = 0; other && j < count; j++)
        if (!strcmp(keys[j], other)) return;
    if (!other) return;
    unsweep(root, other, NULL, region);
    yaml_tree_set(root, other, key->mark, NULL, region);
}

void overrides_apply(struct yaml_reader *r, struct yaml_tree *root, int count, const char *const *arguments,
                     const char **keys)
{
    struct yaml_tree **key, **value;
    NEW(r->region, key, (size_t)count);
    NEW(r->region, value, (size_t)count);
    for (int i = 0; i < count; i++) {
        key[i] = parse(r, arguments[i], i + 1, &value[i]);
        keys[i] = key[i] ? key[i]->text : "";
        for (int j = 0; key[i] && j < i; j++)
            if (key[j] && !strcmp(keys[i], keys[j])) errors_add(r->errors, key[i]->mark, keys[i], "given twice");
    }
    for (int whole = 1; whole >= 0; whole--)
        for (int i = 0; i < count; i++) {
            if (!key[i] || sets_whole(keys[i]) != whole) continue;
            unsweep(root, keys[i], value[i], r->region);
            if (value[i]) replace_other(root, key[i], count, keys, r->region);
            yaml_tree_assign(root, key[i], value[i], r->region);
        }
}
