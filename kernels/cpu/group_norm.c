/* Group normalisation of images; the formulas are with the layer's definition.
 *
 * Contract: a channel of a sample is summed over pieces of PIECE pixels in float, each in row order, then over the
 * pieces in order; a group's channels are summed in double, and the samples in order. So the bits depend on the shape
 * alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "image.h"
#include "reductions.h"

enum { PIECE = 256, PANEL = 64 /* channels that are computed together */ };

struct group_norm {
    struct backend *backend;
    struct extent x;
    struct image image;                      /* x */
    int64_t groups, width, pixels, channels; /* width: channels of a group */
    int64_t panels;                          /* of a sample */
    float epsilon;
};

struct statistics {
    float mean, rstd;
};

/* What a pass knows of a sample's channels and groups, in its scratch: sums by channel, statistics by group. */
static size_t scratch_bytes(const struct group_norm *norm, size_t sums)
{
    return (size_t)norm->x.batch *
           (sums * (size_t)norm->channels * sizeof(float) + (size_t)norm->groups * sizeof(struct statistics));
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    struct group_norm *norm = *state = allocate(1, sizeof *norm);
    const struct extent x = extent_of(graph, node->inputs[0]);
    const int64_t channels = x.shape.dim[2], given = node_integer(node, "groups"), groups = given ? given : channels;
    *norm = (struct group_norm){.backend = backend,
                                .x = x,
                                .image = image_of(&x),
                                .groups = groups,
                                .width = channels / groups,
                                .pixels = image_pixels(&x),
                                .channels = channels,
                                .epsilon = (float)node_real(node, "epsilon")};
    norm->panels = ratio_up(channels, PANEL);
    *footprint = node->layer->footprint;
    footprint->saved = (size_t)(x.batch * groups) * sizeof(struct statistics);
    footprint->forward_scratch = scratch_bytes(norm, 1);
    footprint->backward_scratch[0] = footprint->backward_scratch[1] = scratch_bytes(norm, 2);
    footprint->implementation = "loops";
    return ST_OK;
}

/* Some channels of a sample. */
struct panel {
    int64_t channel, count, at, step; /* at: place in the batch of the first one; step: from pixel to pixel */
    float mean[PANEL], rstd[PANEL];   /* by channel, of its group */
};

/* s: the batch's statistics; NULL: mean 0. */
static struct panel panel_of(const struct group_norm *norm, int64_t n, int64_t k, const struct statistics *s)
{
    const int64_t first = k * PANEL, left = norm->channels - first;
    struct panel p = {.channel = first,
                      .count = left < PANEL ? left : PANEL,
                      .at = n * norm->image.sample + first,
                      .step = norm->image.channels};
    for (int64_t c = 0; s != NULL && c < p.count; c++) {
        const struct statistics *group = &s[n * norm->groups + (first + c) / norm->width];
        p.mean[c] = group->mean, p.rstd[c] = group->rstd;
    }
    return p;
}

/* By channel, the sum over pixels of a; where origin is not NULL of (a - origin) (x - mean). */
static void panel_sums(const struct group_norm *norm, const struct panel *p, const float *a, const float *origin,
                       const float *x, float *to)
{
    float total[PANEL] = {0};
    for (int64_t from = 0; from < norm->pixels; from += PIECE) {
        float sum[PANEL] = {0};
        for (int64_t i = from; i < norm->pixels && i < from + PIECE; i++) {
            const float *one = a + p->at + i * p->step;
            if (origin == NULL) {
#pragma omp simd
                for (int64_t c = 0; c < p->count; c++) sum[c] += one[c];
                continue;
            }
            const float *other = x + p->at + i * p->step;
#pragma omp simd
            for (int64_t c = 0; c < p->count; c++) sum[c] += (one[c] - origin[c]) * (other[c] - p->mean[c]);
        }
        for (int c = 0; c < PANEL; c++) total[c] += sum[c];
    }
    memcpy(to + p->channel, total, (size_t)p->count * sizeof *total);
}

/* The mean over group i of all samples of the channels' sums, which lie stride floats from sample to sample, times w.
 */
static float group_mean(const struct group_norm *norm, int64_t i, const float *sums, int64_t stride, const float *w)
{
    const int64_t first = i % norm->groups * norm->width;
    double sum = 0;
    for (int64_t c = first; c < first + norm->width; c++)
        sum += (double)sums[i / norm->groups * stride + c] * (w != NULL ? (double)w[c] : 1);
    return (float)(sum / (double)(norm->width * norm->pixels));
}

