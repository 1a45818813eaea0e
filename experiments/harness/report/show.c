#include "report/show.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "console/columns.h"
#include "console/utf8.h"
#include "spec/spec_settings.h"

enum { ROWS_SHOWN = 20 };

const struct show_group show_groups[] = {
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

/* ---- attributes, whatever they are ---- */

static char *time_text(double ns, char text[UNIT_TEXT]) { return duration_text(ns > 0 ? (uint64_t)ns : 0, text); }

/* What a number is in, by the end of its name. */
static const struct numbers_in {
    const char *end, *name;
    char *(*text)(double value, char text[UNIT_TEXT]); /* as people read it; NULL: as it is */
} units[] = {{"_bytes", "B", bytes_text}, {"granularity", "B", NULL}, {"_flops", "FLOP", flops_text},
             {"_ns", "ns", time_text},    {"_percent", "%", NULL},    {NULL, NULL, NULL}};

/* Of a plan's time, by where its costs come from. */
static const struct numbers_in planned_flops = {"time", "FLOP", flops_text}, planned_ns = {"time", "ns", time_text};

struct attributes {
    const struct numbers_in *time;
    FILE *out;
};

static void print_number(const struct attributes *a, const char *name, const char *exact, double number)
{
    const struct numbers_in *unit = units;
    char text[UNIT_TEXT];
    while (unit->end && !text_ends(name, unit->end) && strcmp(name, unit->end) != 0) unit++;
    if (strcmp(name, a->time->end) == 0) unit = a->time;
    fprintf(a->out, "%s%s%s", exact, unit->end ? " " : "", unit->end ? unit->name : "");
    if (unit->text && fabs(number) >= 1000) fprintf(a->out, " (%s)", unit->text(number, text));
}

/* An attribute that is no single text or number is left out; false: it cannot be read. */
static bool print_value(hid_t attribute, const char *name, const struct attributes *a)
{
    const hid_t type = H5Aget_type(attribute);
    const H5T_class_t kind = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    bool read = kind != H5T_NO_CLASS;
    char exact[64];
    if (kind == H5T_STRING && H5Tis_variable_str(type) > 0) {
        char *text = NULL;
        read = H5Aread(attribute, type, &text) >= 0;
        if (read && text) {
            utf8_clean(text, "");
            fputs(text, a->out);
        }
        read = H5free_memory(text) >= 0 && read;
    } else if (kind == H5T_INTEGER) {
        uint64_t number = 0;
        if ((read = H5Aread(attribute, H5T_NATIVE_UINT64, &number) >= 0)) {
            snprintf(exact, sizeof exact, "%llu", (unsigned long long)number);
            print_number(a, name, exact, (double)number);
        }
    } else if (kind == H5T_FLOAT) {
        double number = 0;
        if ((read = H5Aread(attribute, H5T_NATIVE_DOUBLE, &number) >= 0)) {
            snprintf(exact, sizeof exact, "%.9g", number);
            print_number(a, name, exact, number);
        }
    }
    return (type < 0 || H5Tclose(type) >= 0) && read;
}

static herr_t print_attribute(hid_t object, const char *name, const H5A_info_t *info, void *to)
{
    const struct attributes *a = to;
    (void)info;
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), space = attribute < 0 ? -1 : H5Aget_space(attribute);
    bool read = space >= 0;
    if (space >= 0 && H5Sget_simple_extent_npoints(space) == 1) {
        char shown[256];
        snprintf(shown, sizeof shown, "%s", name);
        utf8_clean(shown, "");
        fprintf(a->out, "  %-26s ", shown);
        read = print_value(attribute, name, a);
        fputc('\n', a->out);
    }
    if (space >= 0) read = H5Sclose(space) >= 0 && read;
    if (attribute >= 0) read = H5Aclose(attribute) >= 0 && read;
    return read ? 0 : -1;
}

/* All attributes of the object at path, by name. */
static void print_attributes(struct result *r, const char *path, FILE *out)
{
    hsize_t at = 0;
    const char *costs = h5_read_attribute_text(&r->h5, path, "costs", "", r->region);
    struct attributes attributes = {strcmp(costs, costs_names[COSTS_MEASURED]) == 0 ? &planned_ns : &planned_flops,
                                    out};
    h5_guard(&r->h5);
    const herr_t read = H5Aiterate_by_name(r->h5.file, path, H5_INDEX_NAME, H5_ITER_INC, &at, print_attribute,
                                           &attributes, H5P_DEFAULT);
    h5_check(&r->h5, read >= 0, "read the attributes of", path);
    h5_release(&r->h5);
}

