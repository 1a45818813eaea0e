/* Batch normalisation, also with a second input (batch_norm_add.c); the formulas are with the layers' definitions.
 *
 * Contract: channels are cut into groups and a group's values into pieces that stay in the second-level cache, both by
 * shape alone. A piece is read from memory once: its sum, then its squares about its mean; and the pieces of a channel
 * are merged in ascending order, in double. So the bits do not depend on threads. Padded channels of blocked images
 * have a scale of 0 and stay 0.
 *
 * Loops run over strips: whole rows of a group that follow each other. A strip is read in chunks of whole rows, LANES
 * floats at most. A lane is a place in a chunk; it belongs to channel number lane % width of the group, and sums are
 * kept by lane until a piece ends. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"

enum {
    LANES = 128,
    PIECE = 32 * 1024,       /* floats */
    GROUP_MOST = 448 * 1024, /* floats of a group that passes read again from the second-level cache */
};

struct batch_norm {
    struct backend *backend;
    int64_t channels, padded;     /* logical and physical */
    int64_t rows;                 /* values of a channel */
    int64_t groups, width;        /* channels of a group; the last may have fewer */
    int64_t stride;               /* floats from row to row of a group */
    int64_t run;                  /* rows up to the next gap: a sample's in blocked images, else all */
    int64_t next_run, next_group; /* floats to the next one's first row */
    int64_t piece_rows, pieces;   /* of each group */
    double epsilon, momentum;
    bool affine, unbiased, relu;
    bool masks;  /* the backward finds the relu's derivative by computing y again */
    bool stream; /* y is larger than the caches */
};

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct extent x = extent_of(graph, node->inputs[0]);
    const int64_t channels = shape_width(&x.shape), pixels = shape_elements(&x.shape) / channels;
    const int64_t padded = x.elements / pixels, block = order_block(x.layout);
    const bool blocked = block > 1;
    struct batch_norm *b = *state = allocate(1, sizeof *b);
    *b = (struct batch_norm){
        .backend = backend,
        .channels = channels,
        .padded = padded,
        .rows = x.batch * pixels,
        .groups = blocked ? padded / block : ratio_up(channels, LANES),
        .stride = blocked ? block : channels,
        .run = blocked ? pixels : x.batch * pixels,
        .next_run = x.elements,
        .epsilon = node_real(node, "epsilon"),
        .momentum = node_real(node, "momentum"),
        .affine = node_integer(node, "affine"),
        .unbiased = node_chooses(node, "variance", "unbiased"),
        .relu = node->activation == ACTIVATION_RELU,
    };
    b->masks = b->relu && node->layer->inputs == 1;
    b->width = blocked ? block : ratio_up(channels, b->groups);
    b->next_group = blocked ? pixels * block : b->width;
    b->piece_rows = PIECE / b->width;
    b->pieces = ratio_up(b->rows, b->piece_rows);
    b->stream = x.count >= STREAM_LEAST;
    const size_t sums = (size_t)(2 * b->pieces * b->padded) * sizeof(double);
    *footprint = (struct footprint){
        .once = (size_t)(2 * channels) * sizeof(float),
        .forward_scratch = sums,
        .backward_scratch = {sums, sums},
        .reads = {READS_X, READS_X},
        .y_over_x = true,
        .dx_over_dy = true,
        .implementation = "loops",
    };
    return ST_OK;
}

/* ---- pieces and strips ---- */

struct piece {
    const struct batch_norm *b;
    int64_t number, start;         /* start: of the group, in floats */
    int64_t channel, width, turns; /* of the group; turns: rows in a full chunk */
    int64_t lanes;                 /* floats of a full chunk */
    int64_t from, to;              /* rows */
};

/* Of the pieces of all groups, of so many rows. */
static struct piece piece_at(const struct batch_norm *b, int64_t rows, int64_t i)
{
    const int64_t group = i % b->groups, number = i / b->groups, channel = group * b->width;
    const int64_t width = least(b->width, b->padded - channel), from = number * rows;
    const int64_t turns = b->stride == width ? LANES / width : 1;
    return (struct piece){.b = b,
                          .number = number,
                          .start = group * b->next_group,
                          .channel = channel,
                          .width = width,
                          .turns = turns,
                          .lanes = turns * width,
                          .from = from,
                          .to = least(from + rows, b->rows)};
}

