/* Convolution by cuDNN: y = activation(w * x + b), activation none or relu, w in O I H W order.
 *
 * Contract: the batch is processed in chunks of fixed size, so that the scratch keeps the limit; the weights' gradient
 * is summed over chunks in their order. A recomputation queues exactly the calls of the first forward. Bias, relu and
 * its sign bits are one pass of our own over y. PARAMS applies the relu's derivative in place on dy; INPUT reads what
 * it wrote. Images with channels first use the master weights, images in logical order a copy O H W I in scratch. */
#include <stdio.h>
#include <stdlib.h>

#include "cudnn_conv.h"
#include "kernels.h"

struct conv {
    struct backend *backend;
    struct conv_problem problem;
    int64_t outputs, pixels; /* elements of a batch of y; of one channel of it */
    enum function activation;
    bool bias, reorders;                /* reorders: the weights */
    struct conv_plan pass[CONV_PASSES]; /* INPUT: none where no gradient is wanted */
    char implementation[256];
};

static size_t weight_bytes(const struct conv *conv)
{
    return (size_t)shape_elements(&conv->problem.weights) * sizeof(float);
}

/* The reordered weights, after the workspace of the pass. */
static float *weights_in(const struct conv *conv, enum conv_pass pass, void *scratch)
{
    return (float *)(void *)((char *)scratch + round_up(conv->pass[pass].workspace));
}

/* The weights from O I H W to O H W I, or back. */
static void reorder(const struct conv *conv, const float *from, bool back, float *to)
{
    const int64_t *w = conv->problem.weights.dim, window = w[2] * w[3];
    launch_transpose(cuda_queue(conv->backend, CLOCK_REORDER), from, w[0], back ? window : w[1], back ? w[1] : window,
                     to);
}

/* weights: in O I H W order, read or, by PARAMS, written. */
static enum status run(const struct conv *conv, enum conv_pass pass, const struct kernel_args *args, const void *x,
                       const float *weights, const void *y)
{
    float *master = (float *)(uintptr_t)weights;
    float *w = conv->reorders ? weights_in(conv, pass, args->scratch) : master;
    const struct conv_operands operands = {(float *)(uintptr_t)x, w, (float *)(uintptr_t)y, args->scratch};
    if (conv->reorders && pass != CONV_PARAMS) reorder(conv, master, false, w);
    cuda_queue(conv->backend, CLOCK_CONV);
    TRY(cudnn_plan_run(cuda_of(conv->backend)->cudnn, &conv->problem, pass, &conv->pass[pass], &operands));
    if (conv->reorders && pass == CONV_PARAMS) reorder(conv, w, true, master);
    return ST_OK;
}

static enum status conv_forward(void *state, const struct kernel_args *args)
{
    const struct conv *conv = state;
    const struct bias bias = {conv->bias ? args->parameters[1] : NULL, conv->problem.y.dim[2], conv->pixels};
    TRY(run(conv, CONV_FORWARD, args, args->x[0], args->parameters[0], args->y));
    if (conv->bias || conv->activation != FUNCTION_NONE)
        launch_function(cuda_queue(conv->backend, CLOCK_ACTIVATION), args->y, bias, conv->activation, conv->outputs,
                        args->y, args->save ? args->saved : NULL);
    return cuda_queued("convolution");
}

/* The gradients of bias and weights. */
static enum status backward_params(const struct conv *conv, const struct kernel_args *args)
{
    const cudaStream_t stream = cuda_queue(conv->backend, CLOCK_ACTIVATION);
    const int64_t channels = conv->problem.y.dim[2];
    if (conv->bias)
        launch_reduce_units(stream, args->dy, conv->outputs / (channels * conv->pixels), channels, conv->pixels,
                            args->gradients[1]);
    return run(conv, CONV_PARAMS, args, args->x[0], args->gradients[0], args->dy);
}

static enum status conv_backward(void *state, const struct kernel_args *args)
{
    const struct conv *conv = state;
    if (args->y || args->saved)
        launch_derivative(cuda_queue(conv->backend, CLOCK_ACTIVATION), args->dy, args->y, args->saved, conv->activation,
                          conv->outputs, args->dy);
    if (args->parts & PART_PARAMS) TRY(backward_params(state, args));
    if (args->parts & PART_INPUT) TRY(run(state, CONV_INPUT, args, args->dx[0], args->parameters[0], args->dy));
    return cuda_queued("gradients of a convolution");
}

