/* Layers whose output elements are a function of one input element each. A layer's file defines, in double, before
 * ELEMENTWISE:
 *
 *     static double value(double x, const void *settings);                  y
 *     static double gradient(double dy, double at, const void *settings);   dx
 *
 * at is x where the backward reads x, y where it reads y, else dy. Other backends compute the same functions in float,
 * by numerics/element_functions.h. */
#pragma once

#include "model/reference.h"

/* read: READS_X, READS_Y or 0; then other members of struct layer: element_flops, and LAYER_SETTINGS where there are
 * any.
 */
#define ELEMENTWISE(word, text, read, ...)                                                                             \
    static enum status forward(void *state, const struct kernel_args *args)                                            \
    {                                                                                                                  \
        const struct reference *r = state;                                                                             \
        const float *x = args->x[0];                                                                                   \
        float *y = args->y;                                                                                            \
        for (int64_t i = 0; i < r->batch * r->x_elements; i++) y[i] = (float)value(x[i], r->settings);                 \
        return ST_OK;                                                                                                  \
    }                                                                                                                  \
    static enum status backward(void *state, const struct kernel_args *args)                                           \
    {                                                                                                                  \
        const struct reference *r = state;                                                                             \
        const float *at = kernel_at(read, args), *dy = args->dy;                                                       \
        float *dx = args->dx[0];                                                                                       \
        for (int64_t i = 0; i < r->batch * r->x_elements; i++) dx[i] = (float)gradient(dy[i], at[i], r->settings);     \
        return ST_OK;                                                                                                  \
    }                                                                                                                  \
    const struct layer layer_##word = {.name = #word,                                                                  \
                                       .doc = text,                                                                    \
                                       .inputs = 1,                                                                    \
                                       .infer = same_infer,                                                            \
                                       .reference = REFERENCE_KERNEL(forward, backward),                               \
                                       .footprint = {.reads = {0, read}, .y_over_x = true, .dx_over_dy = true},        \
                                       __VA_ARGS__}
