/* Tables of a result file: a group with one array per column. Static rows describe the columns. */
#ifndef REMATCH_RESULT_TABLE_H
#define REMATCH_RESULT_TABLE_H

#include "result/h5.h"

enum { TABLE_COLUMNS_MAX = 24 };

/* A member of a C struct as a column; width 2: a digest, low word first. */
struct column {
    const char *name; /* NULL ends a table */
    enum number number;
    int width;
    size_t offset;
    const char *units, *doc;
};

/* A table that grows by rows; its first column is the scale of the others. */
struct table {
    const struct column *column;
    hid_t dataset[TABLE_COLUMNS_MAX], committed;
};

/* Lays out an empty growing table and its column `committed`. */
void table_layout(struct h5 *h5, const char *group, const struct column *columns);

/* Opens the columns of a table that was laid out. */
struct table table_open(struct h5 *h5, const char *group, const struct column *columns);

/* Appends a row to every column; once it is in the file, commits it by a row of `committed`. */
void table_append(struct h5 *h5, const struct table *table, const void *row);
void table_commit(struct h5 *h5, const struct table *table);

/* Writes a whole table of count structs of stride bytes; scale names the column of row numbers. */
void table_write(struct h5 *h5, const char *group, const char *scale, const struct column *columns, size_t count,
                 const void *rows, size_t stride);

/* Adds columns to such a table. */
void table_add(struct h5 *h5, const char *group, const char *scale, const struct column *columns, size_t count,
               const void *rows, size_t stride);

/* Reads the rows of a table into count structs of stride bytes. Every column must have count rows; an 8-bit column
 * holds flags. */
void table_read(struct h5 *h5, const char *group, const struct column *columns, size_t count, void *rows,
                size_t stride);

/* A member that is a const char *, as a column of texts. */
struct text_column {
    const char *name; /* NULL ends a list */
    size_t offset;
};

/* The same for texts; those that are read live in region. */
void table_write_texts(struct h5 *h5, const char *group, const struct text_column *columns, size_t count,
                       const void *rows, size_t stride);
void table_read_texts(struct h5 *h5, const char *group, const struct text_column *columns, size_t count, void *rows,
                      size_t stride, struct region *region);

/* The first member, row by row, that differs between two arrays of count structs; NULL: none does. */
const struct column *table_difference(const struct column *columns, size_t count, const void *a, const void *b,
                                      size_t stride, size_t *row);

/* The member as text (at least 96 bytes); returns text. */
char *column_text(const struct column *column, const void *row, char *text);

#endif
