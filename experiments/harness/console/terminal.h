/* What a terminal shows: how wide it is, whether in colour, and lines broken at words so that they fit it. */
#ifndef REMATCH_CONSOLE_TERMINAL_H
#define REMATCH_CONSOLE_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Columns of the terminal that out writes to: what the terminal reports now, else $COLUMNS, else 80; 0: out is no
 * terminal, and a line may have any length. */
int terminal_width(FILE *out);

/* True where out is a terminal and NO_COLOR is not set (no-color.org). */
bool terminal_colour(FILE *out);

/* A stream whose lines are broken at words, and after a '|', to reach out with at most width columns, 0: those of out's
 * terminal. A broken line goes on below the last text of its left half that two or more blanks set apart, else two
 * columns in. A word wider than a line stays whole, and a number stays with its
 * unit. Escape sequences take no columns; a carriage return begins the line
 * anew. Line buffered; to be closed by fclose(), which leaves out open. NULL: no memory. */
FILE *terminal_lines(FILE *out, int width);

/* Replaces *stream, one of stdout and stderr, by such a stream where it writes to a terminal. */
void terminal_wrap(FILE **stream);

/* What a search that runs nothing is at: one line on a terminal, in the place of the last one; "" takes it away. out
 * NULL, or no terminal: says nothing. */
void terminal_note(FILE *out, const char *text);

#endif
