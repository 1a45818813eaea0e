/* Convolution by oneDNN: y = activation(w * x + b), activation none or relu, w in O I H W order.
 *
 * Contract: the batch is processed in chunks of fixed size, so that Winograd's scratch keeps the limit; forward and
 * input gradient are per sample, the parameters' gradients are summed over chunks in ascending sample order. A
 * recomputation makes exactly the calls of the first forward. PARAMS applies the relu's derivative in place on dy;
 * INPUT reads what it wrote. The library's fused relu maps a NaN to 0, where the reference keeps it. */
#include <stdio.h>
#include <stdlib.h>

#include "conv.h"
#include "cpu.h"
#include "element_loops.h"

struct conv {
    struct backend *backend;
    struct extent x, y;
    int64_t outputs, weights; /* elements of bias and weights */
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

static enum status conv_forward(void *state, const struct kernel_args *args)
{
    struct conv *conv = state;
    const struct conv_plan *plan = &conv->pass[CONV_FORWARD];
    const float *w = args->parameters[0];
    char *scratch = args->scratch;
    TRY(reordered(conv, &plan->weights, &w, scratch + plan->weights_at));
    for (int64_t n = 0; n < conv->x.batch; n += plan->chunk) {
        const int which = n + plan->chunk > conv->x.batch;
        const float *x = chunk_at(args->x[0], &conv->x, n), *y = chunk_at(args->y, &conv->y, n);
        TRY(reordered(conv, &plan->image[which], &x, scratch + plan->image_at));
        TRY(call_run(&plan->conv[which], (const void *[]){x, w, args->parameters[1], y, scratch}));
        clock_lap(conv->backend, CLOCK_CONV);
        if (!args->save) continue;
        sign_pack(y, which ? plan->rest : plan->chunk, conv->y.elements,
                  (uint32_t *)args->saved + (size_t)n * sign_words(conv->y.elements));
        clock_lap(conv->backend, CLOCK_ACTIVATION);
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
}

/* Adds or assigns a chunk's result to the master gradients of a turn's output channels. */
static enum status collect(const struct conv *conv, const struct kernel_args *args, const char *scratch, int64_t turn,
                           bool add)
{
    const struct conv_plan *plan = &conv->pass[CONV_PARAMS];
    const int64_t outputs = conv->outputs / plan->turns;
    const float *b = (const float *)(const void *)(scratch + plan->bias_at);
    float *dw = args->gradients[0] + turn * (conv->weights / plan->turns);
    TRY(call_run(add ? &plan->weights_add : &plan->weights, (const void *[]){scratch + plan->weights_at, dw}));
    if (!conv->bias) return ST_OK;
    float *db = args->gradients[1] + turn * outputs;
    for (int64_t i = 0; i < outputs; i++) db[i] = add ? db[i] + b[i] : b[i];
    return ST_OK;
}

/* A turn's output channels of a chunk of dy as a tensor of their own: dy itself, or a copy in scratch. */
static const float *turn_dy(const struct conv *conv, const float *dy, int64_t samples, int64_t turn, char *scratch)
{
    const struct conv_plan *plan = &conv->pass[CONV_PARAMS];
    const int64_t elements = conv->y.elements / plan->turns;
    float *slice = (float *)(void *)(scratch + plan->turn_at);
    if (plan->turns == 1) return dy;
    copy_rows(slice, elements, dy + turn * elements, conv->y.elements, samples);
    return slice;
}

/* The parameters' gradients over a chunk; x is in the primitive's order. */
static enum status chunk_params(const struct conv *conv, const struct kernel_args *args, int which, const float *x,
                                const float *dy, bool add)
{
    const struct conv_plan *plan = &conv->pass[CONV_PARAMS];
    char *scratch = args->scratch;
    for (int64_t turn = 0; turn < plan->turns; turn++) {
        const float *y = turn_dy(conv, dy, which ? plan->rest : plan->chunk, turn, scratch);
        clock_lap(conv->backend, CLOCK_REORDER);
        TRY(call_run(&plan->conv[which],
                     (const void *[]){x, scratch + plan->weights_at, scratch + plan->bias_at, y, scratch}));
        clock_lap(conv->backend, CLOCK_CONV);
        TRY(collect(conv, args, scratch, turn, add));
        clock_lap(conv->backend, CLOCK_REORDER);
    }
    return ST_OK;
}

static enum status backward_params(struct conv *conv, const struct kernel_args *args)
{
    const struct conv_plan *plan = &conv->pass[CONV_PARAMS];
    for (int64_t n = 0; n < conv->x.batch; n += plan->chunk) {
        const int which = n + plan->chunk > conv->x.batch;
        const float *x = chunk_at(args->x[0], &conv->x, n), *dy = chunk_at(args->dy, &conv->y, n);
        if (conv->relu) mask_chunk(conv, args, n, which ? plan->rest : plan->chunk);
        clock_lap(conv->backend, CLOCK_ACTIVATION);
        TRY(reordered(conv, &plan->image[which], &x, (char *)args->scratch + plan->image_at));
        TRY(chunk_params(conv, args, which, x, dy, n > 0));
    }
    return ST_OK;
}

static enum status backward_input(struct conv *conv, const struct kernel_args *args)
{
    const struct conv_plan *plan = &conv->pass[CONV_INPUT];
    const float *w = args->parameters[0];
    char *scratch = args->scratch;
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
    if (args->parts & PART_PARAMS) TRY(backward_params(state, args));
    return args->parts & PART_INPUT ? backward_input(state, args) : ST_OK;
}

static void conv_release(void *state)
{
    struct conv *conv = state;
    for (int p = 0; p < CONV_PASSES; p++) conv_plan_release(&conv->pass[p]);
    free(conv);
}

/* "jit:avx512_core direct chunk 64 | ..." by pass. */
static void describe(struct conv *conv)
{
    const struct conv_plan *p = conv->pass;
    int length = 0;
    for (int i = 0; i < CONV_PASSES && length < (int)sizeof conv->implementation; i++) {
        if (p[i].conv[0].desc == NULL) continue;
        length += snprintf(conv->implementation + length, sizeof conv->implementation - (size_t)length,
                           "%s%s %s chunk %lld%s", i ? " | " : "", call_implementation(&p[i].conv[0]),
                           p[i].winograd ? "winograd" : "direct", (long long)p[i].chunk,
                           p[i].turns == 1   ? ""
                           : p[i].turns == 2 ? " of 1/2 channels"
                                             : " of 1/4 channels");
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
    conv->outputs = weights->dim[0];
    conv->weights = graph->parameter[node->first_parameter].elements;
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
