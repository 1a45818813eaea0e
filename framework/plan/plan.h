/* The plan: printable data that says everything about a training step before it runs. */
#ifndef REMATCH_PLAN_PLAN_H
#define REMATCH_PLAN_PLAN_H

#include "plan/lower.h"
#include "plan/plan_data.h"

struct plan_options {
    struct lower_options lower;
    int state_per_parameter; /* optimiser state, in copies of the parameters */
    bool forward_only;       /* an evaluation: the schedule has no B */
    bool unplaced;           /* never run, so it has no offsets: the arena is the live peak */
};

struct plan {
    struct region *region;         /* owns everything below */
    const struct network *network; /* with every footprint as the schedule has it */
    struct plan_options options;
    struct lowered lowered;
    char *schedule;
    size_t *live;        /* live arena bytes while each op runs */
    int peak_op;         /* the first op at which live is largest */
    size_t live_peak;    /* live[peak_op] */
    size_t live_forward; /* live bytes between the last first forward and what follows it */
    size_t peak_by_category[CATEGORIES];
    size_t arena_bytes;
    size_t static_bytes[STATICS];
    double forward_flops, backward_flops, recompute_flops;
    double time;     /* of all ops, in the network's costs */
    double slowdown; /* time / that of every forward and backward once */
    int recomputations;
    struct digest hash; /* of ops, buffers and offsets */
};

/* Checks the schedule, lowers, places. Errors: those of schedule_check, and ST_FAILED for memory. */
enum status plan_build(const struct network *network, const struct schedule *schedule,
                       const struct plan_options *options, struct plan **plan);
void plan_destroy(struct plan *plan);

/* The network as a schedule has it: with what its backwards say that relus keep. In region. */
enum status plan_view(const struct network *network, const struct schedule *schedule, struct region *region,
                      const struct network **seen);

/* Other offsets than those that placing found, one a buffer; what depends on them follows. They must be right: see
 * simulate.h. */
enum status plan_move(struct plan *plan, const struct buffer *placed);

/* What a plan is made from, as data; the network must outlive it. */
enum status plan_network_to_data(const struct network *network, const struct plan_options *options,
                                 struct region *region, struct plan_data *data);

/* The plan as data, which is taken from region; the plan must outlive it. */
enum status plan_to_data(const struct plan *plan, struct region *region, struct plan_data *data);

/* What a device keeps of static memory besides: the next batch, and what it updates parameters with; 0: the backend
 * works in the host's memory. */
size_t plan_device_bytes(const struct network *network, const struct plan_options *options);

/* Sum of the static categories; and with the arena: the peak. */
size_t plan_static(const struct plan *plan);
size_t plan_peak(const struct plan *plan);

/* What plans are compared by; peak: static bytes and arena. */
struct plan_figures {
    size_t static_bytes, live_peak, arena, peak;
    double time, slowdown;
};
struct plan_figures plan_figures(const struct plan *plan);

/* What a profiler sees that looks at the process after a source line, as the published figures were taken: parameters,
 * batch and what the forward kept, once the forward is done; the same with gradients for activations, once they are
 * computed. The peak, inside the gradient call, it never sees. */
size_t plan_sampled_forward(const struct plan *plan);
size_t plan_sampled_gradients(const struct plan *plan);

/* "B conv1_2 params" into text (at least 128 bytes): an op as people read it; returns text. */
char *plan_op_text(const struct plan *plan, int op, char *text);

/* "conv1_1.y": what a buffer holds; returns text (at least 128 bytes). */
char *plan_buffer_text(const struct plan *plan, int buffer, char *text);

/* The buffers that are live while the op runs that sets the peak, by falling size: a number of each; returns their
 * count. And the largest of them with their sizes: "conv1_2.y (784.0 MiB), conv1_1.y (784.0 MiB)". */
int plan_peak_buffers(const struct plan *plan, struct region *region, int **buffer);
const char *plan_peak_text(const struct plan *plan, struct region *region);

#endif
