/* The rows of a CSV file, with columns found by name, for data sets of texts.
 *
 * RFC 4180, read by libcsv in strict mode: a field in quotes may hold commas, line breaks and doubled quotes; a quote
 * elsewhere, or one that is never closed, is an error; spaces belong to their field. Lines end in LF or CRLF; blank
 * lines and a byte order mark are skipped. The first row is the header; every other has as many fields. */
#pragma once

#include "files.h"

enum { CSV_COLUMNS_MAX = 8 };

struct csv_field {
    const char *text; /* not ended by a zero; any byte may be in it */
    size_t bytes;
};

struct csv_row {
    int64_t line;                  /* where it begins, from 1 */
    const struct csv_field *field; /* of the columns asked for, in that order */
};

/* Calls take with every row. columns, ended by NULL and at most CSV_COLUMNS_MAX, must stand in the header once each;
 * other columns are skipped. ST_FAILED, naming file and line, for a malformed file; take's status, where that is not
 * ST_OK. */
enum status csv_rows(const struct files_handle *handle, const char *const *columns,
                     enum status (*take)(void *context, const struct csv_row *row), void *context);
