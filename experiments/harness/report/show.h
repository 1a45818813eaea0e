/* One result file as text and as JSON. */
#ifndef REMATCH_REPORT_SHOW_H
#define REMATCH_REPORT_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* What was run, planned and measured, a line a step; provenance: on what, too. A .part shows its committed steps. json:
 * one object of everything, under the file's own names (results/README.md): attributes and texts by the path of their
 * group, and under "steps", "eval" and "summary" an array a column. ST_SPEC: not a result file; ST_FAILED: unreadable.
 */
enum status show_file(const char *path, bool provenance, bool json, FILE *out);

#endif
