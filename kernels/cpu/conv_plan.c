/* Chooses algorithm and batch chunk of a convolution's pass by a rule of shapes, limit and instruction set, without
 * timing, so that two runs of one spec choose alike. */
#include "conv.h"

#include <stdlib.h>

/* Arguments in the order x, w, b, y, scratch. */
static const int arguments[CONV_PASSES][5] = {
    {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD},
    {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD},
    {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD},
};
enum { AT_X, AT_W, AT_B, AT_Y, AT_SCRATCH, ARGUMENTS };

void conv_plan_release(struct conv_plan *plan)
{
    for (int i = 0; i < 2; i++) {
        call_release(&plan->conv[i]);
        call_release(&plan->image[i]);
    }
    call_release(&plan->weights);
    call_release(&plan->weights_add);
    *plan = (struct conv_plan){0};
}

/* Describes the call on samples samples, and the reorder of x where one is needed; the weights are in the order of the
 * chunk's call, if there is one. False where the library has no implementation. */
static bool describe_samples(struct backend *backend, const struct conv_request *request, int64_t samples, int which,
                             struct conv_plan *plan)
{
    dnnl_engine_t engine = cpu_of(backend)->engine;
    const bool mixed = request->x->layout != request->y->layout;
    struct conv_call conv = {.pass = request->pass,
                             .bias = request->bias && request->pass != CONV_INPUT,
                             .relu = request->relu,
                             .stride = request->stride,
                             .padding = request->padding};
    const struct tensor x = tensor_images(samples, &request->x->shape, request->x->layout);
    conv.x = mixed ? tensor_images(samples, &request->x->shape, ORDER_ANY) : x;
    conv.y = tensor_images(samples, &request->y->shape, request->y->layout);
    conv.b = tensor_vector(request->weights->dim[0]);
    conv.w = which > 0 ? call_tensor(&plan->conv[0], arguments[request->pass][AT_W])
                       : tensor_weights(request->weights, request->groups, ORDER_ANY);
    if (!call_conv(engine, &conv, &plan->conv[which])) return false;
    const struct tensor wanted = call_tensor(&plan->conv[which], arguments[request->pass][AT_X]);
    return tensor_equal(&x, &wanted) || call_reorder(engine, &x, &wanted, false, &plan->image[which]);
}

