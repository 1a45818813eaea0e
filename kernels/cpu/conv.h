/* The plan of a convolution's pass: algorithm, batch chunk, reorders and their offsets in scratch. */
#pragma once

#include "conv_product.h"
#include "cpu.h"
#include "winograd.h"

/* A pass to plan. */
struct conv_request {
    enum conv_pass pass;
    const struct extent *x, *y;
    const struct shape *weights;
    int64_t groups, kernel, stride, padding;
    bool bias, relu;
};

/* One pass: by Winograd, a product over patches, or the library's calls. [0] works on a chunk, [1] on the rest of the
 * batch. */
struct conv_plan {
    struct winograd winograd;             /* scratch 0: not by it */
    struct conv_product product;          /* the same */
    int64_t chunk, rest;                  /* samples; rest may be 0; chunk 0: no such pass */
    struct call conv[2];                  /* arguments x, w, b, y, scratch, or their gradients */
    struct call image[2];                 /* x into the primitive's order; none where it takes x as it is */
    struct call weights;                  /* master order to the primitive's; PARAMS: back */
    struct call weights_add;              /* PARAMS: back, adding */
    size_t weights_at, image_at, bias_at; /* in scratch, after the primitive's scratchpad */
    size_t scratch;
};

/* Winograd where the backend's options allow it, its scratch keeps the limit and the shapes are worth its transforms;
 * else a product, but for groups of few channels, for which it is the library's largest chunk whose scratch keeps the
 * limit, or the one with least scratch. */
enum status conv_plan_make(struct backend *backend, const struct conv_request *request, struct conv_plan *plan);
void conv_plan_release(struct conv_plan *plan);
