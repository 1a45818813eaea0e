#include "model/reference.h"

#include "numerics/token_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const relu_words[] = {"none", "relu", NULL};
const char *const activation_words[] = {"none", "relu", "tanh", NULL};

const struct setting no_keys[] = {{.key = NULL}};

enum status reference_state(const struct graph *graph, const struct node *node, void **state)
{
    struct reference *r = calloc(1, sizeof *r);
    if (!r) return fail(ST_FAILED, "out of memory");
    r->settings = node->settings;
    r->x = graph->value[node->inputs[0]].shape;
    r->y = graph->value[node->output].shape;
    r->batch = graph->batch;
    r->x_elements = shape_elements(&r->x);
    r->y_elements = shape_elements(&r->y);
    *state = r;
    return ST_OK;
}

size_t bits_bytes(const struct reference *r) { return ((size_t)(r->batch * r->y_elements) + 7) / 8; }

/* Written so that a NaN stays one: it must reach the loss to be seen. */
static float relu(float x) { return x <= 0 ? 0 : x; }

void activate(const struct reference *r, float *y, uint8_t *bits)
{
    const int64_t count = r->batch * r->y_elements;
    if (r->settings.activation == ACTIVATION_TANH)
        for (int64_t i = 0; i < count; i++) y[i] = (float)tanh(y[i]);
    if (r->settings.activation != ACTIVATION_RELU) return;
    for (int64_t i = 0; i < count; i++) y[i] = relu(y[i]);
    if (!bits) return;
    memset(bits, 0, bits_bytes(r));
    for (int64_t i = 0; i < count; i++) bits[i / 8] |= (uint8_t)((y[i] > 0) << i % 8);
}

void activation_derivative(const struct reference *r, const float *y, const uint8_t *bits, float *dy)
{
    const int64_t count = r->batch * r->y_elements;
    if (r->settings.activation == ACTIVATION_TANH)
        for (int64_t i = 0; i < count; i++) dy[i] = (float)(dy[i] * (1 - (double)y[i] * y[i]));
    if (r->settings.activation != ACTIVATION_RELU) return;
    for (int64_t i = 0; i < count; i++) {
        bool positive = bits ? bits[i / 8] >> i % 8 & 1 : y[i] > 0;
        dy[i] = positive ? dy[i] : 0;
    }
}

void activation_footprint(const struct reference *r, int part_index, struct footprint *footprint)
{
    if (r->settings.activation == ACTIVATION_NONE) return;
    footprint->reads[part_index] |= READS_Y;
    if (r->settings.activation == ACTIVATION_RELU) footprint->signs = bits_bytes(r);
}

enum status image_expected(const struct shape *x)
{
    char text[96];
    if (x->rank == 3) return ST_OK;
    return fail(ST_SPEC, "expects an image (height x width x channels), its input is %s", shape_print(x, text));
}

enum status rows_expected(const struct shape *x)
{
    char text[96];
    if (x->rank == 1 || x->rank == 2) return ST_OK;
    return fail(ST_SPEC,
                "expects a vector or a sequence (tokens x width), its input is %s: put a flatten layer before it",
                shape_print(x, text));
}

enum status sequence_expected(const struct shape *x)
{
    char text[96];
    if (x->rank == 2) return ST_OK;
    return fail(ST_SPEC, "expects a sequence (tokens x width), its input is %s", shape_print(x, text));
}

enum status tokens_expected(const struct shape *x)
{
    char text[96];
    if (x->rank == 2 && x->dim[0] == TOKEN_ROWS) return ST_OK;
    return fail(ST_SPEC, "expects the batch of a text data set (%d x tokens), it is %s", (int)TOKEN_ROWS,
                shape_print(x, text));
}

enum status window_infer(const struct settings *settings, int64_t stride, const struct shape *x, int64_t channels,
                         struct shape *y)
{
    char text[96];
    TRY(image_expected(x));
    *y = (struct shape){3, {0, 0, channels}};
    for (int i = 0; i < 2; i++) {
        int64_t padded = x->dim[i] + 2 * settings->padding;
        if (settings->kernel > padded)
            return fail(ST_SPEC, "a %lldx%lld kernel is larger than its input %s with padding %lld",
                        (long long)settings->kernel, (long long)settings->kernel, shape_print(x, text),
                        (long long)settings->padding);
        y->dim[i] = (padded - settings->kernel) / stride + 1;
    }
    return ST_OK;
}

enum status pool_infer(const struct settings *settings, const struct shape *x, struct shape *y)
{
    TRY(image_expected(x));
    if (settings->padding > settings->kernel / 2)
        return fail(ST_SPEC, "padding %lld is more than half of the %lldx%lld window: some windows would be empty",
                    (long long)settings->padding, (long long)settings->kernel, (long long)settings->kernel);
    return window_infer(settings, pool_stride(settings), x, x->dim[2], y);
}

enum status same_infer(const struct settings *settings, const struct shape *x, struct shape *y)
{
    (void)settings;
    *y = *x;
    return ST_OK;
}

struct flops element_flops(const struct settings *settings, const struct shape *input, const struct shape *output)
{
    (void)settings, (void)output;
    double all = (double)shape_elements(input);
    return (struct flops){all, 0, all};
}

void bias_gradient(const struct reference *r, const struct kernel_args *args, int64_t outputs)
{
    const float *dy = args->dy;
    for (int64_t o = 0; r->settings.bias && o < outputs; o++) {
        double sum = 0;
        for (int64_t j = o; j < r->batch * r->y_elements; j += outputs) sum += dy[j];
        put_gradient(&args->gradients[1][o], sum, args->accumulate);
    }
}

void copy_batch(const struct reference *r, void *y, const void *x)
{
    if (y != x) memcpy(y, x, (size_t)(r->batch * r->x_elements) * sizeof(float));
}
