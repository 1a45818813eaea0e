#include "csv_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct csv_reader {
    const char *path;
    const char *const *columns;
    char *at, *end;                    /* the text that is left */
    int64_t line, first;               /* of at, and of the beginning of its row */
    int64_t fields;                    /* of the row so far */
    int64_t at_field[CSV_COLUMNS_MAX]; /* the place of each column in a row, -1: not found yet */
    struct csv_field field[CSV_COLUMNS_MAX];
};

static bool ends_field(char c) { return c == ',' || c == '\r' || c == '\n'; }

static enum status misplaced_quote(const struct csv_reader *r)
{
    return fail(ST_FAILED,
                "%s:%" PRId64 ": a misplaced quote in the row that begins on line %" PRId64
                "; expected: quotes around a whole field, and doubled within it",
                r->path, r->line, r->first);
}

/* A quoted field loses its quotes in place. */
static enum status read_field(struct csv_reader *r, struct csv_field *field)
{
    const bool quoted = r->at < r->end && *r->at == '"';
    char *out = r->at += quoted;
    field->text = out;
    for (; quoted; *out++ = *r->at++) {
        if (r->at == r->end)
            return fail(ST_FAILED, "%s:%" PRId64 ": a quote is not closed in the row that begins here", r->path,
                        r->first);
        if (*r->at == '"' && (++r->at == r->end || *r->at != '"')) break;
        r->line += *r->at == '\n';
    }
    for (; !quoted && r->at < r->end && !ends_field(*r->at); out = ++r->at)
        if (*r->at == '"') return misplaced_quote(r);
    field->bytes = (size_t)(out - field->text);
    return r->at == r->end || ends_field(*r->at) ? ST_OK : misplaced_quote(r);
}

static enum status find_column(struct csv_reader *r, const struct csv_field *name)
{
    for (int i = 0; r->columns[i]; i++) {
        if (strlen(r->columns[i]) != name->bytes || memcmp(r->columns[i], name->text, name->bytes) != 0) continue;
        if (r->at_field[i] >= 0)
            return fail(ST_FAILED, "%s:%" PRId64 ": two columns are called '%s'", r->path, r->line, r->columns[i]);
        r->at_field[i] = r->fields;
    }
    return ST_OK;
}

/* Reads the next row that is not blank; *found false: there is none. */
static enum status read_row(struct csv_reader *r, bool header, bool *found)
{
    for (; r->at < r->end && (*r->at == '\n' || *r->at == '\r'); r->at++) r->line += *r->at == '\n';
    *found = r->at < r->end;
    r->first = r->line;
    for (r->fields = 0; *found; r->at++) {
        struct csv_field field;
        TRY(read_field(r, &field));
        if (header) TRY(find_column(r, &field));
        for (int i = 0; r->columns[i]; i++)
            if (r->at_field[i] == r->fields) r->field[i] = field;
        r->fields++;
        if (r->at == r->end || *r->at != ',') break;
    }
    return ST_OK;
}

static enum status read_header(struct csv_reader *r)
{
    bool found;
    for (int i = 0; i < CSV_COLUMNS_MAX; i++) r->at_field[i] = -1;
    TRY(read_row(r, true, &found));
    if (!found) return fail(ST_FAILED, "%s: no header; expected: the names of the columns in the first row", r->path);
    for (int i = 0; r->columns[i]; i++)
        if (r->at_field[i] < 0)
            return fail(ST_FAILED, "%s:%" PRId64 ": no column is called '%s'; expected: a header with the names",
                        r->path, r->first, r->columns[i]);
    return ST_OK;
}

static enum status read_rows(struct csv_reader *r, enum status (*take)(void *context, const struct csv_row *row),
                             void *context)
{
    bool found;
    TRY(read_header(r));
    const int64_t expected = r->fields;
    for (;;) {
        TRY(read_row(r, false, &found));
        if (!found) return ST_OK;
        if (r->fields != expected)
            return fail(ST_FAILED, "%s:%" PRId64 ": %" PRId64 " fields; expected: %" PRId64 ", as in the header",
                        r->path, r->first, r->fields, expected);
        TRY(take(context, &(struct csv_row){r->first, r->field}));
    }
}

enum status csv_rows(const struct files_handle *handle, const char *const *columns,
                     enum status (*take)(void *context, const struct csv_row *row), void *context)
{
    const size_t bytes = (size_t)handle->file->bytes;
    char *text = allocate(bytes, 1);
    enum status status = files_read(handle, 0, bytes, text);
    struct csv_reader r = {handle->file->path, columns, text, text + bytes, .line = 1};
    if (bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) r.at += 3; /* UTF-8's byte order mark */
    if (status == ST_OK) status = read_rows(&r, take, context);
    free(text);
    return status;
}
