#include "report/show.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "console/utf8.h"
#include "report/commands.h"
#include "report/text_table.h"
#include "result/record.h"
#include "result/result_read.h"

enum { ROWS_SHOWN = 20 };

/* Groups by their path, and a text and lists of texts below them: first what was run, planned and measured, then on
 * what. */
static const struct shown_group {
    const char *path;
    bool provenance;
    const char *text, *lists[3]; /* names; NULL: none, no more */
} groups[] = {
    {"/", false, NULL, {NULL}},
    {"/spec", false, NULL, {"overrides", NULL}},
    {"/plan", false, "schedule", {"peak_tensors", NULL}},
    {"/summary", false, NULL, {NULL}},
    {"/provenance/git", true, NULL, {NULL}},
    {"/provenance/build", true, NULL, {NULL}},
    {"/provenance/libs", true, NULL, {NULL}},
    {"/provenance/host", true, NULL, {NULL}},
    {"/provenance/gpu", true, NULL, {NULL}},
    {"/provenance/data", true, NULL, {"path", "sha256", NULL}},
    {"/provenance/weights", true, NULL, {"initialised", "unused", NULL}},
    {.path = NULL},
};

/* ---- reading ---- */

struct attributes {
    struct h5 *h5;
    json_t *json;
};

static json_t *json_of_attribute(struct h5 *h5, hid_t attribute, hid_t type, const char *name)
{
    const H5T_class_t kind = H5Tget_class(type);
    char *text = NULL;
    int64_t whole = 0;
    double real = 0;
    bool read = true;
    if (kind == H5T_INTEGER) read = H5Aread(attribute, H5T_NATIVE_INT64, &whole) >= 0;
    if (kind == H5T_FLOAT) read = H5Aread(attribute, H5T_NATIVE_DOUBLE, &real) >= 0;
    if (kind == H5T_STRING && H5Tis_variable_str(type) > 0) read = H5Aread(attribute, type, &text) >= 0;
    if (text) utf8_clean(text, "");
    json_t *json_member = kind == H5T_INTEGER ? json_integer(whole)
                          : kind == H5T_FLOAT ? json_of_real(real)
                                              : json_of_text(text);
    h5_check(h5, H5free_memory(text) >= 0 && read, "read attribute", name);
    return json_member;
}

static herr_t add_attribute(hid_t object, const char *name, const H5A_info_t *info, void *to)
{
    const struct attributes *all = to;
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = H5Aget_type(attribute),
                space = H5Aget_space(attribute);
    (void)info;
    if (h5_check(all->h5, type >= 0 && space >= 0, "read attribute", name) && H5Sget_simple_extent_npoints(space) == 1)
        PUT(all->json, name, json_of_attribute(all->h5, attribute, type, name));
    h5_drop(all->h5, name, space, type, attribute);
    return all->h5->broken ? -1 : 0;
}

static void add_attributes(json_t *object, struct h5 *h5, const char *path)
{
    struct attributes all = {h5, object};
    hsize_t at = 0;
    h5_guard(h5);
    const herr_t read =
        H5Aiterate_by_name(h5->file, path, H5_INDEX_NAME, H5_ITER_INC, &at, add_attribute, &all, H5P_DEFAULT);
    h5_check(h5, read >= 0, "read the attributes of", path);
    h5_release(h5);
}

/* An array; empty where the group has no such texts. */
static json_t *json_of_texts(struct result *r, const struct shown_group *group, const char *name)
{
    char path[128];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/%s", group->path, name);
    const char **texts = h5_exists(&r->h5, path) ? h5_read_texts(&r->h5, path, r->region, &count) : NULL;
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) ADD(list, texts[i]);
    return list;
}

static void add_group(json_t *all, struct result *r, const struct shown_group *group)
{
    if (!h5_exists(&r->h5, group->path)) return;
    json_t *object = json_object();
    add_attributes(object, &r->h5, group->path);
    if (group->text) {
        json_auto_t *texts = json_of_texts(r, group, group->text);
        if (json_array_size(texts)) json_object_set(object, group->text, json_array_get(texts, 0));
    }
    for (const char *const *name = group->lists; *name; name++) PUT(object, *name, json_of_texts(r, group, *name));
    PUT(all, group->path, object);
}

