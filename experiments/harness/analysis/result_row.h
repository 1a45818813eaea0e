/* A result file as a row of a table of runs, in plain bytes: the file is read in a process of its own, which some
 * damaged files crash. */
#ifndef REMATCH_ANALYSIS_RESULT_ROW_H
#define REMATCH_ANALYSIS_RESULT_ROW_H

#include "result/result.h"

struct result_row {
    bool readable, whole;
    char status[RESULT_STATUS]; /* result_status(), or why it is not readable */
    char variant[16], policy[64], batch[32], created[64], invocation[64], overrides[1024];
    uint64_t steps, peak, live_peak;
    double step_ns; /* median; 0: no step after the first */
    struct digest trains,
        how; /* of the keys that a baseline and its variant have in common; of those that a baseline may set */
};

void result_row_read(const char *path, struct result_row *row);

/* "equal", "DIFFERS" or "unproven": how two readable files compare; "-": they cannot be compared. */
const char *result_row_verdict(const char *baseline, const char *variant);

#endif
