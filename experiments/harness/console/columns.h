/* A table as wide as its terminal: less important columns are left out and named below, and long names are cut with an
 * ellipsis; no row is broken. In a pipe or a file all columns are printed in full.
 *
 *     static const struct column column[] = {{"policy"}, {"settings", .least = 16}, {"peak", .right = true},
 *                                            {"arena", .right = true, .rank = 1}};
 *     struct columns table;
 *     columns_begin(&table, column, 4);
 *     for (each row) {
 *         columns_cell(&table, "%s", name);      // from left to right, as by printf
 *         columns_cell(&table, "%s", settings);
 *         columns_cell(&table, "%s", bytes_text(peak, text));
 *         columns_rest(&table);                  // the other cells of this row stay empty
 *     }
 *     columns_print(&table, out);                // and free
 */
#ifndef REMATCH_CONSOLE_COLUMNS_H
#define REMATCH_CONSOLE_COLUMNS_H

#include <stdbool.h>
#include <stdio.h>

struct column {
    const char *head;
    bool right; /* aligned to the right, as numbers are */
    int rank;   /* in a narrow terminal the columns of the highest rank are left out first, the last one before the
                   others; 0: never left out */
    int least;  /* texts may be cut to this width before columns are left out; 0: never cut */
};

enum { COLUMNS_MOST = 24 };

struct columns {
    const struct column *column;
    int count, indent;
    int cells;  /* so far */
    char *text; /* of all cells, each ended by a 0 */
    size_t size;
    FILE *stream;
};

/* table must not be moved until it is printed. */
void columns_begin(struct columns *table, const struct column *column, int count);

void columns_cell(struct columns *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void columns_rest(struct columns *table);

/* The heads, unless all are empty, and the rows. */
void columns_print(struct columns *table, FILE *out);

#endif
