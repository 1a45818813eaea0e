/* The block sweep: of a spec: axes, each a list of values or a range, alone or zipped with others, and their points. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "spec/spec_read.h"

enum { POINTS_MAX = 1000 };

/* Keys of the block that are no axes. */
static const char zip_key[] = "zip", exclude_key[] = "exclude";

struct range {
    double from, to, step, times; /* step and times: NaN where not given */
};

#define RANGE(name, preset, doc) #name, SETTING_REAL, offsetof(struct range, name), -1e15, 1e15, preset, NULL, doc
static const struct setting range_keys[] = {{RANGE(from, NULL, "the first value")},
                                            {RANGE(to, NULL, "no value exceeds it")},
                                            {RANGE(step, "", "added to each value for the next")},
                                            {RANGE(times, "", "each value times this is the next")},
                                            {.key = NULL}};

/* ---- axes ---- */

/* The values of {from: 8, to: 64, step: 8} as a list; NULL: errors were reported. */
static struct yaml_tree *read_range(struct yaml_reader *r, const struct yaml_tree *map, const char *path)
{
    struct yaml_tree *list = yaml_tree_make(YAML_LIST, NULL, map->mark, r->region);
    struct range range;
    const int before = errors_count(r->errors);
    yaml_read_map(r, map, path, "a range", range_keys, NULL, &range);
    if (errors_count(r->errors) > before) return NULL;
    const bool steps = isnan(range.times), both = !steps && !isnan(range.step);
    if (steps && isnan(range.step)) range.step = 1;
    if (both || !(range.from <= range.to) || (steps ? range.step <= 0 : range.times <= 1 || range.from <= 0)) {
        yaml_read_error(r, map, path, NULL, "%s",
                        both ? "both step and times; expected one at most"
                             : "expected from <= to and step > 0, or 0 < from <= to and times > 1");
        return NULL;
    }
    const double most = range.to * (range.to < 0 ? 1 - 1e-9 : 1 + 1e-9); /* 0.1 + 2 * 0.1 exceeds 0.3 */
    for (double value = range.from; value <= most && list->count <= POINTS_MAX;
         value = steps ? range.from + list->count * range.step : range.from * pow(range.times, list->count)) {
        const char *text = region_text(r->region, "%.12g", value);
        region_grow(r->region, &list->item, list->count, sizeof *list->item);
        list->item[list->count++] = yaml_tree_make(YAML_TEXT, text, map->mark, r->region);
    }
    return list;
}

static void read_axis(struct yaml_reader *r, const char *path, const struct yaml_tree *key,
                      const struct yaml_tree *values, struct spec *spec)
{
    const char *section = region_text(r->region, "%.*s", (int)strcspn(key->text, "."), key->text),
               *full = region_text(r->region, "%s.%s", path, key->text), **text;
    if (!spec_changes(section)) /* the points would be equal */
        yaml_read_error(r, key, path, key->text, "cannot be swept: no result depends on it");
    for (int a = 0; a < spec->axes; a++)
        if (!strcmp(spec->axis[a].key, key->text)) yaml_read_error(r, key, path, key->text, "given twice");
    if (values->kind == YAML_MAP && !(values = read_range(r, values, full))) return;
    if (values->kind != YAML_LIST || !values->count) {
        yaml_read_error(r, values, path, key->text,
                        "expected a list of the values it takes, or a range {from: 1, to: 10}");
        return;
    }
    NEW(r->region, text, (size_t)values->count);
    for (int i = 0; i < values->count; i++) text[i] = yaml_tree_print(values->item[i], r->region);
    region_grow(r->region, &spec->axis, spec->axes, sizeof *spec->axis);
    spec->axis[spec->axes] = (struct sweep_axis){key->text, values->count, text, key, values->item, spec->axes};
    spec->axes++;
}

