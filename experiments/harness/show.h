/* One result file, as people and programs read it. */
#ifndef REMATCH_SHOW_H
#define REMATCH_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "status.h"

/* What was run, what was planned and measured, a line a step; a .part shows its committed steps. ST_SPEC: not a result
 * file; ST_FAILED: unreadable. */
enum status show_file(const char *path, bool provenance, FILE *out);

/* The same as one JSON object, provenance included. */
enum status show_json(const char *path, FILE *out);

/* Paths of all that has attributes worth telling, ended by NULL: what was run, planned and measured, and
 * SHOW_PROVENANCE of them on, on what. */
enum { SHOW_PROVENANCE = 3 };
extern const char *const show_groups[];

#endif
