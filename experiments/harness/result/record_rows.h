/* What a result file keeps of each step, of each evaluation, and of the whole run. */
#ifndef REMATCH_RESULT_RECORD_ROWS_H
#define REMATCH_RESULT_RECORD_ROWS_H

#include "backend/backend.h"
#include "result/timing.h"

/* One step, as measured. */
struct step_record {
    uint32_t step;
    float loss, metric; /* metric: accuracy on the batch */
    double lr, gradient_norm;
    uint64_t forward_ns, recompute_ns, backward_ns, optimizer_ns, digest_ns, undefine_ns, data_ns, total_ns;
    uint64_t live_peak, rss; /* bytes */
    struct digest gradients, parameters, state;
    bool gradients_zero; /* all of them are; record_step() also sees it from the digests */
    const struct digest *gradient, *parameter, *parameter_state; /* one a parameter, or NULL */
    const size_t *live; /* bytes at each op, counted or planned; NULL where this step's memory is not recorded */
};

struct eval_record {
    uint32_t step; /* steps done before it */
    float loss, accuracy;
};

/* What is known only at the end. */
struct run_summary {
    uint64_t high_water; /* VmHWM, bytes */
    uint64_t start_rss;  /* VmRSS before the blocks were reserved */
    /* Bytes of the device's memory in use by everybody, before the blocks were reserved and at the end; 0: the host. */
    uint64_t device_start, device_used;
    uint64_t wall_ns, setup_ns;
    uint64_t clock_ns[CLOCK_CLASSES];
    const char
        *not_finite; /* the loss, output or gradient that was not, in step steps of the run; NULL: none ended it */
    struct best_case least; /* not known where there is no step after the first, or on a device */
};

#endif
