/* Tables of a result file: a group with one array a column, described by static rows as keys are. */
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

/* A table that grows by rows, the first of its columns being the scale of the others. */
struct table {
    const struct column *column;
    hid_t dataset[TABLE_COLUMNS_MAX], committed;
};

/* Lays out an empty growing table and its column `committed`. */
void table_layout(struct h5 *h5, const char *group, const struct column *columns);

/* Finds the columns of one that was laid out. */
struct table table_open(struct h5 *h5, const char *group, const struct column *columns);

/* Appends a row to every column; and then, once all of it is in the file, to `committed`. */
void table_append(struct h5 *h5, const struct table *table, const void *row);
void table_commit(struct h5 *h5, const struct table *table);

/* Writes a whole table of count structs of stride bytes; scale is the name of its row numbers. */
void table_write(struct h5 *h5, const char *group, const char *scale, const struct column *columns, size_t count,
                 const void *rows, size_t stride);

/* The same for more columns of a table that is there. */
void table_add(struct h5 *h5, const char *group, const char *scale, const struct column *columns, size_t count,
               const void *rows, size_t stride);

/* The inverse: the rows of a table into count structs of stride bytes. Every column must be there with count rows; an
 * 8-bit column holds flags. */
void table_read(struct h5 *h5, const char *group, const struct column *columns, size_t count, void *rows,
                size_t stride);

/* A member that is a const char *, as a column of texts. */
struct text_column {
    const char *name; /* NULL ends a list */
    size_t offset;
};

/* The same for texts; what is read lives in region. */
void table_write_texts(struct h5 *h5, const char *group, const struct text_column *columns, size_t count,
                       const void *rows, size_t stride);
void table_read_texts(struct h5 *h5, const char *group, const struct text_column *columns, size_t count, void *rows,
                      size_t stride, struct region *region);

/* The first member, row by row, that differs between two arrays of count structs; NULL: there is none. */
const struct column *table_difference(const struct column *columns, size_t count, const void *a, const void *b,
                                      size_t stride, size_t *row);

/* The member as text (at least 96 bytes); returns text. */
char *column_text(const struct column *column, const void *row, char *text);

#endif
