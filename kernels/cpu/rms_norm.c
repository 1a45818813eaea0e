/* Root mean square normalisation of rows; the formulas are with the layer's definition.
 *
 * Contract: a row is summed as row_sums.h says, products as (dy w) (x rstd); the gradient of the gain is summed over
 * pieces of rows as reductions.h says. So the bits depend on the shape alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "reductions.h"
#include "row_sums.h"

struct rms_norm {
    struct backend *backend;
    int64_t rows, width;
    float epsilon;
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct shape *x = &graph->value[node->inputs[0]].shape;
    struct rms_norm *norm = *state = allocate(1, sizeof *norm);
    *norm = (struct rms_norm){backend, graph->batch * shape_elements(x) / shape_width(x), shape_width(x),
                              (float)node_real(node, "epsilon")};
    const size_t sums = (size_t)(row_pieces(norm->rows) * norm->width) * sizeof(float);
    *footprint = node->layer->footprint;
    footprint->saved = (size_t)norm->rows * sizeof(float);
    footprint->backward_scratch[0] = footprint->backward_scratch[1] = sums;
    footprint->implementation = "loops";
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct rms_norm *norm = state;
    const float *w = args->parameters[0];
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < norm->rows; n++) {
        const float *x = (const float *)args->x[0] + n * norm->width;
        float *y = (float *)args->y + n * norm->width;
        const float rstd = 1.0f / sqrtf(row_dot(x, x, norm->width) / (float)norm->width + norm->epsilon);
        if (args->save) ((float *)args->saved)[n] = rstd;
#pragma omp simd
        for (int64_t i = 0; i < norm->width; i++) y[i] = x[i] * rstd * w[i];
    }
    clock_lap(norm->backend, CLOCK_NORM);
    return ST_OK;
}

/* One row's backward: adds its share of the gain's gradient to dw; writes dx unless it is NULL. */
static void backward_row(int64_t width, float rstd, const float *restrict w, const float *restrict x, const float *dy,
                         float *restrict dw, float *dx)
{
#pragma omp simd
    for (int64_t i = 0; i < width; i++) dw[i] += dy[i] * (x[i] * rstd);
    if (dx == NULL) return;
    places sum = {0};
    for (int64_t i = 0; i < width; i += PLACES)
        sum += places_load(dy + i, width - i) * places_load(w + i, width - i) * (places_load(x + i, width - i) * rstd);
    const float product = places_sum(sum) / (float)width;
#pragma omp simd
    for (int64_t i = 0; i < width; i++) dx[i] = rstd * (dy[i] * w[i] - x[i] * rstd * product);
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct rms_norm *norm = state;
    const int64_t width = norm->width, pieces = row_pieces(norm->rows);
    float *sums = args->scratch, *dx = args->parts & PART_INPUT ? args->dx[0] : NULL;
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < pieces; p++) {
        memset(sums + p * width, 0, (size_t)width * sizeof *sums);
        for (int64_t n = p * PIECE_ROWS; n < norm->rows && n < (p + 1) * PIECE_ROWS; n++)
            backward_row(width, ((const float *)args->saved)[n], args->parameters[0],
                         (const float *)args->x[0] + n * width, (const float *)args->dy + n * width, sums + p * width,
                         dx != NULL ? dx + n * width : NULL);
    }
    if (args->parts & PART_PARAMS) reduce_pieces(sums, pieces, width, width, args->gradients[0]);
    clock_lap(norm->backend, CLOCK_NORM);
    return ST_OK;
}

const struct kernel cpu_rms_norm = {true, prepare, forward, backward, free};
