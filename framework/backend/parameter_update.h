/* The update of a step: the norm of the gradients and whether all are finite, digests of every gradient, the optimizer,
 * digests of every parameter and of its state. Of all parameters at once, after the backward; or fused with it, of a
 * part of a gradient after the other, each as soon as it is complete.
 *
 * Contract: where the loss or a gradient is not finite, parameters and state stay as they are; but of a fused update,
 * what was updated before that gradient has moved. A digest is digest_tensor()'s and a sum of squares
 * sum_of_squares()'s, bit for bit, wherever they are computed; the sums of the parameters are added in descending
 * order. */
#pragma once

#include "model/optimizer.h"
#include "numerics/digest.h"

enum digested { DIGESTED_GRADIENT, DIGESTED_PARAMETER, DIGESTED_STATE, DIGESTEDS };

/* A parameter in the backend's memory, in logical order; gradient: NULL where it is not static; state: copy after copy,
 * NULL: none; average: its average, state's first copy, NULL: none. */
struct update_tensor {
    float *parameter, *gradient, *state, *average;
    int64_t elements;
    int numbers; /* index in the moment's numbers */
};

struct update {
    const struct optimizer *optimizer;
    struct optimizer_settings settings;
    int states; /* copies of a parameter that are kept: optimizer_copies() */
    int count;
    struct update_tensor *tensor;
    struct digest *digest[DIGESTEDS]; /* the host's: one a tensor; of the state NULL where there is none */
    double *squares;                  /* the host's: one a tensor, of what was measured of its gradient */
    struct digest *piece;             /* the host's: of the pieces of the largest tensor */
    void *room;                       /* update_kind.bytes() of the backend's memory */
};

/* Elements [first, first + count) of a tensor and their gradient. Parts of a tensor come in ascending order; they begin
 * at a multiple of DIGEST_PIECE. */
struct update_part {
    int tensor;
    int64_t first, count;
    float *gradient;
};

/* What the optimizer itself keeps as state, behind the averages, of a part; NULL: nothing. */
static inline float *update_state(const struct update *update, const struct update_part *part)
{
    const struct update_tensor *t = &update->tensor[part->tensor];
    const int averages = t->average != NULL;
    return update->states > averages ? t->state + averages * t->elements + part->first : NULL;
}

struct backend;
struct graph;

/* A backend's implementation. */
struct update_kind {
    /* Bytes of room for the graph's parameters, of which the optimizer keeps states copies; NULL: none. */
    size_t (*bytes)(const struct graph *graph, int states);
    /* Once, before the first run; NULL: nothing to do. */
    enum status (*prepare)(struct backend *backend, const struct update *update);
    /* Queues the work. Reads the backend's now, and of its outcome the loss; writes the rest of the outcome. */
    void (*run)(struct backend *backend, const struct update *update);
    /* Queues a fused update instead: of a part of a gradient, where the caller set the outcome's not_finite to -1
     * before the first; and after all parts, the rest of the outcome, and digests of parameters and state. */
    void (*part)(struct backend *backend, const struct update *update, const struct update_part *part);
    void (*finish)(struct backend *backend, const struct update *update);
    /* After the work is done: computes the digests; NULL: run() did. */
    enum status (*collect)(struct backend *backend, const struct update *update);
};
