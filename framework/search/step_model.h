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
    int *backward;                   /* by node: the first event of its backward */
    size_t *value, *saved, *scratch; /* by node: bytes of a forward */
    size_t *unsaved;                 /* by node: scratch besides, of a forward that does not save */
    size_t *once;                    /* by node: what its first forward writes once, such as a mask */
    size_t *unread;                  /* by node: of that, what no backward reads, live until the last recomputation */
    size_t *masks;                   /* by node: what the nodes before it write once and backwards read */
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

/* Gradients that wait for the backward of a node that ends a stage: other nodes' masks may be dead there. */
static inline size_t step_gradients(const struct step_model *model, int node)
{
    return model->event[model->backward[node]].before - model->masks[node + 1];
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

/* The sweep over the ops of a step, or of a part of it, from the last to the first. The model's needed[] is 0 before,
 * and has to be 0 after. */
enum needed { NEEDED_Y = 1, NEEDED_SAVED = 2, NEEDED_ONCE = 4 };
struct sweep {
    const struct step_model *model;
    size_t held, limit;        /* bytes of what is needed after the current op; of the excess */
    struct sequence_cost cost; /* of the ops so far */
};

/* Something after the ops so far needs it; returns whether nothing did. A recomputation before an event. An event. */
bool sweep_need(struct sweep *sweep, int node, enum needed what);
void sweep_recomputation(struct sweep *sweep, int node, int event);
void sweep_event(struct sweep *sweep, int event);

/* Whether what the node's forward writes is needed, and it can be recomputed. */
static inline bool sweep_is_due(const struct sweep *sweep, int node)
{
    return sweep->model->again[node] && sweep->model->needed[node] & (NEEDED_Y | NEEDED_SAVED);
}

/* What the items from `from` on read and do not write, as bits of enum needed by node. */
void sequence_needs(const struct step_model *model, const struct sequence *sequence, int from, unsigned char *needed);

/* The sequence of a schedule, with room for as many items again; and the inverse, appended to an empty schedule.
 */
struct sequence sequence_of(const struct step_model *model, const struct schedule *schedule, struct region *region);
void sequence_schedule(const struct step_model *model, const struct sequence *sequence, struct schedule *schedule);
