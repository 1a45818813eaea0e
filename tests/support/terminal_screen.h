/* A terminal for programs under test, and the screen that shows their output. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Forks a child whose terminal has that width (0: unknown), as forkpty() does; skips the test where there are no
 * terminals. */
pid_t screen_fork(int columns, int *master);

/* The text written to the terminal until every process has closed it; to be freed. */
char *screen_read(int master);

/* The final screen of that width after the bytes sent to it: carriage returns, erased rests of lines and colours are
 * interpreted. To be freed. *over: the number of lines longer than the screen; lines of a single word may be, unless
 * they are overwritten, which would leave a part of them on the screen. */
char *screen_show(const char *sent, int columns, int *over);
