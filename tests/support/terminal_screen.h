/* A terminal: what programs see of it, and what a person sees of what they write to it. */
#ifndef REMATCH_TESTS_SUPPORT_TERMINAL_SCREEN_H
#define REMATCH_TESTS_SUPPORT_TERMINAL_SCREEN_H

#include <stddef.h>
#include <sys/types.h>

/* Forks a child whose terminal has so many columns (0: does not know how many), as forkpty() does; skips the test where
 * there are no terminals. */
pid_t screen_fork(int columns, int *master);

/* All that is written to the terminal until nobody has it open; a text, to be freed. */
char *screen_read(int master);

/* What a screen of so many columns shows in the end of the bytes sent to it: carriage returns, erased rests of lines
 * and colours are obeyed. To be freed. *over: how many lines were longer than the screen is wide; lines of a single
 * word are allowed to be, unless they are overwritten, which would leave a part of them on the screen. */
char *screen_show(const char *sent, int columns, int *over);

#endif