/* ---- groups of them ---- */

bool show_has(struct result *result, const struct show_group *group)
{
    return strcmp(group->path, "/") == 0 || h5_exists(&result->h5, group->path);
}

const char **show_texts(struct result *result, const struct show_group *group, const char *name, size_t *count)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", group->path, name);
    *count = 0;
    return h5_exists(&result->h5, path) ? h5_read_texts(&result->h5, path, result->region, count) : NULL;
}

static void print_texts(struct result *r, const struct show_group *group, const char *name, FILE *out)
{
    size_t count;
    const char **texts = show_texts(r, group, name, &count);
    for (size_t i = 0; i < count; i++) fprintf(out, "  %-26s %s\n", name, texts[i]);
}

static void print_group(struct result *r, const struct show_group *group, FILE *out)
{
    if (!show_has(r, group)) return;
    fprintf(out, "%s\n", group->path);
    print_attributes(r, group->path, out);
    if (group->text) print_texts(r, group, group->text, out);
    for (const char *const *name = group->lists; *name; name++) print_texts(r, group, *name, out);
}

/* ---- the run ---- */

/* The first steps and the last ones. Files of older programs have no learning rates. */
static void print_steps(struct result *r, FILE *out)
{
    static const struct column column[] = {{"step", .right = true},
                                           {"loss", .right = true},
                                           {"time", .right = true},
                                           {"live peak", .right = true, .rank = 2},
                                           {"lr", .right = true, .rank = 1}};
    const bool rates = h5_exists(&r->h5, "/steps/lr");
    struct columns table;
    fprintf(out, "/steps: %zu committed\n", r->steps);
    columns_begin(&table, column, rates ? 5 : 4);
    table.indent = 2;
    for (size_t i = 0; i < r->steps; i++) {
        char text[UNIT_TEXT];
        if (r->steps > ROWS_SHOWN && i == ROWS_SHOWN / 2) {
            columns_cell(&table, "...");
            columns_rest(&table);
            i = r->steps - ROWS_SHOWN / 2;
        }
        columns_cell(&table, "%u", r->step[i]);
        columns_cell(&table, "%.9g", (double)r->loss[i]);
        columns_cell(&table, "%s", duration_text(r->total_ns[i], text));
        columns_cell(&table, "%s", bytes_text((double)r->live[i], text));
        double rate = 0;
        if (!rates) continue;
        h5_read_rows(&r->h5, "/steps/lr", NUMBER_F64, 1, i, 1, &rate);
        columns_cell(&table, "%.6g", rate);
    }
    columns_print(&table, out);
}

uint64_t show_evaluations(struct result *result)
{
    return h5_exists(&result->h5, "/eval/committed") ? h5_rows(&result->h5, "/eval/committed") : 0;
}

static void print_evaluations(struct result *r, FILE *out)
{
    static const struct column column[] = {
        {"steps", .right = true}, {"loss", .right = true}, {"accuracy", .right = true}};
    struct h5 *h5 = &r->h5;
    struct columns table;
    const uint64_t rows = show_evaluations(r);
    if (!rows) return;
    fprintf(out, "/eval\n");
    columns_begin(&table, column, sizeof column / sizeof *column);
    table.indent = 2;
    for (uint64_t i = 0; i < rows && !h5->broken; i++) {
        uint32_t step;
        float loss, accuracy;
        h5_read_rows(h5, "/eval/step", NUMBER_U32, 1, i, 1, &step);
        h5_read_rows(h5, "/eval/loss", NUMBER_F32, 1, i, 1, &loss);
        h5_read_rows(h5, "/eval/accuracy", NUMBER_F32, 1, i, 1, &accuracy);
        columns_cell(&table, "%u", step);
        columns_cell(&table, "%.9g", (double)loss);
        columns_cell(&table, "%.2f %%", 100 * (double)accuracy);
    }
    columns_print(&table, out);
}

static void print_result(struct result *r, bool provenance, FILE *out)
{
    char status[RESULT_STATUS];
    fprintf(out, "%s\n  %-26s %s\n", r->h5.path, "now", result_status(r, status));
    for (const struct show_group *group = show_groups; group->path; group++) {
        if (strcmp(group->path, "/summary") == 0) {
            print_steps(r, out);
            print_evaluations(r, out);
        }
        if (provenance || !group->provenance) print_group(r, group, out);
    }
}

enum status show_file(const char *path, bool provenance, FILE *out)
{
    struct result *result = NULL;
    TRY(result_open(path, &result));
    print_result(result, provenance, out);
    enum status status = h5_status(&result->h5);
    result_close(result);
    return status;
}
