/* Softmax cross-entropy of rows; see framework/layers/cross_entropy.c. A vector a sample is left to the reference
 * kernel.
 *
 * Contract: one thread computes a row from start to end, in sums of a fixed order, 16 floats side by side and pieces in
 * double; the rows' losses are added in double in ascending order. So the bits of the results depend neither on threads
 * nor on vectors. A share below exp(-87) of the largest is 0; the difference of two scores is rounded, so that a share
 * of exp(-d) is within d 2^-24 of itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "element_loops.h"
#include "numerics/element_exp.h"

enum { PIECE = 512 }; /* elements whose exponentials are added in float */

struct entropy {
    struct backend *backend;
    const struct kernel *reference; /* for vectors, with its state; else NULL */
    void *state;
    int64_t batch, rows, classes;
    double smoothing; /* a share of each label's weight, divided among the classes */
    const struct setting_list *weights;
    double weight;  /* of all classes */
    double of_loss; /* by which the whole loss is multiplied */
    int threads;
};

/* A row's loss, and whether it is predicted. */
struct term {
    double loss, correct;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    struct entropy *e = *state = allocate(1, sizeof *e);
    e->backend = backend;
    e->batch = graph->batch;
    e->threads = (int)backend->options.threads;
    e->classes = shape_width(x);
    e->smoothing = node_real(node, "label_smoothing");
    e->weights = node_list(node, "class_weights");
    for (int64_t j = 0; j < e->classes; j++) e->weight += class_weight(e->weights, j);
    e->of_loss = node->weight;
    e->rows = graph->batch * (shape_elements(x) / e->classes);
    if (x->rank == 1) {
        e->reference = &node->layer->reference;
        return e->reference->prepare(backend, graph, node, footprint, &e->state);
    }
    *footprint = node->layer->footprint;
    footprint->forward_scratch = (size_t)e->rows * sizeof(struct term);
    footprint->implementation = "loops";
    return ST_OK;
}

static void release(void *state)
{
    struct entropy *e = state;
    if (e->reference) e->reference->release(e->state);
    free(e);
}

static float largest(const float *x, int64_t count)
{
    float most = -INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < count; j++) most = x[j] > most ? x[j] : most;
    return most;
}

/* exp(x - most), of at most 0. */
static inline float power_of(float x, float most)
{
    const float power = x - most, least = power < -87.0f ? -87.0f : power;
    return element_of_bits(element_bits(element_exp(least, 0)) & (power < -87.0f ? 0 : UINT32_MAX));
}

/* The sum of the powers of up to PIECE elements. */
static double piece_sum(const float *restrict x, int64_t count, float most)
{
    float power[PIECE];
    vector sums = {0};
    double sum = 0;
    memset(power, 0, sizeof power);
#pragma omp simd
    for (int64_t j = 0; j < count; j++) power[j] = power_of(x[j], most);
    for (int64_t j = 0; j < count; j += VECTOR) sums += vector_at(power + j);
    for (int i = 0; i < VECTOR; i++) sum += (double)sums[i];
    return sum;
}

static double row_sum(const float *x, int64_t count, float most)
{
    double sum = 0;
    for (int64_t first = 0; first < count; first += PIECE)
        sum += piece_sum(x + first, count - first < PIECE ? count - first : PIECE, most);
    return sum;
}

/* The sum of the elements themselves. */
static double plain_sum(const float *x, int64_t count)
{
    double sum = 0;
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t some = count - first < PIECE ? count - first : PIECE;
        float piece[PIECE] = {0};
        vector sums = {0};
        memcpy(piece, x + first, (size_t)some * sizeof *piece);
        for (int64_t j = 0; j < some; j += VECTOR) sums += vector_at(piece + j);
        for (int i = 0; i < VECTOR; i++) sum += (double)sums[i];
    }
    return sum;
}

static double weighted_sum(const struct entropy *e, const float *x)
{
    double sum = 0;
    for (int64_t j = 0; j < e->classes; j++) sum += e->weights->reals[j] * (double)x[j];
    return sum;
}

