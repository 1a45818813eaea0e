/* Winograd's convolutions F(4x4, 3x3) and F(2x2, 5x5) of stride 1 and one group (Lavin & Gray, Fast Algorithms for
 * Convolutional Neural Networks, 2016) at the points 0, 5/8, -5/8, 3/2, -3/2 and infinity, whose errors are half those
 * of 0, 1, -1, 2, -2. Both have patches of 6x6 pixels: a kernel of K x K has tiles of T x T, K + T = 7.
 *
 * This comment defines every bit of the results, on any processor, with any number of threads.
 *
 * Arithmetic is that of IEEE 754 floats; fma(p, q, r) rounds p q + r once. a = 5/8, b = 3/2 and the sums and products
 * of their powers below are exact; n, na, nb, ana, bnb are the floats nearest to 256/225, -2048/2975, 128/1071,
 * -256/595, 64/357. Five transforms of a few numbers, four of them for each K:
 *
 *   image       ea = fma(-b^2, d2, d4), oa = fma(-b^2, d1, d3), eb = fma(-a^2, d2, d4), ob = fma(-a^2, d1, d3);
 *   d0..d5 ->   fma(a^2 b^2, d0, fma(-(a^2 + b^2), d2, d4)), fma(a, oa, ea), fma(-a, oa, ea), fma(b, ob, eb),
 *               fma(-b, ob, eb), fma(a^2 b^2, d1, fma(-(a^2 + b^2), d3, d5))
 *
 *   K = 3
 *   weights     ea = fma(a^2, g2, g0) na, oa = ana g1, eb = fma(b^2, g2, g0) nb, ob = bnb g1;
 *   g0..g2 ->   g0 n, ea + oa, ea - oa, eb + ob, eb - ob, g2
 *   result      sa = m1 + m2, da = m1 - m2, sb = m3 + m4, db = m3 - m4;
 *   m0..m5 ->   (m0 + sa) + sb, fma(b, db, a da), fma(b^2, sb, a^2 sa), fma(b^3, db, fma(a^3, da, m5))
 *   gradient    ea = fma(a^2, d2, d0), oa = fma(a^3, d3, a d1), eb = fma(b^2, d2, d0), ob = fma(b^3, d3, b d1);
 *   d0..d3 ->   d0, ea + oa, ea - oa, eb + ob, eb - ob, d3
 *   weights'    sa = (m1 + m2) na, sb = (m3 + m4) nb;
 *   gradient    fma(n, m0, sa + sb), fma(bnb, m3 - m4, ana (m1 - m2)), fma(b^2, sb, fma(a^2, sa, m5))
 *   m0..m5 ->
 *
 *   K = 5
 *   weights     ea = fma(a^4, g4, fma(a^2, g2, g0)) na, oa = fma(a^2, g3, g1) ana,
 *   g0..g4 ->   eb = fma(b^4, g4, fma(b^2, g2, g0)) nb, ob = fma(b^2, g3, g1) bnb;
 *               g0 n, ea + oa, ea - oa, eb + ob, eb - ob, g4
 *   result      sa, da, sb, db as for K = 3;
 *   m0..m5 ->   (m0 + sa) + sb, fma(b, db, fma(a, da, m5))
 *   gradient    d0, fma(a, d1, d0), fma(-a, d1, d0), fma(b, d1, d0), fma(-b, d1, d0), d1
 *   d0, d1 ->
 *   weights'    sa = (m1 + m2) na, sb = (m3 + m4) nb, da = ana (m1 - m2), db = bnb (m3 - m4);
 *   gradient    fma(n, m0, sa + sb), fma(bnb, m3 - m4, da), fma(b^2, sb, a^2 sa), fma(b^2, db, a^2 da),
 *   m0..m5 ->   fma(b^4, sb, fma(a^4, sa, m5))
 *
 * A square is transformed column by column, and what that gives row by row. Pixels outside of an image are zeros.
 *
 * Forward: y is cut into tiles of T x T pixels from its first pixel on. The patch of a tile is the 6x6 pixels of x from
 * the tile's place less the padding on. Each of the 36 points of a tile is m = fma(image of the patch, weights, m) over
 * the input channels in ascending order, from m = 0. The tile is the result of m, plus the bias, or 0 where there is
 * none; a relu makes values <= 0 to 0. The gradient of x is the forward of dy with inputs and outputs exchanged,
 * weights rotated by 180 degrees, padding K - 1 - padding, and no bias.
 *
 * Gradients of the parameters: the tiles of the batch, sample by sample and row by row, are one span for K = 3, and
 * divided into spans of TILES_SPAN for K = 5, which has more of them; spans into blocks of TILES_BLOCK. Each point of a
 * block is m = fma(image of the patch of x, gradient of the tile of dy, m) over its tiles in ascending order, from m =
 * 0. Of a span, the second block is added to the first, the third to that sum, and so on. The weights' gradient of that
 * is the span's result; the second span's is added to the first's, the third's to that sum, and so on. For the bias,
 * the pixels of a tile of dy are added to 0 row by row, the tiles of a block to 0, and blocks and spans as before.
 *
 * A 2x2 max pool of stride 2, which leaves out a last odd row or column, may follow: the result is the pool of y
 * (pooling.c), and the gradients are those of the dy that has a pooled pixel's gradient, added to 0, at its window's
 * largest pixel, where a relu leaves that > 0, and zeros elsewhere. */
