/* Convolution by Winograd's algorithm (winograd.h) or as a product over patches (conv_product.h):
 * y = activation(w * x + b), activation none or relu, w in O I H W order. A rule of shapes and options chooses, without
 * timing, so that two runs of one spec choose alike.
 *
 * Contract: a recomputation makes exactly the calls of the first forward. PARAMS applies the relu's derivative in place
 * on dy; INPUT reads what it wrote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conv.h"
#include "cpu.h"
#include "element_loops.h"
#include "numerics/shape.h"

void conv_plan_apply(const struct conv_plan *plan, const float *from, const float *weights, const float *bias,
                     bool relu, float *to, uint8_t *places, void *scratch)
{
    if (plan->winograd.scratch > 0)
        winograd_apply(&plan->winograd, from, weights, bias, relu, to, places, scratch);
    else
        conv_product_apply(&plan->product, from, weights, bias, relu, to, scratch);
}

void conv_plan_gradients(const struct conv_plan *plan, const float *x, const float *dy, const uint8_t *places,
                         float *weights, float *bias, void *scratch)
{
    if (plan->winograd.scratch > 0)
        winograd_gradients(&plan->winograd, x, dy, places, weights, bias, scratch);
    else
        conv_product_gradients(&plan->product, x, dy, weights, bias, scratch);
}

static enum status conv_forward(void *state, const struct kernel_args *args)
{
    const struct conv *conv = state;
    conv_plan_apply(&conv->pass[CONV_FORWARD], args->x[0], args->parameters[0], conv->bias ? args->parameters[1] : NULL,
                    conv->relu, args->y, args->save ? args->saved : NULL, args->scratch);
    clock_lap(conv->backend, CLOCK_CONV);
    if (!args->save || conv->pooled) return ST_OK;
    sign_pack(args->y, conv->y.batch, conv->y.elements, args->saved);
    clock_lap(conv->backend, CLOCK_ACTIVATION);
    return ST_OK;
}

/* The relu's derivative in place on dy. */
static void mask(const struct conv *conv, const struct kernel_args *args)
{
    if (args->saved)
        sign_mask(args->dy, args->dy, args->saved, conv->y.batch, conv->y.elements);
    else
        relu_mask(args->dy, args->dy, args->y, conv->y.count);
    clock_lap(conv->backend, CLOCK_ACTIVATION);
}

static enum status conv_backward(void *state, const struct kernel_args *args)
{
    const struct conv *conv = state;
    const bool params = args->parts & PART_PARAMS;
    if (!conv->pooled && (params ? conv->relu : args->y || args->saved)) mask(conv, args);
    if (params)
        conv_plan_gradients(&conv->pass[CONV_PARAMS], args->x[0], args->dy, args->saved, args->gradients[0],
                            conv->bias ? args->gradients[1] : NULL, args->scratch);
    if (args->parts & PART_INPUT)
        conv_plan_apply(&conv->pass[CONV_INPUT], args->dy, args->parameters[0], NULL, false, args->dx[0], args->saved,
                        args->scratch);
    clock_lap(conv->backend, CLOCK_CONV);
    return ST_OK;
}

/* With fewer tiles in a batch Winograd's transforms of weights take too long. From 16 on it was faster than the product
 * with every number of channels that experiments/bench/kernels.c measures (its rows `limit`): 1.2 to 3 times, the
 * gradient of the weights of 3 channels to 64 1.1 times; of 5x5 1.2 to 2.3 times, also of one channel. But few tiles of
 * few channels take less memory than its scratch. */
enum { TILES_LEAST = 16, TILES_MANY = 1024, CHANNELS_LEAST = 16 };

/* With algorithm winograd it is used wherever it can be. */
static bool plan_winograd(const struct conv *conv, const struct node *node, enum conv_pass pass, struct winograd *w)
{
    const struct backend_options *options = &conv->backend->options;
    const int64_t kernel = node_integer(node, "kernel");
    if (options->conv_algorithm == CONV_DIRECT || conv->groups != 1 || !winograd_has_kernel(kernel) ||
        node_integer(node, "stride") != 1 || node_integer(node, "dilation") != 1)
        return false;
    if (!winograd_make(pass, &conv->x, &conv->y, kernel, node_integer(node, "padding"), options->threads,
                       options->scratch_limit, w))
        return false;
    const int64_t least = lesser(conv->x.shape.dim[2], conv->y.shape.dim[2]);
    return options->conv_algorithm == CONV_WINOGRAD || w->tiles >= (least < CHANNELS_LEAST ? TILES_MANY : TILES_LEAST);
}

