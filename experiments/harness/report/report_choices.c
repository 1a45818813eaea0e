#include "report/report_tree.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/policy_grid.h"
#include "analysis/resolved_spec.h"
#include "base/text.h"
#include "console/terminal.h"
#include "numerics/digest.h"
#include "result/record_plan.h"
#include "run/job_plans.h"
#include "spec/spec_settings.h"
#include "yaml/yaml_tree.h"

/* ---- the plans of every policy ---- */

/* Where a chart may end, above nearly all plans: a few take several times as long as the others. */
static double slowdown_shown(const struct policy_grid *grid)
{
    double shown = 0;
    for (int i = 0; i < grid->trials; i++) {
        int faster = 0;
        for (int k = 0; k < grid->trials; k++) faster += grid->trial[k].plan.slowdown < grid->trial[i].plan.slowdown;
        if (faster <= grid->trials * 9 / 10) shown = fmax(shown, grid->trial[i].plan.slowdown);
    }
    return fmax(1 + 1.15 * (shown - 1), 1.01);
}

/* From the memory without which no schedule runs, evenly, to the largest of the plans. Between two of these the bound
 * is at least that of the larger one: the line is a stair, which steps down at the smaller one. */
static json_t *bound_rows(const struct policy_grid *grid)
{
    enum { POINTS = 96 };
    json_t *rows = json_array();
    const struct network *network = grid->job->network;
    size_t most = 0;
    for (int i = 0; i < grid->trials; i++)
        if (grid->trial[i].plan.live_peak > most) most = grid->trial[i].plan.live_peak;
    const size_t least = bounds_find(network, most).memory;
    for (int i = 0; i < POINTS && least < most; i++) {
        const size_t live = least + (size_t)((double)(most - least) * i / (POINTS - 1));
        const struct bounds bounds = bounds_find(network, live);
        ADD(rows, OBJECT(KEY("live_peak_bytes", live), KEY("slowdown", bounds_slowdown(&bounds, bounds.best))));
    }
    return rows;
}

/* With the times that the file gives its nodes. */
static enum status find_choices(struct result *r, struct job *job, json_t *choices)
{
    struct policy_grid grid = {.region = r->region, .job = job, .progress = stderr, .slowdown = INFINITY};
    struct plan_data data;
    TRY(record_plan_read(&r->h5, r->region, &data));
    record_plan_costs(&data, job->network->cost);
    const enum status status = policy_grid_all(&grid);
    terminal_note(stderr, "");
    TRY(status);
    json_t *rows = json_array();
    for (const struct trial *t = grid.trial; t < grid.trial + grid.trials; t++)
        ADD(rows, PUT_ALL(trial_json(t), KEY("gap_percent", t->gap), KEY("pareto", json_boolean(t->best))));
    PUT_ALL(choices, KEY("plans", rows), KEY("bound", bound_rows(&grid)), KEY("slowdown_shown", slowdown_shown(&grid)));
    return ST_OK;
}

static enum status choose(const char *path, json_t *choices)
{
    struct resolved_spec resolved = {.descriptor = -1};
    spec_auto *spec = NULL;
    job_auto *job = NULL;
    result_auto *r = NULL;
    char absolute[PATH_MAX];
    TRY(result_open(path, &r));
    enum status status = resolved_spec_load(r, realpath(path, absolute) ? absolute : path, &resolved, &spec);
    if (status == ST_OK) status = resolved_spec_prepare(spec, &job);
    if (status == ST_OK) status = job_make_plans(job);
    if (status == ST_OK) status = find_choices(r, job, choices);
    if (resolved.descriptor >= 0) close(resolved.descriptor);
    return status;
}

json_t *report_choices(const char *path, json_t *notes)
{
    json_t *choices = json_object();
    if (choose(path, choices) == ST_OK) return choices;
    json_note(notes, "without the plans of other policies: %s", status_message());
    json_decref(choices);
    return NULL;
}

/* ---- axes ---- */

/* A schedule can have thousands of characters: then the first and a digest, so that different ones stay different. */
static const char *short_text(const char *text, struct region *region)
{
    enum { MOST = 200 };
    const size_t length = strlen(text);
    if (length <= MOST) return text;
    return region_text(region, "%.*s... (%.8s)", text_shown(text, MOST / 2), text,
                       DIGEST_TEXT(digest_bytes(text, length)));
}

/* Adds the texts of a map by their paths, such as policy.segments; lists, which are layers and expectations, are left
 * out. */
static void flatten(const struct yaml_tree *map, const char *path, json_t *flat, struct region *region)
{
    for (int i = 0; map && map->kind == YAML_MAP && i < map->count; i++) {
        const struct yaml_tree *value = map->item[i];
        const char *key = region_text(region, "%s%s%s", path, *path ? "." : "", map->key[i]->text);
        if (value->kind == YAML_TEXT) PUT(flat, key, short_text(value->text, region));
        flatten(value, key, flat, region);
    }
}

json_t *report_list(struct result *r, const char *key)
{
    json_t *all = json_array();
    const char *text = h5_read_text(&r->h5, "/spec/resolved", r->region);
    const struct yaml_tree *list = text ? yaml_tree_get(yaml_tree_of_text(text, r->region), key) : NULL;
    for (int i = 0; list && list->kind == YAML_LIST && i < list->count; i++) {
        json_t *one = json_object();
        flatten(list->item[i], "", one, r->region);
        ADD(all, one);
    }
    return all;
}