#pragma once

#include "winograd_tiles.h"

enum { TILES_BLOCK = 64, TILES_SPAN = 32 * TILES_BLOCK };

/* A pass: from x to y, or from dy to dx; PARAMS: from x and dy. */
struct winograd {
    struct image from, to;
    struct image pooled; /* is read in place of dy or written in place of y; channels 0: no pool */
    int kernel, tile;    /* pixels of a side: 3 and 4, or 5 and 2 */
    bool rotated;
    int64_t batch, padding, high, wide, tiles; /* tiles of an image, and of the batch */
    int64_t inputs, outputs;                   /* channels of a turn: PARAMS takes turns of both, others of outputs */
    int64_t span;                              /* tiles of a span of PARAMS */
    int64_t block;                             /* tiles that a thread works on at once; not of PARAMS */
    int64_t workers;                           /* threads with scratch of their own; of PARAMS 1: all share one */
    size_t scratch;
};

/* Plans a pass in at most limit bytes of scratch, and SCRATCH_MOST; false where that is too little. Limit and
 * threads change the turns and blocks, which change no bit. The bytes, and whether they suffice, are the same on any
 * processor; turns are multiples of TURN_LEAST outputs, the widest panel. */
enum { TURN_LEAST = 32 };
bool winograd_make(enum conv_pass pass, const struct extent *x, const struct extent *y, int64_t kernel, int64_t padding,
                   int64_t threads, uint64_t limit, struct winograd *winograd);

static inline bool winograd_has_kernel(int64_t kernel) { return kernel == 3 || kernel == 5; }

static inline struct tile tile_at(const struct winograd *w, int64_t tile)
{
    return (struct tile){tile / w->wide / w->high, tile / w->wide % w->high * w->tile, tile % w->wide * w->tile};
}

/* Those of count tiles from number tile on that lie side by side. */
static inline int64_t tiles_beside(const struct winograd *w, int64_t tile, int64_t count)
{
    return lesser(count, w->wide - tile % w->wide);
}

/* The first pixel that the tile depends on. */
static inline struct tile patch_of(const struct winograd *w, struct tile tile)
{
    return (struct tile){tile.sample, tile.y - w->padding, tile.x - w->padding};
}

/* Floats for the gradients of inputs and outputs at a time. */
int64_t winograd_gradients_floats(const struct winograd *w);

/* weights: O I H W; bias may be NULL. places: of a pool, else not used; the forward writes them, unless NULL. */
void winograd_apply(const struct winograd *w, const float *x, const float *weights, const float *bias, bool relu,
                    float *y, uint8_t *places, float *scratch);
/* Assigns the gradients; that of the bias may be NULL. */
void winograd_gradients(const struct winograd *w, const float *x, const float *dy, const uint8_t *places,
                        float *weights, float *bias, float *scratch);
