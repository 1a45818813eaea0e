/* One token of a sequence, {T, D} to {D}: what a classifier on top of a sequence reads. */
#include "model/reference.h"

#include <stdlib.h>
#include <string.h>

static const struct setting keys[] = {
    {SETTING(token), .type = SETTING_INT, .max = 1 << 24, .preset = "0", .doc = "which token, the first being 0"},
    {.key = NULL}};

static enum status infer(const struct settings *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    TRY(sequence_expected(&inputs[0]));
    if (settings->token >= inputs[0].dim[0])
        return fail(ST_SPEC, "token %lld is not in its input %s: the last is %lld", (long long)settings->token,
                    shape_print(&inputs[0], text), (long long)inputs[0].dim[0] - 1);
    *output = (struct shape){1, {inputs[0].dim[1]}};
    return ST_OK;
}

static struct flops flops(const struct settings *settings, const struct shape *input, const struct shape *output)
{
    (void)settings, (void)input, (void)output;
    return (struct flops){0, 0, 0};
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    (void)backend;
    *footprint = (struct footprint){0};
    return reference_state(graph, node, state);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t width = r->y_elements;
    for (int64_t n = 0; n < r->batch; n++)
        memcpy((float *)args->y + n * width, (const float *)args->x[0] + n * r->x_elements + r->settings.token * width,
               (size_t)width * sizeof(float));
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct reference *r = state;
    const int64_t width = r->y_elements;
    float *dx = args->dx[0];
    if (!(parts & PART_INPUT) || !dx) return ST_OK;
    memset(dx, 0, (size_t)(r->batch * r->x_elements) * sizeof *dx);
    for (int64_t n = 0; n < r->batch; n++)
        memcpy(dx + n * r->x_elements + r->settings.token * width, (const float *)args->dy + n * width,
               (size_t)width * sizeof *dx);
    return ST_OK;
}

static const struct kernel reference = {
    .deterministic = true, .prepare = prepare, .forward = forward, .backward = backward, .release = free};

const struct layer layer_select = {.name = "select",
                                   .doc = "one token of a sequence",
                                   .inputs = 1,
                                   .keys = keys,
                                   .infer = infer,
                                   .flops = flops,
                                   .reference = &reference};
