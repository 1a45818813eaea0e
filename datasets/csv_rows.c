#include "csv_rows.h"

#include <csv.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_GROWTH = 64 * 1024 }; /* libcsv's default of 128 bytes makes long fields slow */

struct csv_reader {
    const struct files_handle *handle;
    const char *const *columns;
    enum status (*take)(void *context, const struct csv_row *row);
    void *context;
    enum status status;

    int64_t line, first;         /* the line being read; where the row began */
    bool between;                /* a row has ended and the next has not begun */
    size_t row_bytes;            /* of the row so far */
    int64_t header, fields;      /* fields of the header, 0: not read yet; of the row so far */
    int64_t at[CSV_COLUMNS_MAX]; /* the place of each column in the file, -1: not found yet */
    struct csv_field field[CSV_COLUMNS_MAX];
    char *text; /* the row's fields, one after another */
    size_t used;
};

static int no_space(unsigned char byte)
{
    (void)byte;
    return 0;
}

static enum status add_name(struct csv_reader *r, const char *name, size_t bytes)
{
    for (int i = 0; r->columns[i]; i++) {
        if (strlen(r->columns[i]) != bytes || memcmp(r->columns[i], name, bytes) != 0) continue;
        if (r->at[i] >= 0)
            return fail(ST_FAILED, "%s:%" PRId64 ": two columns are called '%s'", r->handle->file->path, r->line,
                        r->columns[i]);
        r->at[i] = r->fields;
    }
    return ST_OK;
}

static void keep(struct csv_reader *r, int column, const char *text, size_t bytes)
{
    if (bytes) memcpy(r->text + r->used, text, bytes);
    r->field[column] = (struct csv_field){r->text + r->used, bytes};
    r->used += bytes;
}

static void end_field(void *text, size_t bytes, void *context)
{
    struct csv_reader *r = context;
    if (r->status == ST_OK && r->header == 0) r->status = add_name(r, text, bytes);
    for (int i = 0; r->status == ST_OK && r->header > 0 && r->columns[i]; i++)
        if (r->at[i] == r->fields) keep(r, i, text, bytes);
    r->fields++;
}

static enum status check_header(const struct csv_reader *r)
{
    for (int i = 0; r->columns[i]; i++)
        if (r->at[i] < 0)
            return fail(ST_FAILED, "%s:%" PRId64 ": no column is called '%s'; expected: a header with the names",
                        r->handle->file->path, r->first, r->columns[i]);
    return ST_OK;
}

static enum status give_row(struct csv_reader *r)
{
    if (r->fields != r->header)
        return fail(ST_FAILED, "%s:%" PRId64 ": %" PRId64 " fields; expected: %" PRId64 ", as in the header",
                    r->handle->file->path, r->first, r->fields, r->header);
    return r->take(r->context, &(struct csv_row){r->first, r->field});
}

static void end_row(int byte, void *context)
{
    (void)byte;
    struct csv_reader *r = context;
    if (r->status == ST_OK) r->status = r->header ? give_row(r) : check_header(r);
    if (!r->header) r->header = r->fields;
    r->fields = 0;
    r->used = 0;
    r->between = true;
}

static enum status refuse(const struct csv_reader *r, const struct csv_parser *parser, bool ended)
{
    const char *path = r->handle->file->path;
    if (csv_error((struct csv_parser *)(uintptr_t)parser) != CSV_EPARSE)
        return fail(ST_FAILED, "out of memory: a row of %s", path);
    if (ended)
        return fail(ST_FAILED, "%s:%" PRId64 ": a quote is not closed in the row that begins here", path, r->first);
    return fail(ST_FAILED,
                "%s:%" PRId64 ": a misplaced quote in the row that begins on line %" PRId64
                "; expected: quotes around a whole field, and doubled within it",
                path, r->line, r->first);
}

/* Parses at most one line at a time, so that an error can name the line. */
static enum status parse_line(struct csv_reader *r, struct csv_parser *parser, const char *text, size_t bytes)
{
    if (r->between && *text != '\n' && *text != '\r') {
        r->first = r->line;
        r->between = false;
    }
    if (csv_parse(parser, text, bytes, end_field, end_row, r) != bytes && r->status == ST_OK)
        return refuse(r, parser, false);
    if (text[bytes - 1] == '\n') r->line++;
    return r->status;
}

static enum status read_rows(struct csv_reader *r, struct csv_parser *parser, const char *text)
{
    const size_t bytes = (size_t)r->handle->file->bytes;
    for (size_t at = bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; at < bytes;) { /* a byte order mark */
        const char *end = memchr(text + at, '\n', bytes - at);
        const size_t length = end ? (size_t)(end - text) + 1 - at : bytes - at;
        TRY(parse_line(r, parser, text + at, length));
        at += length;
    }
    if (csv_fini(parser, end_field, end_row, r) != 0 && r->status == ST_OK) return refuse(r, parser, true);
    if (r->status == ST_OK && !r->header)
        return fail(ST_FAILED, "%s: no header; expected: the names of the columns in the first row",
                    r->handle->file->path);
    return r->status;
}

enum status csv_rows(const struct files_handle *handle, const char *const *columns,
                     enum status (*take)(void *context, const struct csv_row *row), void *context)
{
    const size_t bytes = (size_t)handle->file->bytes;
    struct csv_reader r = {
        .handle = handle, .columns = columns, .take = take, .context = context, .line = 1, .first = 1, .between = true};
    struct csv_parser parser;
    for (int i = 0; i < CSV_COLUMNS_MAX; i++) r.at[i] = -1;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) return fail(ST_FAILED, "libcsv cannot be initialised");
    csv_set_space_func(&parser, no_space);
    csv_set_blk_size(&parser, FIELD_GROWTH);
    char *text = allocate(bytes, 1);
    r.text = allocate(bytes, 1);
    enum status status = files_read(handle, 0, bytes, text);
    if (status == ST_OK) status = read_rows(&r, &parser, text);
    csv_free(&parser);
    free(r.text);
    free(text);
    return status;
}
