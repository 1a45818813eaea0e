/* Tensors, calls, attributes, and the library's errors as ours. */
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
    /* Those that both majors name. */
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
    *blocked = (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core ? ORDER_BLOCKED_16 : ORDER_BLOCKED_8;
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

struct tensor tensor_images(int64_t batch, const struct shape *shape, enum order order)
{
    static const dnnl_format_tag_t tags[] = {dnnl_nhwc, dnnl_nChw8c, dnnl_nChw16c, dnnl_format_tag_any};
    const bool image = shape->rank == 3;
    return (struct tensor){
        .rank = 4,
        .dims = {batch, shape->dim[image ? 2 : 0], image ? shape->dim[0] : 1, image ? shape->dim[1] : 1},
        .tag = tags[order],
    };
}

/* The library reads groups from a fifth dimension, the first; with one group it has more kernels without it. */
struct tensor tensor_weights(const struct shape *shape, int64_t groups, enum order order)
{
    const bool any = order != ORDER_LOGICAL;
    const int64_t *dim = shape->dim;
    if (groups == 1)
        return (struct tensor){
            .rank = 4, .dims = {dim[0], dim[1], dim[2], dim[3]}, .tag = any ? dnnl_format_tag_any : dnnl_oihw};
    return (struct tensor){.rank = 5,
                           .dims = {groups, dim[0] / groups, dim[1], dim[2], dim[3]},
                           .tag = any ? dnnl_format_tag_any : dnnl_goihw};
}

struct tensor tensor_vector(int64_t n) { return (struct tensor){.rank = 1, .dims = {n}, .tag = dnnl_a}; }

/* Descriptors of up to four tensors; NULL stays NULL. Those of a call are lent, the others made. */
static dnnl_status_t lend(const struct tensor *const *tensor, int tensors, descriptor *desc)
{
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < tensors; i++) {
        desc[i] = tensor[i] != NULL ? tensor[i]->of_call : NULL;
        if (tensor[i] != NULL && desc[i] == NULL && status == dnnl_success)
            status = descriptor_make(tensor[i], &desc[i]);
    }
    return status;
}

static void take_back(const struct tensor *const *tensor, int tensors, const descriptor *desc)
{
    for (int i = 0; i < tensors; i++)
        if (tensor[i] != NULL && tensor[i]->of_call == NULL) descriptor_free(desc[i]);
}

bool tensor_equal(const struct tensor *a, const struct tensor *b)
{
    const struct tensor *const both[] = {a, b};
    descriptor desc[2];
    const bool equal = lend(both, 2, desc) == dnnl_success && dnnl_memory_desc_equal(desc[0], desc[1]) != 0;
    take_back(both, 2, desc);
    return equal;
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
    if (relu) append_relu(operations);
    if (add) append_sum(operations);
    dnnl_primitive_attr_set_post_ops(attr, operations);
    dnnl_post_ops_destroy(operations);
    return attr;
}

/* What a call is described by: tensors, the descriptors that the library reads, and an attribute. */
struct description {
    const struct tensor *tensor[4];
    int tensors;
    descriptor desc[4];
    dnnl_primitive_attr_t attr;
};

static dnnl_status_t begin(struct description *d, bool relu, bool add)
{
    d->attr = attribute(relu, add);
    const dnnl_status_t status = lend(d->tensor, d->tensors, d->desc);
    return d->attr == NULL ? dnnl_out_of_memory : status;
}

static bool end(struct description *d, dnnl_status_t status, struct call *call)
{
    take_back(d->tensor, d->tensors, d->desc);
    dnnl_primitive_attr_destroy(d->attr);
    if (status != dnnl_success) call->desc = NULL;
    return status == dnnl_success;
}

static struct conv_descriptors operands(const struct description *d)
{
    return (struct conv_descriptors){d->desc[0], d->desc[1], d->desc[2], d->desc[3]};
}

bool call_conv(dnnl_engine_t engine, const struct conv_call *conv, struct call *call)
{
    struct description d = {{&conv->x, &conv->w, conv->bias ? &conv->b : NULL, &conv->y}, 4};
    *call = (struct call){0};
    dnnl_status_t status = begin(&d, conv->relu && conv->pass == CONV_FORWARD, false);
    const struct conv_descriptors operand = operands(&d);
    if (status == dnnl_success) status = describe_conv(engine, conv, &operand, d.attr, &call->desc);
    return end(&d, status, call);
}

bool call_reorder(dnnl_engine_t engine, const struct tensor *from, const struct tensor *to, bool add, struct call *call)
{
    struct description d = {{from, to}, 2};
    *call = (struct call){0};
    dnnl_status_t status = begin(&d, false, add);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(&call->desc, d.desc[0], engine, d.desc[1], engine, d.attr);
    return end(&d, status, call);
}

static descriptor argument_of(const struct call *call, int argument)
{
    return dnnl_primitive_desc_query_md(call->desc, dnnl_query_exec_arg_md, argument);
}

struct tensor call_tensor(const struct call *call, int argument)
{
    return (struct tensor){.of_call = argument_of(call, argument)};
}

size_t call_bytes(const struct call *call, int argument)
{
    return dnnl_memory_desc_get_size(argument_of(call, argument));
}

size_t call_scratch(const struct call *call)
{
    const descriptor desc = dnnl_primitive_desc_query_md(call->desc, dnnl_query_scratchpad_md, 0);
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
        const descriptor desc = argument_of(call, slot->arg);
        if (desc == NULL || descriptor_rank(desc) == 0) continue;
        DNNL(dnnl_memory_create(&slot->memory, desc, engine, DNNL_MEMORY_NONE));
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
