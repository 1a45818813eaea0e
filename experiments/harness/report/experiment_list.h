/* Lists the experiments in a folder. */
#ifndef REMATCH_REPORT_EXPERIMENT_LIST_H
#define REMATCH_REPORT_EXPERIMENT_LIST_H

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* One line a spec: name, title, and the status of its newest result file, where there is one. ST_SPEC: the folder
 * cannot be read, or a spec in it is wrong (reported on stderr; the others are listed). */
enum status list_experiments(const char *folder, bool json, FILE *out);

#endif
