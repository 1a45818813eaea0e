#include "told.h"

#include <stdio.h>

enum status told(enum status status)
{
    if (status != ST_OK) fprintf(stderr, "rematch: %s\n", status_message());
    return status;
}
