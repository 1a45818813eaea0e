/* Tables of columns. Contract: a row is committed only after every column has it in the file. */
#include "result/table.h"
#include "result/h5_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDEST = 2 * sizeof(uint64_t) };

static const char *join(char path[256], const char *group, const char *name)
{
    snprintf(path, 256, "%s/%s", group, name);
    return path;
}

/* The scale of two numbers per row: low and high word of a digest, first and second input. */
static void attach_pair(struct h5 *h5, const char *group, const char *path)
{
    static const uint8_t numbers[] = {0, 1};
    const hsize_t extent = 2;
    char pair[256];
    join(pair, group, "pair");
    if (!h5_exists(h5, pair)) {
        h5_array(h5, pair, NUMBER_U8, 1, &extent, numbers);
        h5_scale(h5, pair, "pair");
    }
    h5_attach(h5, path, 1, pair);
}

static void describe(struct h5 *h5, const char *path, const struct column *column)
{
    if (column->units) h5_attribute_text(h5, path, "units", column->units);
    if (column->doc) h5_attribute_text(h5, path, "long_name", column->doc);
}

void table_layout(struct h5 *h5, const char *group, const struct column *columns)
{
    static const struct column committed = {
        .name = "committed", .number = NUMBER_U8, .doc = "1: every column has this row; later rows do not count"};
    const hsize_t digest = 2;
    char path[256], scale[256];
    h5_group(h5, group);
    h5_series(h5, join(path, group, committed.name), committed.number, 0, NULL);
    describe(h5, path, &committed);
    join(scale, group, columns->name);
    for (const struct column *c = columns; c->name; c++) {
        h5_series(h5, join(path, group, c->name), c->number, c->width > 1, &digest);
        describe(h5, path, c);
        if (c->width > 1) attach_pair(h5, group, path);
        if (c == columns)
            h5_scale(h5, path, c->name);
        else
            h5_attach(h5, path, 0, scale);
    }
    h5_attach(h5, join(path, group, committed.name), 0, scale);
}

struct table table_open(struct h5 *h5, const char *group, const struct column *columns)
{
    struct table table = {.column = columns};
    char path[256];
    for (int i = 0; i < TABLE_COLUMNS_MAX && columns[i].name; i++)
        table.dataset[i] = h5_dataset(h5, join(path, group, columns[i].name));
    table.committed = h5_dataset(h5, join(path, group, "committed"));
    return table;
}

void table_append(struct h5 *h5, const struct table *table, const void *row)
{
    for (int i = 0; table->column[i].name; i++)
        h5_append(h5, table->dataset[i], table->column[i].number, (const char *)row + table->column[i].offset);
}

void table_commit(struct h5 *h5, const struct table *table)
{
    const uint8_t one = 1;
    h5_flush(h5);
    h5_append(h5, table->committed, NUMBER_U8, &one);
    h5_flush(h5);
}

void table_add(struct h5 *h5, const char *group, const char *scale, const struct column *columns, size_t count,
               const void *rows, size_t stride)
{
    char *gathered = allocate(count, WIDEST), path[256], scale_path[256];
    join(scale_path, group, scale);
    for (const struct column *c = columns; c->name; c++) {
        const size_t bytes = h5_number_bytes(c->number) * (size_t)c->width;
        const hsize_t extent[2] = {count, (hsize_t)c->width};
        for (size_t i = 0; i < count; i++)
            memcpy(gathered + i * bytes, (const char *)rows + i * stride + c->offset, bytes);
        h5_array(h5, join(path, group, c->name), c->number, c->width > 1 ? 2 : 1, extent, gathered);
        describe(h5, path, c);
        h5_attach(h5, path, 0, scale_path);
        if (c->width > 1) attach_pair(h5, group, path);
    }
    free(gathered);
}

void table_write(struct h5 *h5, const char *group, const char *scale, const struct column *columns, size_t count,
                 const void *rows, size_t stride)
{
    uint32_t *numbers = allocate(count, sizeof *numbers);
    const hsize_t extent = count;
    char path[256];
    h5_group(h5, group);
    for (size_t i = 0; i < count; i++) numbers[i] = (uint32_t)i;
    h5_array(h5, join(path, group, scale), NUMBER_U32, 1, &extent, numbers);
    h5_scale(h5, path, scale);
    free(numbers);
    table_add(h5, group, scale, columns, count, rows, stride);
}

void table_read(struct h5 *h5, const char *group, const struct column *columns, size_t count, void *rows, size_t stride)
{
    char *gathered = allocate(count, WIDEST), path[256];
    for (const struct column *c = columns; c->name; c++) {
        const size_t bytes = h5_number_bytes(c->number) * (size_t)c->width;
        join(path, group, c->name);
        h5_read_rows(h5, path, c->number, (size_t)c->width, 0, count, gathered);
        if (!h5->broken && h5_rows(h5, path) != count)
            h5_refuse(h5, path, "has a different number of rows than its table");
        if (h5->broken) break;
        for (size_t i = 0; i < count; i++) memcpy((char *)rows + i * stride + c->offset, gathered + i * bytes, bytes);
    }
    free(gathered);
}

void table_write_texts(struct h5 *h5, const char *group, const struct text_column *columns, size_t count,
                       const void *rows, size_t stride)
{
    const char **gathered = allocate(count, sizeof *gathered);
    char path[256];
    for (const struct text_column *c = columns; c->name; c++) {
        for (size_t i = 0; i < count; i++)
            memcpy(&gathered[i], (const char *)rows + i * stride + c->offset, sizeof *gathered);
        h5_texts(h5, join(path, group, c->name), count, gathered);
    }
    free(gathered);
}

void table_read_texts(struct h5 *h5, const char *group, const struct text_column *columns, size_t count, void *rows,
                      size_t stride, struct region *region)
{
    char path[256];
    for (const struct text_column *c = columns; c->name; c++) {
        size_t found;
        const char **texts = h5_read_texts(h5, join(path, group, c->name), region, &found);
        if (!h5->broken && found != count) h5_refuse(h5, path, "has a different number of rows than its table");
        if (h5->broken) return;
        for (size_t i = 0; i < count; i++) memcpy((char *)rows + i * stride + c->offset, &texts[i], sizeof texts[i]);
    }
}

const struct column *table_difference(const struct column *columns, size_t count, const void *a, const void *b,
                                      size_t stride, size_t *row)
{
    for (*row = 0; *row < count; ++*row)
        for (const struct column *c = columns; c->name; c++) {
            const size_t at = *row * stride + c->offset, bytes = h5_number_bytes(c->number) * (size_t)c->width;
            if (memcmp((const char *)a + at, (const char *)b + at, bytes) != 0) return c;
        }
    return NULL;
}

char *column_text(const struct column *column, const void *row, char *text)
{
    const char *member = (const char *)row + column->offset, *gap = "";
    size_t bytes = h5_number_bytes(column->number), used = 0;
    for (int i = 0; i < column->width; i++, member += bytes, gap = ", ") {
        double real = 0;
        int64_t whole = 0;
        bool is_real = column->number == NUMBER_F64;
        memcpy(is_real ? (void *)&real : &whole, member, bytes);
        if (column->number == NUMBER_I32) whole = (int32_t)whole;
        int length = is_real ? snprintf(text + used, 32, "%s%.9g", gap, real)
                             : snprintf(text + used, 32, "%s%lld", gap, (long long)whole);
        used += (size_t)length;
    }
    return text;
}
