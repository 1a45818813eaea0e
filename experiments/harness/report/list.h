/* Lists the experiments in a folder, or the runs in a folder of results. */
#ifndef REMATCH_REPORT_LIST_H
#define REMATCH_REPORT_LIST_H

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* One line a spec: name, title, and the status of its newest result file, where there is one. ST_SPEC: the folder
 * cannot be read, or a spec in it is wrong (reported on stderr; the others are listed). */
enum status list_experiments(const char *folder, bool json, FILE *out);

enum list_form { LIST_TEXT, LIST_CSV, LIST_JSON };

/* Whether folder holds no spec, but result files, itself or in its folders. */
bool list_is_results(const char *folder);

/* One row a result file, by folder and time of creation. A variant's verdict is that of its file beside its baseline's:
 * of the files in the folder that train the same, one of the same invocation before others, then one computed alike,
 * then the newest. What cannot be read is a row with the reason. */
enum status list_results(const char *folder, enum list_form form, FILE *out);

#endif
