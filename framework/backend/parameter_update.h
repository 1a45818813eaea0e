/* The update after a step's backward, of all parameters at once: the norm of the gradients and whether all are finite,
 * digests of every gradient, the optimizer, digests of every parameter and of its state.
 *
 * Contract: where the loss or a gradient is not finite, parameters and state stay as they are. A digest is
 * digest_tensor()'s and a sum of squares sum_of_squares()'s, bit for bit, wherever they are computed; the sums of the
 * parameters are added in descending order. */
#ifndef REMATCH_BACKEND_PARAMETER_UPDATE_H
#define REMATCH_BACKEND_PARAMETER_UPDATE_H

#include "model/optimizer.h"
#include "numerics/digest.h"

enum digested { DIGESTED_GRADIENT, DIGESTED_PARAMETER, DIGESTED_STATE, DIGESTEDS };

/* A parameter in the backend's memory, in logical order; state: copy after copy, NULL: none. */
struct update_tensor {
    float *parameter, *gradient, *state;
    int64_t elements;
    int numbers; /* index in the moment's numbers */
};

struct update {
    const struct optimizer *optimizer;
    struct optimizer_settings settings;
    int states; /* copies of a parameter that the optimizer keeps */
    int count;
    struct update_tensor *tensor;
    struct digest *digest[DIGESTEDS]; /* the host's: one a tensor; of the state NULL where there is none */
    void *room;                       /* update_kind.bytes() of the backend's memory */
};

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
    /* After the work is done: computes the digests; NULL: run() did. */
    enum status (*collect)(struct backend *backend, const struct update *update);
};

#endif
