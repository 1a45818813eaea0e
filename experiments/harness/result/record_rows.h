/* What a result file records of each step, of each evaluation, and of the whole run. */
#ifndef REMATCH_RESULT_RECORD_ROWS_H
#define REMATCH_RESULT_RECORD_ROWS_H

#include "backend/backend.h"
#include "result/timing.h"

/* One step, as measured. */
struct step_record {
    uint32_t step;
    float loss, metric; /* metric: accuracy on the batch */
    double lr, gradient_norm;
    uint64_t phase_ns[PHASES], data_ns, total_ns;
    uint64_t live_peak, rss; /* bytes */
    struct digest gradients, parameters, state;
    bool gradients_zero; /* every gradient is zero; record_step() also derives it from the digests */
    const struct digest *gradient, *parameter, *parameter_state; /* one a parameter, or NULL */
    const size_t *live; /* bytes at each op, counted or planned; NULL where this step's memory is not recorded */
};

struct eval_record {
    uint32_t step; /* steps done before it */
    float loss, accuracy;
};

/* Known only at the end. */
struct run_summary {
    uint64_t high_water; /* VmHWM, bytes */
    uint64_t start_rss;  /* VmRSS before the blocks were reserved */
    /* Bytes of the device's memory in use by all processes, before the blocks were reserved and at the end; 0 on the
     * host. */
    uint64_t device_start, device_used;
    uint64_t wall_ns, setup_ns;
    uint64_t clock_ns[CLOCK_CLASSES];
    const char *not_finite; /* the loss, output or gradient that ended the run by not being finite, or NULL */
    struct best_case least; /* not known for a single step, or on a device */
};

#endif
