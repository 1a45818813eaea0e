/* How the work of a batch norm is divided.
 *
 * Contract: the rows of a batch, a pixel each, are cut into pieces by shape alone. A piece is read from memory once:
 * its sum, then its squares about its mean; and the pieces of a channel are merged in ascending order, in double. So
 * the bits depend neither on threads nor on how many channels are computed together.
 *
 * A piece is read in chunks: a row, or, of few channels, several. A lane is a place in a chunk; it belongs to channel
 * number lane % width, and sums are kept by lane until a piece ends. */
#pragma once

#include <string.h>

#include "cpu.h"

enum { CHUNK_MOST = 1024 }; /* floats of a chunk */

struct batch_norm {
    struct backend *backend;
    int64_t samples, pixels, channels, rows;
    int64_t turns;              /* rows of a chunk */
    int64_t piece_rows, pieces; /* rows of a piece, and pieces of the batch */
    bool signs_with_y;          /* sign bits are written and read with the pieces: they are whole vectors in order */
    bool stream;                /* y is larger than the caches */
    double epsilon, momentum;
    bool affine, unbiased, relu;
    bool adds; /* a second input; else the backward finds the relu's derivative by computing y again */
};

/* Some channels of some rows. */
struct piece {
    const struct batch_norm *b;
    int64_t number, channel, width; /* number: of the piece's sums; width: channels */
    int64_t from, to;               /* rows */
    int64_t at, step;               /* floats: of the first chunk, and from chunk to chunk */
    int64_t chunks, lanes, rest;    /* whole chunks, and floats of one, and of what is left behind them */
};

static inline double piece_count(const struct piece *p) { return (double)(p->to - p->from); }

/* For each chunk of a piece, its place and its floats. */
#define FOR_CHUNKS(p, place, count)                                                                                    \
    for (int64_t k_ = 0, place = (p)->at, count = (p)->chunks > 0 ? (p)->lanes : (p)->rest; count > 0;                 \
         k_++, place += (p)->step,                                                                                     \
                 count = k_ < (p)->chunks    ? (p)->lanes                                                              \
                         : k_ == (p)->chunks ? (p)->rest                                                               \
                                             : 0)

/* sum[c]: of the channel's lanes. */
static inline void fold(const struct piece *p, const float *restrict lane, double *restrict sum)
{
    for (int64_t c = 0; c < p->width; c++) sum[c] = lane[c];
    for (int64_t t = 1; t < p->b->turns; t++)
        for (int64_t c = 0; c < p->width; c++) sum[c] += lane[t * p->width + c];
}

/* Gives all lanes of a channel the number of its first. */
static inline void repeat(const struct piece *p, float *lane)
{
    for (int64_t t = 1; t < p->b->turns; t *= 2)
        memcpy(lane + t * p->width, lane, (size_t)(lesser(t, p->b->turns - t) * p->width) * sizeof *lane);
}

static inline void clear(const struct piece *p, float *lane) { memset(lane, 0, (size_t)p->lanes * sizeof *lane); }

/* Two sums of each channel, of piece number, in scratch. */
static inline double *sums_of(const struct batch_norm *b, const struct kernel_args *args, int64_t number, int which)
{
    return (double *)args->scratch + (2 * number + which) * b->channels;
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
/* Whether some channels of so many tensors stay in the second-level cache from the first pass to the last. */
bool batch_norm_caches(const struct batch_norm *b, int tensors);
void batch_norm_run(const struct batch_norm *b, const struct kernel_args *args, const struct passes *passes);
