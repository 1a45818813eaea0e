#include <string.h>

#include "report/show.h"
#include "report/text_table.h"
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
    {"pieces", "/pieces/piece", "/pieces", record_piece_columns}, /* a row a process that worked on the run */
    {"eval", "/eval/committed", "/eval", record_eval_columns},
    {"summary", "/summary/op_least_ns", "/summary", least_columns}, /* where ops were timed */
};

static json_t *cell_of(const struct field *c, const char *at)
{
    union {
        float single;
        double real;
        int32_t integer;
        uint64_t whole;
        struct digest digest;
        const char *text;
    } value = {.digest = {0, 0}};
    memcpy(&value, at, h5_number_bytes(c->number) * (size_t)(c->number == NUMBER_U64 ? c->width : 1));
    if (c->number == NUMBER_TEXT) return json_string(value.text);
    if (c->number == NUMBER_U64 && c->width == 2) return json_string(DIGEST_TEXT(value.digest));
    if (c->number == NUMBER_F32) return json_of_real((double)value.single);
    if (c->number == NUMBER_F64) return json_of_real(value.real);
    return json_integer(c->number == NUMBER_I32 ? value.integer : (json_int_t)value.whole);
}

/* The first count rows of a column of group; nothing where the file lacks it. Of a pair that is no digest, two
 * columns. */
static enum status show_column(json_t *table, struct result *r, const char *group, const struct field *c,
                               uint64_t count)
{
    const char *path = region_text(r->region, "%s/%s", group, c->name);
    const size_t width = c->number == NUMBER_U64 ? 1 : (size_t)c->width,
                 stride = h5_number_bytes(c->number) * (size_t)c->width;
    size_t texts = count;
    if (!h5_exists(&r->h5, path)) return h5_status(&r->h5);
    const char *rows = c->number == NUMBER_TEXT ? (const void *)h5_read_texts(&r->h5, path, r->region, &texts)
                                                : result_column(r, path, c->number, (size_t)c->width, count);
    TRY(h5_status(&r->h5));
    for (size_t part = 0; part < width; part++) {
        json_t *column = json_array();
        for (size_t i = 0; rows && i < texts && i < count; i++)
            ADD(column, cell_of(c, rows + i * stride + part * (stride / width)));
        json_object_set_new(table, region_text(r->region, width > 1 ? "%s_%zu" : "%s", c->name, part), column);
    }
    return ST_OK;
}

static void write_table(const json_t *table, struct region *region, FILE *out)
{
    json_auto_t *rows = json_rows(table);
    json_t *column;
    const char *keys = "", *key;
    json_object_foreach ((json_t *)table, key, column) {
        keys = region_text(region, "%s%s%s", keys, *keys ? " " : "", key);
    }
    text_csv(rows, keys, out);
}

enum status show_table(struct result *r, const char *table, bool digests, json_t *to)
{
    for (const struct csv_part *part = parts; part < parts + sizeof parts / sizeof *parts; part++) {
        if (strcmp(part->table, table) != 0) continue;
        const bool rows = part->rows && h5_exists(&r->h5, part->rows);
        const uint64_t count = rows ? h5_rows(&r->h5, part->rows) : part->rows ? 0 : r->steps;
        for (const struct field *c = part->columns; c->name; c++)
            if (digests || c->width == 1) TRY(show_column(to, r, part->group, c, count));
    }
    return h5_status(&r->h5);
}

enum status show_csv(const char *path, const char *table, FILE *out)
{
    result_auto *r = NULL;
    TRY(result_open(path, &r));
    json_auto_t *columns = json_object();
    TRY(show_table(r, table, true, columns));
    write_table(columns, r->region, out);
    return ST_OK;
}
