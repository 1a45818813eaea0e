/* Convolution by cuDNN: y = activation(w * x + b), activation none or relu, w in O I H W order.
 *
 * Contract: the batch is processed in chunks of fixed size, so that the scratch keeps the limit; forward and input
 * gradient are per sample, the weights' gradient is summed in each chunk, and over chunks in an order that depends on
 * their number alone. A recomputation queues exactly the calls of the first forward. Bias, relu and its sign bits are
 * one pass of our own over y. PARAMS applies the relu's derivative in place on dy; INPUT reads what it wrote. Images
 * with channels first use the master weights, images in logical order a copy O H W I in scratch. */
#include <stdio.h>
#include <stdlib.h>

#include "activations.h"
#include "conv_plan.h"
#include "reductions.h"
#include "side_streams.h"
#include "transpose.h"

struct conv {
    struct backend *backend;
    struct conv_problem problem;
    int64_t batch, x_elements, y_elements; /* elements of one sample */
    int64_t weights, pixels;               /* elements of the weights; of one channel of y */
    int activation;
    bool bias, reorders;                /* reorders: the weights */
    struct conv_plan pass[CONV_PASSES]; /* INPUT: none where no gradient is wanted */
    char implementation[256];
};

/* The offset of the reordered weights: after the scratch of the pass. */
static size_t weights_at(const struct conv_plan *plan) { return round_up(plan->choice.scratch); }

static float *weights_in(const struct conv_plan *plan, void *scratch)
{
    return (float *)(void *)((char *)scratch + weights_at(plan));
}

static const float *sample_at(const void *value, int64_t elements, int64_t sample)
{
    return (const float *)value + sample * elements;
}

/* The weights from O I H W to O H W I, or back. */
static void reorder(const struct conv *conv, const float *from, bool back, bool add, float *to)
{
    const int64_t *w = conv->problem.weights.dim, window = w[2] * w[3];
    launch_transpose(cuda_queue(conv->backend, CLOCK_REORDER), from, w[0], back ? window : w[1], back ? w[1] : window,
                     add, to);
}

/* The weights as a pass reads them. */
static const float *ordered_weights(const struct conv *conv, const struct conv_plan *plan,
                                    const struct kernel_args *args)
{
    if (!conv->reorders) return args->parameters[0];
    float *ordered = weights_in(plan, args->scratch);
    reorder(conv, args->parameters[0], false, false, ordered);
    return ordered;
}

static enum status run(const struct conv *conv, enum conv_pass pass, int64_t sample,
                       const struct conv_operands *operands)
{
    const struct conv_plan *plan = &conv->pass[pass];
    const bool rest = sample + plan->choice.chunk > conv->batch;
    return convolution_run(cuda_of(conv->backend)->cudnn, &plan->call[rest], pass, plan->choice.algorithm, operands);
}

static enum status conv_forward(void *state, const struct kernel_args *args)
{
    const struct conv *conv = state;
    const struct conv_plan *plan = &conv->pass[CONV_FORWARD];
    struct conv_operands operands = {
        .w = ordered_weights(conv, plan, args), .workspace = args->scratch, .workspace_bytes = plan->choice.workspace};
    cuda_queue(conv->backend, CLOCK_CONV);
    for (int64_t n = 0; n < conv->batch; n += plan->choice.chunk) {
        operands.x = sample_at(args->x[0], conv->x_elements, n);
        operands.out = (float *)args->y + n * conv->y_elements;
        TRY(run(conv, CONV_FORWARD, n, &operands));
    }
    if (conv->bias || conv->activation != ACTIVATION_NONE) {
        const struct bias bias = {conv->bias ? args->parameters[1] : NULL, conv->problem.y.dim[2], conv->pixels};
        launch_activation(cuda_queue(conv->backend, CLOCK_ACTIVATION), args->y, bias, conv->activation,
                          conv->batch * conv->y_elements, args->y, args->save ? args->saved : NULL);
    }
    return cuda_queued("convolution");
}

/* dy times the activation's derivative, in place, and the gradient of the bias. */
static void derive(const struct conv *conv, const struct kernel_args *args)
{
    const cudaStream_t stream = cuda_queue(conv->backend, CLOCK_ACTIVATION);
    const int64_t channels = conv->problem.y.dim[2], all = conv->batch * conv->y_elements;
    if (conv->activation != ACTIVATION_NONE)
        launch_activation_derivative(stream, args->dy, args->y, args->saved, conv->activation, all, args->dy);
    if (conv->bias)
        launch_reduce_units(stream, args->dy, all / (channels * conv->pixels), channels, conv->pixels, false,
                            args->scratch, args->gradients[1]);
}

