/* One result file, as people read it. */
#ifndef REMATCH_SHOW_H
#define REMATCH_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "status.h"

/* What was run, what was planned and measured, a line a step; a .part shows its committed steps. ST_SPEC: not a result
 * file; ST_FAILED: unreadable. */
enum status show_file(const char *path, bool provenance, FILE *out);

#endif
