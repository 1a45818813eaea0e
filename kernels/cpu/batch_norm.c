/* Batch normalisation, also with a second input, which the last pass over x adds, with a relu; the backward gives the
 * second input dy before the relu, which the norm then reads. The formulas are with the layers' definitions.
 *
 * Contract: that of batch_norm_pieces.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch_norm_pieces.h"
#include "element_loops.h"

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct extent x = extent_of(graph, node->inputs[0]);
    struct batch_norm *b = *state = allocate(1, sizeof *b);
    *b = (struct batch_norm){
        .backend = backend,
        .epsilon = node_real(node, "epsilon"),
        .momentum = node_real(node, "momentum"),
        .affine = node_integer(node, "affine"),
        .unbiased = node_chooses(node, "variance", "unbiased"),
        .relu = node->activation == ACTIVATION_RELU,
        .adds = node->layer->inputs == 2,
    };
    batch_norm_divide(b, &x);
    const size_t sums = (size_t)(2 * b->pieces * b->channels) * sizeof(double);
    const bool masks = b->adds && b->relu;
    const unsigned reads = b->adds ? READS_X0 | (b->relu ? READS_Y : 0u) : READS_X;
    *footprint = (struct footprint){
        .once = (size_t)(2 * b->channels) * sizeof(float),
        .forward_scratch = sums,
        .backward_scratch = {sums, sums},
        .signs = masks ? (size_t)x.batch * sign_words(x.elements) * sizeof(uint32_t) : 0,
        .reads = {reads, reads},
        .y_over_x = true,
        .dx_over_dy = true,
        .writes_dy = masks,
        .implementation = "loops",
    };
    return ST_OK;
}

/* ---- statistics ---- */

/* sum += the chunks of a piece. Four are added to each other first: that is faster than a sum read and written for
 * each. */
static void add_chunks(const struct piece *p, const float *restrict x, float *restrict sum)
{
    const int64_t step = p->step, fours = p->chunks / 4 * 4;
    x += p->at;
    for (int64_t k = 0; k < fours; k += 4, x += 4 * step) {
#pragma omp simd
        for (int64_t i = 0; i < p->lanes; i++) sum[i] += (x[i] + x[i + step]) + (x[i + 2 * step] + x[i + 3 * step]);
    }
    for (int64_t k = fours; k <= p->chunks; k++, x += step) {
        const int64_t count = k < p->chunks ? p->lanes : p->rest;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) sum[i] += x[i];
    }
}

/* sum += the differences from the centre, squares += their squares, two chunks at a time. */
static void add_squares(const struct piece *p, const float *restrict x, const float *restrict centre,
                        float *restrict sum, float *restrict squares)
{
    const int64_t step = p->step, twos = p->chunks / 2 * 2;
    x += p->at;
    for (int64_t k = 0; k < twos; k += 2, x += 2 * step) {
#pragma omp simd
        for (int64_t i = 0; i < p->lanes; i++) {
            const float d = x[i] - centre[i], e = x[i + step] - centre[i];
            sum[i] += d + e;
            squares[i] += d * d + e * e;
        }
    }
    for (int64_t k = twos; k <= p->chunks; k++, x += step) {
        const int64_t count = k < p->chunks ? p->lanes : p->rest;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            const float d = x[i] - centre[i];
            sum[i] += d;
            squares[i] += d * d;
        }
    }
}

/* The means of a piece and the sums of squares about them; the second pass corrects the rounding of the first. */
static void measure(const struct piece *p, const float *x, double *mean, double *squares)
{
    float sum[CHUNK_MOST], about[CHUNK_MOST], centre[CHUNK_MOST];
    clear(p, sum), clear(p, about), clear(p, centre);
    add_chunks(p, x, sum);
    fold(p, sum, mean);
    for (int64_t c = 0; c < p->width; c++) centre[c] = (float)(mean[c] / piece_count(p));
    repeat(p, centre);
    clear(p, sum);
    add_squares(p, x, centre, sum, about);
    fold(p, sum, mean);
    fold(p, about, squares);
    for (int64_t c = 0; c < p->width; c++) {
        squares[c] -= mean[c] * mean[c] / piece_count(p);
        mean[c] = centre[c] + mean[c] / piece_count(p);
    }
}

