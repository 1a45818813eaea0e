/* Measured times instead of flops: each pass of a node alone, on real buffers, and the rest of a step.
 *
 * What is measured: before each pass everything it reads but its newest operand is written, then as many bytes as the
 * network's values and parameters take, at most DISTANCE_MAX, go through the caches, then the newest operand (of a
 * forward the input that was written last, of a backward dy) is written, as the op before would have left it. Then the
 * pass is timed. All passes are timed in turn, round after round, and the least time of a pass counts; a device that
 * records steps records it, too, from the second round on. Outputs lie over inputs where the kernel allows it and
 * no later op reads the input. Dropout draws as in rng: counter.
 *
 * Memory: one block, cut anew for each node, so at most what one node's operands take; then parameters, gradients and
 * state. Values are uniform in [-1, 1), so no time depends on denormals. */
#pragma once

#include "backend/network.h"
#include "model/optimizer.h"

enum { ROUNDS_LEAST = 3, ROUNDS_MOST = 100, DISTANCE_MAX = 64 << 20 };

/* ns, of the whole batch: of a sliced node, a call's times their number, and of each but the first the addition of its
 * gradients of the parameters. */
struct measured {
    double forward, saving; /* writes only y, and a first forward that writes the saved tensors and what is written
                               once; equal where there are none */
    double backward[2];     /* by part index; an unsplit backward of both parts stands under PARAMS */
};

/* Times of a step besides its kernels, in ns. */
struct measured_rest {
    double digest;    /* digests of gradients, parameters and state, and the norm of the gradients */
    double optimizer; /* of all parameters */
    double add, copy; /* of a MiB of gradient; 0 where no value has two readers */
};

/* Everything on which the time of node's passes depends, as text: layer, settings, shapes, layouts, bytes,
 * implementation, and whether y lies over x. Nodes of one key are measured once, so that equal stages stay equal. */
char *measure_key(const struct network *network, int node, struct region *region);

/* Rounds continue until there are rounds_least and budget_ns has passed, or there are ROUNDS_MOST. */
struct measure_options {
    int rounds_least;
    uint64_t budget_ns;
};

/* Bytes that measure_nodes() will take. */
size_t measure_bytes(const struct network *network, const int *nodes, int count);

/* times[i]: of node nodes[i]; *rounds: the rounds made. ST_FAILED: no memory, or a kernel failed. */
enum status measure_nodes(const struct network *network, const int *nodes, int count,
                          const struct measure_options *options, struct measured *times, int *rounds);

/* The least of rounds_least rounds. */
enum status measure_rest(const struct network *network, const struct optimizer *optimizer,
                         const struct optimizer_settings *settings, const struct measure_options *options,
                         struct measured_rest *rest);
