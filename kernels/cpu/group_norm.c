/* Group normalisation of images in any layout; the formulas are with the layer's definition.
 *
 * Contract: one thread computes a group of a sample. A channel is summed over pieces of PIECE pixels in float, each in
 * row order, then over the pieces in order; a group's channels are summed in double, and the samples in order. So the
 * bits depend on the shape alone. Padded channels are zero. */
#include <math.h>
#include <stdlib.h>

#include "cpu.h"
#include "reductions.h"

enum { PIECE = 256, RUN = 64 /* channels that are computed together */ };

struct group_norm {
    struct backend *backend;
    struct extent x;
    int64_t groups, width, pixels, block; /* width: channels of a group; block: 1 in logical order */
    float epsilon;
};

struct statistics {
    float mean, rstd;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    struct group_norm *norm = *state = allocate(1, sizeof *norm);
    const struct extent x = extent_of(graph, node->inputs[0]);
    const int64_t groups = node_integer(node, "groups"), channels = x.shape.dim[2];
    *norm = (struct group_norm){backend,
                                x,
                                groups,
                                channels / groups,
                                image_pixels(&x),
                                order_block(x.layout),
                                (float)node_real(node, "epsilon")};
    const size_t sums = (size_t)(2 * x.batch * channels) * sizeof(float);
    *footprint = node->layer->footprint;
    footprint->saved = (size_t)(x.batch * groups) * sizeof(struct statistics);
    footprint->backward_scratch[0] = footprint->backward_scratch[1] = sums;
    footprint->implementation = "loops";
    return ST_OK;
}

/* Some channels of a group of a sample that lie together. */
struct run {
    int64_t channel, count; /* the first one */
    int64_t at, step;       /* its place in the batch, and the distance of pixels */
};

/* The run of group n of all samples that begins with its channel c. */
static struct run run_at(const struct group_norm *norm, int64_t n, int64_t c)
{
    const int64_t channel = n % norm->groups * norm->width + c, block = norm->block;
    const int64_t most = block > 1 ? block - channel % block : RUN, left = norm->width - c;
    const int64_t place = block > 1 ? channel / block * block * norm->pixels + channel % block : channel;
    return (struct run){.channel = channel,
                        .count = left < most ? left : most,
                        .at = n / norm->groups * norm->x.elements + place,
                        .step = block > 1 ? block : norm->x.shape.dim[2]};
}

/* Sums over the run's pixels, a number a channel: of a - origin, times b - mean unless b is NULL. */
static void run_sums(const struct group_norm *norm, struct run run, const float *a, float origin, const float *b,
                     float mean, float total[RUN])
{
    for (int c = 0; c < RUN; c++) total[c] = 0.0f;
    for (int64_t from = 0; from < norm->pixels; from += PIECE) {
        float sum[RUN] = {0};
        for (int64_t p = from; p < norm->pixels && p < from + PIECE; p++) {
            const float *at = a + run.at + p * run.step, *other = b != NULL ? b + run.at + p * run.step : NULL;
            for (int64_t c = 0; c < run.count; c++)
                sum[c] += (at[c] - origin) * (other != NULL ? other[c] - mean : 1.0f);
        }
        for (int c = 0; c < RUN; c++) total[c] += sum[c];
    }
}

/* The mean over group n of a - origin, times b - mean unless b is NULL. */
static float group_mean(const struct group_norm *norm, int64_t n, const float *a, float origin, const float *b,
                        float mean)
{
    double sum = 0;
    for (int64_t c = 0; c < norm->width;) {
        const struct run run = run_at(norm, n, c);
        float total[RUN];
        run_sums(norm, run, a, origin, b, mean, total);
        for (int64_t k = 0; k < run.count; k++) sum += (double)total[k];
        c += run.count;
    }
    return (float)(sum / (double)(norm->width * norm->pixels));
}

