/* The pixels of images under the taps of a kernel, as rows of a matrix: a patch a row, without the matrix existing. */
#pragma once

#include "image.h"
#include "product.h"

/* Patches of taps_y x taps_x pixels, gap apart, of some channels, in a grid of high x wide a sample, step pixels apart;
 * the first one's first pixel is (y, x). Pixels outside of the image are zeros. */
struct patches {
    struct image image;
    const float *data;
    int64_t first, channels;
    int64_t taps_y, taps_x, gap, step, y, x, high, wide;
};

/* Pixels of a side from a patch's first one to the last. */
static inline int64_t patch_extent(const struct patches *p, int64_t taps) { return (taps - 1) * p->gap + 1; }

static inline int64_t patch_terms(const struct patches *p) { return p->taps_y * p->taps_x * p->channels; }

/* The patches where each is a pixel and they are all pixels, as they lie in memory; else no matrix. */
static inline struct matrix patches_matrix(const struct patches *p)
{
    const bool follow = p->taps_y == 1 && p->taps_x == 1 && p->y == 0 && p->x == 0 && p->high == p->image.height &&
                        p->wide == p->image.width;
    return follow ? (struct matrix){p->data != NULL ? p->data + p->first : NULL, p->image.channels, false}
                  : (struct matrix){NULL, 0, false};
}

enum { PATCHES_MOST = 512 };

/* Where numbers of patches are copied to: panels of wide numbers of a patch, distance floats apart; stride: in a panel,
 * from a patch to the next. */
struct panels {
    int64_t wide, distance, stride;
};

/* to[t / wide * distance + i * stride + t % wide] = number term + t of patch number patch + i, for
 * i < count <= PATCHES_MOST and t < terms. Numbers go through the taps row by row, and through the channels of each. */
void patches_gather(const struct patches *p, int64_t patch, int64_t count, int64_t term, int64_t terms, float *to,
                    struct panels panels);

/* Where a product's rows, a pixel each, are written: a grid of pixels of an image, step apart, and some channels. */
struct pixels {
    struct image image;
    float *data;
    int64_t first, channels;
    int64_t step, y, x, high, wide;
    const float *bias; /* of the first channel, or NULL: 0 is added */
    bool relu;
};

/* Whether the grid is all pixels, as they lie in memory; then that is a result in memory. */
static inline bool pixels_follow(const struct pixels *p)
{
    return p->step == 1 && p->high == p->image.height && p->wide == p->image.width;
}

static inline struct target pixels_target(const struct pixels *p)
{
    return (struct target){p->data != NULL ? p->data + p->first : NULL, p->image.channels, p->bias, p->relu};
}

/* Writes columns channels from column on of count pixels from pixel on. */
void pixels_write(const struct pixels *p, int64_t pixel, int64_t count, int64_t column, int64_t columns,
                  const float *sums, int64_t stride);
