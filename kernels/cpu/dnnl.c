/* The library's 2.x interface: operation descriptors by value, tags, attributes, and errors as ours. */
#include "dnnl.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

/* A library call whose failure becomes our error. */
#define DNNL(call)                                                                                                     \
    do {                                                                                                               \
        dnnl_status_t dnnl_status = (call);                                                                            \
        if (dnnl_status != dnnl_success) return dnnl_fail(dnnl_status, #call);                                         \
    } while (0)

static enum status dnnl_fail(dnnl_status_t status, const char *call)
{
    static const char *const why[] = {"success",       "out of memory",      "invalid arguments", "not implemented",
                                      "iterator ends", "a run-time failure", "not required"};
    int length = (int)strcspn(call, "(");
    return fail(ST_FAILED, "oneDNN: %.*s: %s", length, call,
                (size_t)status < sizeof why / sizeof *why ? why[status] : "?");
}

enum status dnnl_open(dnnl_engine_t *engine, dnnl_stream_t *stream)
{
    DNNL(dnnl_engine_create(engine, dnnl_cpu, 0));
    dnnl_status_t status = dnnl_stream_create(stream, *engine, dnnl_stream_default_flags);
    if (status != dnnl_success) dnnl_engine_destroy(*engine);
    DNNL(status);
    return ST_OK;
}

void dnnl_close(dnnl_engine_t engine, dnnl_stream_t stream)
{
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
}

const char *dnnl_isa(enum order *blocked)
{
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } names[] = {
        {dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
        {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
        {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
        {dnnl_cpu_isa_avx512_core, "avx512_core"},
        {dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
        {dnnl_cpu_isa_avx2, "avx2"},
        {dnnl_cpu_isa_avx, "avx"},
        {dnnl_cpu_isa_sse41, "sse41"},
    };
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    const bool wide = (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
    *blocked = wide ? ORDER_BLOCKED_16 : ORDER_BLOCKED_8;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((isa & (unsigned)names[i].isa) == (unsigned)names[i].isa) return names[i].name;
    return "generic";
}

void dnnl_library(char *text, size_t room)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, room, "oneDNN %d.%d.%d (%s)", version->major, version->minor, version->patch,
             version->cpu_runtime == DNNL_RUNTIME_OMP ? "omp" : "other threads");
}

enum status tensor_images(int64_t batch, const struct shape *shape, enum order order, struct tensor *tensor)
{
    static const dnnl_format_tag_t tags[] = {dnnl_nhwc, dnnl_nChw8c, dnnl_nChw16c, dnnl_format_tag_any};
    bool image = shape->rank == 3;
    const dnnl_dims_t dims = {batch, shape->dim[image ? 2 : 0], image ? shape->dim[0] : 1, image ? shape->dim[1] : 1};
    DNNL(dnnl_memory_desc_init_by_tag(&tensor->desc, 4, dims, dnnl_f32, tags[order]));
    return ST_OK;
}

/* The library reads groups from a fifth dimension, the first; with one group it has more kernels without it. */
enum status tensor_weights(const struct shape *shape, int64_t groups, enum order order, struct tensor *tensor)
{
    static const dnnl_format_tag_t logical[] = {dnnl_oihw, dnnl_goihw};
    const bool grouped = groups > 1;
    const dnnl_format_tag_t tag = order == ORDER_LOGICAL ? logical[grouped] : dnnl_format_tag_any;
    const dnnl_dims_t dims = {groups, shape->dim[0] / groups, shape->dim[1], shape->dim[2], shape->dim[3]};
    DNNL(dnnl_memory_desc_init_by_tag(&tensor->desc, grouped ? 5 : 4, grouped ? dims : dims + 1, dnnl_f32, tag));
    return ST_OK;
}

enum status tensor_vector(int64_t n, struct tensor *tensor)
{
    const dnnl_dims_t dims = {n};
    DNNL(dnnl_memory_desc_init_by_tag(&tensor->desc, 1, dims, dnnl_f32, dnnl_a));
    return ST_OK;
}

size_t tensor_bytes(const struct tensor *tensor) { return dnnl_memory_desc_get_size(&tensor->desc); }

bool tensor_equal(const struct tensor *a, const struct tensor *b)
{
    return dnnl_memory_desc_equal(&a->desc, &b->desc) != 0;
}

/* An attribute with the caller's scratchpad and at most one post-operation; NULL: out of memory. */
static dnnl_primitive_attr_t attribute(bool relu, bool add)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t operations;
    if (dnnl_primitive_attr_create(&attr) != dnnl_success) return NULL;
    if (dnnl_post_ops_create(&operations) != dnnl_success) {
        dnnl_primitive_attr_destroy(attr);
        return NULL;
    }
    dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (relu) dnnl_post_ops_append_eltwise(operations, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
    if (add) dnnl_post_ops_append_sum(operations, 1.0f);
    dnnl_primitive_attr_set_post_ops(attr, operations);
    dnnl_post_ops_destroy(operations);
    return attr;
}

static bool describe(dnnl_engine_t engine, const_dnnl_op_desc_t operation, bool relu, const struct call *hint,
                     struct call *call)
{
    dnnl_primitive_attr_t attr = attribute(relu, false);
    *call = (struct call){0};
    dnnl_status_t status = attr == NULL ? dnnl_out_of_memory
                                        : dnnl_primitive_desc_create(&call->desc, operation, attr, engine,
                                                                     hint != NULL ? hint->desc : NULL);
    dnnl_primitive_attr_destroy(attr);
    if (status != dnnl_success) call->desc = NULL;
    return status == dnnl_success;
}

bool call_conv(dnnl_engine_t engine, const struct conv_call *conv, struct call *call)
{
    const dnnl_dims_t strides = {conv->stride, conv->stride}, padding = {conv->padding, conv->padding};
    const dnnl_alg_kind_t algorithm = conv->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
    const dnnl_memory_desc_t *x = &conv->x.desc, *w = &conv->w.desc, *y = &conv->y.desc;
    const dnnl_memory_desc_t *b = conv->bias ? &conv->b.desc : NULL;
    dnnl_convolution_desc_t operation;
    dnnl_status_t status = dnnl_unimplemented;
    *call = (struct call){0};
    if (conv->pass == CONV_FORWARD)
        status = dnnl_convolution_forward_desc_init(&operation, dnnl_forward_training, algorithm, x, w, b, y, strides,
                                                    padding, padding);
    else if (conv->pass == CONV_PARAMS)
        status =
            dnnl_convolution_backward_weights_desc_init(&operation, algorithm, x, w, b, y, strides, padding, padding);
    else
        status = dnnl_convolution_backward_data_desc_init(&operation, algorithm, x, w, y, strides, padding, padding);
    if (status != dnnl_success) return false;
    if (conv->pass == CONV_FORWARD) return describe(engine, &operation, conv->relu, NULL, call);
    /* A backward needs its forward as a hint, but for convolutions the library accepts none. */
    return describe(engine, &operation, false, NULL, call);
}

bool call_pool(dnnl_engine_t engine, const struct pool_call *pool, const struct call *forward, struct call *call)
{
    const dnnl_dims_t strides = {pool->stride, pool->stride}, padding = {pool->padding, pool->padding};
    const dnnl_dims_t kernel = {pool->kernel, pool->kernel};
    const dnnl_memory_desc_t *x = &pool->x.desc, *y = &pool->y.desc;
    const dnnl_alg_kind_t algorithm = pool->max ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
    const dnnl_prop_kind_t kind = pool->save ? dnnl_forward_training : dnnl_forward_inference;
    dnnl_pooling_desc_t operation;
    *call = (struct call){0};
    const dnnl_status_t status =
        forward ? dnnl_pooling_backward_desc_init(&operation, algorithm, x, y, strides, kernel, padding, padding)
                : dnnl_pooling_forward_desc_init(&operation, kind, algorithm, x, y, strides, kernel, padding, padding);
    return status == dnnl_success && describe(engine, &operation, false, forward, call);
}

static bool plain(int dimensions, int64_t rows, int64_t columns, dnnl_memory_desc_t *desc)
{
    const dnnl_dims_t dims = {rows, columns};
    const dnnl_format_tag_t tag = dimensions == 1 ? dnnl_a : dnnl_ab;
    return dnnl_memory_desc_init_by_tag(desc, dimensions, dims, dnnl_f32, tag) == dnnl_success;
}

bool call_inner_product(dnnl_engine_t engine, int64_t rows, int64_t inputs, int64_t units, struct call *call)
{
    dnnl_memory_desc_t x, w, b, y;
    dnnl_inner_product_desc_t operation;
    *call = (struct call){0};
    return plain(2, rows, inputs, &x) && plain(2, units, inputs, &w) && plain(1, units, 0, &b) &&
           plain(2, rows, units, &y) &&
           dnnl_inner_product_forward_desc_init(&operation, dnnl_forward_training, &x, &w, &b, &y) == dnnl_success &&
           describe(engine, &operation, false, NULL, call);
}

bool call_reorder(dnnl_engine_t engine, const struct tensor *from, const struct tensor *to, bool add, struct call *call)
{
    dnnl_primitive_attr_t attr = attribute(false, add);
    *call = (struct call){0};
    dnnl_status_t status =
        attr == NULL ? dnnl_out_of_memory
                     : dnnl_reorder_primitive_desc_create(&call->desc, &from->desc, engine, &to->desc, engine, attr);
    dnnl_primitive_attr_destroy(attr);
    if (status != dnnl_success) call->desc = NULL;
    return status == dnnl_success;
}

struct tensor call_tensor(const struct call *call, int argument)
{
    return (struct tensor){*dnnl_primitive_desc_query_md(call->desc, dnnl_query_exec_arg_md, argument)};
}

size_t call_scratch(const struct call *call)
{
    const dnnl_memory_desc_t *desc = dnnl_primitive_desc_query_md(call->desc, dnnl_query_scratchpad_md, 0);
    return desc == NULL ? 0 : dnnl_memory_desc_get_size(desc);
}

const char *call_implementation(const struct call *call)
{
    const char *name = NULL;
    dnnl_primitive_desc_query(call->desc, dnnl_query_impl_info_str, 0, &name);
    return name != NULL ? name : "?";
}

enum status call_ready(struct call *call, dnnl_engine_t engine, dnnl_stream_t stream, int arguments,
                       const int *argument)
{
    call->stream = stream;
    DNNL(dnnl_primitive_create(&call->primitive, call->desc));
    for (; call->arguments < arguments; call->arguments++) {
        dnnl_exec_arg_t *slot = &call->argument[call->arguments];
        *slot = (dnnl_exec_arg_t){argument[call->arguments], NULL};
        const struct tensor tensor = call_tensor(call, slot->arg);
        if (tensor.desc.ndims == 0) continue;
        DNNL(dnnl_memory_create(&slot->memory, &tensor.desc, engine, DNNL_MEMORY_NONE));
    }
    return ST_OK;
}

enum status call_run(const struct call *call, const void *const *pointer)
{
    dnnl_exec_arg_t argument[CALL_ARGUMENTS_MAX];
    int arguments = 0;
    for (int i = 0; i < call->arguments; i++) {
        if (call->argument[i].memory == NULL) continue;
        DNNL(dnnl_memory_set_data_handle(call->argument[i].memory, (void *)pointer[i]));
        argument[arguments++] = call->argument[i];
    }
    DNNL(dnnl_primitive_execute(call->primitive, call->stream, arguments, argument));
    DNNL(dnnl_stream_wait(call->stream));
    return ST_OK;
}

void call_release(struct call *call)
{
    for (int i = 0; i < call->arguments; i++)
        if (call->argument[i].memory != NULL) dnnl_memory_destroy(call->argument[i].memory);
    if (call->primitive != NULL) dnnl_primitive_destroy(call->primitive);
    if (call->desc != NULL) dnnl_primitive_desc_destroy(call->desc);
    *call = (struct call){0};
}

enum status gemm(int64_t m, int64_t n, int64_t k, struct matrix a, struct matrix b, float *c, int64_t stride)
{
    DNNL(dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data, a.stride, b.data,
                    b.stride, 0.0f, c, stride));
    return ST_OK;
}
