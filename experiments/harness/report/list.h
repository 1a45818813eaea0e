/* Lists the experiments in a folder, or the runs in a folder of results. */
#pragma once

#include "analysis/figures.h"
#include "base/status.h"

/* Of a folder with specs one line each: name, title, and the status of its newest result file, where there is one. Of
 * one without specs but with result files, itself or in its folders, one row each, by folder and time of creation; a
 * variant's verdict is that of its file beside its baseline's: of the files in the folder that train the same, one of
 * the same invocation before others, then one computed alike, then the newest. What cannot be read is a row with the
 * reason. ST_SPEC: the folder cannot be read, a spec in it is wrong (reported on stderr; the others are listed). */
enum status list_folder(const char *folder, bool json, FILE *out);

/* The rows of its runs as JSON has them, and in "match" what they were matched by; an array. */
json_t *list_runs(const char *folder);
