/* Pooling.
 *
 * Contract: these definitions give every bit, whatever the vectors and threads. Of a window's places inside the
 * image in row order, max pooling takes the largest, of equal ones the first, of NaNs the first; so does the backward,
 * by 8-bit indices that forward saves or, of windows of more than 256 places, by searching x again. An average is the
 * sum of its places from 0 in row order, divided by their number. A gradient of the input is a sum from 0 over the
 * windows in row order of the outputs, of dy or, of averages, of dy divided by that number. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"
#include "image.h"
#include "numerics/shape.h"
#include "places.h"

enum { INDICES = 256 }; /* that 8 bits can tell apart */

struct pool {
    struct backend *backend;
    struct extent x, y;
    struct image from, to; /* x, y */
    int64_t kernel, stride, padding;
    bool max, saves, count_padding, identity, relu;
};

/* Whether the backward finds the largest elements again. */
static bool searches(const struct pool *p) { return p->max && !p->saves && p->kernel > 1; }

static void describe(const struct pool *p, struct footprint *footprint)
{
    *footprint = (struct footprint){.implementation = p->identity ? "identity" : "loops",
                                    .y_over_x = p->identity,
                                    .passes_gradient = p->identity,
                                    .saved = p->saves ? (size_t)p->y.count : 0};
    if (p->saves) footprint->reads[PART_INDEX_INPUT] |= READS_SAVED;
    if (searches(p)) footprint->reads[PART_INDEX_INPUT] |= READS_X;
    if (p->relu) footprint->reads[PART_INDEX_INPUT] |= READS_Y;
}

static enum status pool_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    struct pool *p = *state = allocate(1, sizeof *p);
    const int64_t stride = node_integer(node, "stride");
    const bool mean = strcmp(node->layer->name, "avg_pool") == 0;
    *p = (struct pool){.backend = backend,
                       .x = extent_of(graph, node->inputs[0]),
                       .y = extent_of(graph, node->output),
                       .kernel = node_integer(node, "kernel"),
                       .padding = node_integer(node, "padding"),
                       .relu = node->activation == ACTIVATION_RELU};
    p->from = image_of(&p->x);
    p->to = image_of(&p->y);
    p->stride = stride > 0 ? stride : p->kernel;
    p->max = !mean;
    p->saves = p->max && p->kernel > 1 && p->kernel * p->kernel <= INDICES;
    p->count_padding = mean && node_integer(node, "count_padding");
    p->identity = p->kernel == 1 && p->stride == 1 && !p->relu;
    describe(p, footprint);
    return ST_OK;
}

/* The places of an output's window that lie in the image: rows [top, bottom) and columns [left, right). Places are
 * numbered in row order from the window's corner, which may lie outside. */
struct area {
    int64_t top, bottom, left, right, corner_y, corner_x;
    int64_t counted; /* what an average divides by: with ceil_mode a window may end outside of the padding */
};

static struct area area_at(const struct pool *p, int64_t row, int64_t column)
{
    const int64_t y = row * p->stride - p->padding, x = column * p->stride - p->padding;
    struct area a = {.top = y > 0 ? y : 0,
                     .bottom = lesser(y + p->kernel, p->from.height),
                     .left = x > 0 ? x : 0,
                     .right = lesser(x + p->kernel, p->from.width),
                     .corner_y = y,
                     .corner_x = x};
    const int64_t high = lesser(p->kernel, p->from.height + p->padding - y);
    const int64_t wide = lesser(p->kernel, p->from.width + p->padding - x);
    a.counted = p->count_padding ? high * wide : (a.bottom - a.top) * (a.right - a.left);
    return a;
}

/* For each place of an area, in row order: its pixel in an image, and its number. */
#define FOR_PLACES(p, a, pixel, place)                                                                                 \
    for (int64_t h = (a)->top; h < (a)->bottom; h++)                                                                   \
        for (int64_t pixel = h * (p)->from.width + (a)->left,                                                          \
                     place = (h - (a)->corner_y) * (p)->kernel + (a)->left - (a)->corner_x,                            \
                     end = pixel + (a)->right - (a)->left;                                                             \
             pixel < end; pixel++, place++)

INLINED lanes load(const float *from, int64_t count)
{
    return count == LANES ? lanes_load(from) : lanes_load_part(from, count);
}

INLINED void store(float *to, lanes v, int64_t count)
{
    if (count == LANES)
        lanes_store(to, v);
    else
        lanes_store_part(to, v, count);
}

/* The largest element of count channels from x on, and the number of its place. */
INLINED lanes search(const struct pool *p, const float *x, const struct area *a, int64_t count, lane_bits *winner)
{
    lanes most = {0};
    bool first = true;
    FOR_PLACES(p, a, pixel, place)
    {
        const lanes v = load(x + pixel * p->from.channels, count);
        if (first)
            most = v, *winner = lane_bits_all(place), first = false;
        else
            place_compare(v, place, &most, winner);
    }
    return most;
}

INLINED lanes mean(const struct pool *p, const float *x, const struct area *a, int64_t count)
{
    lanes sum = {0};
    FOR_PLACES(p, a, pixel, place) sum += load(x + pixel * p->from.channels, count);
    return sum / lanes_all((float)a->counted);
}

/* Some channels of an output: at is its place in y. */
INLINED void forward_one(const struct pool *p, const struct kernel_args *args, const float *x, const struct area *a,
                         int64_t at, int64_t count)
{
    lane_bits winner = {0};
    lanes y = p->max ? search(p, x, a, count, &winner) : mean(p, x, a, count);
    if (p->relu) y = lanes_rectified(y);
    store((float *)args->y + at, y, count);
    if (p->saves && args->save) places_store((uint8_t *)args->saved + at, winner, count);
}

