/* The search for a placement within a capacity. */
#pragma once

#include "base/region.h"
#include "plan/op.h"

#include <stdint.h>

enum found { FOUND, IMPOSSIBLE, UNDECIDED };

/* A buffer. Sections are the sets of buffers alive at once that no other such set contains, in the order of time. */
struct box {
    size_t bytes, offset;
    size_t least;       /* the end of the highest placed box that it overlaps in time, or above */
    int from, to;       /* sections [from, to) */
    int previous, next; /* in the list of the piece's unplaced boxes, by ascending least */
    double length, rank;
};

/* A move in the list, as it was before. */
struct change {
    int box, previous;
    size_t least;
    uint64_t state;
};

/* Sorts by the total or not, then by share * log(bytes) + (1 - share) * log(length) + a number below noise that the
 * seed draws, the larger first. */
struct preorder {
    bool total;
    bool fullest; /* boxes are taken from the section of most unplaced bytes, whatever the failures */
    double share, noise;
    uint32_t seed;
};

enum { STATES = 1 << 19 };

struct search {
    struct box *box; /* and one more, both ends of the list */
    int boxes, sections;
    size_t *total;         /* unplaced bytes of a section */
    size_t *above;         /* bytes of its unplaced boxes that cannot lie below some offset */
    int *crossing;         /* unplaced boxes alive in a section and in the next */
    int *lowest;           /* boxes of a section that could lie at the lowest offset */
    double *weight;        /* of a section: how often the search failed there, of late */
    int *all;              /* room for the numbers of the boxes */
    uint64_t *failed;      /* states without a solution, each where its hash says */
    uint64_t state;        /* hash of the piece's unplaced boxes and their least offsets */
    struct change *change; /* of the list, to be undone in reverse */
    size_t changes, room;
    size_t capacity;
    bool fullest; /* as in the preorder */
    long work;    /* boxes and sections that this run may still visit */
};

/* Nothing is placed; free change at the end. */
struct search canonical_create(const struct buffer *buffer, int buffers, struct region *region);

/* Sets the boxes' ranks, the larger first. */
void canonical_rank(struct search *s, struct preorder preorder);

/* Sets the boxes' offsets where it finds a placement within capacity bytes; ends undecided after so much work. */
enum found canonical_run(struct search *s, size_t capacity, struct preorder preorder, long work);