static void forward_run(const struct group_norm *norm, struct run run, struct statistics s, const float *x,
                        const float *w, const float *b, float *y)
{
    float factor[RUN];
    for (int64_t c = 0; c < run.count; c++) factor[c] = s.rstd * w[run.channel + c];
    for (int64_t p = 0, at = run.at; p < norm->pixels; p++, at += run.step)
        for (int64_t c = 0; c < run.count; c++) y[at + c] = (x[at + c] - s.mean) * factor[c] + b[run.channel + c];
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct group_norm *norm = state;
    const float *x = args->x[0];
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < norm->x.batch * norm->groups; n++) {
        const float mean = group_mean(norm, n, x, 0.0f, NULL, 0.0f), variance = group_mean(norm, n, x, mean, x, mean);
        const struct statistics s = {mean, 1.0f / sqrtf(variance + norm->epsilon)};
        if (args->save) ((struct statistics *)args->saved)[n] = s;
        for (int64_t c = 0; c < norm->width;) {
            const struct run run = run_at(norm, n, c);
            forward_run(norm, run, s, x, args->parameters[0], args->parameters[1], args->y);
            c += run.count;
        }
    }
    zero_padding(&norm->x, args->y);
    clock_lap(norm->backend, CLOCK_NORM);
    return ST_OK;
}

/* A sample's sums of a channel: of dy h and of dy. */
static float *sample_sums(const struct group_norm *norm, const struct kernel_args *args, int64_t n)
{
    return (float *)args->scratch + n / norm->groups * 2 * norm->x.shape.dim[2];
}

/* Group n's sums, and their means times w over the group: of dy w h and of dy w. */
static void backward_sums(const struct group_norm *norm, int64_t n, struct statistics s, const struct kernel_args *args,
                          float mean[2])
{
    const int64_t channels = norm->x.shape.dim[2];
    double sum[2] = {0};
    for (int64_t c = 0; c < norm->width;) {
        const struct run run = run_at(norm, n, c);
        for (int k = 0; k < 2; k++) {
            float total[RUN], *to = sample_sums(norm, args, n) + k * channels + run.channel;
            run_sums(norm, run, args->dy, 0.0f, k ? NULL : args->x[0], s.mean, total);
            for (int64_t i = 0; i < run.count; i++) {
                to[i] = k ? total[i] : total[i] * s.rstd;
                sum[k] += (double)args->parameters[0][run.channel + i] * (double)to[i];
            }
        }
        c += run.count;
    }
    for (int k = 0; k < 2; k++) mean[k] = (float)(sum[k] / (double)(norm->width * norm->pixels));
}

static void backward_run(const struct group_norm *norm, struct run run, struct statistics s, const float mean[2],
                         const struct kernel_args *args)
{
    const float *x = args->x[0], *dy = args->dy, *w = args->parameters[0] + run.channel;
    float *dx = args->dx[0];
    for (int64_t p = 0, at = run.at; p < norm->pixels; p++, at += run.step)
        for (int64_t c = 0; c < run.count; c++) {
            const float h = (x[at + c] - s.mean) * s.rstd;
            dx[at + c] = s.rstd * (dy[at + c] * w[c] - mean[1] - h * mean[0]);
        }
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct group_norm *norm = state;
    const int64_t channels = norm->x.shape.dim[2];
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < norm->x.batch * norm->groups; n++) {
        const struct statistics s = ((const struct statistics *)args->saved)[n];
        float mean[2];
        backward_sums(norm, n, s, args, mean);
        for (int64_t c = 0; args->parts & PART_INPUT && c < norm->width;) {
            const struct run run = run_at(norm, n, c);
            backward_run(norm, run, s, mean, args);
            c += run.count;
        }
    }
    if (args->parts & PART_INPUT) zero_padding(&norm->x, args->dx[0]);
    for (int k = 0; args->parts & PART_PARAMS && k < 2; k++)
        reduce_pieces((const float *)args->scratch + k * channels, norm->x.batch, 2 * channels, channels,
                      args->gradients[k]);
    clock_lap(norm->backend, CLOCK_NORM);
    return ST_OK;
}

const struct kernel cpu_group_norm = {true, prepare, forward, backward, free};
