/* What is there while a training step is simulated under a limit of memory, and which of it to give up next: the
 * heuristics of Kirisame, Lyubomirsky, Haan, Brennan, He, Roesch, Chen, Tatlock, "Dynamic Tensor Rematerialization",
 * 2021. A node's forward writes two storages, its value and its saved tensors. */
#ifndef REMATCH_SEARCH_DTR_RESIDENCY_H
#define REMATCH_SEARCH_DTR_RESIDENCY_H

#include "backend/network.h"

enum { STORAGE_Y, STORAGE_SAVED, STORAGES };

struct storage {
    size_t bytes;
    int uses;      /* reads still to come, by the step and by recomputations that are under way */
    int locks;     /* held by as many ops that are due: not to be given up */
    bool there;    /* bytes are held for it */
    double time;   /* of the last read or write */
    int64_t order; /* the same, counted in reads and writes */
};

/* A set of nodes that would have to be run again together, as a forest: heuristic dtr_eq. */
struct set {
    int parent, walk;
    double cost;
};

struct dtr_residency {
    const struct network *network;
    struct region *region;
    int heuristic;
    int forward, backward;    /* nodes that had their first forward: below; their backward: from there on */
    struct storage *storage;  /* STORAGES a node */
    size_t held, locked;      /* bytes that are there; those of them that are locked */
    double clock;             /* time of all ops so far */
    int64_t accesses;         /* reads and writes so far */
    int evictions;            /* storages that left, though they were to be read again */
    int *readers, *reader;    /* node n's value is read by reader[readers[n]..readers[n + 1]) */
    int *seen, walk;          /* node -> the walk that came by last */
    bool *asked;              /* node -> would the step ask for it to be run again? of the walk */
    struct set *set;          /* NULL but for dtr_eq */
    int *element, sets, room; /* node -> its set or -1 */
};

/* Names, ended by NULL; a heuristic is an index. What is given up is the storage of least score, of equals the one not
 * touched for longest, of equals the first. c: the node's forward time; bytes; staleness: time since it was touched.
 *   dtr        c and that of what would have to be run again with it / (bytes * staleness): before it, to make it, and
 *              after it, because of it, through storages that are not there
 *   dtr_eq     the same with the sets of such nodes kept by union-find; a node that is run again leaves, the rest stay
 *              together
 *   dtr_local  c / (bytes * staleness)
 *   lru        1 / staleness
 *   size       1 / bytes
 *   msps       c and that of what would have to be run before it / bytes (Peng et al., "Capuchin", 2020) */
extern const char *const heuristic_names[];

/* Nothing is there, nothing is done; uses are those of a training step. Lives in region. */
enum status dtr_residency_create(const struct network *network, int heuristic, struct region *region,
                                 struct dtr_residency **residence);

/* The storage of a node; that of an input, NULL for the batch, which is always there. */
static inline struct storage *storage_of(const struct dtr_residency *r, int node, int which)
{
    return &r->storage[node * STORAGES + which];
}
static inline struct storage *storage_of_input(const struct dtr_residency *r, const struct node *node, int k)
{
    return node->inputs[k] ? storage_of(r, node->inputs[k] - 1, STORAGE_Y) : NULL;
}

/* Bytes are held for it from now on; no longer. */
enum status dtr_residency_appear(struct dtr_residency *residence, struct storage *storage);
enum status dtr_residency_leave(struct dtr_residency *residence, struct storage *storage);

void dtr_residency_lock(struct dtr_residency *residence, struct storage *storage);

/* It is read by one that had locked it, who unlocks it; leaves when nobody reads it any more. */
enum status dtr_residency_read(struct dtr_residency *residence, struct storage *storage);

/* The backward of node is done: nobody will ask for it any more. */
enum status dtr_residency_close(struct dtr_residency *residence, int node);

/* Gives up the best storage; there must be one that is there, not locked and not empty. */
enum status dtr_residency_evict(struct dtr_residency *residence);

#endif
