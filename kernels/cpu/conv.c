/* Convolution by Winograd's algorithm (winograd.h), as products (conv_product.h), or by oneDNN:
 * y = activation(w * x + b), activation none or relu, w in O I H W order.
 *
 * Contract: oneDNN processes the batch in chunks of fixed size, so that its scratch keeps the limit; forward and input
 * gradient are per sample, the parameters' gradients are summed over chunks in ascending sample order. A recomputation
 * makes exactly the calls of the first forward. PARAMS applies the relu's derivative in place on dy; INPUT reads what
 * it wrote. oneDNN's fused relu maps a NaN to 0, where ours and the reference keep it. */
#include <stdio.h>
#include <stdlib.h>

#include "conv.h"
#include "cpu.h"
#include "element_loops.h"

struct conv {
    struct backend *backend;
    struct extent x, y;
    bool relu, bias;
    struct conv_plan pass[CONV_PASSES];
    char implementation[256];
};

/* The start of a value's chunk. */
static const float *chunk_at(const void *value, const struct extent *extent, int64_t sample)
{
    return (const float *)value + sample * extent->elements;
}

/* *operand as the primitive expects it: as it is, or reordered into scratch. */
static enum status reordered(const struct conv *conv, const struct call *reorder, const float **operand, char *scratch)
{
    if (reorder->primitive == NULL) return ST_OK;
    TRY(call_run(reorder, (const void *[]){*operand, scratch}));
    *operand = (const float *)(const void *)scratch;
    clock_lap(conv->backend, CLOCK_REORDER);
    return ST_OK;
}

/* The sign bits of samples samples of y from sample n on. */
static void keep_signs(const struct conv *conv, const struct kernel_args *args, int64_t n, int64_t samples)
{
    clock_lap(conv->backend, CLOCK_CONV);
    if (!args->save) return;
    sign_pack(chunk_at(args->y, &conv->y, n), samples, conv->y.elements,
              (uint32_t *)args->saved + (size_t)n * sign_words(conv->y.elements));
    clock_lap(conv->backend, CLOCK_ACTIVATION);
}

/* Whether a pass is by a kernel of our own, for the whole batch at once. */
static bool is_own(const struct conv_plan *plan) { return plan->winograd.scratch > 0 || plan->product.scratch > 0; }

static enum status forward_own(const struct conv *conv, const struct kernel_args *args)
{
    const struct conv_plan *plan = &conv->pass[CONV_FORWARD];
    const float *bias = conv->bias ? args->parameters[1] : NULL, *w = args->parameters[0];
    if (plan->winograd.scratch > 0)
        winograd_apply(&plan->winograd, args->x[0], w, bias, conv->relu, args->y, args->scratch);
    else
        conv_product_forward(&plan->product, args->x[0], w, bias, conv->relu, args->y, args->scratch);
    keep_signs(conv, args, 0, conv->y.batch);
    return ST_OK;
}

static enum status conv_forward(void *state, const struct kernel_args *args)
{
    struct conv *conv = state;
    const struct conv_plan *plan = &conv->pass[CONV_FORWARD];
    const float *w = args->parameters[0];
    char *scratch = args->scratch;
    if (is_own(plan)) return forward_own(conv, args);
    TRY(reordered(conv, &plan->weights, &w, scratch + plan->weights_at));
    for (int64_t n = 0; n < conv->x.batch; n += plan->chunk) {
        const int which = n + plan->chunk > conv->x.batch;
        const float *x = chunk_at(args->x[0], &conv->x, n), *y = chunk_at(args->y, &conv->y, n);
        TRY(reordered(conv, &plan->image[which], &x, scratch + plan->image_at));
        TRY(call_run(&plan->conv[which], (const void *[]){x, w, args->parameters[1], y, scratch}));
        keep_signs(conv, args, n, which ? plan->rest : plan->chunk);
    }
    return ST_OK;
}

/* The relu's derivative in place on samples samples of dy from sample n on. */
static void mask_chunk(const struct conv *conv, const struct kernel_args *args, int64_t n, int64_t samples)
{
    float *dy = (float *)args->dy + n * conv->y.elements;
    if (args->saved)
        sign_mask(dy, dy, (const uint32_t *)args->saved + (size_t)n * sign_words(conv->y.elements), samples,
                  conv->y.elements);
    else
        relu_mask(dy, dy, chunk_at(args->y, &conv->y, n), samples * conv->y.elements);
    clock_lap(conv->backend, CLOCK_ACTIVATION);
}

/* Adds or assigns a chunk's result to the master gradients. */
static enum status collect(const struct conv *conv, const struct kernel_args *args, const char *scratch, bool add)
{
    const struct conv_plan *plan = &conv->pass[CONV_PARAMS];
    const float *b = (const float *)(const void *)(scratch + plan->bias_at);
    TRY(call_run(add ? &plan->weights_add : &plan->weights,
                 (const void *[]){scratch + plan->weights_at, args->gradients[0]}));
    float *db = args->gradients[1];
    for (int64_t i = 0; conv->bias && i < conv->y.shape.dim[2]; i++) db[i] = add ? db[i] + b[i] : b[i];
    clock_lap(conv->backend, CLOCK_REORDER);
    return ST_OK;
}

static enum status params_own(const struct conv *conv, const struct kernel_args *args)
{
    const struct conv_plan *plan = &conv->pass[CONV_PARAMS];
    float *dw = args->gradients[0], *db = conv->bias ? args->gradients[1] : NULL;
    if (conv->relu) mask_chunk(conv, args, 0, conv->y.batch);
    if (plan->winograd.scratch > 0)
        winograd_gradients(&plan->winograd, args->x[0], args->dy, dw, db, args->scratch);
    else
        conv_product_gradients(&plan->product, args->x[0], args->dy, dw, db, args->scratch);
    clock_lap(conv->backend, CLOCK_CONV);
    return ST_OK;
}