/* Axes that advance together: they share the dimension of the first. */
static void read_zip(struct yaml_reader *r, const struct yaml_tree *zip, struct spec *spec)
{
    const int first = spec->axes;
    if (zip->kind != YAML_MAP)
        yaml_read_error(r, zip, "sweep", zip_key,
                        "expected a map of keys to lists, as in {batch: [8, 16], steps: [4, 2]}");
    for (int i = 0; zip->kind == YAML_MAP && i < zip->count; i++) {
        const int axes = spec->axes;
        read_axis(r, "sweep.zip", zip->key[i], zip->item[i], spec);
        if (spec->axes == axes) continue;
        struct sweep_axis *axis = &spec->axis[axes];
        axis->dimension = first;
        if (axis->count != spec->axis[first].count)
            yaml_read_error(r, zip->item[i], "sweep.zip", axis->key, "%d value%s, but %s has %d; expected as many",
                            axis->count, text_plural(axis->count), spec->axis[first].key, spec->axis[first].count);
    }
}

/* ---- points ---- */

int sweep_condition(struct yaml_reader *r, const struct yaml_tree *map, const char *path, const struct spec *spec,
                    const char **value)
{
    const char **keys;
    const int before = errors_count(r->errors);
    NEW(r->region, keys, (size_t)spec->axes + 1);
    for (int a = 0; a < spec->axes; a++) keys[a] = spec->axis[a].key;
    if (map->kind != YAML_MAP)
        yaml_read_error(r, map, path, NULL, "expected a map of the sweep's keys to one value each");
    for (int i = 0; map->kind == YAML_MAP && i < map->count; i++) {
        int a = 0, v = 0;
        while (a < spec->axes && strcmp(keys[a], map->key[i]->text) != 0) a++;
        if (a == spec->axes) {
            const char *why = spec->axes ? yaml_read_unknown(r, map->key[i]->text, keys, "") : "nothing is swept";
            yaml_read_error(r, map->key[i], path, map->key[i]->text, "%s", why);
            continue;
        }
        value[a] = yaml_tree_print(map->item[i], r->region);
        while (v < spec->axis[a].count && strcmp(spec->axis[a].text[v], value[a]) != 0) v++;
        if (v == spec->axis[a].count)
            yaml_read_error(r, map->item[i], path, map->key[i]->text, "no point of the sweep has this value");
    }
    return errors_count(r->errors) == before;
}

bool sweep_point_meets(const struct spec *spec, int point, const char *const *value)
{
    for (int a = 0; a < spec->axes; a++)
        if (value[a] && strcmp(value[a], spec->axis[a].text[spec->point[point * spec->axes + a]]) != 0) return false;
    return true;
}

/* Every combination of the dimensions' values, of which the last changes fastest. */
static void add_points(struct yaml_reader *r, struct spec *spec, int points)
{
    NEW(r->region, spec->point, (size_t)points * (size_t)spec->axes);
    for (int p = 0; p < points; p++) {
        int rest = p, *value = &spec->point[p * spec->axes];
        for (int a = spec->axes - 1; a >= 0; a--) {
            const struct sweep_axis *axis = &spec->axis[a];
            value[a] = rest % axis->count;
            if (axis->dimension == a) rest /= axis->count;
        }
    }
    spec->points = points;
}

static void remove_points(struct yaml_reader *r, const struct yaml_tree *rows, struct spec *spec)
{
    const size_t size = (size_t)spec->axes * sizeof *spec->point;
    if (rows->kind != YAML_LIST) yaml_read_error(r, rows, "sweep", exclude_key, "expected a list of maps");
    for (int i = 0; rows->kind == YAML_LIST && i < rows->count; i++) {
        const char **value;
        int kept = 0;
        NEW(r->region, value, (size_t)spec->axes);
        if (!sweep_condition(r, rows->item[i], region_text(r->region, "sweep.exclude[%d]", i), spec, value)) continue;
        for (int p = 0; p < spec->points; p++)
            if (!sweep_point_meets(spec, p, value))
                memmove(&spec->point[kept++ * spec->axes], &spec->point[p * spec->axes], size);
        spec->points = kept;
    }
    if (!spec->points) yaml_read_error(r, rows, "sweep", exclude_key, "excludes every point");
}

