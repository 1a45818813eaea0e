/* Layers whose output elements are a function of one input element each.
 *
 * Contract: their functions are computed in double and rounded once. Other backends compute the same functions in
 * float, by numerics/element_functions.h. */
#pragma once

#include "model/reference.h"

/* read: READS_X, READS_Y or 0. value: y, of x; gradient: dx, of dy and of at, which is x where the backward reads x, y
 * where it reads y, else dy. Both may use number: the layer's one setting, a double, as the float that kernels compute
 * with; 0 where it has none. Then other members of struct layer: element_flops, and LAYER_SETTINGS where there are any.
 */
#define ELEMENTWISE(word, text, read, value, gradient, ...)                                                            \
    static enum status forward(void *state, const struct kernel_args *args)                                            \
    {                                                                                                                  \
        const struct reference *r = state;                                                                             \
        const float number = r->settings ? (float)*(const double *)r->settings : 0, *from = args->x[0];                \
        float *to = args->y;                                                                                           \
        (void)number;                                                                                                  \
        for (int64_t i = 0; i < r->batch * r->x_elements; i++) {                                                       \
            const double x = from[i];                                                                                  \
            to[i] = (float)(value);                                                                                    \
        }                                                                                                              \
        return ST_OK;                                                                                                  \
    }                                                                                                                  \
    static enum status backward(void *state, const struct kernel_args *args)                                           \
    {                                                                                                                  \
        const struct reference *r = state;                                                                             \
        const float number = r->settings ? (float)*(const double *)r->settings : 0;                                    \
        const float *reads = kernel_at(read, args), *from = args->dy;                                                  \
        float *to = args->dx[0];                                                                                       \
        (void)number;                                                                                                  \
        for (int64_t i = 0; i < r->batch * r->x_elements; i++) {                                                       \
            const double at = reads[i], dy = from[i];                                                                  \
            (void)at;                                                                                                  \
            to[i] = (float)(gradient);                                                                                 \
        }                                                                                                              \
        return ST_OK;                                                                                                  \
    }                                                                                                                  \
    const struct layer layer_##word = {.name = #word,                                                                  \
                                       .doc = text,                                                                    \
                                       .inputs = 1,                                                                    \
                                       .reference = REFERENCE_KERNEL(forward, backward),                               \
                                       .footprint = {.reads = {0, read}, .y_over_x = true, .dx_over_dy = true},        \
                                       __VA_ARGS__}