json_t *show_groups(struct result *r)
{
    json_t *all = OBJECT(KEY("path", r->h5.path), KEY("now", r->now));
    for (const struct shown_group *group = groups; group->path; group++) add_group(all, r, group);
    return all;
}

/* Each table as an array a column. Digests, which are pairs, are left out: compare compares them. */
static enum status read_all(struct result *r, json_t *all)
{
    static const char *const tables[] = {"pieces", "steps", "eval", "summary"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        json_t *table = json_object();
        PUT(all, tables[i], table);
        TRY(show_table(r, tables[i], false, table));
    }
    PUT(all, "pieces", json_rows(json_object_get(all, "pieces")));
    const json_t *timed = json_object_get(json_object_get(all, "summary"), "op_least_ns");
    if (!json_array_size(timed)) json_object_del(all, "summary");
    return ST_OK;
}

/* ---- text ---- */

/* The unit of a number, by the end of its name; readable: large ones are shown in a larger unit too. */
static const struct unit_row {
    const char *end, *name;
    bool readable;
} units[] = {{"_bytes", "B", true}, {"granularity", "B", false}, {"_flops", "FLOP", true},
             {"_ns", "ns", true},   {"_percent", "%", false},    {NULL, "", false}};

static void print_number(const char *name, const json_t *value, FILE *out)
{
    const struct unit_row *unit = units;
    const double number = json_number_value(value);
    while (unit->end && !text_ends(name, unit->end) && strcmp(name, unit->end) != 0) unit++;
    if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else
        fprintf(out, "%.9g", number);
    fprintf(out, "%s%s", *unit->name ? " " : "", unit->name);
    if (unit->readable && fabs(number) >= 1000)
        fprintf(out, " (%s)", text_number(name, number, false, (char[UNIT_TEXT]){""}));
}

/* Whether the plan's times are those of a graph file, which has no flops. */
static bool is_of_graph(const json_t *group)
{
    const char *costs = json_string_at(group, "costs");
    return costs && !strcmp(costs, GRAPH_COSTS);
}

/* A plan's time is in the unit of its costs. */
static const char *unit_of(const char *name, const json_t *group)
{
    const char *costs = json_string_at(group, "costs");
    if (strcmp(name, "time") != 0 || is_of_graph(group)) return name;
    return costs && !strcmp(costs, "measured") ? "time_ns" : "time_flops";
}

void show_group(const char *path, json_t *group, FILE *out)
{
    const char *name;
    json_t *value;
    if (!group) return;
    fprintf(out, "%s\n", path);
    json_object_foreach (group, name, value) {
        char label[300], shown[256];
        if (is_of_graph(group) && text_ends(name, "_flops")) continue;
        snprintf(shown, sizeof shown, "%s", name);
        utf8_clean(shown, "");
        snprintf(label, sizeof label, "  %-26s ", shown);
        if (json_is_array(value)) {
            text_notes(value, label, out);
            continue;
        }
        fputs(label, out);
        if (json_is_number(value))
            print_number(unit_of(name, group), value, out);
        else if (!strcmp(name, "schedule") && json_is_string(value))
            text_schedule(json_string_value(value), out);
        else
            fputs(json_is_string(value) ? json_string_value(value) : "", out);
        fputc('\n', out);
    }
}

/* Of a run that went on. */
static void print_pieces(json_t *pieces, FILE *out)
{
    if (json_array_size(pieces) < 2) return;
    fprintf(out, "/pieces: the first step that each recorded, and the steps that it took over as its state\n");
    text_table(pieces, "step state created ended host", 2, false, out);
}

/* The first steps and the last ones. */
static void print_steps(const json_t *steps, FILE *out)
{
    json_auto_t *rows = json_rows(steps), *shown = json_array();
    const size_t count = json_array_size(rows);
    fprintf(out, "/steps: %zu committed\n", count);
    EACH (rows, i, row) {
        json_object_set(row, "live_peak_bytes", json_object_get(row, "live_peak"));
        if (count > ROWS_SHOWN && i == ROWS_SHOWN / 2)
            ADD(shown, json_pack("{s:s}", "step", "..."));
        else if (count <= ROWS_SHOWN || i < ROWS_SHOWN / 2 || i >= count - ROWS_SHOWN / 2)
            json_array_append(shown, row);
    }
    text_table(shown, "step loss total_ns live_peak_bytes lr", 2, false, out);
}

