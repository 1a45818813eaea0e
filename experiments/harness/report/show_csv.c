#include <string.h>

#include "report/figures_text.h"
#include "report/show.h"
#include "result/record.h"
#include "result/record_plan.h"

static const struct field text_columns[] = {{"text", NUMBER_TEXT, 1, 0, NULL, NULL}, {0}};
static const struct field live_columns[] = {{"live", NUMBER_U64, 1, 0, NULL, NULL}, {0}};
static const struct field least_columns[] = {{"op_least_ns", NUMBER_U64, 1, 0, NULL, NULL}, {0}};

/* The columns of a table, group by group; where the file lacks one, it is left out. rows: a column with all rows; NULL:
 * the committed steps. */
static const struct csv_part {
    const char *table, *rows, *group;
    const struct field *columns;
} parts[] = {
    {"steps", NULL, "/steps", record_step_columns},
    {"ops", "/plan/ops/kind", "/plan/ops", text_columns},
    {"ops", "/plan/ops/kind", "/plan/ops", record_op_columns},
    {"ops", "/plan/ops/kind", "/plan/ops", live_columns},
    {"ops", "/plan/ops/kind", "/summary", least_columns},
    {"tensors", "/plan/buffers/bytes", "/plan/buffers", text_columns},
    {"tensors", "/plan/buffers/bytes", "/plan/buffers", record_buffer_columns},
};

struct csv {
    struct result *result;
    json_t *rows;
    const char *keys;
    uint64_t count;
};

static bool is_digest(const struct field *c) { return c->number == NUMBER_U64 && c->width == 2; }

static json_t *cell_of(const struct field *c, const char *at)
{
    struct digest digest;
    char text[33];
    if (c->number == NUMBER_TEXT) return json_string(*(const char *const *)(const void *)at);
    if (!is_digest(c)) return show_number(c->number, at);
    memcpy(&digest, at, sizeof digest);
    return json_string(digest_print(digest, text));
}

/* Of a pair that is no digest, two columns. */
static void add_column(struct csv *csv, const char *path, const struct field *c)
{
    struct region *region = csv->result->region;
    const bool is_text = c->number == NUMBER_TEXT;
    const size_t width = is_digest(c) ? 1 : (size_t)c->width,
                 stride = is_text ? sizeof(char *) : h5_number_bytes(c->number) * (size_t)c->width;
    size_t count = csv->count;
    const void *rows;
    if (is_text)
        rows = h5_read_texts(&csv->result->h5, path, region, &count);
    else
        rows = result_column(csv->result, path, c->number, (size_t)c->width, count);
    for (size_t part = 0; part < width; part++) {
        const char *key = region_text(region, width > 1 ? "%s_%zu" : "%s", c->name, part);
        csv->keys = region_text(region, "%s%s%s", csv->keys, *csv->keys ? " " : "", key);
        for (size_t i = 0; rows && i < count && i < csv->count; i++)
            json_object_set_new(json_array_get(csv->rows, i), key,
                                cell_of(c, (const char *)rows + i * stride + part * (stride / width)));
    }
}

static enum status add_columns(struct csv *csv, const char *group, const struct field *columns)
{
    for (const struct field *c = columns; c->name; c++) {
        const char *path = region_text(csv->result->region, "%s/%s", group, c->name);
        if (!h5_exists(&csv->result->h5, path)) continue;
        add_column(csv, path, c);
        TRY(h5_status(&csv->result->h5));
    }
    return h5_status(&csv->result->h5);
}

enum status show_csv(const char *path, const char *table, FILE *out)
{
    struct csv csv = {.rows = json_array(), .keys = ""};
    enum status status = result_open(path, &csv.result);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == ST_OK; i++) {
        const struct csv_part *part = &parts[i];
        if (strcmp(part->table, table) != 0) continue;
        csv.count = part->rows ? h5_rows(&csv.result->h5, part->rows) : csv.result->steps;
        while (json_array_size(csv.rows) < csv.count) json_array_append_new(csv.rows, json_object());
        status = add_columns(&csv, part->group, part->columns);
    }
    if (status == ST_OK) figures_csv(csv.rows, csv.keys, out);
    json_decref(csv.rows);
    result_close(csv.result);
    return status;
}