static inline double piece_count(const struct piece *p) { return (double)(p->to - p->from); }

struct strip {
    int64_t at, floats, next; /* next: row behind it */
};

/* From this row on; without floats at the end of the piece. */
static inline struct strip strip_at(const struct piece *p, int64_t row)
{
    const int64_t run = row / p->b->run, place = row % p->b->run;
    const int64_t rows = p->b->stride == p->width ? least(p->to - row, p->b->run - place) : least(p->to - row, 1);
    return (struct strip){run * p->b->next_run + p->start + place * p->b->stride, rows * p->width, row + rows};
}

#define FOR_STRIPS(s, p) for (struct strip s = strip_at(p, (p)->from); s.floats > 0; s = strip_at(p, s.next))

/* sum[c]: of the channel's lanes. */
static void fold(const struct piece *p, const float *restrict lane, double *restrict sum)
{
    for (int64_t c = 0; c < p->width; c++) sum[c] = lane[c];
    for (int64_t t = 1; t < p->turns; t++)
        for (int64_t c = 0; c < p->width; c++) sum[c] += lane[t * p->width + c];
}

/* Gives all lanes of a channel the number of its first. */
static void repeat(const struct piece *p, float *lane)
{
    for (int64_t t = 1; t < p->turns; t++) memcpy(lane + t * p->width, lane, (size_t)p->width * sizeof *lane);
}

/* Two sums of each channel, of piece number, in scratch. */
static inline double *sums_of(const struct batch_norm *b, const struct kernel_args *args, int64_t number, int which)
{
    return (double *)args->scratch + (2 * number + which) * b->padded;
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

static void merge_group(const struct batch_norm *b, const struct kernel_args *args, const struct passes *passes,
                        int64_t group)
{
    passes->merge(b, args, group * b->width, least((group + 1) * b->width, b->channels));
}

static void run_piece(const struct batch_norm *b, const struct kernel_args *args, piece_pass *pass, int64_t i)
{
    const struct piece p = piece_at(b, b->piece_rows, i);
    pass(&p, args);
}

/* Where a group's values stay in the second-level cache, the last pass finds them there: group by group. */
static void run_groups(const struct batch_norm *b, const struct kernel_args *args, const struct passes *passes)
{
    const int64_t pieces = b->groups * b->pieces;
#pragma omp parallel for schedule(static)
    for (int64_t group = 0; group < b->groups; group++) {
        for (int64_t i = group; i < pieces; i += b->groups) run_piece(b, args, passes->first, i);
        merge_group(b, args, passes, group);
        for (int64_t i = group; i < pieces; i += b->groups) run_piece(b, args, passes->last, i);
    }
}

/* A pass alone takes pieces that follow each other in memory, parts of a run, unless runs are short. */
static void run_alone(const struct batch_norm *b, const struct kernel_args *args, piece_pass *pass)
{
    const bool in_order = b->run >= b->piece_rows / 4;
    const int64_t rows = in_order ? ratio_up(b->run, ratio_up(b->run, b->piece_rows)) : b->piece_rows;
    const int64_t pieces = b->groups * ratio_up(b->rows, rows);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < pieces; i++) {
        const struct piece p = piece_at(b, rows, i);
        pass(&p, args);
    }
}

static void run(const struct batch_norm *b, const struct kernel_args *args, const struct passes *passes)
{
    const int64_t pieces = b->groups * b->pieces;
    const bool cached = b->rows * b->width * passes->tensors <= GROUP_MOST;
    if (passes->first && passes->last && cached && b->groups >= omp_get_max_threads()) {
        run_groups(b, args, passes);
        return;
    }
    if (passes->first) {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < pieces; i++) run_piece(b, args, passes->first, i);
#pragma omp parallel for schedule(static)
        for (int64_t group = 0; group < b->groups; group++) merge_group(b, args, passes, group);
    }
    if (passes->last) run_alone(b, args, passes->last);
}

/* ---- statistics ---- */

/* Four chunks are added to each other first: that is faster than a sum read and written for each. */
static inline void add_strip(const float *restrict x, int64_t floats, int64_t lanes, float *restrict sum)
{
    for (; floats >= 4 * lanes; floats -= 4 * lanes, x += 4 * lanes) {
#pragma omp simd
        for (int64_t i = 0; i < lanes; i++) sum[i] += (x[i] + x[i + lanes]) + (x[i + 2 * lanes] + x[i + 3 * lanes]);
    }
    for (; floats > 0; floats -= lanes, x += lanes) {
#pragma omp simd
        for (int64_t i = 0; i < least(floats, lanes); i++) sum[i] += x[i];
    }
}

