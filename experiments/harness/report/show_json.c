/* A result file as one JSON object, for programs: objects of attributes and texts by the path of what has them, and
 * under "steps", "eval" and "summary" an array a column. Keys are the file's own names (results/README.md). */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "console/utf8.h"
#include "report/show.h"
#include "result/record_layout.h"

/* JSON has no numbers that are not finite. */
static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* NULL: it cannot be read. */
static json_t *attribute_json(hid_t attribute)
{
    const hid_t type = H5Aget_type(attribute);
    const H5T_class_t kind = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    bool read = kind != H5T_NO_CLASS;
    json_t *value = NULL;
    if (kind == H5T_STRING && H5Tis_variable_str(type) > 0) {
        char *text = NULL;
        read = H5Aread(attribute, type, &text) >= 0;
        if (text) utf8_clean(text, "");
        value = json_string(text);
        read = H5free_memory(text) >= 0 && read;
    } else if (kind == H5T_INTEGER) {
        int64_t number = 0;
        read = H5Aread(attribute, H5T_NATIVE_INT64, &number) >= 0;
        value = json_integer(number);
    } else if (kind == H5T_FLOAT) {
        double number = 0;
        read = H5Aread(attribute, H5T_NATIVE_DOUBLE, &number) >= 0;
        value = real(number);
    }
    if (type >= 0) read = H5Tclose(type) >= 0 && read;
    if (!value) value = json_null();
    if (!read) json_decref(value);
    return read ? value : NULL;
}

static herr_t add_attribute(hid_t object, const char *name, const H5A_info_t *info, void *to)
{
    (void)info;
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), space = attribute < 0 ? -1 : H5Aget_space(attribute);
    bool read = space >= 0;
    if (space >= 0 && H5Sget_simple_extent_npoints(space) == 1) {
        json_t *value = attribute_json(attribute);
        json_object_set_new(to, name, value);
        read = value;
    }
    if (space >= 0) read = H5Sclose(space) >= 0 && read;
    if (attribute >= 0) read = H5Aclose(attribute) >= 0 && read;
    return read ? 0 : -1;
}

static void add_attributes(json_t *object, struct h5 *h5, const char *path)
{
    hsize_t at = 0;
    h5_guard(h5);
    const herr_t read =
        H5Aiterate_by_name(h5->file, path, H5_INDEX_NAME, H5_ITER_INC, &at, add_attribute, object, H5P_DEFAULT);
    h5_check(h5, read >= 0, "read the attributes of", path);
    h5_release(h5);
}

static void add_group(json_t *all, struct result *r, const struct show_group *group)
{
    json_t *object = json_object();
    size_t count;
    add_attributes(object, &r->h5, group->path);
    const char **text = group->text ? show_texts(r, group, group->text, &count) : NULL;
    if (text && count) json_object_set_new(object, group->text, json_string(text[0]));
    for (const char *const *name = group->lists; *name; name++) {
        const char **texts = show_texts(r, group, *name, &count);
        json_t *list = json_array();
        for (size_t i = 0; i < count; i++) json_array_append_new(list, json_string(texts[i]));
        json_object_set_new(object, *name, list);
    }
    json_object_set_new(all, group->path, object);
}

static json_t *number_json(enum number number, const void *at)
{
    const bool is_real = number == NUMBER_F32 || number == NUMBER_F64;
    float single;
    double value;
    uint64_t whole = 0; /* the host is little-endian, as the file is */
    memcpy(number == NUMBER_F32 ? (void *)&single
           : is_real            ? (void *)&value
                                : (void *)&whole,
           at, h5_number_bytes(number));
    if (number == NUMBER_F32) value = (double)single;
    return is_real ? real(value) : json_integer((json_int_t)whole);
}

/* The first rows of a table as an array a column. Digests, which are pairs, are left out: compare compares them. */
static enum status add_table(json_t *all, struct result *r, const char *name, const struct column *columns,
                             uint64_t rows)
{
    json_t *table = json_object();
    json_object_set_new(all, name, table);
    for (const struct column *c = columns; c->name; c++) {
        char path[64], *numbers;
        snprintf(path, sizeof path, "/%s/%s", name, c->name);
        if (c->width > 1 || !h5_exists(&r->h5, path)) continue;
        NEW(r->region, numbers, rows * h5_number_bytes(c->number));
        h5_read_rows(&r->h5, path, c->number, 1, 0, rows, numbers);
        TRY(h5_status(&r->h5));
        json_t *column = json_array();
        for (size_t i = 0; i < rows; i++)
            json_array_append_new(column, number_json(c->number, numbers + i * h5_number_bytes(c->number)));
        json_object_set_new(table, c->name, column);
    }
    return ST_OK;
}

/* Only where ops were timed. */
static enum status add_least(json_t *all, struct result *r)
{
    static const struct column columns[] = {{"op_least_ns", NUMBER_U64, 1, 0, NULL, NULL}, {0}};
    static const char path[] = "/summary/op_least_ns";
    return h5_exists(&r->h5, path) ? add_table(all, r, "summary", columns, h5_rows(&r->h5, path)) : ST_OK;
}

static enum status result_json(struct result *r, json_t *all)
{
    char status[RESULT_STATUS];
    json_object_set_new(all, "path", json_string(r->h5.path));
    json_object_set_new(all, "now", json_string(result_status(r, status)));
    for (const struct show_group *group = show_groups; group->path; group++)
        if (show_has(r, group)) add_group(all, r, group);
    TRY(add_table(all, r, "steps", record_step_columns, r->steps));
    TRY(add_table(all, r, "eval", record_eval_columns, show_evaluations(r)));
    TRY(add_least(all, r));
    return h5_status(&r->h5);
}

enum status show_json(const char *path, FILE *out)
{
    struct result *result = NULL;
    TRY(result_open(path, &result));
    json_t *all = json_object();
    enum status status = result_json(result, all);
    if (status == ST_OK) {
        json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
        fputc('\n', out);
    }
    json_decref(all);
    result_close(result);
    return status;
}
