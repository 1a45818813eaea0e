/* Elementwise layers: loops over the functions of element_functions.h.
 *
 * Contract: elements are independent, so the bits of the results depend neither on threads nor on pieces. */
#include "numerics/element_functions.h"

#include <stdlib.h>
#include <string.h>

#include "cpu.h"

/* Both loops of each function; y may be x, dx may be dy. */
#define LOOPS(layer, value, gradient)                                                                                  \
    static void layer##_values(float number, int64_t count, const float *from, float *to)                              \
    {                                                                                                                  \
        (void)number;                                                                                                  \
        _Pragma("omp parallel for simd schedule(static)") for (int64_t i = 0; i < count; i++)                          \
        {                                                                                                              \
            const float x = from[i];                                                                                   \
            to[i] = value;                                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void layer##_gradients(float number, int64_t count, const float *read, const float *from, float *to)        \
    {                                                                                                                  \
        (void)number;                                                                                                  \
        _Pragma("omp parallel for simd schedule(static)") for (int64_t i = 0; i < count; i++)                          \
        {                                                                                                              \
            const float at = read[i], dy = from[i];                                                                    \
            (void)at;                                                                                                  \
            to[i] = gradient;                                                                                          \
        }                                                                                                              \
    }
ELEMENT_FUNCTIONS(LOOPS)

struct loops {
    const char *layer;
    void (*values)(float number, int64_t count, const float *x, float *y);
    void (*gradients)(float number, int64_t count, const float *at, const float *dy, float *dx);
};

#define ROW(layer, value, gradient) {#layer, layer##_values, layer##_gradients},
static const struct loops rows[] = {ELEMENT_FUNCTIONS(ROW)};

struct elementwise {
    struct backend *backend;
    struct extent x;
    const struct loops *loops;
    float number;
    unsigned reads; /* of the backward */
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const struct layer *layer = node->layer;
    struct elementwise *e = *state = allocate(1, sizeof *e);
    *e = (struct elementwise){backend, extent_of(graph, node->inputs[0]), rows,
                              layer->keys ? (float)node_real(node, layer->keys->key) : 0.0f,
                              layer->footprint.reads[PART_INDEX_INPUT]};
    while (strcmp(e->loops->layer, layer->name) != 0) e->loops++;
    *footprint = layer->footprint;
    footprint->implementation = "loops";
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct elementwise *e = state;
    e->loops->values(e->number, e->x.count, args->x[0], args->y);
    clock_lap(e->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct elementwise *e = state;
    e->loops->gradients(e->number, e->x.count, kernel_at(e->reads, args), args->dy, args->dx[0]);
    clock_lap(e->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

const struct kernel cpu_elementwise = {true, prepare, forward, backward, free};