static inline void add_squares(const float *restrict x, int64_t floats, int64_t lanes, const float *restrict centre,
                               float *restrict sum, float *restrict squares)
{
    for (; floats >= 2 * lanes; floats -= 2 * lanes, x += 2 * lanes) {
#pragma omp simd
        for (int64_t i = 0; i < lanes; i++) {
            const float d = x[i] - centre[i], e = x[i + lanes] - centre[i];
            sum[i] += d + e;
            squares[i] += d * d + e * e;
        }
    }
    for (; floats > 0; floats -= lanes, x += lanes) {
#pragma omp simd
        for (int64_t i = 0; i < least(floats, lanes); i++) {
            const float d = x[i] - centre[i];
            sum[i] += d;
            squares[i] += d * d;
        }
    }
}

/* The means of a piece and the sums of squares about them; the second pass corrects the rounding of the first. */
static void measure(const struct piece *p, const float *x, double *mean, double *squares)
{
    float sum[LANES] = {0}, about[LANES] = {0}, centre[LANES] = {0};
    FOR_STRIPS(s, p) add_strip(x + s.at, s.floats, p->lanes, sum);
    fold(p, sum, mean);
    for (int64_t c = 0; c < p->width; c++) centre[c] = (float)(mean[c] / piece_count(p));
    repeat(p, centre);
    memset(sum, 0, sizeof sum);
    FOR_STRIPS(s, p) add_squares(x + s.at, s.floats, p->lanes, centre, sum, about);
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
    double count = (double)least(b->piece_rows, b->rows);
    for (int64_t p = 1; p < b->pieces; p++) {
        const double more = (double)least(b->piece_rows, b->rows - p * b->piece_rows), all = count + more;
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
    float mean[LANES], scale[LANES], bias[LANES];
};

static void fill_scaling(const struct piece *p, const struct kernel_args *args, struct scaling *s)
{
    const struct batch_norm *b = p->b;
    const float *mean = args->evaluate ? args->states[0] : args->once, *once = args->once;
    for (int64_t i = 0; i < p->width; i++) {
        const int64_t c = p->channel + i;
        s->mean[i] = s->scale[i] = s->bias[i] = 0;
        if (c >= b->channels) continue;
        s->mean[i] = mean[c];
        s->scale[i] = args->evaluate ? (float)(1 / sqrt(args->states[1][c] + b->epsilon)) : once[b->channels + c];
        if (b->affine) s->scale[i] *= args->parameters[0][c], s->bias[i] = args->parameters[1][c];
    }
    repeat(p, s->mean), repeat(p, s->scale), repeat(p, s->bias);
}

/* add NULL: none. */
static inline void scale_strip(const struct scaling *s, const float *x, const float *add, int64_t floats, int64_t lanes,
                               float least_y, bool stream, float *y)
{
    const vector bottom = (vector){0} + least_y;
    for (; floats > 0; floats -= lanes, x += lanes, y += lanes, add += add ? lanes : 0) {
        const int64_t count = least(floats, lanes), whole = count / VECTOR * VECTOR;
        for (int64_t i = 0; i < whole; i += VECTOR) {
            vector v = (vector_at(x + i) - vector_at(s->mean + i)) * vector_at(s->scale + i) + vector_at(s->bias + i);
            if (add) v += vector_at(add + i);
            vector_put(y + i, vector_above(v, bottom), stream);
        }
        for (int64_t i = whole; i < count; i++) {
            const float norm = (x[i] - s->mean[i]) * s->scale[i] + s->bias[i], v = add ? norm + add[i] : norm;
            y[i] = v <= least_y ? least_y : v;
        }
    }
}

static void scale_piece(const struct piece *p, const struct kernel_args *args)
{
    const float *x = args->x[0], *add = args->x[1], least_y = p->b->relu ? 0 : -INFINITY;
    float *y = args->y;
    struct scaling scaling = {0};
    const bool stream = p->b->stream && x != y && (uintptr_t)y % sizeof(vector) == 0 && p->lanes % VECTOR == 0;
    fill_scaling(p, args, &scaling);
    FOR_STRIPS(s, p)
    scale_strip(&scaling, x + s.at, add ? add + s.at : NULL, s.floats, p->lanes, least_y, stream, y + s.at);
    stream_end();
}

static enum status forward(void *state, const struct kernel_args *args)
{
    static const struct passes all = {1, measure_piece, merge_statistics, scale_piece},
                               normalise = {.last = scale_piece};
    const struct batch_norm *b = state;
    run(b, args, args->first || args->commit ? &all : &normalise);
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

static inline void add_slopes(const struct scaling *restrict s, const float *restrict x, const float *restrict dy,
                              int64_t floats, int64_t lanes, bool relu, float *restrict sum, float *restrict product)
{
    for (; floats > 0; floats -= lanes, x += lanes, dy += lanes) {
#pragma omp simd
        for (int64_t i = 0; i < least(floats, lanes); i++) {
            const float d = x[i] - s->mean[i], g = slope(dy[i], d, s->scale[i], s->bias[i], relu);
            sum[i] += g;
            product[i] += g * d;
        }
    }
}

/* The sums over a piece of dy' and of dy' (x - mean). */
static void sum_piece(const struct piece *p, const struct kernel_args *args)
{
    const float *x = args->x[0], *dy = args->dy;
    float sum[LANES] = {0}, product[LANES] = {0};
    struct scaling scaling = {0};
    fill_scaling(p, args, &scaling);
    if (p->b->masks)
        FOR_STRIPS(s, p) add_slopes(&scaling, x + s.at, dy + s.at, s.floats, p->lanes, true, sum, product);
    else
        FOR_STRIPS(s, p) add_slopes(&scaling, x + s.at, dy + s.at, s.floats, p->lanes, false, sum, product);
    fold(p, sum, sums_of(p->b, args, p->number, 0) + p->channel);
    fold(p, product, sums_of(p->b, args, p->number, 1) + p->channel);
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
    float shift[LANES], share[LANES];
};

static void fill_combination(const struct piece *p, const struct kernel_args *args, struct combination *k)
{
    fill_scaling(p, args, &k->scaling);
    for (int64_t i = 0; i < p->width; i++) {
        const bool padding = p->channel + i >= p->b->channels;
        k->shift[i] = padding ? 0 : (float)sums_of(p->b, args, 0, 0)[p->channel + i];
        k->share[i] = padding ? 0 : (float)sums_of(p->b, args, 0, 1)[p->channel + i];
    }
    repeat(p, k->shift), repeat(p, k->share);
}

static inline void combine_strip(const struct combination *k, const float *x, const float *dy, int64_t floats,
                                 int64_t lanes, bool relu, float *dx)
{
    const struct scaling *s = &k->scaling;
    for (; floats > 0; floats -= lanes, x += lanes, dy += lanes, dx += lanes) {
#pragma omp simd
        for (int64_t i = 0; i < least(floats, lanes); i++) {
            const float d = x[i] - s->mean[i], g = slope(dy[i], d, s->scale[i], s->bias[i], relu);
            dx[i] = s->scale[i] * (g - k->shift[i] - d * k->share[i]);
        }
    }
}

static void combine_piece(const struct piece *p, const struct kernel_args *args)
{
    const float *x = args->x[0], *dy = args->dy;
    float *dx = args->dx[0];
    struct combination k = {0};
    fill_combination(p, args, &k);
    if (p->b->masks)
        FOR_STRIPS(s, p) combine_strip(&k, x + s.at, dy + s.at, s.floats, p->lanes, true, dx + s.at);
    else
        FOR_STRIPS(s, p) combine_strip(&k, x + s.at, dy + s.at, s.floats, p->lanes, false, dx + s.at);
}

static enum status backward(void *state, const struct kernel_args *args)
{
    static const struct passes all = {2, sum_piece, merge_slopes, combine_piece},
                               sums = {2, sum_piece, merge_slopes, NULL};
    const struct batch_norm *b = state;
    run(b, args, args->parts & PART_INPUT && args->dx[0] ? &all : &sums);
    clock_lap(b->backend, CLOCK_NORM);
    return ST_OK;
}

const struct kernel cpu_batch_norm = {true, prepare, forward, backward, free};
