#include "base/work.h"

#include <stddef.h>

void (*work_watch)(const char *what, double share) = NULL;
