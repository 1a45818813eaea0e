/* A terminal's width and colour, lines broken at words to fit it, and errors and warnings on stderr. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* $COLUMNS, else 80. */
int terminal_columns(void);

/* The width of out's terminal in columns: as the terminal reports it now, else terminal_columns(); 0: out is no
 * terminal, and lines may have any length. */
int terminal_width(FILE *out);

/* True where out is a terminal and NO_COLOR is not set (no-color.org). */
bool terminal_colour(FILE *out);

/* A stream to out whose lines are broken at words, and after a '|', to at most width columns, 0: those of out's
 * terminal. A broken line continues below the last text of its left half that two or more blanks set apart, else two
 * columns in. A word wider than a line stays whole, and a number stays with its unit. What is not plain is escaped
 * (console/utf8.h): no path and no text of a user can control the terminal. Line buffered; to be closed by fclose(),
 * which leaves out open. */
FILE *terminal_lines(FILE *out, int width);

/* Replaces *stream, one of stdout and stderr, by such a stream where it writes to a terminal; broken: at words, else
 * lines have any length. */
void terminal_wrap(FILE **stream, bool broken);

/* Writes an escape sequence or a carriage return, which such a stream would escape. */
void terminal_control(FILE *out, const char *sequence);

/* Shows the progress of a search as one line on a terminal, in place of the previous one; "" removes it. Prints nothing
 * where out is NULL or no terminal. */
void terminal_note(FILE *out, const char *text);

/* Unless status is ST_OK, prints "rematch: " and the message of fail(); returns status. */
enum status report_error(enum status status);

/* Prints a warning, but not NULL and not the last one again: the points of a sweep repeat it. */
void report_warning(const char *text);
