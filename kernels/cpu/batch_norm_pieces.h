/* How the work of a batch norm is divided.
 *
 * Contract: channels are cut into groups and a group's values into pieces that stay in the second-level cache, both by
 * shape alone. A piece is read from memory once: its sum, then its squares about its mean; and the pieces of a channel
 * are merged in ascending order, in double. So the bits do not depend on threads, and of blocked images not on the
 * block: pieces and chunks have as many rows as with the largest.
 *
 * Loops run over strips: whole rows of a group that follow each other. A strip is read in chunks of whole rows, LANES
 * floats at most. A lane is a place in a chunk; it belongs to channel number lane % width of the group, and sums are
 * kept by lane until a piece ends. */
#pragma once

#include <string.h>

#include "cpu.h"

enum { LANES = 128 };

struct batch_norm {
    struct backend *backend;
    enum order layout;
    int64_t samples;
    int64_t channels, padded;     /* logical and physical */
    int64_t rows;                 /* values of a channel */
    int64_t groups, width;        /* channels of a group; the last may have fewer */
    int64_t stride;               /* floats from row to row of a group */
    int64_t run;                  /* rows up to the next gap: a sample's in blocked images, else all */
    int64_t next_run, next_group; /* floats to the next one's first row */
    int64_t piece_rows, pieces;   /* of each group */
    bool spans;                   /* a sample's values of a group are whole vectors that follow each other */
    bool stream;                  /* y is larger than the caches */
    double epsilon, momentum;
    bool affine, unbiased, relu;
    bool adds; /* a second input; else the backward finds the relu's derivative by computing y again */
};

struct piece {
    const struct batch_norm *b;
    int64_t number, start;         /* start: of the group, in floats */
    int64_t channel, width, turns; /* of the group; turns: rows in a full chunk */
    int64_t lanes;                 /* floats of a full chunk */
    int64_t from, to;              /* rows */
};

static inline double piece_count(const struct piece *p) { return (double)(p->to - p->from); }

struct strip {
    int64_t at, floats, next; /* next: row behind it */
};

/* From this row on; without floats at the end of the piece. */
static inline struct strip strip_at(const struct piece *p, int64_t row)
{
    const int64_t run = row / p->b->run, place = row % p->b->run;
    const int64_t rows = p->b->stride == p->width ? lesser(p->to - row, p->b->run - place) : lesser(p->to - row, 1);
    return (struct strip){run * p->b->next_run + p->start + place * p->b->stride, rows * p->width, row + rows};
}

#define FOR_STRIPS(s, p) for (struct strip s = strip_at(p, (p)->from); s.floats > 0; s = strip_at(p, s.next))

/* sum[c]: of the channel's lanes. */
static inline void fold(const struct piece *p, const float *restrict lane, double *restrict sum)
{
    for (int64_t c = 0; c < p->width; c++) sum[c] = lane[c];
    for (int64_t t = 1; t < p->turns; t++)
        for (int64_t c = 0; c < p->width; c++) sum[c] += lane[t * p->width + c];
}

/* Gives all lanes of a channel the number of its first. */
static inline void repeat(const struct piece *p, float *lane)
{
    for (int64_t t = 1; t < p->turns; t *= 2)
        memcpy(lane + t * p->width, lane, (size_t)(lesser(t, p->turns - t) * p->width) * sizeof *lane);
}

/* Two sums of each channel, of piece number, in scratch. */
static inline double *sums_of(const struct batch_norm *b, const struct kernel_args *args, int64_t number, int which)
{
    return (double *)args->scratch + (2 * number + which) * b->padded;
}

typedef void piece_pass(const struct piece *, const struct kernel_args *);

/* Sums over the pieces, their merging for channels [from, to), and what is then computed of each piece. Without sums:
 * the last alone; the last may be absent. */
struct passes {
    int tensors; /* that the first and the last read */
    piece_pass *first;
    void (*merge)(const struct batch_norm *, const struct kernel_args *, int64_t from, int64_t to);
    piece_pass *last;
};

/* Sets how b's values, of x, are divided. */
void batch_norm_divide(struct batch_norm *b, const struct extent *x);
/* Whether a group's values of so many tensors stay in the second-level cache from the first pass to the last. */
bool batch_norm_caches(const struct batch_norm *b, int tensors);
void batch_norm_run(const struct batch_norm *b, const struct kernel_args *args, const struct passes *passes);
