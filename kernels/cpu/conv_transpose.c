/* Transposed convolution: the passes of a convolution from y to x, in another order. Forward is the gradient of its
 * input, plus a bias, and the gradient of the input is its forward; conv_product.h and winograd.h define their bits.
 * The bias's gradient is the sum that conv_product.h defines for a convolution's. */
#include <stdlib.h>

#include "conv.h"
#include "cpu.h"

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct conv *conv = state;
    conv_plan_apply(&conv->pass[CONV_INPUT], args->x[0], args->parameters[0], conv->bias ? args->parameters[1] : NULL,
                    false, args->y, NULL, args->scratch);
    clock_lap(conv->backend, CLOCK_CONV);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct conv *conv = state;
    if (args->parts & PART_PARAMS) {
        conv_plan_gradients(&conv->pass[CONV_PARAMS], args->dy, args->x[0], NULL, args->gradients[0], NULL,
                            args->scratch);
        if (conv->bias)
            conv_product_gradients(&conv->sums, args->dy, args->dy, NULL, args->gradients[1], args->scratch);
    }
    if (args->parts & PART_INPUT)
        conv_plan_apply(&conv->pass[CONV_FORWARD], args->dy, args->parameters[0], NULL, false, args->dx[0], NULL,
                        args->scratch);
    clock_lap(conv->backend, CLOCK_CONV);
    return ST_OK;
}

/* Patches without taps: the ones beside them are all that is summed. */
static void plan_sums(struct conv *conv)
{
    conv->sums = (struct conv_product){.stride = 1,
                                       .dilation = 1,
                                       .groups = 1,
                                       .threads = conv->backend->options.threads,
                                       .limit = scratch_within(conv->backend->options.scratch_limit),
                                       .bias = true};
    if (conv->bias) conv_product_make(CONV_PARAMS, &conv->x, &conv->x, &conv->sums);
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    const int first = graph->value[node->inputs[0]].wants_gradient ? CONV_FORWARD : CONV_FORWARD + 1;
    struct conv *conv = *state = allocate(1, sizeof *conv);
    size_t scratch[CONV_PASSES] = {0};
    conv->backend = backend;
    conv->x = extent_of(graph, node->output);
    conv->y = extent_of(graph, node->inputs[0]);
    conv->groups = 1;
    conv->bias = node_integer(node, "bias");
    for (int p = first; p < CONV_PASSES; p++)
        scratch[p] = conv_plan_pass(conv, node, (enum conv_pass)p, false, &conv->pass[p]);
    plan_sums(conv);
    if (conv->sums.scratch > scratch[CONV_PARAMS]) scratch[CONV_PARAMS] = conv->sums.scratch;
    conv_describe(conv, first, CONV_PASSES);
    *footprint = (struct footprint){
        .forward_scratch = scratch[CONV_INPUT],
        .backward_scratch = {scratch[CONV_PARAMS], scratch[CONV_FORWARD]},
        .reads = {READS_X, 0},
        .split = true,
        .implementation = conv->implementation,
    };
    return ST_OK;
}

const struct kernel cpu_conv_transpose = {true, prepare, forward, backward, free};
