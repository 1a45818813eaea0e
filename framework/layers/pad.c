/* Zeros around an image, or, where a number is negative, so many rows or columns of it cut off. The gradient is what
 * the opposite numbers make of dy; the backward reads nothing else. */
#include "model/reference.h"

#include <string.h>

struct settings {
    int64_t top, bottom, left, right;
};

#define SIDE(name, what)                                                                                               \
    {                                                                                                                  \
        SETTING(name), .type = SETTING_INT, .min = -(1 << 16), .max = 1 << 16, .preset = "0",                          \
                       .doc = what "; negative: so many are cut off"                                                   \
    }
static const struct setting keys[] = {SIDE(top, "rows of zeros above"),
                                      SIDE(bottom, "rows of zeros below"),
                                      SIDE(left, "columns of zeros on the left"),
                                      SIDE(right, "columns of zeros on the right"),
                                      {.key = NULL}};

/* A side's length; 0: nothing of the image is left. */
static int64_t side(int64_t length, int64_t before, int64_t after)
{
    const int64_t left = length + (before < 0 ? before : 0) + (after < 0 ? after : 0);
    return left < 1 ? 0 : length + before + after;
}

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    const struct settings *s = settings;
    TRY(image_expected(&inputs[0]));
    if (!s->top && !s->bottom && !s->left && !s->right)
        return fail(ST_SPEC, "top, bottom, left and right are 0; expected at least one that is not");
    output->dim[0] = side(inputs[0].dim[0], s->top, s->bottom);
    output->dim[1] = side(inputs[0].dim[1], s->left, s->right);
    if (!output->dim[0] || !output->dim[1])
        return fail(ST_SPEC, "cuts off all of its input %s: top %lld, bottom %lld, left %lld, right %lld",
                    shape_print(&inputs[0], text), (long long)s->top, (long long)s->bottom, (long long)s->left,
                    (long long)s->right);
    return ST_OK;
}

/* Copying an element counts as one, as concat's. */
static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    (void)settings;
    return (struct flops){(double)shape_elements(output), 0, (double)shape_elements(input)};
}

/* Pixel (h, w) of from becomes pixel (h + top, w + left) of to, where there is one; the others of to are zeros. */
static void move(const struct reference *r, const float *from, const struct shape *x, int64_t top, int64_t left,
                 float *to, const struct shape *y)
{
    const int64_t channels = x->dim[2];
    const size_t pixel = (size_t)channels * sizeof *to;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t p = 0; p < y->dim[0]; p++)
            for (int64_t q = 0; q < y->dim[1]; q++, to += channels) {
                const int64_t h = p - top, w = q - left;
                const bool inside = h >= 0 && h < x->dim[0] && w >= 0 && w < x->dim[1];
                if (inside)
                    memcpy(to, from + ((n * x->dim[0] + h) * x->dim[1] + w) * channels, pixel);
                else
                    memset(to, 0, pixel);
            }
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const struct settings *s = r->settings;
    move(r, args->x[0], &r->x, s->top, s->left, args->y, &r->y);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const struct settings *s = r->settings;
    move(r, args->dy, &r->y, -s->top, -s->left, args->dx[0], &r->x);
    return ST_OK;
}

const struct layer layer_pad = {.name = "pad",
                                .doc = "zeros around images, or their margins cut off",
                                .inputs = 1,
                                LAYER_SETTINGS,
                                .infer = infer,
                                .flops = flops,
                                .reference = REFERENCE_KERNEL(forward, backward)};