static void print_evaluations(const json_t *eval, FILE *out)
{
    json_auto_t *rows = json_rows(eval);
    EACH (rows, i, row) {
        json_object_set(row, "steps", json_object_get(row, "step"));
        PUT(row, "accuracy_percent", 100 * json_number_at(row, "accuracy"));
    }
    if (json_array_size(rows)) fprintf(out, "/eval\n");
    if (json_array_size(rows)) text_table(rows, "steps loss accuracy_percent", 2, false, out);
}

/* What a person asks first. */
static void print_overview(const json_t *all, FILE *out)
{
    region_auto *region = region_create();
    const json_t *root = json_object_get(all, "/"), *plan = json_object_get(all, "/plan"),
                 *summary = json_object_get(all, "/summary"), *host = json_object_get(all, "/provenance/host");
    const char *title = json_string_at(root, "title"), *name = json_string_at(root, "experiment"),
               *path = json_string_at(all, "path"), *side = json_string_at(root, "variant"),
               *cpu = json_string_at(host, "cpu"), *isa = json_string_at(host, "isa");
    const size_t steps = json_array_size(json_object_get(json_object_get(all, "steps"), "step")),
                 pieces = json_array_size(json_object_get(all, "pieces"));
    const double median = json_number_at(summary, "step_median_ns"),
                 best = json_number_at(summary, "step_best_case_ns");
    const bool ran = side && strcmp(side, "plan") != 0, titled = title && name && strcmp(title, name) != 0;
    fprintf(out, "what       %s%s%s: %s of policy %s, batch %.0f, %zu step%s, %s%s\n", titled ? title : "",
            titled ? ", " : "", name ? name : "", side ? side : "", json_string_at(plan, "policy"),
            json_number_at(plan, "batch"), steps, text_plural((int64_t)steps), json_string_at(all, "now"),
            pieces > 1 ? region_text(region, ", resumed %zu time%s", pieces - 1, text_plural((int64_t)pieces - 1))
                       : "");
    fprintf(out, "verdict    %s\n", ran ? list_verdict(path, region) : "none: a plan, nothing ran");
    fprintf(out, "peak       %s: static %s and arena %s; live peak %s\n",
            BYTES_TEXT(json_number_at(plan, "peak_bytes")), BYTES_TEXT(json_number_at(plan, "static_bytes")),
            BYTES_TEXT(json_number_at(plan, "arena_bytes")), BYTES_TEXT(json_number_at(plan, "live_peak_bytes")));
    fprintf(out, "step       %s%s%s, planned x%.3f\n",
            median > 0 ? region_text(region, "%s, median of the steps after the first", DURATION_TEXT(median))
                       : "not measured",
            best > 0 ? ", best case " : "", best > 0 ? region_text(region, "%s", DURATION_TEXT(best)) : "",
            json_number_at(plan, "slowdown"));
    fprintf(out, "where      %s%s%s, %.0f thread%s; %s; %s\n\n", cpu ? cpu : "", isa && *isa ? ", " : "",
            isa ? isa : "", json_number_at(host, "threads"), text_plural((int64_t)json_number_at(host, "threads")),
            json_string_at(root, "created"), path);
}

static void print_all(const json_t *all, bool provenance, FILE *out)
{
    print_overview(all, out);
    fprintf(out, "%s\n  %-26s %s\n", json_string_at(all, "path"), "now", json_string_at(all, "now"));
    for (const struct shown_group *group = groups; group->path; group++) {
        if (strcmp(group->path, "/summary") == 0) {
            print_pieces(json_object_get(all, "pieces"), out);
            print_steps(json_object_get(all, "steps"), out);
            print_evaluations(json_object_get(all, "eval"), out);
        }
        if (provenance || !group->provenance) show_group(group->path, json_object_get(all, group->path), out);
    }
}

enum status show_json(const char *path, json_t **json)
{
    result_auto *result = NULL;
    *json = NULL;
    TRY(result_open(path, &result));
    *json = show_groups(result);
    return read_all(result, *json);
}

enum status show_file(const char *path, bool provenance, bool json, FILE *out)
{
    json_auto_t *all = NULL;
    TRY(show_json(path, &all));
    if (json)
        json_answer(json_incref(all), "show", out);
    else
        print_all(all, provenance, out);
    return ST_OK;
}
