#include "spec/model.h"

struct parameters {
    struct yaml_reader *reader;
    const struct yaml_tree *values; /* by name */
    const char **used;              /* names in the list, ended by NULL */
    int count;
};

static void note_use(struct parameters *p, const char *name)
{
    if (yaml_read_among(name, p->used)) return;
    region_grow(p->reader->region, &p->used, p->count + 1, sizeof *p->used);
    p->used[p->count++] = name;
    p->used[p->count] = NULL;
}

static struct yaml_tree *replace(struct parameters *p, struct yaml_tree *tree)
{
    struct region *region = p->reader->region;
    const char *name = tree->kind == YAML_TEXT && !tree->quoted && *tree->text == '$' ? tree->text + 1 : NULL;
    struct yaml_tree *value = name ? yaml_tree_get(p->values, name) : NULL;
    if (name) note_use(p, name);
    if (value) return value;
    if (name) {
        yaml_read_error(p->reader, tree, "model.parameters", name, "missing; expected a value for %s", tree->text);
        return yaml_tree_make(YAML_BROKEN, NULL, tree->mark, region);
    }
    if (tree->kind != YAML_LIST && tree->kind != YAML_MAP) return tree;
    struct yaml_tree *copy = yaml_tree_copy(tree, region);
    for (int i = 0; i < copy->count; i++) copy->item[i] = replace(p, copy->item[i]);
    return copy;
}

/* Adds the scalars of map to values. */
static void add_values(struct yaml_reader *r, const struct yaml_tree *map, struct yaml_tree *values)
{
    if (map && map->kind != YAML_MAP)
        yaml_read_error(r, map, "model", "parameters", "expected a map of names to values");
    for (int i = 0; map && map->kind == YAML_MAP && i < map->count; i++) {
        const char *name = map->key[i]->text;
        if (map->item[i]->kind == YAML_TEXT)
            yaml_tree_set(values, name, map->key[i]->mark, map->item[i], r->region);
        else
            yaml_read_error(r, map->item[i], "model.parameters", name, "expected a number or a word");
    }
}

const struct yaml_tree *model_parameters(struct yaml_reader *r, const struct yaml_tree *presets,
                                         const struct yaml_tree *given, const struct yaml_tree *list)
{
    struct yaml_tree *values = yaml_tree_make(YAML_MAP, NULL, list->mark, r->region);
    struct parameters p = {.reader = r, .values = values};
    NEW(r->region, p.used, 1);
    add_values(r, presets, values);
    add_values(r, given, values);
    struct yaml_tree *layers = replace(&p, (struct yaml_tree *)(uintptr_t)list);
    for (int i = 0; i < values->count; i++) {
        const char *name = values->key[i]->text;
        if (!yaml_read_among(name, p.used))
            yaml_read_error(r, values->key[i], "model.parameters", name, "%s",
                            p.count ? yaml_read_unknown(r, name, p.used, "") : "the model has no parameters");
    }
    return layers;
}
