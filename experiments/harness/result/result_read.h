/* Reading a result file, for compare, show and list. It may be complete (.h5), or belong to a run that is going on, was
 * stopped or killed (.part); only committed steps count. */
#pragma once

#include "numerics/digest.h"
#include "result/file_lock.h"
#include "result/h5.h"
#include "result/timing.h"

struct result {
    struct region *region; /* owns everything below */
    struct h5 h5;
    const char *run_id, *variant, *status, *created, *invocation;
    const char *policy, *plan_hash;
    const char *not_finite; /* what ended the run by not being finite, in step not_finite_step; else "" */
    uint64_t not_finite_step;
    bool whole, written; /* it is a .h5; it is running, and a process writes it, or may (LOCK_UNKNOWN) */
    enum lock lock;
    const char *now; /* the status; of a file that is running and not locked, "died after 3 steps" */

    /* Bytes, as planned; live_peak: of the steps, counted in dynamic memory; high_water: measured, 0 before the end. */
    uint64_t peak_bytes, live_peak, high_water;
    uint64_t best_case_ns; /* timing_best_case(); 0: not known */

    struct result_tensors {
        size_t count;
        const char **name;
        uint64_t *elements;
    } parameters, running; /* running: of the running state */

    /* By step, in ascending order. */
    size_t steps;
    uint32_t *step, *loss_bits;
    float *loss;
    uint64_t *total_ns, *live;
    struct digest *gradients, *parameters_digest, *state, *running_digest;
    uint8_t *gradients_zero, *committed;
    struct timing timing;

    /* The steps with a digest of every tensor. */
    size_t digest_rows;
    uint32_t *digest_step;
};

/* ST_SPEC: missing, or no result file of this schema; ST_FAILED: unreadable. The message names the file. */
enum status result_open(const char *path, struct result **result);
void result_close(struct result *result);

/* result_auto *result = NULL: closed at the end of the block. */
#define result_auto struct result __attribute__((cleanup(result_end)))
static inline void result_end(struct result **result) { result_close(*result); }

/* Rows of a table that count, by its column `committed` at path; behind them there may be one that was added only in
 * part, when its writing failed. */
uint64_t result_committed_rows(struct result *result, const char *path);

/* The first rows of a column of numbers, which the file must have before memory is taken; no rows where they cannot be
 * read: see h5_status(). */
void *result_column(struct result *result, const char *path, enum number number, size_t width, uint64_t rows);

/* How many of the first rows of an array have the same bits in both; reads slices of at most 4 MiB. */
enum status result_same_rows(struct result *a, struct result *b, const char *path, enum number number, uint64_t rows,
                             uint64_t *same);

enum digests { DIGESTS_GRADIENT, DIGESTS_PARAMETER, DIGESTS_STATE, DIGESTS_RUNNING, DIGESTS };
extern const char *const digest_paths[DIGESTS];

/* Digests of every tensor at a step; NULL: that step has none. */
struct digest *result_digests(struct result *result, enum digests which, uint32_t step);

/* The tensors that they are of. */
const struct result_tensors *result_tensors(const struct result *result, enum digests which);

/* The number of steps of a completed run by its resolved spec; 0: unknown. */
struct yaml_tree;
uint64_t result_steps_asked(struct result *result, const struct yaml_tree *resolved);
