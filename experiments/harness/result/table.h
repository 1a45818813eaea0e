/* Tables of a result file: a group with one array per column. Static rows describe the columns. */
#pragma once

#include "result/h5.h"

/* A member of a C struct as a column, or as an attribute; width 2: a digest, low word first. */
struct field {
    const char *name; /* NULL ends a table */
    enum number number;
    int width;
    size_t offset;
    const char *units, *doc;
    bool added; /* to the schema by 5.1: files of 5.0 lack it */
    bool later; /* added by 5.2: where a file lacks the column, its member is 0 */
};

/* Lays out an empty table that grows by rows, and its column `committed`; its first column is the scale of the others.
 */
void table_layout(struct h5 *h5, const char *group, const struct field *columns);

/* Appends a row to every column of such a table; once it is in the file, commits it by a row of `committed`. */
void table_append(struct h5 *h5, const char *group, const struct field *columns, const void *row);
void table_commit(struct h5 *h5, const char *group);

/* Writes columns of count structs of stride bytes. scale: the column of row numbers, made with the group by the first
 * columns that are written. */
void table_write(struct h5 *h5, const char *group, const char *scale, const struct field *columns, size_t count,
                 const void *rows, size_t stride);

/* Reads the rows of a table into count structs of stride bytes; texts live in region. Every column must have count
 * rows, but for those that were added to the schema, unless the file has them (added); an 8-bit column holds flags. */
void table_read(struct h5 *h5, const char *group, const struct field *columns, size_t count, void *rows, size_t stride,
                bool added, struct region *region);

/* A struct as attributes of an object, all of which must be there; added: as of columns. */
void table_write_attributes(struct h5 *h5, const char *object, const struct field *columns, const void *row);
void table_read_attributes(struct h5 *h5, const char *object, const struct field *columns, void *row, bool added,
                           struct region *region);

/* The first member, row by row, that differs between two arrays of count structs; NULL: none does. */
const struct field *table_difference(const struct field *columns, size_t count, const void *a, const void *b,
                                     size_t stride, size_t *row);

/* The member as text: in text (at least 96 bytes), or itself. */
const char *column_text(const struct field *column, const void *row, char *text);
