#include "told.h"

#include <stdio.h>

enum status told(enum status status)
{
    if (status != ST_OK) fprintf(stderr, "rematch: %s\n", status_message());
    return status;
}

void told_notice(const struct dataset *dataset)
{
    if (dataset->notice) fprintf(stderr, "rematch: warning: %s\n", dataset->notice);
}
