#include "model/reference.h"

#include "numerics/token_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const relu_words[] = {"none", "relu", NULL};
const char *const activation_words[] = {"none", "relu", "tanh", NULL};

enum status reference_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                              struct footprint *footprint, void **state)
{
    (void)backend;
    struct reference *r = allocate(1, sizeof *r);
    r->settings = node->settings;
    r->pool = node->pool;
    r->unpooled = node->unpooled;
    r->activation = node->activation;
    r->x = graph->value[node->inputs[0]].shape;
    r->y = graph->value[node->output].shape;
    r->batch = graph->batch;
    r->x_elements = shape_elements(&r->x);
    r->y_elements = shape_elements(&r->y);
    const struct shape *second = &graph->value[node->inputs[node->layer->inputs - 1]].shape;
    r->second_elements = shape_elements(second);
    r->second_rank = second->rank;
    r->weight = node->weight;
    *footprint = node->layer->footprint;
    if (node->layer->measure) node->layer->measure(r, footprint);
    *state = r;
    return ST_OK;
}

size_t bits_bytes(const struct reference *r) { return ((size_t)(r->batch * r->y_elements) + 7) / 8; }

/* A NaN stays one, so that it reaches the loss and is noticed. */
void reference_relu(const struct reference *r, float *y, uint8_t *bits)
{
    const int64_t count = r->batch * r->y_elements;
    for (int64_t i = 0; i < count; i++) y[i] = y[i] <= 0 ? 0 : y[i];
    if (!bits) return;
    memset(bits, 0, bits_bytes(r));
    for (int64_t i = 0; i < count; i++) bits[i / 8] |= (uint8_t)((y[i] > 0) << i % 8);
}

void reference_relu_derivative(const struct reference *r, const float *y, const uint8_t *bits, float *dy)
{
    for (int64_t i = 0; i < r->batch * r->y_elements; i++) {
        bool positive = bits ? bits[i / 8] >> i % 8 & 1 : y[i] > 0;
        dy[i] = positive ? dy[i] : 0;
    }
}

void activation_apply(const struct reference *r, float *y, uint8_t *bits)
{
    if (r->activation == ACTIVATION_RELU) reference_relu(r, y, bits);
    for (int64_t i = 0; r->activation == ACTIVATION_TANH && i < r->batch * r->y_elements; i++) y[i] = (float)tanh(y[i]);
}

void activation_derivative(const struct reference *r, const float *y, const uint8_t *bits, float *dy)
{
    if (r->activation == ACTIVATION_RELU) reference_relu_derivative(r, y, bits, dy);
    for (int64_t i = 0; r->activation == ACTIVATION_TANH && i < r->batch * r->y_elements; i++)
        dy[i] = (float)(dy[i] * (1 - (double)y[i] * y[i]));
}

void activation_footprint(const struct reference *r, struct footprint *footprint)
{
    if (r->activation == ACTIVATION_NONE) return;
    footprint->reads[PART_INDEX_PARAMS] |= READS_Y;
    footprint->writes_dy = true;
    if (r->activation == ACTIVATION_RELU) footprint->signs = bits_bytes(r);
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
    return fail(ST_SPEC, "expects a batch of tokens (%d x tokens), as data sets of text have; it is %s",
                (int)TOKEN_ROWS, shape_print(x, text));
}

enum status window_infer(const struct window *w, const struct shape *x, int64_t channels, struct shape *y)
{
    char text[96];
    TRY(image_expected(x));
    *y = (struct shape){3, {0, 0, channels}};
    for (int i = 0; i < 2; i++) {
        const int64_t padded = x->dim[i] + 2 * w->padding, extent = window_extent(w);
        if (extent > padded)
            return fail(ST_SPEC, "a %lldx%lld kernel%s is larger than its input %s with padding %lld",
                        (long long)extent, (long long)extent, window_dilation(w) > 1 ? ", dilation included," : "",
                        shape_print(x, text), (long long)w->padding);
        const int64_t stride = window_stride(w), rest = padded - extent;
        y->dim[i] = rest / stride + 1;
        if (w->ceil_mode && rest % stride && y->dim[i] * stride < x->dim[i] + w->padding) y->dim[i]++;
    }
    return ST_OK;
}

enum status pool_infer(const struct window *w, const struct shape *x, struct shape *y)
{
    TRY(image_expected(x));
    if (w->padding >= w->kernel)
        return fail(ST_SPEC, "padding %lld is not less than the side of the %lldx%lld window: some would be empty",
                    (long long)w->padding, (long long)w->kernel, (long long)w->kernel);
    return window_infer(w, x, x->dim[2], y);
}

enum status rows_infer(const void *settings, const struct shape *x, struct shape *y)
{
    (void)settings, (void)y;
    return rows_expected(x);
}

enum status loss_infer(const void *settings, const struct shape *x, struct shape *y)
{
    (void)settings, (void)x;
    *y = (struct shape){1, {2}};
    return ST_OK;
}

void column_sums(const float *x, int64_t rows, int64_t stride, int64_t columns, float *sum)
{
    for (int64_t c = 0; c < columns; c++) {
        double total = 0;
        for (int64_t r = 0; r < rows; r++) total += x[r * stride + c];
        sum[c] = (float)total;
    }
}

int gain_and_bias(const void *settings, const struct shape *x,
                  struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    (void)settings;
    const int64_t width = shape_width(x);
    definitions[0] = (struct parameter_definition){"weight", {1, {width}}, INIT_ONES, width, width};
    definitions[1] = (struct parameter_definition){"bias", {1, {width}}, INIT_ZEROS, width, width};
    return 2;
}

int weight_and_bias(int64_t width, int64_t units, enum init init, bool bias,
                    struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    definitions[0] = (struct parameter_definition){"weight", {2, {units, width}}, init, width, units};
    definitions[1] = (struct parameter_definition){"bias", {1, {units}}, INIT_ZEROS, width, units};
    return bias ? 2 : 1;
}

void copy_batch(const struct reference *r, void *y, const void *x)
{
    if (y != x) memcpy(y, x, (size_t)(r->batch * r->x_elements) * sizeof(float));
}

enum status copy_forward(void *state, const struct kernel_args *args)
{
    copy_batch(state, args->y, args->x[0]);
    return ST_OK;
}
