/* What is resident while a training step is simulated under a memory limit, and what to evict next: the heuristic h_DTR
 * of Kirisame, Lyubomirsky, Haan, Brennan, He, Roesch, Chen, Tatlock, "Dynamic Tensor Rematerialization", 2021. A
 * node's forward writes two storages, its value and its saved tensors. */
#pragma once

#include "search/step_model.h"

enum { STORAGE_Y, STORAGE_SAVED, STORAGES };

struct storage {
    size_t bytes;
    int uses;  /* reads still to come, by the step and by recomputations in progress */
    int locks; /* pending ops that hold it: it cannot be evicted */
    bool resident;
    double time;   /* of the last read or write */
    int64_t order; /* the same, counted in reads and writes */
    double cost;   /* the score's numerator ... */
    int64_t known; /* ... up to this one of the changes below; 0: it is not known */
    int listed;    /* where, of a storage that can be evicted */
};

/* h_DTR, and its rival h_MSPS: only the time to compute a storage and its inputs again, by bytes. */
enum dtr_score { DTR_SCORE, DTR_MSPS, DTR_SCORES };

/* A cost sums the time of nodes that are found by walks from a node: upwards, of those that must run to compute its
 * inputs; downwards, of those that will run because of it. A walk may go through thousands of nodes, and they change
 * all the time. It is known in pieces, from cut to cut: a cut is a node such that whatever is read across it is its
 * value. */
enum way { ABOVE, BELOW, WAYS };

/* The nodes that write what a node reads, or that read its value. */
struct links {
    int *node, count;
};

/* A walk from a node, at most to the next cut. */
struct reach {
    double sum; /* time of the nodes */
    bool known; /* of what is resident now */
    bool open;  /* it got to the cut, and goes on from there */
};

struct dtr_residency {
    const struct step_model *model;
    enum dtr_score score;
    struct region *region;
    int forward, backward;     /* nodes below had their first forward; nodes from here on their backward */
    struct storage *storage;   /* STORAGES a node */
    int *until;                /* by node: the last node whose backward reads what it or a later node wrote */
    int staying;               /* the last node whose until was not reached */
    size_t held, locked;       /* resident bytes; locked ones among them */
    double clock;              /* time of all ops so far */
    int64_t accesses;          /* reads and writes so far */
    struct links *links[WAYS]; /* by node */
    int *seen, walk;           /* node -> the last walk that visited it */
    int *stack;                /* of a walk */
    int *cut, cuts, *cut_at;   /* cuts in ascending order; node -> the first that is no smaller */
    struct reach *reach[WAYS]; /* by node */
    bool *part[WAYS];          /* node -> a known reach goes through it */
    struct reach *tree[WAYS];  /* 1 is the root, leaves at leaves and on: reaches of cuts that follow one another */
    int leaves;
    int64_t changes;            /* of reaches of cuts, from 1 on */
    bool *rerun;                /* node -> the step will run it again */
    struct storage **evictable; /* resident, not locked, not empty */
    int evictables;
};

/* Nothing is resident, nothing is done; uses are those of a training step. Lives in region. */
struct dtr_residency *dtr_residency_create(const struct step_model *model, struct region *region);

/* The storage of a node; that of an input, NULL for the batch, which is always resident. */
static inline struct storage *storage_of(const struct dtr_residency *r, int node, int which)
{
    return &r->storage[node * STORAGES + which];
}
static inline struct storage *storage_of_input(const struct dtr_residency *r, const struct node *node, int k)
{
    return node->inputs[k] ? storage_of(r, node->inputs[k] - 1, STORAGE_Y) : NULL;
}

/* The storage becomes resident; it leaves. */
void dtr_residency_appear(struct dtr_residency *r, struct storage *storage);
void dtr_residency_leave(struct dtr_residency *r, struct storage *storage);

void dtr_residency_lock(struct dtr_residency *r, struct storage *storage);

/* A value gets one more read. */
void dtr_residency_expect(struct dtr_residency *r, struct storage *storage);

/* The node's backward has run. */
void dtr_residency_close(struct dtr_residency *r, int node);

/* An op that locked the storage reads and unlocks it; it leaves after its last read. */
void dtr_residency_read(struct dtr_residency *r, struct storage *storage);

/* Evicts the storage of least score, of equal ones the least recently used, of these the first; one must be resident,
 * not locked and not empty. Score: the time of the node's forward, and of what would have to run again with it (before
 * it, to compute its inputs, and after it, because of it, through storages that are not resident), by bytes and by time
 * since the last access; or as enum dtr_score says. */
void dtr_residency_evict(struct dtr_residency *r);
