#include "dropout_kernels.h"

#include "device.cuh"

/* Elements that follow each other in logical order, four of a sample at a time. */
__global__ static void drop_quads(const float *from, float *to, int64_t quads, struct divisor each,
                                  struct element_draw draw, float factor)
{
    draw = element_draw_read(draw);
    for (int64_t i = thread_first(); i < quads; i += thread_stride()) {
        const struct divided place = divide(i, each);
        struct quad q = quad_load(from, i * QUAD, quads * QUAD);
        const unsigned bits = element_keep_quad(&draw, (int64_t)each.d * QUAD, place.quotient, place.rest * QUAD);
        for (int j = 0; j < QUAD; j++) q.v[j] = bits >> j & 1u ? q.v[j] * factor : 0.0f;
        quad_store(to, i * QUAD, quads * QUAD, q);
    }
}

/* Images N C H W whose channels are a multiple of 4: a thread has four channels of a pixel, the lanes of a warp pixels
 * side by side. by_groups: groups of four channels. */
__global__ static void drop_channels(const float *from, float *to, int64_t threads, struct divisor by_pixels,
                                     struct divisor by_groups, struct element_draw draw, float factor)
{
    const int64_t pixels = by_pixels.d, channels = (int64_t)by_groups.d * QUAD;
    draw = element_draw_read(draw);
    for (int64_t i = thread_first(); i < threads; i += thread_stride()) {
        const struct divided group = divide(i, by_pixels), place = divide(group.quotient, by_groups);
        const unsigned bits =
            element_keep_quad(&draw, channels * pixels, place.quotient, group.rest * channels + place.rest * QUAD);
        const int64_t first = group.quotient * QUAD * pixels + group.rest;
        for (int j = 0; j < QUAD; j++) {
            const int64_t at = first + j * pixels;
            to[at] = bits >> j & 1u ? from[at] * factor : 0.0f;
        }
    }
}

/* All other shapes. */
__global__ static void drop_elements(const float *from, float *to, int64_t count, struct divisor by_pixels,
                                     struct divisor by_channels, struct element_draw draw, float factor)
{
    const int64_t channels = by_channels.d;
    draw = element_draw_read(draw);
    for (int64_t i = thread_first(); i < count; i += thread_stride()) {
        const struct divided plane = divide(i, by_pixels), place = divide(plane.quotient, by_channels);
        const unsigned keep =
            element_keep(&draw, channels * by_pixels.d, place.quotient, plane.rest * channels + place.rest);
        to[i] = keep ? from[i] * factor : 0.0f;
    }
}

void launch_dropout(cudaStream_t stream, struct dropout_shape shape, const struct element_draw *draw, float factor,
                    const float *from, float *to)
{
    const int64_t count = shape.batch * shape.channels * shape.pixels, quads = count / QUAD;
    if (shape.channels % QUAD != 0)
        LAUNCH(drop_elements, blocks_for(count), THREADS, stream, from, to, count, divisor_of(shape.pixels),
               divisor_of(shape.channels), *draw, factor);
    else if (shape.pixels == 1)
        LAUNCH(drop_quads, blocks_for(quads), THREADS, stream, from, to, quads, divisor_of(shape.channels / QUAD),
               *draw, factor);
    else
        LAUNCH(drop_channels, blocks_for(quads), THREADS, stream, from, to, quads, divisor_of(shape.pixels),
               divisor_of(shape.channels / QUAD), *draw, factor);
}

/* A byte a thread. */
__global__ static void fill_mask(uint8_t *mask, int64_t bytes, struct divisor row, int64_t elements,
                                 struct element_draw draw)
{
    draw = element_draw_read(draw);
    for (int64_t i = thread_first(); i < bytes; i += thread_stride()) {
        const struct divided place = divide(i, row);
        const int64_t first = place.rest * 8, left = elements - first;
        unsigned bits = element_keep_quad(&draw, elements, place.quotient, first);
        if (left > QUAD) bits |= element_keep_quad(&draw, elements, place.quotient, first + QUAD) << QUAD;
        mask[i] = (uint8_t)(left < 8 ? bits & ((1u << left) - 1) : bits);
    }
}

void launch_dropout_mask(cudaStream_t stream, const struct element_draw *draw, int64_t elements, int64_t batch,
                         uint8_t *mask)
{
    const int64_t row = (elements + 7) / 8;
    struct element_draw counter = *draw;
    counter.mask = NULL;
    counter.sequential = false;
    LAUNCH(fill_mask, blocks_for(row * batch), THREADS, stream, mask, row * batch, divisor_of(row), elements, counter);
}

__global__ static void put_position(const uint64_t *base, uint64_t offset, uint64_t *to)
{
    if (thread_first() == 0) *to = *base + offset;
}

void launch_stream_position(cudaStream_t stream, const uint64_t *base, uint64_t offset, uint64_t *to)
{
    LAUNCH(put_position, 1, WARP, stream, base, offset, to);
}