/* Queues the sums of all chunks, each on its stream, from sums on. */
static enum status queue_sums(const struct conv *conv, const struct kernel_args *args, char *sums)
{
    const struct cuda *cuda = cuda_of(conv->backend);
    const struct conv_choice *choice = &conv->pass[CONV_PARAMS].choice;
    const size_t room = round_up(choice->workspace), bytes = conv_sum_bytes(&conv->problem);
    int64_t turn = 0;
    for (int64_t n = 0; n < conv->batch; n += choice->chunk, turn++) {
        const int stream = (int)(turn % choice->streams);
        const struct conv_operands operands = {.x = sample_at(args->x[0], conv->x_elements, n),
                                               .y = sample_at(args->dy, conv->y_elements, n),
                                               .out = sums + (size_t)turn * bytes,
                                               .workspace = (char *)args->scratch + (size_t)stream * room,
                                               .workspace_bytes = choice->workspace};
        TRY(cudnn_check(cudnnSetStream(cuda->cudnn, cuda->side_streams->stream[stream]), "set the stream"));
        TRY(run(conv, CONV_PARAMS, n, &operands));
    }
    return ST_OK;
}

/* out = or += the sum of the chunks' sums. */
static enum status sum_chunks(const struct conv *conv, const struct kernel_args *args, bool add, float *out)
{
    const struct cuda *cuda = cuda_of(conv->backend);
    const struct conv_choice *choice = &conv->pass[CONV_PARAMS].choice;
    const size_t bytes = conv_sum_bytes(&conv->problem);
    char *sums = (char *)args->scratch + (size_t)choice->streams * round_up(choice->workspace);
    TRY(side_streams_fork(cuda, choice->streams));
    const enum status status = queue_sums(conv, args, sums);
    TRY(cudnn_check(cudnnSetStream(cuda->cudnn, cuda->stream), "set the stream"));
    TRY(status);
    TRY(side_streams_join(cuda, choice->streams));
    launch_reduce_pieces(cuda->stream, (const float *)(void *)sums, ratio_up(conv->batch, choice->chunk),
                         (int64_t)(bytes / sizeof(float)), conv->weights, add, out);
    return ST_OK;
}

static enum status backward_params(const struct conv *conv, const struct kernel_args *args)
{
    const struct conv_plan *plan = &conv->pass[CONV_PARAMS];
    float *out = conv->reorders ? weights_in(plan, args->scratch) : args->gradients[0];
    const bool add = false;
    const struct conv_operands all = {.x = args->x[0],
                                      .y = args->dy,
                                      .out = out,
                                      .accumulate = add,
                                      .workspace = args->scratch,
                                      .workspace_bytes = plan->choice.workspace};
    derive(conv, args);
    cuda_queue(conv->backend, CLOCK_CONV);
    TRY(plan->choice.chunk < conv->batch ? sum_chunks(conv, args, add, out) : run(conv, CONV_PARAMS, 0, &all));
    if (conv->reorders) reorder(conv, out, true, false, args->gradients[0]);
    return ST_OK;
}

static enum status backward_input(const struct conv *conv, const struct kernel_args *args)
{
    const struct conv_plan *plan = &conv->pass[CONV_INPUT];
    struct conv_operands operands = {
        .w = ordered_weights(conv, plan, args), .workspace = args->scratch, .workspace_bytes = plan->choice.workspace};
    cuda_queue(conv->backend, CLOCK_CONV);
    for (int64_t n = 0; n < conv->batch; n += plan->choice.chunk) {
        operands.y = sample_at(args->dy, conv->y_elements, n);
        operands.out = (float *)args->dx[0] + n * conv->x_elements;
        TRY(run(conv, CONV_INPUT, n, &operands));
    }
    return ST_OK;
}

static enum status conv_backward(void *state, const struct kernel_args *args)
{
    if (args->parts & PART_PARAMS) TRY(backward_params(state, args));
    if (args->parts & PART_INPUT) TRY(backward_input(state, args));
    return cuda_queued("gradients of a convolution");
}

