/* A result file as a row of figures: the file is read in a process of its own, which some damaged files crash. */
#pragma once

#include "analysis/figures.h"

/* The keys of `rematch list --json` that the file determines; "reason": why it cannot be read, null: it can.
 * "match": what a variant and its baseline are matched by. */
json_t *result_row(const char *path);

/* Whether it is that of a completed run. */
bool result_row_is_whole(const json_t *row);

/* Of rows that have an "experiment" too: the baseline to compare a run with. It trains the same;
 * one of the same invocation comes before others, then one computed alike, then the newest. NULL: there is none. */
const json_t *result_row_baseline(const json_t *rows, const json_t *run);

/* "equal", "DIFFERS" or "unproven": how two readable files compare; "-": they cannot be compared. */
json_t *result_row_verdict(const char *baseline, const char *variant);