/* What a row is measured by: the label's element, or a mixture with the mean of all. */
static double target_of(const struct entropy *e, const float *x, int32_t label)
{
    const double own = class_weight(e->weights, label) * (double)x[label];
    if (e->smoothing == 0) return own;
    const double sum = e->weights->count ? weighted_sum(e, x) : plain_sum(x, e->classes);
    return (1 - e->smoothing) * own + e->smoothing * sum / (double)e->classes;
}

/* What the logarithms of a row's shares are multiplied by, together. */
static double parts_of(const struct entropy *e, int32_t label)
{
    if (!e->weights->count) return 1;
    return (1 - e->smoothing) * class_weight(e->weights, label) + e->smoothing * e->weight / (double)e->classes;
}

/* Whether the label's element is the first of the largest. */
static bool is_first(const float *x, int64_t label, float most)
{
    if (x[label] != most) return false;
    for (int64_t j = 0; j < label; j++)
        if (x[j] == most) return false;
    return true;
}

static struct term term_of(const struct entropy *e, const float *x, int32_t label)
{
    if (label == LABEL_NONE) return (struct term){0, 0};
    const float most = largest(x, e->classes);
    const double logarithm = log(row_sum(x, e->classes, most)) + (double)most;
    return (struct term){logarithm * parts_of(e, label) - target_of(e, x, label), is_first(x, label, most)};
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct entropy *e = state;
    if (e->reference) return e->reference->forward(e->state, args);
    struct term *term = args->scratch;
    double loss = 0, correct = 0;
    TRY(labels_expected(args->labels, e->batch, e->rows / e->batch, e->classes));
#pragma omp parallel for schedule(static) num_threads(e->threads)
    for (int64_t n = 0; n < e->rows; n++)
        term[n] = term_of(e, (const float *)args->x[0] + n * e->classes, args->labels[n]);
    for (int64_t n = 0; n < e->rows; n++) loss += term[n].loss, correct += term[n].correct;
    ((float *)args->y)[0] = *args->divisor > 0 ? (float)(loss / (*args->divisor / e->of_loss)) : 0;
    ((float *)args->y)[1] = (float)correct;
    clock_lap(e->backend, CLOCK_OTHER);
    return ST_OK;
}

/* dx may be x. */
static void row_gradient(const struct entropy *e, const float *x, int32_t label, double divisor, float *dx)
{
    if (label == LABEL_NONE || !(divisor > 0)) {
        memset(dx, 0, (size_t)e->classes * sizeof *dx);
        return;
    }
    const float most = largest(x, e->classes);
    const double sum = row_sum(x, e->classes, most), parts = parts_of(e, label),
                 weight = class_weight(e->weights, label);
    const float factor = (float)(parts / (sum * divisor));
    const double share = e->smoothing / ((double)e->classes * divisor);
    const float own = (float)((parts * (double)power_of(x[label], most) / sum - (1 - e->smoothing) * weight) / divisor -
                              share * weight);
    const bool weighted = e->weights->count && e->smoothing > 0;
    const float all = weighted ? 0 : (float)share;
#pragma omp simd
    for (int64_t j = 0; j < e->classes; j++) dx[j] = power_of(x[j], most) * factor - all;
    for (int64_t j = 0; j < e->classes && weighted; j++) dx[j] -= (float)(share * e->weights->reals[j]);
    dx[label] = own;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct entropy *e = state;
    if (e->reference) return e->reference->backward(e->state, args);
#pragma omp parallel for schedule(static) num_threads(e->threads)
    for (int64_t n = 0; n < e->rows; n++)
        row_gradient(e, (const float *)args->x[0] + n * e->classes, args->labels[n], *args->divisor / e->of_loss,
                     (float *)args->dx[0] + n * e->classes);
    clock_lap(e->backend, CLOCK_OTHER);
    return ST_OK;
}

const struct kernel cpu_cross_entropy = {true, prepare, forward, backward, release};
