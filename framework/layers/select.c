/* One token of a sequence, {T, D} to {D}: the input of a classifier on a sequence. */
#include "model/reference.h"

#include <string.h>

struct settings {
    int64_t token;
};

static const struct setting keys[] = {
    {SETTING(token), .type = SETTING_INT, .max = 1 << 24, .preset = "0", .doc = "which token, the first being 0"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    const int64_t token = ((const struct settings *)settings)->token;
    TRY(sequence_expected(&inputs[0]));
    if (token >= inputs[0].dim[0])
        return fail(ST_SPEC, "token %lld is not in its input %s: the last is %lld", (long long)token,
                    shape_print(&inputs[0], text), (long long)inputs[0].dim[0] - 1);
    *output = (struct shape){1, {inputs[0].dim[1]}};
    return ST_OK;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t width = r->y_elements, first = ((const struct settings *)r->settings)->token * width;
    for (int64_t n = 0; n < r->batch; n++)
        memcpy((float *)args->y + n * width, (const float *)args->x[0] + n * r->x_elements + first,
               (size_t)width * sizeof(float));
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t width = r->y_elements, first = ((const struct settings *)r->settings)->token * width;
    float *dx = args->dx[0];
    memset(dx, 0, (size_t)(r->batch * r->x_elements) * sizeof *dx);
    for (int64_t n = 0; n < r->batch; n++)
        memcpy(dx + n * r->x_elements + first, (const float *)args->dy + n * width, (size_t)width * sizeof *dx);
    return ST_OK;
}

const struct layer layer_select = {.name = "select",
                                   .doc = "one token of a sequence",
                                   .inputs = 1,
                                   LAYER_SETTINGS,
                                   .infer = infer,
                                   .reference = REFERENCE_KERNEL(forward, backward)};
