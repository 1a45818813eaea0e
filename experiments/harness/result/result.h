/* A result file as it is read: by compare, show and list. It may be whole (.h5), or of a run that is going on, was
 * stopped or killed (.part); only committed steps count. */
#ifndef REMATCH_RESULT_RESULT_H
#define REMATCH_RESULT_RESULT_H

#include "numerics/digest.h"
#include "result/h5.h"
#include "result/timing.h"

struct result {
    struct region *region; /* owns everything below */
    struct h5 h5;
    const char *run_id, *experiment, *title, *variant, *status, *created, *invocation;
    const char *policy, *peak_op, *plan_hash;
    const char *not_finite; /* what ended the run by not being finite, in step not_finite_step; "": nothing */
    uint64_t not_finite_step;
    bool whole, written; /* a .h5; a process is writing it now */

    /* Planned, in bytes; live_peak over the steps, counted in dynamic memory; high_water as measured, 0 before the
     * end. */
    uint64_t static_bytes, arena_bytes, peak_bytes, live_peak_planned, live_peak, high_water, overhead;
    double slowdown;
    uint64_t best_case_ns; /* timing_best_case(); 0: not known */

    size_t parameters;
    const char **parameter; /* names */
    uint64_t *elements;

    /* By step, in ascending order. */
    size_t steps;
    uint32_t *step, *loss_bits;
    float *loss;
    uint64_t *total_ns, *live;
    struct digest *gradients, *parameters_digest, *state;
    uint8_t *gradients_zero;
    struct timing timing;
};

/* ST_SPEC: not there, or not a result file of this schema; ST_FAILED: cannot be read. The message names the file. */
enum status result_open(const char *path, struct result **result);
void result_close(struct result *result);

/* Digests of every parameter's array at a step; NULL: that step has none. which: "gradient", "parameter", "state". */
struct digest *result_digests(struct result *result, const char *which, uint32_t step);

/* "completed", "running", "died after 3 steps", "failed: ...": status, and whether anyone is still at it; returns text.
 */
enum { RESULT_STATUS = 2064 };
char *result_status(const struct result *result, char text[RESULT_STATUS]);

#endif
