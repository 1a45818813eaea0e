#include <string.h>

#include "report/figures_text.h"
#include "report/show.h"
#include "result/record.h"
#include "result/record_plan.h"

/* The columns of a table, group by group; where the file lacks one, it is left out. */
static const struct field text_columns[] = {{"text", NUMBER_TEXT, 1, 0, NULL, NULL}, {0}};
static const struct field live_columns[] = {{"live", NUMBER_U64, 1, 0, NULL, NULL}, {0}};
static const struct field least_columns[] = {{"op_least_ns", NUMBER_U64, 1, 0, NULL, NULL}, {0}};
static const struct csv_table {
    const char *name, *rows; /* rows: a column with all of them; NULL: the committed steps */
    struct {
        const char *group;
        const struct field *columns;
    } part[4];
} tables[] = {
    {"steps", NULL, {{"/steps", record_step_columns}}},
    {"ops",
     "/plan/ops/kind",
     {{"/plan/ops", text_columns},
      {"/plan/ops", record_op_columns},
      {"/plan/ops", live_columns},
      {"/summary", least_columns}}},
    {"tensors", "/plan/buffers/bytes", {{"/plan/buffers", text_columns}, {"/plan/buffers", record_buffer_columns}}},
};

struct csv {
    struct result *result;
    json_t *rows;
    const char *keys;
    uint64_t count;
};

/* Of a pair that is no digest, two columns. */
static void add_column(struct csv *csv, const char *path, const struct field *c)
{
    const size_t bytes = h5_number_bytes(c->number), width = (size_t)c->width;
    const bool is_text = c->number == NUMBER_TEXT, is_digest = c->number == NUMBER_U64 && width == 2;
    size_t found = csv->count;
    const char **texts = is_text ? h5_read_texts(&csv->result->h5, path, csv->result->region, &found) : NULL,
               *rows = is_text ? NULL : result_column(csv->result, path, c->number, width, csv->count);
    for (size_t part = 0; part < (is_digest ? 1 : width); part++) {
        const char *key = region_text(csv->result->region, width > 1 && !is_digest ? "%s_%zu" : "%s", c->name, part);
        csv->keys = region_text(csv->result->region, "%s%s%s", csv->keys, *csv->keys ? " " : "", key);
        for (size_t i = 0; i < csv->count && i < found; i++) {
            json_t *row = json_array_get(csv->rows, i);
            struct digest digest;
            char text[33];
            if (is_digest) memcpy(&digest, rows + i * sizeof digest, sizeof digest);
            if (is_digest) PUT(row, key, digest_print(digest, text));
            if (is_text) PUT(row, key, texts[i]);
            if (!is_text && !is_digest) PUT(row, key, show_number(c->number, rows + (i * width + part) * bytes));
        }
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
    const struct csv_table *t = tables;
    struct csv csv = {.keys = ""};
    TRY(result_open(path, &csv.result));
    while (strcmp(t->name, table) != 0) t++;
    csv.count = t->rows ? h5_rows(&csv.result->h5, t->rows) : csv.result->steps;
    csv.rows = json_array();
    enum status status = h5_status(&csv.result->h5);
    for (size_t i = 0; i < csv.count; i++) json_array_append_new(csv.rows, json_object());
    for (size_t p = 0; p < 4 && t->part[p].group && status == ST_OK; p++)
        status = add_columns(&csv, t->part[p].group, t->part[p].columns);
    if (status == ST_OK) figures_csv(csv.rows, csv.keys, out);
    json_decref(csv.rows);
    result_close(csv.result);
    return status;
}