/* The first override of a key that changes the number; "": there is none, or the numbers are the spec's own. */
static const char *override_of(struct result *r, int what)
{
    size_t count = 0;
    if (h5_read_attribute_u64(&r->h5, "/spec", "own_size", 1)) return "";
    const char **line = h5_read_texts(&r->h5, "/spec/overrides", r->region, &count);
    for (size_t i = 0; line && i < count; i++) {
        const char *key = region_text(r->region, "%.*s", (int)strcspn(line[i], ":"), line[i]);
        if (spec_changes(key) >> what & 1) return key;
    }
    return "";
}

json_t *report_expectations(struct result *r)
{
    json_t *all = report_list(r, "expect");
    json_auto_t *settings = report_settings(r);
    const char *wanted = json_string_at(settings, "data.name"),
               *used = h5_read_attribute_text(&r->h5, "/provenance/data", "name", "", r->region);
    const bool other_data = wanted && *used && strcmp(wanted, used) != 0;
    EACH (all, i, one) {
        const char *name = json_string_at(one, "what"), *key = "";
        int what = 0;
        while (what < EXPECTABLE && (!name || strcmp(name, expectation_names[what]) != 0)) what++;
        if (what < EXPECTABLE) key = override_of(r, what);
        const bool of_data = what == EXPECT_ACCURACY || what == EXPECT_LOSS;
        PUT(one, "unlike",
            *key                    ? json_sprintf("%s was overridden", key)
            : other_data && of_data ? json_string("other data stand in")
                                    : json_null());
    }
    return all;
}

/* Parameters of a model are in no resolved spec, but in the lines of its overrides: "model.parameters.depth: 2 -> 4" */
static void add_parameters(struct result *r, json_t *flat)
{
    size_t count = 0;
    const char **line = h5_read_texts(&r->h5, "/spec/overrides", r->region, &count);
    for (size_t i = 0; line && i < count; i++) {
        const char *colon = strstr(line[i], ": "), *arrow = strstr(line[i], " -> ");
        if (strncmp(line[i], "model.", 6) == 0 && colon && arrow)
            PUT(flat, region_text(r->region, "%.*s", (int)(colon - line[i]), line[i]),
                short_text(arrow + 4, r->region));
    }
}

json_t *report_settings(struct result *r)
{
    static const char *const ignored[] = {"name", "title", "results", NULL};
    json_t *flat = json_object();
    const char *text = h5_read_text(&r->h5, "/spec/resolved", r->region);
    if (text) flatten(yaml_tree_of_text(text, r->region), "", flat, r->region);
    for (const char *const *key = ignored; *key; key++) json_object_del(flat, *key);
    add_parameters(r, flat);
    return flat;
}

/* Whether runs with equal values in a have equal ones in b. */
static bool determines(const json_t *a, const json_t *b)
{
    json_auto_t *of = json_object();
    EACH (a, i, value) {
        const char *key = json_is_string(value) ? json_string_value(value) : "";
        const json_t *known = json_object_get(of, key);
        if (known && !json_equal(known, json_array_get(b, i))) return false;
        json_object_set(of, key, json_array_get(b, i));
    }
    return true;
}

static void add_axis(json_t *axes, const char *key, const json_t *settings)
{
    json_auto_t *values = json_array();
    bool same = true;
    EACH (settings, i, one) {
        json_t *value = json_object_get(one, key);
        ADD(values, value ? json_incref(value) : json_null());
        same = same && json_equal(json_array_get(values, i), json_array_get(values, 0));
    }
    EACH (same ? NULL : axes, k, known) same = same || determines(json_object_get(known, "values"), values);
    if (!same) ADD(axes, json_pack("{s:s, s:O}", "key", key, "values", values));
}

double report_number(const char *text)
{
    const size_t length = text ? strlen(text) : 0;
    char bare[32];
    uint64_t bytes;
    double number;
    if (!length) return NAN;
    if (text[length - 1] == '%' && length < sizeof bare) text = strcpy(bare, text), bare[length - 1] = '\0';
    if (!text_to_real(text, &number)) return number;
    return text_to_bytes(text, &bytes) ? (double)NAN : (double)bytes / 0x1p20;
}

/* Of each run the curve that it is on, named by what it has on the other axes, and its place on this axis; without
 * places if one has no number. */
static void add_curves(json_t *axes, json_t *axis, struct region *region)
{
    json_t *curves = json_array();
    json_auto_t *numbers = json_array();
    bool numeric = true;
    EACH (json_object_get(axis, "values"), run, value) {
        const char *curve = "";
        const double number = report_number(json_string_value(value));
        EACH (axes, i, other) {
            const char *text = json_string_value(json_array_get(json_object_get(other, "values"), run));
            if (other == axis) continue;
            curve = region_text(region, "%s%s%s=%s", curve, *curve ? " " : "", json_string_at(other, "key"),
                                text ? text : "");
        }
        ADD(curves, *curve ? curve : "variants");
        ADD(numbers, number);
        numeric = numeric && !isnan(number);
    }
    PUT(axis, "curves", curves);
    if (numeric) json_object_set(axis, "numbers", numbers);
}

json_t *report_axes(const json_t *settings, struct region *region)
{
    json_t *axes = json_array(), *value;
    json_auto_t *keys = json_object();
    const char *key;
    EACH (settings, i, one) json_object_update_missing(keys, one);
    json_object_foreach (keys, key, value) {
        add_axis(axes, key, settings);
    }
    EACH (axes, k, axis) add_curves(axes, axis, region);
    return axes;
}
