/* Contract: the output is for people and for editors that jump to file:line:column; text of a file is shown without
 * bytes that would control a terminal. */
#include "yaml/text_errors.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "console/terminal.h"
#include "console/utf8.h"

enum { KEPT = 100, LINE_SHOWN = 160, LINE_LEAST = 16 };

struct error {
    struct mark mark;
    int order; /* of the file, by first error */
    const char *key, *message;
};

struct errors {
    struct region *region;
    int count, kept; /* of all, and of those in error[] */
    struct error error[KEPT];
};

struct errors *errors_create(struct region *region)
{
    struct errors *errors = region_array(region, 1, sizeof *errors);
    errors->region = region;
    return errors;
}

int errors_count(const struct errors *errors) { return errors->count; }

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool same(const struct error *a, const struct error *b)
{
    return a->mark.line == b->mark.line && a->mark.column == b->mark.column &&
           same_text(a->mark.source->name, b->mark.source->name) && same_text(a->key, b->key) &&
           same_text(a->message, b->message);
}

void errors_add(struct errors *errors, struct mark mark, const char *key, const char *format, ...)
{
    char message[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);

    struct error e = {mark, errors->kept, key && *key ? region_text(errors->region, "%s", key) : NULL, message};
    for (int i = 0; i < errors->kept; i++) {
        if (same(&errors->error[i], &e)) return;
        if (same_text(errors->error[i].mark.source->name, mark.source->name)) e.order = errors->error[i].order;
    }
    errors->count++;
    e.message = region_text(errors->region, "%s", message);
    if (errors->kept < KEPT) errors->error[errors->kept++] = e;
}

/* Prints characters [from, to) of the line at text; characters that are not printable become '?'. */
static void print_line(FILE *out, const char *text, int from, int to)
{
    size_t left = strcspn(text, "\n");
    for (int at = 0; left && at < to; at++) {
        const int n = utf8_length(text, left), taken = n ? n : 1;
        if (at >= from && utf8_plain_length(text, left))
            fwrite(text, 1, (size_t)n, out);
        else if (at >= from)
            fputc(*text == '\t' || *text == '\r' ? ' ' : '?', out);
        text += taken;
        left -= (size_t)taken;
    }
    fputc('\n', out);
}

static void print_place(FILE *out, const struct mark *mark)
{
    const char *text = mark->source->text;
    for (int line = 1; text && line < mark->line; line++) text = (text = strchr(text, '\n')) ? text + 1 : NULL;
    if (!text || mark->line < 1) return;
    const int margin = mark->source->argument ? fprintf(out, "  ") : fprintf(out, "%5d | ", mark->line);
    const int wide = terminal_width(out), room = wide ? wide - margin : LINE_SHOWN;
    const int shown = room < LINE_LEAST ? LINE_LEAST : room, before = shown * 3 / 8;
    const int from = mark->column > shown - before ? mark->column - before : 0;
    print_line(out, text, from, from + shown);
    const int right = shown - (mark->column - 1 - from), width = mark->width > right ? right : mark->width;
    fprintf(out, "%*s^", margin + mark->column - 1 - from, "");
    for (int i = 1; i < width; i++) fputc('~', out);
    fputc('\n', out);
}

static void print_error(FILE *out, const struct error *e)
{
    const struct mark *mark = &e->mark;
    const bool argument = mark->source->argument;
    fprintf(out, "%s%s%s", argument ? "argument '" : "", mark->source->name, argument ? "'" : "");
    if (!argument && mark->line > 0) fprintf(out, ":%d:%d", mark->line, mark->column);
    fprintf(out, ": error: %s%s%s\n", e->key ? e->key : "", e->key ? ": " : "", e->message);
    print_place(out, mark);
}

/* The first error of the last report, and the last line of that report. */
static _Thread_local char first[1280], closing[64];

const char *errors_reason(void) { return *closing && !strcmp(status_message(), closing) ? first : status_message(); }

/* As print_error(), but without the line's text and without the name of an argument. */
static void keep_first(const struct error *e, int count)
{
    const struct mark *mark = &e->mark;
    char place[256] = "";
    if (!mark->source->argument && mark->line > 0)
        snprintf(place, sizeof place, "%.200s:%d:%d: ", mark->source->name, mark->line, mark->column);
    snprintf(first, sizeof first, "%s%s%s%s", place, e->key ? e->key : "", e->key ? ": " : "", e->message);
    snprintf(closing, sizeof closing, "%d error%s; nothing was run", count, text_plural(count));
}

static int by_place(const void *left, const void *right)
{
    const struct error *a = *(const struct error *const *)left, *b = *(const struct error *const *)right;
    int from = a->mark.source->argument, other = b->mark.source->argument;
    if (from != other) return from < other ? -1 : 1;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    if (a->mark.line != b->mark.line) return a->mark.line < b->mark.line ? -1 : 1;
    if (a->mark.column != b->mark.column) return a->mark.column < b->mark.column ? -1 : 1;
    return a < b ? -1 : 1; /* as they were found */
}

enum status errors_report(const struct errors *errors, FILE *out)
{
    const struct error *sorted[KEPT];
    if (!errors->count) return ST_OK;
    terminal_note(out, "");
    for (int i = 0; i < errors->kept; i++) sorted[i] = &errors->error[i];
    qsort(sorted, (size_t)errors->kept, sizeof *sorted, by_place);
    for (int i = 0; i < errors->kept; i++) print_error(out, sorted[i]);
    if (errors->count > errors->kept) fprintf(out, "... and %d more\n", errors->count - errors->kept);
    keep_first(sorted[0], errors->count);
    return fail(ST_SPEC, "%s", closing);
}
