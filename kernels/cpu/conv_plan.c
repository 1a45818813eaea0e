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
                             .winograd = plan->winograd,
                             .bias = request->bias && request->pass != CONV_INPUT,
                             .relu = request->relu,
                             .stride = request->stride,
                             .padding = request->padding};
    struct shape y = request->y->shape, w = *request->weights;
    y.dim[2] /= plan->turns, w.dim[0] /= plan->turns;
    const struct tensor x = tensor_images(samples, &request->x->shape, request->x->layout);
    conv.x = mixed ? tensor_images(samples, &request->x->shape, ORDER_ANY) : x;
    conv.y = tensor_images(samples, &y, request->y->layout);
    conv.b = tensor_vector(w.dim[0]);
    conv.w = which > 0 ? call_tensor(&plan->conv[0], arguments[request->pass][AT_W])
                       : tensor_weights(&w, request->groups, ORDER_ANY);
    if (!call_conv(engine, &conv, &plan->conv[which])) return false;
    const struct tensor wanted = call_tensor(&plan->conv[which], arguments[request->pass][AT_X]);
    return tensor_equal(&x, &wanted) || call_reorder(engine, &x, &wanted, false, &plan->image[which]);
}

/* The reorders between the master weights and the primitive's order; PARAMS always collects from scratch. */
static bool describe_weights(struct backend *backend, const struct conv_request *request, struct conv_plan *plan)
{
    dnnl_engine_t engine = cpu_of(backend)->engine;
    const struct tensor wanted = call_tensor(&plan->conv[0], arguments[request->pass][AT_W]);
    struct shape w = *request->weights;
    w.dim[0] /= plan->turns;
    const struct tensor master = tensor_weights(&w, request->groups, ORDER_LOGICAL);
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

/* Lays out scratch: the primitive's scratchpad, weights, x, a turn's dy, bias; reorders run while no convolution
 * does. */
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
    plan->turn_at = plan->image_at + image;
    plan->bias_at = plan->turn_at + (plan->turns > 1 ? argument_bytes(&plan->conv[0], argument[AT_Y]) : 0);
    plan->scratch = plan->bias_at + (bias ? argument_bytes(&plan->conv[0], argument[AT_B]) : 0);
}

/* Completes plan, whose algorithm, chunk and turns are given; false, and an empty plan, where the library does not
 * support it. */
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

/* The largest chunk that keeps the limit; false where there is none: then plan is the one with least scratch, or empty.
 */
static bool search(struct backend *backend, const struct conv_request *request, bool winograd, int64_t turns,
                   struct conv_plan *plan)
{
    const int64_t batch = request->x->batch;
    *plan = (struct conv_plan){0};
    for (int64_t calls = 1, chunk = batch;; chunk = ratio_up(batch, calls)) {
        struct conv_plan next = {.winograd = winograd, .chunk = chunk, .turns = turns};
        if (!describe(backend, request, &next)) return false;
        struct conv_plan *worse = plan->chunk == 0 || next.scratch < plan->scratch ? plan : &next;
        conv_plan_release(worse);
        if (worse == plan) *plan = next;
        if (plan->scratch <= backend->options.scratch_limit) return true;
        if (chunk == 1) return false;
        while (ratio_up(batch, calls) == chunk) calls++;
    }
}

/* Winograd's 4x4 tiles in a chunk. Each call transforms all weights: below TILES_LEAST direct is as fast; from
 * TILES_ENOUGH on the transforms are negligible. Measured on 32 to 512 channels. */
enum { TILES_LEAST = 32, TILES_ENOUGH = 256, TURNS_MOST = 4 };

static int64_t tiles(const struct conv_request *request, int64_t samples)
{
    return samples * ratio_up(request->y->shape.dim[0], 4) * ratio_up(request->y->shape.dim[1], 4);
}

/* The fewest turns whose chunk has enough tiles, else those with the most tiles; false where none is worth it. */
static bool search_winograd(struct backend *backend, const struct conv_request *request, struct conv_plan *plan)
{
    const int64_t most = request->pass == CONV_PARAMS ? TURNS_MOST : 1;
    *plan = (struct conv_plan){0};
    for (int64_t turns = 1; turns <= most && request->weights->dim[0] % (turns * BLOCK_MOST) == 0; turns *= 2) {
        struct conv_plan next;
        const bool found = search(backend, request, true, turns, &next);
        struct conv_plan *worse = found && next.chunk > plan->chunk ? plan : &next;
        conv_plan_release(worse);
        if (worse == plan) *plan = next;
        if (plan->chunk == request->x->batch || tiles(request, plan->chunk) >= TILES_ENOUGH) break;
    }
    return tiles(request, plan->chunk) >= TILES_LEAST;
}

/* Where the library has Winograd at all, it is for blocks of 16 channels and one group. */
static bool winograd_wanted(const struct backend *backend, const struct conv_request *request)
{
    return cpu_of(backend)->winograd && backend->options.conv_algorithm != CONV_DIRECT && request->groups == 1 &&
           request->kernel == 3 && request->stride == 1 && request->y->layout == ORDER_BLOCKED_16 &&
           request->x->layout == ORDER_BLOCKED_16;
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
    if (!winograd_wanted(backend, request) || !search_winograd(backend, request, plan)) {
        conv_plan_release(plan);
        search(backend, request, false, 1, plan);
    }
    if (plan->chunk == 0) return fail(ST_FAILED, "oneDNN has no such convolution");
    enum status status = ready(cpu_of(backend), request, plan);
    if (status != ST_OK) conv_plan_release(plan);
    return status;
}
