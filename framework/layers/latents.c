/* Learnt tokens that are the same for every sample, {tokens, units}, whatever the input, by default the batch: the
 * queries of cross_attention (Jaegle et al., "Perceiver", 2021; Carion et al., "DETR", 2020). Their gradient is the sum
 * of dy over the samples; an input that wants a gradient gets zeros. The backward reads nothing else. */
#include "model/reference.h"

#include <string.h>

struct settings {
    int64_t tokens, units;
};

static const struct setting keys[] = {
    {SETTING(tokens), .type = SETTING_INT, .min = 1, .max = 1 << 24, .doc = "how many"},
    {SETTING(units), .type = SETTING_INT, .min = 1, .max = 1 << 24, .doc = "their width"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)inputs;
    const struct settings *s = settings;
    *output = (struct shape){2, {s->tokens, s->units}};
    return ST_OK;
}

static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    (void)input;
    const struct settings *s = settings;
    definitions[0] =
        (struct parameter_definition){"weight", {2, {s->tokens, s->units}}, INIT_NORMAL, s->tokens, s->units};
    return 1;
}

/* A copied element counts as one, as concat's. */
static struct flops flops(const void *settings, const struct shape *inputs, const struct shape *output)
{
    (void)settings, (void)inputs;
    const double all = (double)shape_elements(output);
    return (struct flops){all, all, 0};
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    for (int64_t n = 0; n < r->batch; n++)
        memcpy((float *)args->y + n * r->y_elements, args->parameters[0], (size_t)r->y_elements * sizeof(float));
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    if (args->parts & PART_PARAMS) column_sums(args->dy, r->batch, r->y_elements, r->y_elements, args->gradients[0]);
    if (args->parts & PART_INPUT) memset(args->dx[0], 0, (size_t)(r->batch * r->x_elements) * sizeof(float));
    return ST_OK;
}

const struct layer layer_latents = {.name = "latents",
                                    .doc = "learnt tokens, whatever the input",
                                    .inputs = 1,
                                    .reads_batch = true,
                                    LAYER_SETTINGS,
                                    .infer = infer,
                                    .parameters = parameters,
                                    .flops = flops,
                                    .reference = REFERENCE_KERNEL(forward, backward)};