/* Merges the pieces of channels [from, to) into the first by the formula of Chan, Golub and LeVeque (1979). */
static void merge(const struct batch_norm *b, const struct kernel_args *args, int64_t from, int64_t to)
{
    double *mean = sums_of(b, args, 0, 0), *squares = sums_of(b, args, 0, 1);
    double count = (double)lesser(b->piece_rows, b->rows);
    for (int64_t p = 1; p < b->pieces; p++) {
        const double more = (double)lesser(b->piece_rows, b->rows - p * b->piece_rows), all = count + more;
        const double *other = sums_of(b, args, p, 0), *others = sums_of(b, args, p, 1);
        for (int64_t c = from; c < to; c++) {
            const double difference = other[c] - mean[c];
            mean[c] += difference * (more / all);
            squares[c] += others[c] + difference * difference * (count * more / all);
        }
        count = all;
    }
}

static void move(float *running, double momentum, double batch)
{
    *running = (float)((1 - momentum) * *running + momentum * batch);
}

/* Writes a channel's statistics, or moves its running state. */
static void finish_statistics(const struct batch_norm *b, const struct kernel_args *args, int64_t c)
{
    const double mean = sums_of(b, args, 0, 0)[c], squares = sums_of(b, args, 0, 1)[c], n = (double)b->rows;
    if (args->first) {
        ((float *)args->once)[c] = (float)mean;
        ((float *)args->once)[b->channels + c] = (float)(1 / sqrt(squares / n + b->epsilon));
    }
    if (args->commit) {
        move(&args->states[0][c], b->momentum, mean);
        move(&args->states[1][c], b->momentum, squares / (b->unbiased ? n - 1 : n));
    }
}

static void measure_piece(const struct piece *p, const struct kernel_args *args)
{
    measure(p, args->x[0], sums_of(p->b, args, p->number, 0) + p->channel,
            sums_of(p->b, args, p->number, 1) + p->channel);
}

static void merge_statistics(const struct batch_norm *b, const struct kernel_args *args, int64_t from, int64_t to)
{
    merge(b, args, from, to);
    for (int64_t c = from; c < to; c++) finish_statistics(b, args, c);
}

/* ---- y ---- */

/* y = (x - mean) * scale + bias, by lane. */
struct scaling {
    float mean[CHUNK_MOST], scale[CHUNK_MOST], bias[CHUNK_MOST];
};

static void fill_scaling(const struct piece *p, const struct kernel_args *args, struct scaling *s)
{
    const struct batch_norm *b = p->b;
    const float *mean = args->evaluate ? args->states[0] : args->once, *once = args->once;
    clear(p, s->mean), clear(p, s->scale), clear(p, s->bias);
    for (int64_t i = 0; i < p->width; i++) {
        const int64_t c = p->channel + i;
        s->mean[i] = mean[c];
        s->scale[i] = args->evaluate ? (float)(1 / sqrt(args->states[1][c] + b->epsilon)) : once[b->channels + c];
        if (b->affine) s->scale[i] *= args->parameters[0][c], s->bias[i] = args->parameters[1][c];
    }
    repeat(p, s->mean), repeat(p, s->scale), repeat(p, s->bias);
}

/* Sign bits of the sample to which that float of y belongs. */
static uint32_t *signs_of(const struct batch_norm *b, const struct kernel_args *args, int64_t at)
{
    const int64_t elements = b->pixels * b->channels;
    return (uint32_t *)args->saved + (size_t)(at / elements) * sign_words(elements);
}

/* Where a chunk goes: y, and its sign bits among those of its sample, from place on. */
struct target {
    float *y, least_y;
    uint32_t *signs; /* NULL: none */
    int64_t place;
    bool stream;
};

/* add NULL: none. */
static inline void scale_chunk(const struct scaling *s, const float *x, const float *add, int64_t count,
                               struct target to)
{
    const vector bottom = (vector){0} + to.least_y;
    const int64_t whole = count / VECTOR * VECTOR;
    for (int64_t i = 0; i < whole; i += VECTOR) {
        vector v = (vector_at(x + i) - vector_at(s->mean + i)) * vector_at(s->scale + i) + vector_at(s->bias + i);
        if (add) v += vector_at(add + i);
        v = vector_above(v, bottom);
        vector_put(to.y + i, v, to.stream);
        if (to.signs) sign_put(to.signs, to.place + i, v);
    }
    for (int64_t i = whole; i < count; i++) {
        const float norm = (x[i] - s->mean[i]) * s->scale[i] + s->bias[i], v = add ? norm + add[i] : norm;
        to.y[i] = v <= to.least_y ? to.least_y : v;
    }
}