static void conv_release(void *state)
{
    struct conv *conv = state;
    for (int p = 0; p < CONV_PASSES; p++) cudnn_plan_release(&conv->pass[p]);
    free(conv);
}

/* "winograd_nonfused chunk 8 | ..." by pass; in TF32, passes without tensor cores are marked "fma". */
static void describe(struct conv *conv, int passes)
{
    const bool tf32 = conv->problem.tf32;
    int length = 0;
    for (int p = 0; p < passes && length < (int)sizeof conv->implementation; p++) {
        const struct conv_plan *plan = &conv->pass[p];
        length +=
            snprintf(conv->implementation + length, sizeof conv->implementation - (size_t)length, "%s%s%s chunk %lld",
                     p > 0  ? " | "
                     : tf32 ? "tf32 "
                            : "",
                     plan->name, tf32 && plan->math == CUDNN_FMA_MATH ? " fma" : "", (long long)plan->chunk);
    }
}

/* The reordered weights count toward the limit. */
static enum status plan_passes(struct conv *conv, int passes)
{
    const struct backend_options *options = &conv->backend->options;
    const size_t weights = conv->reorders ? weight_bytes(conv) : 0;
    for (int p = 0; p < passes; p++)
        TRY(cudnn_plan_make(cuda_of(conv->backend)->cudnn, &conv->problem, (enum conv_pass)p,
                            (enum conv_algorithm)options->conv_algorithm,
                            options->scratch_limit > weights ? options->scratch_limit - weights : 0, &conv->pass[p]));
    return ST_OK;
}

static size_t scratch_of(const struct conv *conv, enum conv_pass pass)
{
    const size_t workspace = conv->pass[pass].workspace;
    return conv->reorders ? round_up(workspace) + weight_bytes(conv) : workspace;
}

static struct conv *conv_create(struct backend *backend, const struct graph *graph, const struct node *node)
{
    const struct value *x = &graph->value[node->inputs[0]], *y = &graph->value[node->output];
    const struct shape *weights = &graph->parameter[node->first_parameter].definition.shape;
    const bool first = y->layout == ORDER_CHANNELS_FIRST;
    struct conv *conv = allocate(1, sizeof *conv);
    *conv = (struct conv){.backend = backend,
                          .problem = {.batch = graph->batch,
                                      .x = x->shape,
                                      .y = y->shape,
                                      .weights = *weights,
                                      .order = (enum order)y->layout,
                                      .groups = node_integer(node, "groups"),
                                      .stride = node_integer(node, "stride"),
                                      .padding = node_integer(node, "padding"),
                                      .tf32 = cuda_of(backend)->tf32},
                          .outputs = graph->batch * shape_elements(&y->shape),
                          .pixels = first ? y->shape.dim[0] * y->shape.dim[1] : 1,
                          .activation = (enum function)node->activation,
                          .bias = node_integer(node, "bias"),
                          .reorders = !first && weights->dim[2] > 1 && weights->dim[1] > 1};
    return conv;
}

static enum status conv_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    const int passes = graph->value[node->inputs[0]].wants_gradient ? CONV_PASSES : CONV_INPUT;
    if (node_integer(node, "dilation") > 1)
        return fail(ST_SPEC, "conv on cuda has no dilation yet; expected backend: cpu, or dilation: 1");
    struct conv *conv = conv_create(backend, graph, node);
    const enum status status = plan_passes(conv, passes);
    if (status != ST_OK) {
        conv_release(conv);
        return status;
    }
    describe(conv, passes);
    const bool relu = node->activation == ACTIVATION_RELU;
    *footprint = (struct footprint){
        .signs = relu ? sign_bytes(conv->outputs) : 0,
        .forward_scratch = scratch_of(conv, CONV_FORWARD),
        .backward_scratch = {scratch_of(conv, CONV_PARAMS), passes == CONV_PASSES ? scratch_of(conv, CONV_INPUT) : 0},
        .reads = {READS_X | (relu ? READS_Y : 0u), 0},
        .split = true,
        .writes_dy = relu,
        .implementation = conv->implementation,
    };
    *state = conv;
    return ST_OK;
}

const struct kernel cuda_conv = {true, conv_prepare, conv_forward, conv_backward, conv_release};