#define FOR_PANELS(n, k, norm)                                                                                         \
    _Pragma("omp parallel for collapse(2) schedule(static)") for (int64_t n = 0; n < (norm)->x.batch;                  \
                                                                  n++) for (int64_t k = 0; k < (norm)->panels; k++)

static void measure(const struct group_norm *norm, const float *x, float *sums, struct statistics *s)
{
    const int64_t groups = norm->x.batch * norm->groups;
    FOR_PANELS(n, k, norm)
    {
        const struct panel p = panel_of(norm, n, k, NULL);
        panel_sums(norm, &p, x, NULL, NULL, sums + n * norm->channels);
    }
    for (int64_t i = 0; i < groups; i++)
        s[i] = (struct statistics){.mean = group_mean(norm, i, sums, norm->channels, NULL)};
    FOR_PANELS(n, k, norm)
    {
        const struct panel p = panel_of(norm, n, k, s);
        panel_sums(norm, &p, x, p.mean, x, sums + n * norm->channels);
    }
    for (int64_t i = 0; i < groups; i++)
        s[i].rstd = 1.0f / sqrtf(group_mean(norm, i, sums, norm->channels, NULL) + norm->epsilon);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct group_norm *norm = state;
    const float *x = args->x[0];
    float *y = args->y, *sums = args->scratch;
    struct statistics *s = (void *)(sums + norm->x.batch * norm->channels);
    measure(norm, x, sums, s);
    if (args->save) memcpy(args->saved, s, (size_t)(norm->x.batch * norm->groups) * sizeof *s);
    FOR_PANELS(n, k, norm)
    {
        struct panel p = panel_of(norm, n, k, s);
        const float *bias = args->parameters[1] + p.channel;
        for (int64_t c = 0; c < p.count; c++) p.rstd[c] *= args->parameters[0][p.channel + c];
        for (int64_t i = 0, at = p.at; i < norm->pixels; i++, at += p.step)
#pragma omp simd
            for (int64_t c = 0; c < p.count; c++) y[at + c] = (x[at + c] - p.mean[c]) * p.rstd[c] + bias[c];
    }
    clock_lap(norm->backend, CLOCK_NORM);
    return ST_OK;
}

/* dx; mean: of dy w in rstd's place and of dy w h in mean's, by group. */
static void differentiate(const struct group_norm *norm, const struct kernel_args *args, const struct statistics *mean)
{
    const float *x = args->x[0], *dy = args->dy;
    float *dx = args->dx[0];
    FOR_PANELS(n, k, norm)
    {
        const struct panel p = panel_of(norm, n, k, args->saved), m = panel_of(norm, n, k, mean);
        const float *w = args->parameters[0] + p.channel;
        for (int64_t i = 0, at = p.at; i < norm->pixels; i++, at += p.step)
#pragma omp simd
            for (int64_t c = 0; c < p.count; c++) {
                const float h = (x[at + c] - p.mean[c]) * p.rstd[c];
                dx[at + c] = p.rstd[c] * (dy[at + c] * w[c] - m.rstd[c] - h * m.mean[c]);
            }
    }
}

static enum status backward(void *state, const struct kernel_args *args)
{
    static const float none[PANEL] = {0};
    const struct group_norm *norm = state;
    const int64_t channels = norm->channels, both = 2 * channels;
    float *sums = args->scratch; /* of a sample: of dy h, then of dy */
    struct statistics *mean = (void *)(sums + norm->x.batch * both);
    FOR_PANELS(n, k, norm)
    {
        const struct panel p = panel_of(norm, n, k, args->saved);
        float *to = sums + n * both;
        panel_sums(norm, &p, args->dy, none, args->x[0], to);
        panel_sums(norm, &p, args->dy, NULL, NULL, to + channels);
        for (int64_t c = 0; c < p.count; c++) to[p.channel + c] *= p.rstd[c];
    }
    for (int64_t i = 0; args->parts & PART_INPUT && i < norm->x.batch * norm->groups; i++)
        mean[i] = (struct statistics){group_mean(norm, i, sums, both, args->parameters[0]),
                                      group_mean(norm, i, sums + channels, both, args->parameters[0])};
    if (args->parts & PART_INPUT) differentiate(norm, args, mean);
    for (int k = 0; args->parts & PART_PARAMS && k < 2; k++)
        reduce_pieces(sums + k * channels, norm->x.batch, both, channels, args->gradients[k]);
    clock_lap(norm->backend, CLOCK_NORM);
    return ST_OK;
}

const struct kernel cpu_group_norm = {true, prepare, forward, backward, free};
