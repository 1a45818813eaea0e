/* Convolutions in groups of few channels, as many of x as of y, with the bits that conv_product.h defines: vectors run
 * over the channels of y, or of x for its gradient. */
#pragma once

#include "patches.h"
#include "product.h"

enum { GROUP_MOST = 8 }; /* channels; a group is 1, 2, 4 or 8 */
/* Columns that are computed at once, and places that their patches have at most. */
enum { GROUPED_COLUMNS = 4, GROUPED_PLACES = 512 };

/* Whether groups of that size are done so: their sums have one block of terms. */
static inline bool is_grouped(int64_t groups, int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride,
                              int64_t dilation)
{
    const int64_t places = (GROUPED_COLUMNS - 1) * stride + (kernel - 1) * dilation + 1; /* of a row of patches */
    return groups > 1 && inputs == outputs && inputs <= GROUP_MOST && (inputs & (inputs - 1)) == 0 &&
           kernel * kernel * inputs <= SUM_BLOCK && stride <= GROUPED_PLACES && dilation <= GROUPED_PLACES &&
           kernel * places <= GROUPED_PLACES;
}

/* Where the weights of a patch's taps lie, of channel number i of its group for a result's channel number k of it:
 * weights[group * to_group + k * to_column + i * to_channel + first + row * tap_y + column * tap_x]. */
struct taps {
    const float *weights;
    int64_t group; /* channels of one */
    int64_t to_group, to_column, to_channel, first, tap_y, tap_x;
};

size_t grouped_scratch(const struct patches *patches, int64_t group);
/* pixels = the sums over the patches, of all channels. */
void grouped_apply(const struct patches *patches, const struct pixels *pixels, int64_t batch, const struct taps *taps,
                   float *scratch);

size_t grouped_gradients_scratch(const struct patches *patches, int64_t group, int64_t batch);
/* weights[(channel * group + i) * taps + tap] and, unless it is NULL, bias; dy: a pixel a patch. */
void grouped_gradients(const struct patches *patches, const struct patches *dy, int64_t group, int64_t batch,
                       float *weights, float *bias, float *scratch);