static void scale_piece(const struct piece *p, const struct kernel_args *args)
{
    const struct batch_norm *b = p->b;
    const float *x = args->x[0], *add = args->x[1];
    float *y = args->y;
    struct scaling scaling;
    struct target to = {.least_y = b->relu ? 0 : -INFINITY};
    to.stream = b->stream && x != y && (uintptr_t)y % sizeof(vector) == 0 && b->channels % VECTOR == 0;
    fill_scaling(p, args, &scaling);
    if (args->save && b->signs_with_y) to.signs = signs_of(b, args, p->at);
    FOR_CHUNKS(p, at, count)
    {
        to.y = y + at, to.place = at % (b->pixels * b->channels);
        scale_chunk(&scaling, x + at, add ? add + at : NULL, count, to);
    }
}

static enum status forward(void *state, const struct kernel_args *args)
{
    static const struct passes all = {1, measure_piece, merge_statistics, scale_piece},
                               normalise = {.last = scale_piece};
    const struct batch_norm *b = state;
    batch_norm_run(b, args, args->first || args->commit ? &all : &normalise);
    if (args->save && !b->signs_with_y) sign_pack(args->y, b->samples, b->pixels * b->channels, args->saved);
    clock_lap(b->backend, CLOCK_NORM);
    return ST_OK;
}

/* ---- gradients ---- */

/* dy before the relu, whose output has the sign of (x - mean) * scale + bias, as the forward computed it; d: x - mean.
 */
static inline float slope(float dy, float d, float scale, float bias, bool relu)
{
    return relu ? masked(dy, d * scale + bias > 0.0f) : dy;
}

static inline void add_slopes(const struct piece *p, const struct scaling *restrict s, const float *restrict x,
                              const float *restrict dy, bool relu, float *restrict sum, float *restrict product)
{
    FOR_CHUNKS(p, at, count)
    {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            const float d = x[at + i] - s->mean[i], g = slope(dy[at + i], d, s->scale[i], s->bias[i], relu);
            sum[i] += g;
            product[i] += g * d;
        }
    }
}

/* Where dy' is written before it is read: the second input's gradient, or over dy. */
static float *slopes_of(const struct kernel_args *args)
{
    return args->parts & PART_INPUT && args->dx[1] ? args->dx[1] : args->dy;
}

/* Whether dy' is computed in a pass of its own, since sign bits lie across pieces. */
static bool masked_before(const struct batch_norm *b, const struct kernel_args *args)
{
    return args->saved && !b->signs_with_y;
}

/* dy' of floats that follow each other in a sample, by the sign of y. */
static void mask_floats(const struct batch_norm *b, const struct kernel_args *args, int64_t at, int64_t floats)
{
    const float *dy = (const float *)args->dy + at, *y = args->y;
    float *g = slopes_of(args) + at;
    if (!b->relu) {
        if (g != dy) memcpy(g, dy, (size_t)floats * sizeof *g);
    } else if (args->saved) {
        const uint32_t *signs = signs_of(b, args, at);
        const int64_t place = at % (b->pixels * b->channels);
        for (int64_t i = 0; i < floats; i += VECTOR)
            vector_put(g + i, sign_kept(signs, place + i, vector_at(dy + i)), false);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < floats; i++) g[i] = masked(dy[i], y[at + i] > 0.0f);
    }
}

static void mask_piece(const struct piece *p, const struct kernel_args *args)
{
    const struct batch_norm *b = p->b;
    for (int64_t row = p->from, rows; row < p->to; row += rows) {
        rows = p->width == b->channels ? lesser(p->to - row, b->pixels - row % b->pixels) : 1;
        mask_floats(b, args, row * b->channels + p->channel, rows * p->width);
    }
}

