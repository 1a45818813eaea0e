/* Tables of columns. Contract: a row is committed only after every column has it in the file. */
#include "result/table.h"
#include "result/h5_write.h"

#include <stdio.h>
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

/* Describes a column; scale: of its rows. */
static void describe(struct h5 *h5, const char *group, const char *path, const char *scale, const struct field *column)
{
    h5_describe(h5, path, column->units, column->doc);
    if (strcmp(path, scale) == 0)
        h5_scale(h5, path, column->name);
    else if (column->number != NUMBER_TEXT)
        h5_attach(h5, path, 0, scale);
    if (column->width > 1) attach_pair(h5, group, path);
}

void table_layout(struct h5 *h5, const char *group, const struct field *columns)
{
    static const struct field committed = {
        "committed", NUMBER_U8, 1, 0, NULL, "1: every column has this row; later rows do not count"};
    const hsize_t digest = 2;
    char path[256], scale[256];
    h5_group(h5, group);
    join(scale, group, columns->name);
    for (const struct field *c = columns; c->name; c++) {
        h5_series(h5, join(path, group, c->name), c->number, c->width > 1, &digest);
        describe(h5, group, path, scale, c);
    }
    h5_series(h5, join(path, group, committed.name), committed.number, 0, NULL);
    describe(h5, group, path, scale, &committed);
}

void table_append(struct h5 *h5, const char *group, const struct field *columns, const void *row)
{
    char path[256];
    for (const struct field *c = columns; c->name; c++)
        h5_append(h5, join(path, group, c->name), (const char *)row + c->offset);
}

void table_commit(struct h5 *h5, const char *group)
{
    const uint8_t one = 1;
    char path[256];
    h5_flush(h5);
    h5_append(h5, join(path, group, "committed"), &one);
    h5_flush(h5);
}

static size_t column_bytes(const struct field *c) { return h5_number_bytes(c->number) * (size_t)c->width; }

static void write_scale(struct h5 *h5, const char *group, const char *path, const char *scale, size_t count)
{
    freed_auto uint32_t *numbers = allocate(count, sizeof *numbers);
    for (size_t i = 0; i < count; i++) numbers[i] = (uint32_t)i;
    h5_group(h5, group);
    h5_array(h5, path, NUMBER_U32, 1, &(hsize_t){count}, numbers);
    h5_scale(h5, path, scale);
}

void table_write(struct h5 *h5, const char *group, const char *scale, const struct field *columns, size_t count,
                 const void *rows, size_t stride)
{
    freed_auto char *gathered = allocate(count, WIDEST);
    char path[256], scale_path[256];
    if (!h5_exists(h5, join(scale_path, group, scale))) write_scale(h5, group, scale_path, scale, count);
    for (const struct field *c = columns; c->name; c++) {
        const size_t bytes = column_bytes(c);
        const hsize_t extent[2] = {count, (hsize_t)c->width};
        for (size_t i = 0; i < count; i++)
            memcpy(gathered + i * bytes, (const char *)rows + i * stride + c->offset, bytes);
        h5_array(h5, join(path, group, c->name), c->number, c->width > 1 ? 2 : 1, extent, gathered);
        describe(h5, group, path, scale_path, c);
    }
}

void table_read(struct h5 *h5, const char *group, const struct field *columns, size_t count, void *rows, size_t stride,
                bool added, struct region *region)
{
    freed_auto char *gathered = allocate(count, WIDEST);
    char path[256];
    for (const struct field *c = columns; c->name; c++) {
        const size_t bytes = column_bytes(c);
        const void *read = gathered;
        size_t found;
        if (c->added && !added) continue;
        join(path, group, c->name);
        if (c->later && !h5_exists(h5, path)) continue;
        if (c->number == NUMBER_TEXT) {
            read = h5_read_texts(h5, path, region, &found);
        } else {
            found = h5_read_rows(h5, path, c->number, (size_t)c->width, 0, count, gathered);
        }
        if (!h5->broken && found != count) h5_refuse(h5, path, "has a different number of rows than its table");
        if (h5->broken) break;
        for (size_t i = 0; i < count; i++)
            memcpy((char *)rows + i * stride + c->offset, (const char *)read + i * bytes, bytes);
    }
}

void table_write_attributes(struct h5 *h5, const char *object, const struct field *columns, const void *row)
{
    for (const struct field *c = columns; c->name; c++)
        h5_attribute(h5, object, c->name, c->number, (const char *)row + c->offset);
}

void table_read_attributes(struct h5 *h5, const char *object, const struct field *columns, void *row, bool added,
                           struct region *region)
{
    for (const struct field *c = columns; c->name; c++)
        if (added || !c->added) h5_read_value(h5, object, c->name, c->number, false, (char *)row + c->offset, region);
}

const struct field *table_difference(const struct field *columns, size_t count, const void *a, const void *b,
                                     size_t stride, size_t *row)
{
    for (*row = 0; *row < count; ++*row)
        for (const struct field *c = columns; c->name; c++) {
            const void *x = (const char *)a + *row * stride + c->offset,
                       *y = (const char *)b + *row * stride + c->offset;
            const bool text = c->number == NUMBER_TEXT;
            if (text ? strcmp(*(const char *const *)x, *(const char *const *)y) : memcmp(x, y, column_bytes(c)))
                return c;
        }
    return NULL;
}

const char *column_text(const struct field *column, const void *row, char *text)
{
    const char *member = (const char *)row + column->offset, *gap = "";
    size_t bytes = h5_number_bytes(column->number), used = 0;
    for (int i = 0; i < column->width; i++, member += bytes, gap = ", ") {
        union {
            int32_t integer;
            uint64_t whole;
            float single;
            double real;
            const char *text;
        } value = {.whole = 0};
        memcpy(&value, member, bytes);
        if (column->number == NUMBER_TEXT) return value.text;
        int length = 0;
        if (column->number == NUMBER_F64)
            length = snprintf(text + used, 32, "%s%.17g", gap, value.real);
        else if (column->number == NUMBER_F32)
            length = snprintf(text + used, 32, "%s%.9g", gap, (double)value.single);
        else if (column->number == NUMBER_I32)
            length = snprintf(text + used, 32, "%s%d", gap, value.integer);
        else
            length = snprintf(text + used, 32, "%s%llu", gap, (unsigned long long)value.whole);
        used += (size_t)length;
    }
    return text;
}
