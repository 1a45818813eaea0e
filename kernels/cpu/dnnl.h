/* The parts of oneDNN that the kernels here need: tensors, calls, and descriptions of convolutions and
 * reorders.
 *
 * Contract: describing a call and call_ready() allocate everything; call_run() binds pointers and executes. Scratchpads
 * are always the caller's. */
#pragma once

#include "dnnl_major.h"
#include "model/graph.h"

enum { CALL_ARGUMENTS_MAX = 6 };

/* How an image lies in memory: the batch is outermost in each. */
enum order {
    ORDER_LOGICAL,    /* N H W C, the order of everything outside kernels */
    ORDER_BLOCKED_8,  /* N C/8 H W 8, channels padded with zeros: fastest for 256-bit convolutions */
    ORDER_BLOCKED_16, /* N C/16 H W 16: 512-bit */
    ORDER_ANY,        /* the primitive's choice */
};

enum { BLOCK_MOST = 16 };

/* Channels in a block; 1 where the order has none. */
static inline int64_t order_block(enum order order)
{
    return order == ORDER_BLOCKED_8 ? 8 : order == ORDER_BLOCKED_16 ? 16 : 1;
}

/* A batch of images of shape {H, W, C}, or of vectors {C} as 1x1 images. */
struct tensor tensor_images(int64_t batch, const struct shape *shape, enum order order);
/* Weights of shape {O, I / groups, H, W}, ORDER_LOGICAL: in that order; and a vector of n. */
struct tensor tensor_weights(const struct shape *shape, int64_t groups, enum order order);
struct tensor tensor_vector(int64_t n);
bool tensor_equal(const struct tensor *a, const struct tensor *b);

/* One primitive with its arguments. All zero: none. */
struct call {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    int arguments;
    dnnl_exec_arg_t argument[CALL_ARGUMENTS_MAX];
};

/* The engine and the stream that calls run on. */
enum status dnnl_open(dnnl_engine_t *engine, dnnl_stream_t *stream);
void dnnl_close(dnnl_engine_t engine, dnnl_stream_t stream);
/* "avx512_core", and the order in which images are blocked for it; "oneDNN 2.6.3 (omp)" into text (at least 64 bytes).
 */
const char *dnnl_isa(enum order *blocked);
void dnnl_library(char *text, size_t room);

/* Each returns false where the library has no implementation. */
bool call_conv(dnnl_engine_t engine, const struct conv_call *conv, struct call *call);
/* add: to += from, else to = from. */
bool call_reorder(dnnl_engine_t engine, const struct tensor *from, const struct tensor *to, bool add,
                  struct call *call);

/* The order of a described call's argument (DNNL_ARG_...) and its bytes, the call's scratchpad in bytes, and the
 * implementation's name, which lives as long as the call. */
struct tensor call_tensor(const struct call *call, int argument);
size_t call_bytes(const struct call *call, int argument);
size_t call_scratch(const struct call *call);
const char *call_implementation(const struct call *call);

/* Creates the primitive and a memory for each argument; those that the call does not have are left out. */
enum status call_ready(struct call *call, dnnl_engine_t engine, dnnl_stream_t stream, int arguments,
                       const int *argument);
/* Executes on pointers in the order given to call_ready(); those of arguments left out are ignored. */
enum status call_run(const struct call *call, const void *const *pointer);
/* Frees everything; the call is all zero then. */
void call_release(struct call *call);
