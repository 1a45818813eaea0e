#include "show.h"

#include <string.h>

#include "units.h"
#include "utf8.h"

enum { ROWS_SHOWN = 20 };

const struct show_group show_groups[] = {
    {"/", false, NULL, {NULL}},
    {"/spec", false, NULL, {"overrides", NULL}},
    {"/plan", false, "word", {"peak_tensors", NULL}},
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

/* An attribute that is no single text or number is left out. */
static void print_value(hid_t attribute, FILE *out)
{
    hid_t type = H5Aget_type(attribute);
    H5T_class_t kind = H5Tget_class(type);
    if (kind == H5T_STRING && H5Tis_variable_str(type) > 0) {
        char *text = NULL;
        if (H5Aread(attribute, type, &text) >= 0 && text) {
            utf8_clean(text, "");
            fputs(text, out);
        }
        H5free_memory(text);
    } else if (kind == H5T_INTEGER) {
        uint64_t number = 0;
        if (H5Aread(attribute, H5T_NATIVE_UINT64, &number) >= 0) fprintf(out, "%llu", (unsigned long long)number);
    } else if (kind == H5T_FLOAT) {
        double number = 0;
        if (H5Aread(attribute, H5T_NATIVE_DOUBLE, &number) >= 0) fprintf(out, "%.9g", number);
    }
    H5Tclose(type);
}

static herr_t print_attribute(hid_t object, const char *name, const H5A_info_t *info, void *out)
{
    (void)info;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), space = attribute < 0 ? -1 : H5Aget_space(attribute);
    if (space >= 0 && H5Sget_simple_extent_npoints(space) == 1) {
        char shown[256];
        snprintf(shown, sizeof shown, "%s", name);
        utf8_clean(shown, "");
        fprintf(out, "  %-26s ", shown);
        print_value(attribute, out);
        fputc('\n', out);
    }
    if (space >= 0) H5Sclose(space);
    if (attribute >= 0) H5Aclose(attribute);
    return 0;
}

/* All attributes of the object at path, by name. */
static void print_attributes(struct h5 *h5, const char *path, FILE *out)
{
    hsize_t at = 0;
    h5_guard(h5);
    H5Aiterate_by_name(h5->file, path, H5_INDEX_NAME, H5_ITER_INC, &at, print_attribute, out, H5P_DEFAULT);
    h5_release(h5);
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
    print_attributes(&r->h5, group->path, out);
    if (group->text) print_texts(r, group, group->text, out);
    for (const char *const *name = group->lists; *name; name++) print_texts(r, group, *name, out);
}

/* ---- the run ---- */

/* The first steps and the last ones. Files of older programs have no learning rates. */
static void print_steps(struct result *r, FILE *out)
{
    const bool rates = h5_exists(&r->h5, "/steps/lr");
    fprintf(out, "/steps: %zu committed\n%8s %16s %12s %12s%s\n", r->steps, "step", "loss", "time", "live peak",
            rates ? "            lr" : "");
    for (size_t i = 0; i < r->steps; i++) {
        char time[UNIT_TEXT], live[UNIT_TEXT];
        if (r->steps > ROWS_SHOWN && i == ROWS_SHOWN / 2) {
            fprintf(out, "%8s\n", "...");
            i = r->steps - ROWS_SHOWN / 2;
        }
        fprintf(out, "%8u %16.9g %12s %12s", r->step[i], (double)r->loss[i], duration_text(r->total_ns[i], time),
                bytes_text((double)r->live[i], live));
        double rate = 0;
        if (rates) h5_read_rows(&r->h5, "/steps/lr", NUMBER_F64, 1, i, 1, &rate);
        fprintf(out, rates ? "  %12.6g\n" : "\n", rate);
    }
}

uint64_t show_evaluations(struct result *result)
{
    return h5_exists(&result->h5, "/eval/committed") ? h5_rows(&result->h5, "/eval/committed") : 0;
}

static void print_evaluations(struct result *r, FILE *out)
{
    struct h5 *h5 = &r->h5;
    const uint64_t rows = show_evaluations(r);
    if (rows) fprintf(out, "/eval\n%8s %16s %10s\n", "steps", "loss", "accuracy");
    for (uint64_t i = 0; i < rows && !h5->broken; i++) {
        uint32_t step;
        float loss, accuracy;
        h5_read_rows(h5, "/eval/step", NUMBER_U32, 1, i, 1, &step);
        h5_read_rows(h5, "/eval/loss", NUMBER_F32, 1, i, 1, &loss);
        h5_read_rows(h5, "/eval/accuracy", NUMBER_F32, 1, i, 1, &accuracy);
        fprintf(out, "%8u %16.9g %9.2f%%\n", step, (double)loss, 100 * (double)accuracy);
    }
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
