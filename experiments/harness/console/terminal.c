#include "console/terminal.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/region.h"
#include "console/utf8.h"

enum { UNKNOWN = 80, COLUMNS_MAX = 4096, ROOM = 1 << 16 };

/* A stream of terminal_lines() and the state of its current line. */
struct lines {
    FILE *stream, *out;
    struct lines *next;
    int width;  /* 0: the terminal's */
    int column; /* the end of the last word; 0: the line has none yet */
    int blanks; /* after it, not written yet */
    int hang;   /* column at which a broken line continues */
    bool joint; /* after a '|', where a list of words may be broken */
    char room[ROOM];
};

static struct lines *all;

static struct lines *lines_of(FILE *stream)
{
    struct lines *l = all;
    while (l && l->stream != stream) l = l->next;
    return l;
}

int terminal_columns(void)
{
    const char *columns = getenv("COLUMNS");
    const long wide = columns ? strtol(columns, NULL, 10) : 0;
    return wide > 0 && wide <= COLUMNS_MAX ? (int)wide : UNKNOWN;
}

int terminal_width(FILE *out)
{
    const struct lines *l = lines_of(out);
    struct winsize size;
    if (l) return l->width ? l->width : terminal_width(l->out);
    if (!isatty(fileno(out))) return 0;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return terminal_columns();
}

bool terminal_colour(FILE *out)
{
    const struct lines *l = lines_of(out);
    const char *no = getenv("NO_COLOR");
    return isatty(fileno(l ? l->out : out)) && !(no && *no);
}

/* Writes a word of length bytes after its blanks or on a new line. */
static void put_word(struct lines *l, const char *word, size_t length, int width)
{
    const int columns = utf8_columns(word, length);
    const bool first = l->column == 0;
    if (first) l->hang = l->blanks + 2;
    if (!first && l->blanks > 1 && l->column + l->blanks <= width / 2) l->hang = l->column + l->blanks;
    if (!first && (l->blanks || l->joint) && l->column + l->blanks + columns > width) {
        const int most = columns < width ? width - columns : 0;
        fputc('\n', l->out);
        l->column = 0;
        l->blanks = l->hang < most ? l->hang : most;
    }
    fprintf(l->out, "%*s", l->blanks, "");
    fwrite(word, 1, length, l->out);
    l->column += l->blanks + columns;
    l->blanks = 0;
    l->joint = word[length - 1] == '|';
}

/* Bytes of the unit after a number, with the blank before it; 0: there is none. */
static size_t unit_length(const char *text, size_t left)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "us", "ms", "s", "%", NULL};
    size_t length = 1;
    if (*text != ' ') return 0;
    while (length < left && !strchr(" \n,;.)", text[length])) length++;
    for (int i = 0; length > 1 && units[i]; i++)
        if (strlen(units[i]) == length - 1 && strncmp(units[i], text + 1, length - 1) == 0) return length;
    return 0;
}

/* Bytes of the word at the start of text: up to a blank without a unit after it, or to a '|'. */
static size_t word_length(const char *text, size_t left)
{
    size_t length = 1;
    while (length < left && text[length - 1] != '|') {
        const bool number = isdigit((unsigned char)text[length - 1]);
        const size_t unit = number ? unit_length(text + length, left - length) : 0;
        if (!unit && strchr(" \n", text[length])) break;
        length += unit ? unit : 1;
    }
    return length;
}

static ssize_t write_lines(void *cookie, const char *given, size_t size)
{
    struct lines *l = cookie;
    const int width = l->width ? l->width : terminal_width(l->out);
    freed_auto char *text = allocate(size, ESCAPED);
    const size_t escaped = utf8_escape(given, size, "\n\t", text);
    for (size_t at = 0, length; at < escaped; at += length) {
        length = 1;
        if (text[at] == '\n') {
            fputc('\n', l->out);
            l->column = l->blanks = 0;
        } else if (text[at] == ' ') {
            l->blanks++;
        } else {
            length = word_length(text + at, escaped - at);
            put_word(l, text + at, length, width);
        }
    }
    return fflush(l->out) == 0 && !ferror(l->out) ? (ssize_t)size : 0;
}

static int close_lines(void *cookie)
{
    struct lines **at = &all, *l = cookie;
    while (*at != l) at = &(*at)->next;
    *at = l->next;
    free(l);
    return 0;
}

FILE *terminal_lines(FILE *out, int width)
{
    const cookie_io_functions_t functions = {.write = write_lines, .close = close_lines};
    struct lines *l = allocate(1, sizeof *l);
    FILE *stream = fopencookie(l, "w", functions);
    setvbuf(stream, l->room, _IOLBF, sizeof l->room);
    l->stream = stream;
    l->out = out;
    l->width = width;
    l->next = all;
    all = l;
    return stream;
}

void terminal_wrap(FILE **stream, bool broken)
{
    if (terminal_width(*stream)) *stream = terminal_lines(*stream, broken ? 0 : INT_MAX);
}

void terminal_control(FILE *out, const char *sequence)
{
    struct lines *l = lines_of(out);
    fflush(out);
    fputs(sequence, l ? l->out : out);
    if (l && *sequence == '\r') l->column = l->blanks = 0;
}

void terminal_note(FILE *out, const char *text)
{
    const int width = out ? terminal_width(out) : 0;
    if (!width) return;
    freed_auto char *shown = strcpy(allocate(strlen(text) + 1, 1), text);
    utf8_clean(shown, "");
    terminal_control(out, "\r\033[K");
    fprintf(out, "%.*s", (int)utf8_fit(shown, width - 1), shown);
    fflush(out);
}

enum status report_error(enum status status)
{
    if (status == ST_OK) return ST_OK;
    terminal_note(stderr, "");
    fprintf(stderr, "rematch: %s\n", status_message());
    return status;
}

void report_warning(const char *text)
{
    static char last[2048];
    if (!text || strncmp(text, last, sizeof last - 1) == 0) return;
    snprintf(last, sizeof last, "%s", text);
    terminal_note(stderr, "");
    fprintf(stderr, "rematch: warning: %s\n", text);
}
