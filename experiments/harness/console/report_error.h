/* What the program says on stderr of a failure that ends a command, and its warnings. */
#ifndef REMATCH_CONSOLE_REPORT_ERROR_H
#define REMATCH_CONSOLE_REPORT_ERROR_H

#include "base/status.h"

/* Unless status is ST_OK, prints "rematch: " and the message of fail(); returns status. */
enum status report_error(enum status status);

/* Prints a warning; NULL, and the same text again, as a sweep's points repeat it, print nothing. */
void report_warning(const char *text);

#endif