void sweep_read(struct yaml_reader *r, const struct yaml_tree *sweep, struct spec *spec)
{
    double points = 1;
    const struct yaml_tree *exclude = yaml_tree_get(sweep, exclude_key);
    const int before = errors_count(r->errors);
    if (!sweep) return;
    if (sweep->kind != YAML_MAP) {
        yaml_read_error(r, sweep, NULL, "sweep", "expected a map of keys to lists, as in {policy.segments: [1, 2]}");
        return;
    }
    for (int i = 0; i < sweep->count; i++) {
        if (!strcmp(sweep->key[i]->text, zip_key))
            read_zip(r, sweep->item[i], spec);
        else if (strcmp(sweep->key[i]->text, exclude_key) != 0)
            read_axis(r, "sweep", sweep->key[i], sweep->item[i], spec);
    }
    for (int a = 0; a < spec->axes; a++) points *= spec->axis[a].dimension == a ? spec->axis[a].count : 1;
    if (points > POINTS_MAX) yaml_read_error(r, sweep, NULL, "sweep", "%.0f points; at most %d", points, POINTS_MAX);
    if (errors_count(r->errors) == before && !spec->axes) yaml_read_error(r, sweep, NULL, "sweep", "sweeps no key");
    if (errors_count(r->errors) > before) return;
    add_points(r, spec, (int)points);
    if (exclude) remove_points(r, exclude, spec);
}

/* ---- removing axes ---- */

static bool is_set(const char *axis, const char *key, size_t length)
{
    return !strncmp(axis, key, length) && (!axis[length] || axis[length] == '.');
}

/* map without the keys that key sets; at the end, *other: one of them had another value than that. */
static struct yaml_tree *without(const struct yaml_tree *map, const char *key, size_t length, const char *value,
                                 bool *other, struct region *region)
{
    struct yaml_tree *kept = yaml_tree_make(YAML_MAP, NULL, map->mark, region);
    for (int i = 0; map->kind == YAML_MAP && i < map->count; i++) {
        const char *name = map->key[i]->text;
        if (!is_set(name, key, length))
            yaml_tree_set(kept, name, map->key[i]->mark, map->item[i], region);
        else
            *other |= strcmp(name, key) != 0 || !value || strcmp(yaml_tree_print(map->item[i], region), value) != 0;
    }
    return kept;
}

/* The rows that can still hold, with their other keys; at: the member that is the map, NULL: the row is. */
static struct yaml_tree *rows_without(const struct yaml_tree *rows, const char *at, const char *key, size_t length,
                                      const char *value, struct region *region)
{
    struct yaml_tree *left = yaml_tree_copy(rows, region);
    left->count = 0;
    for (int i = 0; i < rows->count; i++) {
        struct yaml_tree *row = rows->item[i], *map = at ? yaml_tree_get(row, at) : row;
        bool other = false;
        if (map && map->kind == YAML_MAP) {
            map = without(map, key, length, value, &other, region);
            if (other || (!at && !map->count)) continue;
            row = at ? yaml_tree_copy(row, region) : map;
            if (at) yaml_tree_set(row, at, map->mark, map->count ? map : NULL, region);
        }
        left->item[left->count++] = row;
    }
    return left;
}

void sweep_remove(struct yaml_tree *root, const char *key, size_t length, const char *value, struct region *region)
{
    struct yaml_tree *sweep = yaml_tree_get(root, "sweep"), *expect = yaml_tree_get(root, "expect");
    bool other = false;
    if (!sweep || sweep->kind != YAML_MAP) return;
    struct yaml_tree *kept = without(sweep, key, length, value, &other, region), *zip = yaml_tree_get(kept, zip_key),
                     *exclude = yaml_tree_get(kept, exclude_key);
    if (zip && zip->kind == YAML_MAP) {
        zip = without(zip, key, length, value, &other, region);
        yaml_tree_set(kept, zip_key, zip->mark, zip->count ? zip : NULL, region);
    }
    if (exclude && exclude->kind == YAML_LIST) {
        exclude = rows_without(exclude, NULL, key, length, value, region);
        yaml_tree_set(kept, exclude_key, exclude->mark, exclude->count ? exclude : NULL, region);
    }
    if (expect && expect->kind == YAML_LIST)
        yaml_tree_set(root, "expect", expect->mark, rows_without(expect, "at", key, length, value, region), region);
    yaml_tree_set(root, "sweep", sweep->mark, kept->count ? kept : NULL, region);
}
