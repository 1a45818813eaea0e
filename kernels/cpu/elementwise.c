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

static const struct loops *loops_of(const struct node *node)
{
    const struct loops *loops = rows;
    while (strcmp(loops->layer, node->layer->name) != 0) loops++;
    return loops;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    loops_of(s->node)->values(node_number(s->node), s->x.count, args->x[0], args->y);
    clock_lap(s->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const float *at = kernel_at(s->node->layer->footprint.reads[PART_INDEX_INPUT], args);
    loops_of(s->node)->gradients(node_number(s->node), s->x.count, at, args->dy, args->dx[0]);
    clock_lap(s->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

const struct kernel cpu_elementwise = {true, layer_state_prepare, forward, backward, free};
