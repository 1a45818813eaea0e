/* A table as wide as its terminal: less important columns are left out and named below, and long names are cut with an
 * ellipsis; no row is broken. In a pipe or a file all columns are printed in full. */
#pragma once

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
    int rows;
    const char *const *cell; /* row by row */
};

/* The heads, unless all are empty, and the rows. */
void columns_print(const struct columns *table, FILE *out);
