#include "terminal_screen.h"

#include <criterion/criterion.h>
#include <pty.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "console/utf8.h"

pid_t screen_fork(int columns, int *master)
{
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    fflush(NULL);
    const pid_t child = forkpty(master, NULL, NULL, &size);
    if (child < 0) cr_skip_test("no terminals here");
    return child;
}

char *screen_read(int master)
{
    char *text = NULL, piece[4096];
    size_t length;
    FILE *all = open_memstream(&text, &length);
    cr_assert(all);
    for (ssize_t got; (got = read(master, piece, sizeof piece)) > 0;) fwrite(piece, 1, (size_t)got, all);
    fclose(all);
    close(master);
    return text;
}

enum { CELLS = 4096 };

/* A line as its cells, each with a character of any number of columns. */
struct row {
    char cell[CELLS][8];
    int cells, at;
    bool over; /* a part of it was beyond the last column */
};

static char *row_text(const struct row *row, char *text)
{
    char *end = text;
    *text = '\0';
    for (int i = 0; i < row->cells; i++) end = stpcpy(end, *row->cell[i] ? row->cell[i] : " ");
    while (end > text && end[-1] == ' ') *--end = '\0';
    return text;
}

static void put(struct row *row, const char *character, size_t length, int columns)
{
    cr_assert(row->at < CELLS && length < sizeof *row->cell);
    snprintf(row->cell[row->at], sizeof *row->cell, "%.*s", (int)length, character);
    if (++row->at > row->cells) row->cells = row->at;
    char text[CELLS * 8];
    row_text(row, text);
    row->over |= utf8_columns(text, strlen(text)) > columns;
}

/* Bytes of an escape sequence: of colours, or "erase the rest of the line". */
static size_t obey(struct row *row, const char *at)
{
    const size_t length = 2 + strspn(at + 2, "0123456789;") + 1;
    cr_assert(at[1] == '[' && strchr("mK", at[length - 1]), "an unknown escape sequence: %s", at + 1);
    if (at[length - 1] == 'K') {
        memset(row->cell[row->at], 0, sizeof *row->cell * (size_t)(CELLS - row->at));
        row->cells = row->at;
    }
    return length;
}

static void end_row(struct row *row, FILE *shown, int *over)
{
    char text[CELLS * 8];
    row_text(row, text);
    fprintf(shown, "%s\n", text);
    *over += row->over && strchr(text + strspn(text, " "), ' ');
    memset(row, 0, sizeof *row);
}

char *screen_show(const char *sent, int columns, int *over)
{
    char *text = NULL;
    size_t size;
    struct row *row = calloc(1, sizeof *row);
    FILE *shown = open_memstream(&text, &size);
    cr_assert(row && shown);
    *over = 0;
    for (size_t length; *sent; sent += length) {
        length = 1;
        if (*sent == '\r' && sent[1] == '\n') {
            end_row(row, shown, over);
            length = 2;
        } else if (*sent == '\r') {
            *over += row->over;
            row->over = false;
            row->at = 0;
        } else if (*sent == '\033') {
            length = obey(row, sent);
        } else {
            const int valid = utf8_length(sent, strlen(sent));
            cr_assert(valid && (unsigned char)*sent >= ' ', "no text: %s", sent);
            length = (size_t)valid;
            put(row, sent, length, columns);
        }
    }
    if (row->cells) end_row(row, shown, over);
    fclose(shown);
    free(row);
    return text;
}
