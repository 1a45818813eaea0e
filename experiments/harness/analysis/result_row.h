/* Result files as rows of numbers, and their verdicts. Files are read by processes of their own, because some damaged
 * ones crash the process that reads them; work_report() counts them.
 */
#pragma once

#include "analysis/json_tree.h"

/* The keys of `rematch list --json` that the file determines; "reason": why it cannot be read, null: it can; "pieces":
 * processes that worked on the run, above 1 where it was resumed. "match": what a variant and its baseline are matched
 * by, and what overrides "set" each key to, in place of what it "was". Of many files an array of rows. */
json_t *result_row(const char *path);
json_t *result_rows(const char *const *path, size_t count);

/* Whether it is that of a completed run. */
bool result_row_is_whole(const json_t *row);

/* The baselines of completed runs among rows that have an "experiment" too, by what they train; to be freed. */
json_t *result_baselines(const json_t *rows);

/* Of these the one to compare a run with. It is of the same experiment and trains the same;
 * one of the same invocation comes before others, then one computed alike, then the newest. NULL: there is none. */
const json_t *result_row_baseline(const json_t *baselines, const json_t *run);

/* An array of "equal", "DIFFERS" or "unproven": how the readable files of each pair compare; "-": they cannot be
 * compared. */
struct result_pair {
    const char *baseline, *variant;
};
json_t *result_verdicts(const struct result_pair *pair, size_t count);
