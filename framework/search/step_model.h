/* A training step as what no schedule changes, its backbone, and what a schedule adds to it: the recomputations between
 * two events of the backbone. Evaluates such sequences as lowering would, in one sweep and without allocating. */
#pragma once

#include "plan/lower.h"

enum { STATE_NODES_MAX = 256 }; /* nodes of a set in searches over states, which is a few words */

/* An event of the backbone: a node's first forward, its backward, or one half of a split backward. */
struct step_event {
    int node;
    enum step_kind kind;
    bool half;      /* the first half of a split backward */
    unsigned reads; /* of a backward: enum reads */
    size_t during;  /* gradients, scratch, stashes and masks live while it runs */
    size_t after;   /* the same in additions of gradients that end it, which read nothing else */
    size_t before;  /* of those, live before it: beside a recomputation there */
};

struct step_model {
    const struct network *network;
    int nodes, events;
    struct step_event *event;        /* first forwards, then backwards */
    size_t *value, *saved, *scratch; /* by node: bytes of a forward */
    double *time;                    /* by node: of a recomputation */
    bool *over;                      /* by node: its output can take the place of its first input */
    bool *again;                     /* by node: it can be recomputed */
    int forwards;                    /* nodes that have a forward */
    double floor;                    /* time of every pass once */
    /* room for evaluations */
    unsigned *needed;
};

/* In region. */
struct step_model step_model_create(const struct network *network, const struct lower_options *options,
                                    struct region *region);

/* What an event of a backward reads of the forward. */
static inline struct reading step_reading(const struct step_model *model, const struct step_event *event)
{
    return reading_of(model->network, event->node, event->reads);
}

/* A schedule as numbers: a node is its recomputation, STEP_NEXT the next event of the backbone. */
enum { STEP_NEXT = -1 };
struct sequence {
    int length;
    int *item;
};

struct sequence_cost {
    size_t peak;
    double time;   /* of all ops */
    double excess; /* the sum of the ops' live bytes above the limit */
};

/* Dead recomputations are left out of the sequence. */
struct sequence_cost sequence_evaluate(const struct step_model *model, struct sequence *sequence, size_t limit);

/* What the items from `from` on read and do not write, as bits of enum needed by node. */
enum needed { NEEDED_Y = 1, NEEDED_SAVED = 2 };
void sequence_needs(const struct step_model *model, const struct sequence *sequence, int from, unsigned char *needed);

/* The sequence of a schedule, with room for as many items again; and the inverse, appended to an empty schedule.
 */
struct sequence sequence_of(const struct step_model *model, const struct schedule *schedule, struct region *region);
void sequence_schedule(const struct step_model *model, const struct sequence *sequence, struct schedule *schedule);