/* A row of outputs. */
static void forward_row(const struct pool *p, const struct kernel_args *args, int64_t sample, int64_t row)
{
    const float *x = (const float *)args->x[0] + sample * p->from.sample;
    const int64_t channels = p->to.channels;
    for (int64_t column = 0; column < p->to.width; column++) {
        const struct area a = area_at(p, row, column);
        const int64_t at = sample * p->to.sample + (row * p->to.width + column) * channels;
        int64_t c = 0;
        for (; c + LANES <= channels; c += LANES) forward_one(p, args, x + c, &a, at + c, LANES);
        if (c < channels) forward_one(p, args, x + c, &a, at + c, channels - c);
    }
}

static enum status pool_forward(void *state, const struct kernel_args *args)
{
    const struct pool *p = state;
    if (!p->identity) {
#pragma omp parallel for collapse(2) schedule(static)
        for (int64_t n = 0; n < p->x.batch; n++)
            for (int64_t row = 0; row < p->to.height; row++) forward_row(p, args, n, row);
    } else if (args->y != args->x[0]) {
        copy_bytes(args->y, args->x[0], (size_t)p->x.count * sizeof(float));
    }
    clock_lap(p->backend, CLOCK_POOL);
    return ST_OK;
}

/* Some channels of an image: where they lie in x and y, and how many. */
struct strand {
    int64_t x, y, count;
};

/* Adds an output's gradient to its window's. */
INLINED void backward_one(const struct pool *p, const struct kernel_args *args, const struct strand *s,
                          const struct area *a, int64_t pixel_y, int64_t count)
{
    const int64_t at = s->y + pixel_y * p->to.channels;
    float *dx = (float *)args->dx[0] + s->x;
    lanes dy = load((const float *)args->dy + at, count);
    lane_bits winner = {0};
    if (p->relu) dy = lanes_keep(dy, load((const float *)args->y + at, count) > (lanes){0});
    if (p->saves)
        winner = places_load((const uint8_t *)args->saved + at, count);
    else if (searches(p))
        search(p, (const float *)args->x[0] + s->x, a, count, &winner);
    else if (!p->max)
        dy /= lanes_all((float)a->counted);
    FOR_PLACES(p, a, pixel, place)
    {
        float *to = dx + pixel * p->from.channels;
        const lanes share = p->max ? lanes_keep(dy, winner == lane_bits_all(place)) : dy;
        store(to, load(to, count) + share, count);
    }
}

/* Zeros in rows [from, to) of dx, just before windows reach them. */
static void clear_rows(const struct pool *p, float *dx, int64_t from, int64_t to, int64_t count)
{
    for (int64_t i = from * p->from.width; i < to * p->from.width; i++)
        store(dx + i * p->from.channels, (lanes){0}, count);
}

static void backward_strand(const struct pool *p, const struct kernel_args *args, const struct strand *s)
{
    float *dx = (float *)args->dx[0] + s->x;
    int64_t cleared = 0;
    for (int64_t row = 0; row < p->to.height; row++) {
        for (int64_t column = 0; column < p->to.width; column++) {
            const struct area a = area_at(p, row, column);
            if (a.bottom > cleared) clear_rows(p, dx, cleared, a.bottom, s->count), cleared = a.bottom;
            if (s->count == LANES)
                backward_one(p, args, s, &a, row * p->to.width + column, LANES);
            else
                backward_one(p, args, s, &a, row * p->to.width + column, s->count);
        }
    }
    clear_rows(p, dx, cleared, p->from.height, s->count);
}

static enum status pool_backward(void *state, const struct kernel_args *args)
{
    const struct pool *p = state;
    if (!p->identity) {
#pragma omp parallel for collapse(2) schedule(static)
        for (int64_t n = 0; n < p->x.batch; n++)
            for (int64_t c = 0; c < p->to.channels; c += LANES) {
                const struct strand s = {
                    .x = n * p->from.sample + c, .y = n * p->to.sample + c, .count = lesser(LANES, p->to.channels - c)};
                backward_strand(p, args, &s);
            }
    } else if (args->dx[0] != args->dy) {
        copy_bytes(args->dx[0], args->dy, (size_t)p->x.count * sizeof(float));
    }
    clock_lap(p->backend, CLOCK_POOL);
    return ST_OK;
}

const struct kernel cpu_max_pool = {true, pool_prepare, pool_forward, pool_backward, free};
const struct kernel cpu_avg_pool = {true, pool_prepare, pool_forward, pool_backward, free};

/* The mean over whole images, {H, W, C} to {C}, or over tokens, {T, C} to {C}. */
static enum status mean_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t channels = s->y.elements, pixels = s->x.elements / channels;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < s->x.batch; n++) {
        const float *x = (const float *)args->x[0] + n * s->x.elements;
        float *y = (float *)args->y + n * channels;
        memset(y, 0, (size_t)channels * sizeof *y);
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t c = 0; c < channels; c++) y[c] += x[p * channels + c];
        for (int64_t c = 0; c < channels; c++) y[c] /= (float)pixels;
    }
    clock_lap(s->backend, CLOCK_POOL);
    return ST_OK;
}

static enum status mean_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const int64_t channels = s->y.elements, pixels = s->x.elements / channels;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < s->x.batch; n++) {
        float *dx = (float *)args->dx[0] + n * s->x.elements;
        const float *dy = (const float *)args->dy + n * channels;
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t c = 0; c < channels; c++) dx[p * channels + c] = dy[c] / (float)pixels;
    }
    clock_lap(s->backend, CLOCK_POOL);
    return ST_OK;
}

const struct kernel cpu_global_avg_pool = {true, layer_state_prepare, mean_forward, mean_backward, free};
