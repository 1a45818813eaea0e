#include "console/report_error.h"

#include <stdio.h>
#include <string.h>

#include "run/progress.h"

enum status told(enum status status)
{
    if (status != ST_OK) progress_note(stderr, "");
    if (status != ST_OK) fprintf(stderr, "rematch: %s\n", status_message());
    return status;
}

void told_notice(const struct dataset *dataset)
{
    static char last[2048];
    if (!dataset->notice || strncmp(dataset->notice, last, sizeof last - 1) == 0) return;
    snprintf(last, sizeof last, "%s", dataset->notice);
    progress_note(stderr, "");
    fprintf(stderr, "rematch: warning: %s\n", dataset->notice);
}