size_t conv_plan_pass(const struct conv *conv, const struct node *node, enum conv_pass pass, bool bias,
                      struct conv_plan *plan)
{
    if (plan_winograd(conv, node, pass, &plan->winograd)) return plan->winograd.scratch;
    plan->winograd = (struct winograd){0};
    plan->product = (struct conv_product){.kernel = node_integer(node, "kernel"),
                                          .stride = node_integer(node, "stride"),
                                          .padding = node_integer(node, "padding"),
                                          .dilation = node_integer(node, "dilation"),
                                          .groups = conv->groups,
                                          .threads = conv->backend->options.threads,
                                          .limit = scratch_within(conv->backend->options.scratch_limit),
                                          .bias = bias && pass == CONV_PARAMS};
    conv_product_make(pass, &conv->x, &conv->y, &plan->product);
    return plan->product.scratch;
}

void conv_describe(struct conv *conv, int first, int passes)
{
    char *text = conv->implementation;
    for (int p = first; p < passes; p++) {
        const struct winograd *w = &conv->pass[p].winograd;
        text += sprintf(text, "%s", p > first ? " | " : "");
        if (w->scratch > 0)
            text += sprintf(text, "winograd f%dx%d%s", w->tile, w->tile, conv->pooled ? " pooled" : "");
        else
            text += sprintf(text, "product");
        text += sprintf(text, " " LANES_ISA);
    }
}

static int passes_of(const struct graph *graph, const struct node *node)
{
    return graph->value[node->inputs[0]].wants_gradient ? CONV_PASSES : CONV_INPUT;
}

static enum status conv_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    const int passes = passes_of(graph, node);
    const struct extent y = extent_of(graph, node->output);
    struct conv *conv = *state = allocate(1, sizeof *conv);
    size_t scratch[CONV_PASSES] = {0};
    conv->backend = backend;
    conv->x = extent_of(graph, node->inputs[0]);
    conv->y = y;
    conv->bias = node_integer(node, "bias");
    conv->relu = node->activation == ACTIVATION_RELU;
    conv->groups = node_integer(node, "groups");
    conv->pooled = node->pool != NULL;
    if (conv->pooled) {
        conv->y.shape = node->unpooled;
        conv->y.elements = shape_elements(&node->unpooled);
        conv->y.count = conv->y.elements * y.batch;
    }
    for (int p = 0; p < passes; p++) {
        scratch[p] = conv_plan_pass(conv, node, (enum conv_pass)p, conv->bias, &conv->pass[p]);
        if (conv->pooled) conv->pass[p].winograd.pooled = image_of(&y);
    }
    conv_describe(conv, 0, passes);
    const bool masks = conv->relu && !conv->pooled;
    const unsigned places = conv->pooled ? READS_SAVED : 0;
    *footprint = (struct footprint){
        .saved = conv->pooled ? (size_t)y.count : 0, /* a byte each: the places */
        .signs = masks ? (size_t)conv->y.batch * sign_words(conv->y.elements) * sizeof(uint32_t) : 0,
        .forward_scratch = scratch[CONV_FORWARD],
        .backward_scratch = {scratch[CONV_PARAMS], scratch[CONV_INPUT]},
        .reads = {READS_X | places | (masks ? READS_Y : 0u), places},
        .split = true,
        .writes_dy = masks,
        .implementation = conv->implementation,
    };
    return ST_OK;
}

bool conv_takes_pool(struct backend *backend, const struct graph *graph, const struct node *node)
{
    if (strcmp(node->layer->name, "conv") != 0) return false;
    const struct conv conv = {.backend = backend,
                              .x = extent_of(graph, node->inputs[0]),
                              .y = extent_of(graph, node->output),
                              .groups = node_integer(node, "groups")};
    struct winograd winograd;
    bool takes = true;
    for (int p = 0; p < passes_of(graph, node); p++) takes &= plan_winograd(&conv, node, (enum conv_pass)p, &winograd);
    return takes;
}

const struct kernel cpu_conv = {true, conv_prepare, conv_forward, conv_backward, free};
