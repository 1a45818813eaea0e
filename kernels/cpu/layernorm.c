/* Layer normalisation of rows; the formulas are with the layer's definition.
 *
 * Contract: one thread sums a row as row_sums.h says, in two passes, so that the variance does not cancel. The backward
 * reads x and dy once for all gradients; those of the parameters are summed over pieces of rows as reductions.h says.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "reductions.h"
#include "row_sums.h"

struct layernorm {
    struct backend *backend;
    int64_t rows, width;
    float epsilon;
};

struct statistics {
    float mean, rstd;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    struct layernorm *norm = *state = allocate(1, sizeof *norm);
    *norm = (struct layernorm){backend, graph->batch * shape_elements(x) / shape_width(x), shape_width(x),
                               (float)node_real(node, "epsilon")};
    const size_t sums = (size_t)(2 * row_pieces(norm->rows) * norm->width) * sizeof(float);
    *footprint = (struct footprint){
        .saved = (size_t)norm->rows * sizeof(struct statistics),
        .backward_scratch = {sums, sums},
        .reads = {READS_X | READS_SAVED, READS_X | READS_SAVED},
        .y_over_x = true,
        .dx_over_dy = true,
        .implementation = "loops",
    };
    return ST_OK;
}

static struct statistics statistics_of(const struct layernorm *norm, const float *x)
{
    const float mean = row_sum(x, norm->width) / (float)norm->width;
    places sum = {0};
    for (int64_t i = 0; i < norm->width; i += PLACES) {
        places about = places_load(x + i, norm->width - i) - mean;
        for (int64_t k = norm->width - i; k < PLACES; k++) about[k] = 0;
        sum += about * about;
    }
    const float squares = places_sum(sum);
    return (struct statistics){mean, 1.0f / sqrtf(squares / (float)norm->width + norm->epsilon)};
}

static enum status forward(void *state, const struct kernel_args *args)
{
    struct layernorm *norm = state;
    const float *w = args->parameters[0], *b = args->parameters[1];
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < norm->rows; n++) {
        const float *x = (const float *)args->x[0] + n * norm->width;
        float *y = (float *)args->y + n * norm->width;
        const struct statistics s = statistics_of(norm, x);
        if (args->save) ((struct statistics *)args->saved)[n] = s;
#pragma omp simd
        for (int64_t i = 0; i < norm->width; i++) y[i] = (x[i] - s.mean) * s.rstd * w[i] + b[i];
    }
    clock_lap(norm->backend, CLOCK_NORM);
    return ST_OK;
}

/* One row's backward: adds its share of the parameters' gradients to dw and db; writes dx unless it is NULL. */
static void backward_row(int64_t width, struct statistics s, const float *restrict w, const float *restrict x,
                         const float *dy, float *restrict dw, float *restrict db, float *dx)
{
    places sums = {0}, products = {0};
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        dw[i] += dy[i] * ((x[i] - s.mean) * s.rstd);
        db[i] += dy[i];
    }
    if (dx == NULL) return;
    for (int64_t i = 0; i < width; i += PLACES) {
        const places g = places_load(dy + i, width - i) * places_load(w + i, width - i);
        sums += g;
        products += g * ((places_load(x + i, width - i) - s.mean) * s.rstd);
    }
    const float sum = places_sum(sums) / (float)width, product = places_sum(products) / (float)width;
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        const float h = (x[i] - s.mean) * s.rstd;
        dx[i] = s.rstd * (dy[i] * w[i] - sum - h * product);
    }
}

/* Rows [from, to): their share of the parameters' gradients into sums, dw and then db, and dx unless it is NULL. */
static void backward_piece(const struct layernorm *norm, const struct kernel_args *args, int64_t from, int64_t to,
                           float *sums, float *dx)
{
    const int64_t width = norm->width;
    memset(sums, 0, (size_t)(2 * width) * sizeof *sums);
    for (int64_t n = from; n < to; n++)
        backward_row(width, ((const struct statistics *)args->saved)[n], args->parameters[0],
                     (const float *)args->x[0] + n * width, (const float *)args->dy + n * width, sums, sums + width,
                     dx != NULL ? dx + n * width : NULL);
}

static enum status backward(void *state, const struct kernel_args *args)
{
    struct layernorm *norm = state;
    const int64_t width = norm->width, pieces = row_pieces(norm->rows);
    float *sums = args->scratch, *dx = args->parts & PART_INPUT ? args->dx[0] : NULL;
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t from = p * PIECE_ROWS, to = from + PIECE_ROWS;
        backward_piece(norm, args, from, to < norm->rows ? to : norm->rows, sums + 2 * p * width, dx);
    }
    for (int i = 0; args->parts & PART_PARAMS && i < 2; i++)
        reduce_pieces(sums + i * width, pieces, 2 * width, width, args->gradients[i]);
    clock_lap(norm->backend, CLOCK_NORM);
    return ST_OK;
}

const struct kernel cpu_layernorm = {true, prepare, forward, backward, free};
