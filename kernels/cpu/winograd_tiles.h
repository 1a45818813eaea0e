/* Tiles of images: to the 36 points of Winograd's products and back.
 *
 * Contract: pixels outside of an image count as zeros and are not written. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "image.h"
#include "panel.h"

/* A patch has PATCH pixels of a side: of a tile, and of a kernel less one. */
enum { PATCH = 6, POINTS = PATCH * PATCH, TILE_MOST = 4, KERNEL_MOST = 5 };
enum { CHANNELS_STEP = 16 }; /* to a multiple of which a tile's channels are padded in scratch */

/* A tile holds whole windows of a 2x2 max pool of stride 2. Of a pooled image, each element has a byte: the number of
 * its window's largest pixel in row order, PLACE_NONE where a relu has no gradient there. Tiles and patches are those
 * of the image before the pool. */
enum { WINDOW = 2, PLACE_NONE = WINDOW * WINDOW };

/* A tile's or a patch's first pixel, which may lie outside of the image. */
struct tile {
    int64_t sample, y, x;
};

/* side: pixels of a tile's side, 4 or 2.
 *
 * v[point * stride + t * next + c] = the transformed patch's channel from + c, for c < count, of tiles tiles side by
 * side, the first one's patch given. Writes up to LANES - 1 floats more in each point. places unless NULL: image and x
 * are the gradient of a pooled image. */
void tile_images(int side, const struct image *image, const float *x, const uint8_t *places, struct tile patch,
                 int64_t tiles, int64_t from, int64_t count, float *v, int64_t next, int64_t stride);

/* The same of a tile of the result's gradient, in panels: w[point * stride + c / PANEL * panel + c % PANEL]; and
 * sums[c] = the sum of the tile's pixels, row by row. */
void tile_gradient(int side, const struct image *image, const float *dy, const uint8_t *places, struct tile tile,
                   int64_t from, int64_t count, float *w, int64_t stride, int64_t panel, float *sums);

/* The tile's channels from + c, for c < count, of m[point * stride + c], with bias unless it is NULL, and relu. */
void tile_result(int side, const struct image *image, const float *m, int64_t stride, struct tile tile, int64_t from,
                 int64_t count, const float *bias, bool relu, float *y);
/* The same of a pooled image, and its places unless they are NULL. */
void tile_pooled_result(int side, const struct image *image, const float *m, int64_t stride, struct tile tile,
                        int64_t from, int64_t count, const float *bias, bool relu, float *y, uint8_t *places);

/* Zeros count floats of rows rows of every point: products read more than exists, and are slow with denormal numbers,
 * which scratch may hold. */
static inline void clear_margin(float *from, int64_t point, int64_t row, int64_t rows, int64_t count)
{
    for (int64_t p = 0; p < POINTS; p++)
        for (int64_t r = 0; r < rows; r++) memset(from + p * point + r * row, 0, (size_t)count * sizeof *from);
}
