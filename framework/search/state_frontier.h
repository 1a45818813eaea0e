/* The states at one position of the search over states: sets of nodes that must be live, found by a hash of them, and
 * in a heap by the time that they look like taking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/step_model.h"

enum { WORDS = STATE_NODES_MAX / 64 };

/* A set of nodes, by their places. */
struct set {
    uint64_t word[WORDS];
};

/* Nodes whose values, and whose saved tensors, must be live. */
struct needs {
    struct set y, saved;
};

struct state {
    struct needs needs;
    size_t held;     /* bytes of needs */
    double time;     /* of the recomputations after it */
    double estimate; /* of the time of all recomputations, by which states are expanded */
    int origin;      /* the trace before it */
    int item;        /* of the sequence, by which it was reached */
    int depth;       /* recomputations between it and the next event */
    int at;          /* place in the heap, -1: expanded */
};

/* An earlier backward at which needs must fit beside its own operands. */
struct tight {
    struct needs operands, until; /* and those of the events between it and the current position, its own included */
    size_t bytes;                 /* besides */
};

/* The states at the position before an event: found by a hash of their needs, and in a heap by their estimates. */
struct frontier {
    int event;
    struct state *state;
    int *heap, *slot; /* slot: state + 1, 0: free */
    int count, heaped, room, slots;
    struct tight *tight;
    int tights;
};

static inline bool has(const struct set *set, int node) { return set->word[node / 64] >> node % 64 & 1; }

static inline void put(struct set *set, int node) { set->word[node / 64] |= UINT64_C(1) << node % 64; }

static inline void take(struct set *set, int node) { set->word[node / 64] &= ~(UINT64_C(1) << node % 64); }

/* a and b; a without b. */
static inline struct set both(const struct set *a, const struct set *b)
{
    struct set c;
    for (int i = 0; i < WORDS; i++) c.word[i] = a->word[i] | b->word[i];
    return c;
}

static inline struct set without(const struct set *a, const struct set *b)
{
    struct set c;
    for (int i = 0; i < WORDS; i++) c.word[i] = a->word[i] & ~b->word[i];
    return c;
}

/* The least node of the set that is at least node; STATE_NODES_MAX: none. */
static inline int next_of(const struct set *set, int node)
{
    for (; node < STATE_NODES_MAX; node = (node / 64 + 1) * 64)
        if (set->word[node / 64] >> node % 64) return node + __builtin_ctzll(set->word[node / 64] >> node % 64);
    return STATE_NODES_MAX;
}

/* Without states; to be ended. */
void frontier_begin(struct frontier *frontier, int event);
void frontier_end(struct frontier *frontier);

/* The state of equal needs; NULL: there is none. */
const struct state *frontier_find(const struct frontier *frontier, const struct needs *needs);

/* Adds a state, in place of the one of equal needs. */
void frontier_put(struct frontier *frontier, const struct state *state);

/* The state of least estimate that was not taken yet; there must be one (heaped > 0). */
struct state frontier_take(struct frontier *frontier);