static void conv_release(void *state)
{
    struct conv *conv = state;
    for (int p = 0; p < CONV_PASSES; p++) cuda_conv_plan_release(&conv->pass[p]);
    free(conv);
}

/* "winograd_nonfused chunk 8 | ..." by pass; in TF32, passes without tensor cores are marked "fma". */
static void describe(struct conv *conv, int passes)
{
    int length = 0;
    for (int p = 0; p < passes && length < (int)sizeof conv->implementation; p++) {
        const struct conv_choice *choice = &conv->pass[p].choice;
        length +=
            snprintf(conv->implementation + length, sizeof conv->implementation - (size_t)length, "%s%s%s chunk %lld",
                     p                    ? " | "
                     : conv->problem.tf32 ? "tf32 "
                                          : "",
                     convolution_algorithm((enum conv_pass)p, choice->algorithm)->name,
                     conv->problem.tf32 && choice->math == CUDNN_FMA_MATH ? " fma" : "", (long long)choice->chunk);
    }
}

/* The reordered weights count toward the limit. */
static struct conv_request want_of(const struct conv *conv, enum conv_pass pass)
{
    const struct backend_options *options = &conv->backend->options;
    const size_t weights = conv->reorders ? (size_t)conv->weights * sizeof(float) : 0;
    return (struct conv_request){
        .cudnn = cuda_of(conv->backend)->cudnn,
        .problem = &conv->problem,
        .pass = pass,
        .batch = conv->batch,
        .algorithm = (enum conv_algorithm)options->conv_algorithm,
        .limit = options->scratch_limit > weights ? options->scratch_limit - weights : 0,
    };
}

static enum status plan_passes(struct conv *conv, int passes)
{
    for (int p = 0; p < passes; p++) {
        const struct conv_request request = want_of(conv, (enum conv_pass)p);
        TRY(cuda_conv_plan_make(&request, &conv->pass[p]));
    }
    return ST_OK;
}

/* The bytes of a pass's scratch: the library's; PARAMS computes the bias' gradient in it before. */
static size_t scratch_of(const struct conv *conv, enum conv_pass pass)
{
    const struct conv_plan *plan = &conv->pass[pass];
    const int64_t channels = conv->problem.y.dim[2];
    const size_t library =
        conv->reorders ? weights_at(plan) + (size_t)conv->weights * sizeof(float) : plan->choice.scratch;
    const size_t sums =
        conv->bias && pass == CONV_PARAMS
            ? reduce_units_scratch(conv->batch * conv->y_elements / (channels * conv->pixels), channels, conv->pixels)
            : 0;
    return library > sums ? library : sums;
}

static void fill(struct conv *conv, const struct graph *graph, const struct node *node)
{
    const struct value *x = &graph->value[node->inputs[0]], *y = &graph->value[node->output];
    const struct parameter *weights = &graph->parameter[node->first_parameter];
    const enum order order = (enum order)y->layout;
    conv->problem = (struct conv_problem){.x = x->shape,
                                          .y = y->shape,
                                          .weights = weights->definition.shape,
                                          .order = order,
                                          .stride = node_integer(node, "stride"),
                                          .padding = node_integer(node, "padding"),
                                          .tf32 = cuda_of(conv->backend)->tf32};
    conv->batch = graph->batch;
    conv->x_elements = shape_elements(&x->shape);
    conv->y_elements = shape_elements(&y->shape);
    conv->weights = weights->elements;
    conv->pixels = order == ORDER_CHANNELS_FIRST ? y->shape.dim[0] * y->shape.dim[1] : 1;
    conv->activation = node->activation;
    conv->bias = node_integer(node, "bias");
    conv->reorders =
        order == ORDER_LOGICAL && weights->definition.shape.dim[2] > 1 && weights->definition.shape.dim[1] > 1;
}

static enum status conv_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    const int passes = graph->value[node->inputs[0]].wants_gradient ? CONV_PASSES : CONV_INPUT;
    struct conv *conv = allocate(1, sizeof *conv);
    conv->backend = backend;
    fill(conv, graph, node);
    const enum status status = plan_passes(conv, passes);
    if (status != ST_OK) {
        conv_release(conv);
        return status;
    }
    describe(conv, passes);
    const bool relu = conv->activation == ACTIVATION_RELU;
    *footprint = (struct footprint){
        .signs = relu ? sign_bytes(conv->batch * conv->y_elements) : 0,
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
