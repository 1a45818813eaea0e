/* Errors that end a command, and warnings, on stderr. */
#ifndef REMATCH_CONSOLE_REPORT_ERROR_H
#define REMATCH_CONSOLE_REPORT_ERROR_H

#include "base/status.h"

/* Unless status is ST_OK, prints "rematch: " and the message of fail(); returns status. */
enum status report_error(enum status status);

/* Prints a warning, but not NULL and not the last one again: the points of a sweep repeat it. */
void report_warning(const char *text);

#endif