/* The sums over a piece of dy' and of dy' (x - mean). */
static void sum_piece(const struct piece *p, const struct kernel_args *args)
{
    const struct batch_norm *b = p->b;
    const float *x = args->x[0], *dy = slopes_of(args);
    float sum[CHUNK_MOST], product[CHUNK_MOST];
    struct scaling scaling;
    clear(p, sum), clear(p, product);
    fill_scaling(p, args, &scaling);
    if (b->adds && !masked_before(b, args)) mask_piece(p, args);
    if (b->relu && !b->adds)
        add_slopes(p, &scaling, x, dy, true, sum, product);
    else
        add_slopes(p, &scaling, x, dy, false, sum, product);
    fold(p, sum, sums_of(b, args, p->number, 0) + p->channel);
    fold(p, product, sums_of(b, args, p->number, 1) + p->channel);
}

/* Adds up the pieces of channels [from, to); in their places, the first's sums become mean(dy') and
 * rstd mean(dy' h). */
static void merge_slopes(const struct batch_norm *b, const struct kernel_args *args, int64_t from, int64_t to)
{
    double *sum = sums_of(b, args, 0, 0), *product = sums_of(b, args, 0, 1);
    for (int64_t p = 1; p < b->pieces; p++)
        for (int64_t c = from; c < to; c++) {
            sum[c] += sums_of(b, args, p, 0)[c];
            product[c] += sums_of(b, args, p, 1)[c];
        }
    for (int64_t c = from; c < to; c++) {
        const double rstd = ((const float *)args->once)[b->channels + c], n = (double)b->rows;
        if (args->parts & PART_PARAMS) {
            args->gradients[0][c] = (float)(product[c] * rstd);
            args->gradients[1][c] = (float)sum[c];
        }
        sum[c] /= n;
        product[c] *= rstd * rstd / n;
    }
}

/* dx = scale * (dy' - shift - (x - mean) * share), by lane. */
struct combination {
    struct scaling scaling;
    float shift[CHUNK_MOST], share[CHUNK_MOST];
};

static void fill_combination(const struct piece *p, const struct kernel_args *args, struct combination *k)
{
    fill_scaling(p, args, &k->scaling);
    for (int64_t i = 0; i < p->width; i++) {
        k->shift[i] = (float)sums_of(p->b, args, 0, 0)[p->channel + i];
        k->share[i] = (float)sums_of(p->b, args, 0, 1)[p->channel + i];
    }
    repeat(p, k->shift), repeat(p, k->share);
}

static inline void combine_chunks(const struct piece *p, const struct combination *k, const float *x, const float *dy,
                                  bool relu, bool stream, float *dx)
{
    const struct scaling *s = &k->scaling;
    float chunk[CHUNK_MOST];
    FOR_CHUNKS(p, at, count)
    {
        float *to = stream ? chunk : dx + at;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            const float d = x[at + i] - s->mean[i], g = slope(dy[at + i], d, s->scale[i], s->bias[i], relu);
            to[i] = s->scale[i] * (g - k->shift[i] - d * k->share[i]);
        }
        if (stream) stream_floats(dx + at, chunk, count);
    }
}

static void combine_piece(const struct piece *p, const struct kernel_args *args)
{
    const struct batch_norm *b = p->b;
    const float *x = args->x[0], *dy = slopes_of(args);
    float *dx = args->dx[0];
    struct combination k;
    fill_combination(p, args, &k);
    if (b->relu && !b->adds)
        combine_chunks(p, &k, x, dy, true, false, dx);
    else if (b->stream && dx != dy && !batch_norm_caches(b, 2))
        combine_chunks(p, &k, x, dy, false, true, dx);
    else
        combine_chunks(p, &k, x, dy, false, false, dx);
}

static enum status backward(void *state, const struct kernel_args *args)
{
    static const struct passes all = {2, sum_piece, merge_slopes, combine_piece},
                               sums = {2, sum_piece, merge_slopes, NULL};
    const struct batch_norm *b = state;
    if (masked_before(b, args)) sign_mask(slopes_of(args), args->dy, args->saved, b->samples, b->pixels * b->channels);
    batch_norm_run(b, args, args->parts & PART_INPUT && args->dx[0] ? &all : &sums);
    clock_lap(b->backend, CLOCK_NORM);
    return ST_OK;
}

const struct kernel cpu_batch_norm = {true, prepare, forward, backward, free};