/* The reorders between the master weights and the primitive's order; PARAMS always collects from scratch. */
static bool describe_weights(struct backend *backend, const struct conv_request *request, struct conv_plan *plan)
{
    dnnl_engine_t engine = cpu_of(backend)->engine;
    const struct tensor wanted = call_tensor(&plan->conv[0], arguments[request->pass][AT_W]);
    const struct tensor master = tensor_weights(request->weights, request->groups, ORDER_LOGICAL);
    if (request->pass == CONV_PARAMS)
        return call_reorder(engine, &wanted, &master, false, &plan->weights) &&
               call_reorder(engine, &wanted, &master, true, &plan->weights_add);
    return tensor_equal(&wanted, &master) || call_reorder(engine, &master, &wanted, false, &plan->weights);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Bytes of a described call's argument; 0 where there is no call. */
static size_t argument_bytes(const struct call *call, int argument)
{
    return call->desc == NULL || argument == 0 ? 0 : round_up(call_bytes(call, argument));
}

/* Lays out scratch: the primitive's scratchpad, weights, x, bias; reorders run while no convolution does. */
static void lay_out(const struct conv_request *request, struct conv_plan *plan)
{
    const int *argument = arguments[request->pass];
    size_t pad = 0, image = 0;
    for (int i = 0; i < 2; i++) {
        if (plan->conv[i].desc != NULL) pad = larger(pad, call_scratch(&plan->conv[i]));
        image = larger(image, argument_bytes(&plan->image[i], DNNL_ARG_TO));
    }
    const bool bias = request->pass == CONV_PARAMS && request->bias;
    plan->weights_at = round_up(pad);
    plan->image_at =
        plan->weights_at + (plan->weights.desc != NULL ? argument_bytes(&plan->conv[0], argument[AT_W]) : 0);
    plan->bias_at = plan->image_at + image;
    plan->scratch = plan->bias_at + (bias ? argument_bytes(&plan->conv[0], argument[AT_B]) : 0);
}

/* Completes plan, whose chunk is given; false, and an empty plan, where the library does not support it. */
static bool describe(struct backend *backend, const struct conv_request *request, struct conv_plan *plan)
{
    plan->rest = request->x->batch % plan->chunk;
    bool done = describe_samples(backend, request, plan->chunk, 0, plan) &&
                (plan->rest == 0 || describe_samples(backend, request, plan->rest, 1, plan)) &&
                describe_weights(backend, request, plan);
    if (done)
        lay_out(request, plan);
    else
        conv_plan_release(plan);
    return done;
}

/* The largest chunk that keeps the limit, or else the one with least scratch; an empty plan where the library does not
 * support the convolution. */
static void search(struct backend *backend, const struct conv_request *request, struct conv_plan *plan)
{
    const int64_t batch = request->x->batch;
    *plan = (struct conv_plan){0};
    for (int64_t calls = 1, chunk = batch;; chunk = ratio_up(batch, calls)) {
        struct conv_plan next = {.chunk = chunk};
        if (!describe(backend, request, &next)) return;
        struct conv_plan *worse = plan->chunk == 0 || next.scratch < plan->scratch ? plan : &next;
        conv_plan_release(worse);
        if (worse == plan) *plan = next;
        if (plan->scratch <= backend->options.scratch_limit || chunk == 1) return;
        while (ratio_up(batch, calls) == chunk) calls++;
    }
}

/* With fewer tiles in a batch Winograd's transforms of weights take too long. From 16 on it was faster than the product
 * with every number of channels that experiments/bench/kernels.c measures (its rows `limit`): 1.2 to 3 times, the
 * gradient of the weights of 3 channels to 64 1.1 times. But few tiles of few channels take less memory than its
 * scratch. */
enum { TILES_LEAST = 16, TILES_MANY = 1024, CHANNELS_LEAST = 16 };

/* With algorithm winograd it is used wherever it can be. */
static bool plan_winograd(const struct backend *backend, const struct conv_request *request, struct winograd *winograd)
{
    const struct backend_options *options = &backend->options;
    if (options->conv_algorithm == CONV_DIRECT || request->groups != 1 || request->kernel != KERNEL ||
        request->stride != 1)
        return false;
    if (!winograd_make(request->pass, request->x, request->y, request->padding, options->threads,
                       options->scratch_limit, winograd))
        return false;
    const int64_t *weights = request->weights->dim, least = lesser(weights[0], weights[1]);
    return options->conv_algorithm == CONV_WINOGRAD ||
           winograd->tiles >= (least < CHANNELS_LEAST ? TILES_MANY : TILES_LEAST);
}

/* Groups of fewer channels fill too little of a panel: of 4 channels each, oneDNN is up to 12 times as fast. */
enum { GROUP_LEAST = 16 };

static bool plan_product(const struct backend *backend, const struct conv_request *request,
                         struct conv_product *product)
{
    const int64_t *weights = request->weights->dim, inputs = weights[1], outputs = weights[0] / request->groups;
    const bool depthwise = inputs == 1 && outputs == 1 && request->kernel * request->kernel <= SUM_BLOCK;
    const uint64_t limit = backend->options.scratch_limit;
    if (request->groups > 1 && !depthwise && (inputs < GROUP_LEAST || outputs < GROUP_LEAST)) return false;
    *product = (struct conv_product){.kernel = request->kernel,
                                     .stride = request->stride,
                                     .padding = request->padding,
                                     .groups = request->groups,
                                     .threads = backend->options.threads,
                                     .limit = limit < WINOGRAD_SCRATCH ? limit : WINOGRAD_SCRATCH,
                                     .bias = request->bias && request->pass == CONV_PARAMS};
    conv_product_make(request->pass, request->x, request->y, product);
    return true;
}

/* Turns every described call of the plan into a primitive. */
static enum status ready(const struct cpu *cpu, const struct conv_request *request, struct conv_plan *plan)
{
    static const int reorder[] = {DNNL_ARG_FROM, DNNL_ARG_TO, DNNL_ARG_SCRATCHPAD};
    const int *argument = arguments[request->pass];
    struct call *const reorders[] = {&plan->image[0], &plan->image[1], &plan->weights, &plan->weights_add};
    for (int i = 0; i < 2; i++)
        if (plan->conv[i].desc != NULL) TRY(call_ready(&plan->conv[i], cpu->engine, cpu->stream, ARGUMENTS, argument));
    for (size_t i = 0; i < sizeof reorders / sizeof *reorders; i++)
        if (reorders[i]->desc != NULL) TRY(call_ready(reorders[i], cpu->engine, cpu->stream, 2, reorder));
    return ST_OK;
}

enum status conv_plan_make(struct backend *backend, const struct conv_request *request, struct conv_plan *plan)
{
    *plan = (struct conv_plan){0};
    if (plan_winograd(backend, request, &plan->winograd)) {
        plan->chunk = request->x->batch;
        plan->scratch = plan->winograd.scratch;
        return ST_OK;
    }
    plan->winograd = (struct winograd){0};
    if (plan_product(backend, request, &plan->product)) {
        plan->chunk = request->x->batch;
        plan->scratch = plan->product.scratch;
        return ST_OK;
    }
    search(backend, request, plan);
    if (plan->chunk == 0) return fail(ST_FAILED, "oneDNN has no such convolution");
    enum status status = ready(cpu_of(backend), request, plan);
    if (status != ST_OK) conv_plan_release(plan);
    return status;
}
