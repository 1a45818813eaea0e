#include "console/report_error.h"

#include <stdio.h>
#include <string.h>

#include "console/terminal.h"

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
