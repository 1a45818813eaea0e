#include "onednn.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPERANDS = 4 }; /* x, weights, y or their gradients, scratch */

struct onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t argument[OPERANDS];
    void *data[OPERANDS];
};

static void check(dnnl_status_t status)
{
    if (status == dnnl_success) return;
    fprintf(stderr, "kernels: oneDNN fails with status %d\n", (int)status);
    exit(3);
}

#if DNNL_VERSION_MAJOR == 2
typedef dnnl_memory_desc_t tensor;
typedef const dnnl_memory_desc_t *description_of_memory;
#define LENT(t) (&(t))

static tensor tensor_make(int rank, const dnnl_dims_t dims)
{
    tensor t;
    check(dnnl_memory_desc_init_by_tag(&t, rank, dims, dnnl_f32, dnnl_format_tag_any));
    return t;
}

static void describe(struct onednn *c, enum conv_pass pass, tensor *x, tensor *w, tensor *y, const dnnl_dims_t strides,
                     const dnnl_dims_t padding, const_dnnl_primitive_attr_t attributes)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_convolution_desc_t d;
    if (pass == CONV_FORWARD)
        check(dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, direct, x, w, NULL, y, strides, padding,
                                                 padding));
    else if (pass == CONV_PARAMS)
        check(dnnl_convolution_backward_weights_desc_init(&d, direct, x, w, NULL, y, strides, padding, padding));
    else
        check(dnnl_convolution_backward_data_desc_init(&d, direct, x, w, y, strides, padding, padding));
    check(dnnl_primitive_desc_create(&c->description, &d, attributes, c->engine, NULL));
}
#else
typedef dnnl_memory_desc_t tensor;
typedef const_dnnl_memory_desc_t description_of_memory;
#define LENT(t) (t)

static tensor tensor_make(int rank, const dnnl_dims_t dims)
{
    tensor t;
    check(dnnl_memory_desc_create_with_tag(&t, rank, dims, dnnl_f32, dnnl_format_tag_any));
    return t;
}

static void describe(struct onednn *c, enum conv_pass pass, tensor x, tensor w, tensor y, const dnnl_dims_t strides,
                     const dnnl_dims_t padding, const_dnnl_primitive_attr_t attributes)
{
    static const dnnl_dims_t none = {0, 0};
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_primitive_desc_t *d = &c->description;
    if (pass == CONV_FORWARD)
        check(dnnl_convolution_forward_primitive_desc_create(d, c->engine, dnnl_forward_training, direct, x, w, NULL, y,
                                                             strides, none, padding, padding, attributes));
    else if (pass == CONV_PARAMS)
        check(dnnl_convolution_backward_weights_primitive_desc_create(d, c->engine, direct, x, w, NULL, y, strides,
                                                                      none, padding, padding, NULL, attributes));
    else
        check(dnnl_convolution_backward_data_primitive_desc_create(d, c->engine, direct, x, w, y, strides, none,
                                                                   padding, padding, NULL, attributes));
}
#endif

static void describe_shape(struct onednn *c, const struct conv_shape *s, enum conv_pass pass)
{
    const int64_t to = (s->side + 2 * s->padding - s->kernel) / s->stride + 1, groups = s->groups, k = s->kernel;
    const dnnl_dims_t strides = {s->stride, s->stride}, padding = {s->padding, s->padding};
    const dnnl_dims_t one = {s->outputs, s->inputs, k, k},
                      many = {groups, s->outputs / groups, s->inputs / groups, k, k};
    const dnnl_dims_t from = {s->batch, s->inputs, s->side, s->side}, result = {s->batch, s->outputs, to, to};
    tensor x = tensor_make(4, from);
    tensor w = groups == 1 ? tensor_make(4, one) : tensor_make(5, many);
    tensor y = tensor_make(4, result);
    dnnl_primitive_attr_t attributes;
    check(dnnl_primitive_attr_create(&attributes));
    check(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    describe(c, pass, LENT(x), LENT(w), LENT(y), strides, padding, attributes);
    dnnl_primitive_attr_destroy(attributes);
}

struct onednn *onednn_open(const struct conv_shape *shape, enum conv_pass pass, float *numbers(int64_t count))
{
    static const int arguments[CONV_PASSES][OPERANDS] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD}};
    struct onednn *c = calloc(1, sizeof *c);
    if (c == NULL) exit(3);
    check(dnnl_engine_create(&c->engine, dnnl_cpu, 0));
    check(dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags));
    describe_shape(c, shape, pass);
    check(dnnl_primitive_create(&c->primitive, c->description));
    for (int i = 0; i < OPERANDS; i++) {
        const int argument = arguments[pass][i];
        description_of_memory desc = dnnl_primitive_desc_query_md(c->description, dnnl_query_exec_arg_md, argument);
        c->data[i] = numbers((int64_t)(dnnl_memory_desc_get_size(desc) / sizeof(float)) + 1);
        c->argument[i].arg = argument;
        check(dnnl_memory_create(&c->argument[i].memory, desc, c->engine, c->data[i]));
    }
    return c;
}

void onednn_run(const struct onednn *c)
{
    check(dnnl_primitive_execute(c->primitive, c->stream, OPERANDS, c->argument));
    check(dnnl_stream_wait(c->stream));
}

void onednn_close(struct onednn *c)
{
    for (int i = 0; i < OPERANDS; i++) dnnl_memory_destroy(c->argument[i].memory), free(c->data[i]);
    dnnl_primitive_destroy(c->primitive);
    dnnl_primitive_desc_destroy(c->description);
    dnnl_stream_destroy(c->stream);
    dnnl_engine_destroy(c->engine);
    free(c);
}
