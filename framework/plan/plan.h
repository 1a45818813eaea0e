/* The plan: a training step as data, complete before it runs. */
#pragma once

#include "plan/lower.h"
#include "plan/plan_data.h"

struct plan_options {
    struct lower_options lower;
    int state_per_parameter; /* optimiser state, in copies of the parameters */
    bool unplaced;           /* never run: without offsets, and the arena is the live peak */
};

struct plan {
    struct region *region;         /* owns everything below */
    const struct network *network; /* that it was built for, which must outlive it */
    struct plan_options options;
    struct lowered lowered;
    char *schedule;
    size_t *live;        /* live arena bytes while each op runs */
    int peak_op;         /* the first op at which live is largest */
    size_t live_peak;    /* live[peak_op] */
    size_t live_forward; /* live bytes after the last first forward */
    size_t peak_by_category[CATEGORIES];
    size_t arena_bytes;
    size_t arena_bound; /* no placement of these buffers needs less */
    size_t static_bytes[STATICS];
    double forward_flops, backward_flops, recompute_flops;
    double time;     /* of all ops, in the network's costs */
    double slowdown; /* time / the time of one forward and one backward of every node */
    int recomputations;
    struct digest hash; /* of ops, buffers and offsets */
};

/* Lowers and places a schedule that schedule_check() accepts. */
struct plan *plan_build(const struct network *network, const struct schedule *schedule,
                        const struct plan_options *options);
void plan_destroy(struct plan *plan);

/* plan_auto *plan = NULL: destroyed at the end of the block. */
#define plan_auto struct plan __attribute__((cleanup(plan_end)))
static inline void plan_end(struct plan **plan) { plan_destroy(*plan); }

/* The live peak and the time of such a schedule's plan, without placing it, which takes most of the time. */
struct plan_cost {
    size_t live_peak;
    double time;
};
struct plan_cost plan_cost(const struct network *network, const struct schedule *schedule,
                           const struct lower_options *options);

/* Where the arena is larger than its bound: looks for a better placement, which takes seconds if none is found; so it
 * is for a plan that was chosen. Updates the arena, its bound and the hash. */
void plan_search_placement(struct plan *plan);

/* Replaces the offsets by those of placed, which simulate() must have accepted; updates the arena and the hash. */
void plan_move(struct plan *plan, const struct buffer *placed);

/* The inputs of planning as data; the network must outlive it. */
void plan_network_to_data(const struct network *network, const struct plan_options *options, struct region *region,
                          struct plan_data *data);

/* The plan as data in region; the plan must outlive it. */
void plan_to_data(const struct plan *plan, struct region *region, struct plan_data *data);

/* Static memory that only a device needs: the next batch, and room for updating parameters; 0: a host's backend. */
size_t plan_device_bytes(const struct network *network, const struct plan_options *options);

/* The sum of the static categories, which no schedule changes; and with the arena: the peak. Once the gradients are
 * computed, a profiler sees plan_static(), and after the forward plan_sampled_forward(): parameters, batch and saved
 * tensors, as in the published numbers. Such a profiler misses the peak, which is inside the gradient call. */
size_t plan_static(const struct plan *plan);
size_t plan_static_of(const struct network *network, const struct plan_options *options);
size_t plan_peak(const struct plan *plan);
size_t plan_sampled_forward(const struct plan *plan);

/* The numbers that plans are compared by; peak: static bytes and arena. */
struct plan_numbers {
    size_t static_bytes, live_peak, arena, peak;
    double time, slowdown;
};
struct plan_numbers plan_numbers(const struct plan *plan);

/* The name of the op's node; of a traced step's backward that of the operator. And op_text() and buffer_text() of an op
 * and a buffer of the plan. */
const char *plan_op_name(const struct plan *plan, int op);
char *plan_op_text(const struct plan *plan, int op, char *text);
char *plan_buffer_text(const struct plan *plan, int buffer, char *text);

/* The buffers that are live while the op runs that sets the peak, by falling size: a number of each; returns their
 * count. And the largest of them with their sizes: "conv1_2.y (784.0 MiB), conv1_1.y (784.0 MiB)". */
int plan_peak_buffers(const struct plan *plan, struct region *region, int **buffer);
const char *plan_peak_text(const struct plan *plan, struct region *region);