static enum status backward_params(struct conv *conv, const struct kernel_args *args)
{
    const struct conv_plan *plan = &conv->pass[CONV_PARAMS];
    char *scratch = args->scratch;
    if (is_own(plan)) return params_own(conv, args);
    for (int64_t n = 0; n < conv->x.batch; n += plan->chunk) {
        const int which = n + plan->chunk > conv->x.batch;
        const float *x = chunk_at(args->x[0], &conv->x, n), *dy = chunk_at(args->dy, &conv->y, n);
        if (conv->relu) mask_chunk(conv, args, n, which ? plan->rest : plan->chunk);
        TRY(reordered(conv, &plan->image[which], &x, scratch + plan->image_at));
        TRY(call_run(&plan->conv[which],
                     (const void *[]){x, scratch + plan->weights_at, scratch + plan->bias_at, dy, scratch}));
        clock_lap(conv->backend, CLOCK_CONV);
        TRY(collect(conv, args, scratch, n > 0));
    }
    return ST_OK;
}

static enum status backward_input(struct conv *conv, const struct kernel_args *args)
{
    const struct conv_plan *plan = &conv->pass[CONV_INPUT];
    const float *w = args->parameters[0];
    char *scratch = args->scratch;
    if (is_own(plan)) {
        if (plan->winograd.scratch > 0)
            winograd_apply(&plan->winograd, args->dy, w, NULL, false, args->dx[0], args->scratch);
        else
            conv_product_input(&plan->product, args->dy, w, args->dx[0], args->scratch);
        clock_lap(conv->backend, CLOCK_CONV);
        return ST_OK;
    }
    TRY(reordered(conv, &plan->weights, &w, scratch + plan->weights_at));
    for (int64_t n = 0; n < conv->x.batch; n += plan->chunk) {
        const int which = n + plan->chunk > conv->x.batch;
        const float *dx = chunk_at(args->dx[0], &conv->x, n), *dy = chunk_at(args->dy, &conv->y, n);
        TRY(call_run(&plan->conv[which], (const void *[]){dx, w, NULL, dy, scratch}));
        clock_lap(conv->backend, CLOCK_CONV);
    }
    return ST_OK;
}

static enum status conv_backward(void *state, const struct kernel_args *args)
{
    const struct conv *conv = state;
    if (args->parts & PART_PARAMS)
        TRY(backward_params(state, args));
    else if (args->y || args->saved)
        mask_chunk(conv, args, 0, conv->y.batch);
    return args->parts & PART_INPUT ? backward_input(state, args) : ST_OK;
}

static void conv_release(void *state)
{
    struct conv *conv = state;
    for (int p = 0; p < CONV_PASSES; p++) conv_plan_release(&conv->pass[p]);
    free(conv);
}

/* "winograd f4x4 avx512 | jit:avx512_core direct chunk 64 | ..." by pass. */
static void describe(struct conv *conv)
{
    char *text = conv->implementation;
    for (const struct conv_plan *p = conv->pass; p < conv->pass + CONV_PASSES && p->chunk > 0; p++) {
        const size_t room = sizeof conv->implementation - (size_t)(text - conv->implementation);
        const char *bar = p > conv->pass ? " | " : "";
        const char *own = p->winograd.scratch > 0 ? "winograd f4x4" : "product";
        int length = is_own(p) ? snprintf(text, room, "%s%s %s", bar, own, LANES_ISA)
                               : snprintf(text, room, "%s%s direct chunk %lld", bar, call_implementation(&p->conv[0]),
                                          (long long)p->chunk);
        if (length < 0 || (size_t)length >= room) return;
        text += length;
    }
}

static enum status conv_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    const int passes = graph->value[node->inputs[0]].wants_gradient ? CONV_PASSES : CONV_INPUT;
    const struct shape *weights = &graph->parameter[node->first_parameter].definition.shape;
    struct conv *conv = allocate(1, sizeof *conv);
    conv->backend = backend;
    conv->x = extent_of(graph, node->inputs[0]);
    conv->y = extent_of(graph, node->output);
    conv->bias = node_integer(node, "bias");
    conv->relu = node->activation == ACTIVATION_RELU;
    for (int p = 0; p < passes; p++) {
        const struct conv_request request = {.pass = (enum conv_pass)p,
                                             .x = &conv->x,
                                             .y = &conv->y,
                                             .weights = weights,
                                             .groups = node_integer(node, "groups"),
                                             .kernel = node_integer(node, "kernel"),
                                             .stride = node_integer(node, "stride"),
                                             .padding = node_integer(node, "padding"),
                                             .bias = conv->bias,
                                             .relu = conv->relu};
        enum status status = conv_plan_make(backend, &request, &conv->pass[p]);
        if (status == ST_OK) continue;
        conv_release(conv);
        return status;
    }
    *footprint = (struct footprint){
        .signs = conv->relu ? (size_t)conv->y.batch * sign_words(conv->y.elements) * sizeof(uint32_t) : 0,
        .forward_scratch = conv->pass[CONV_FORWARD].scratch,
        .backward_scratch = {conv->pass[CONV_PARAMS].scratch, conv->pass[CONV_INPUT].scratch},
        .reads = {READS_X | (conv->relu ? READS_Y : 0u), 0},
        .split = true,
        .writes_dy = conv->relu,
        .implementation = conv->implementation,
    };
    describe(conv);
    *state = conv;
    return ST_OK;
}

const struct kernel cpu_conv = {true, conv_prepare, conv_forward, conv_backward, conv_release};
