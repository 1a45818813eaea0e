/* Descriptions of tensors and primitives, which oneDNN 2 and 3 make differently. dnnl_2.c or dnnl_3.c implements this
 * file; make compiles the one of the major that it finds. */
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdint.h>

/* A memory descriptor of the library's. */
#if DNNL_VERSION_MAJOR == 2
typedef const dnnl_memory_desc_t *descriptor;
#else
typedef const_dnnl_memory_desc_t descriptor;
#endif

/* Shape and physical order of one argument: as a described call has it, or by dimensions and tag. */
struct tensor {
    descriptor of_call; /* lives as long as the call; NULL: the others say it */
    int rank;
    dnnl_dims_t dims;
    dnnl_format_tag_t tag;
};

enum conv_pass { CONV_FORWARD, CONV_PARAMS, CONV_INPUT, CONV_PASSES };

/* A convolution; in backward passes x, w, b and y stand for themselves or for their gradients. */
struct conv_call {
    enum conv_pass pass;
    bool bias, relu;
    int64_t stride, padding;
    struct tensor x, w, b, y;
};

/* A pooling. */
struct pool_call {
    bool max, save; /* save: writes the indices of the maxima as a workspace */
    int64_t kernel, stride, padding;
    bool count_padding; /* averages count it as zeros */
    struct tensor x, y;
};

/* A descriptor of tensor's dimensions and tag, for descriptor_free(). */
dnnl_status_t descriptor_make(const struct tensor *tensor, descriptor *desc);
void descriptor_free(descriptor desc);
/* Dimensions; 0: of an argument that a call does not have. */
int descriptor_rank(descriptor desc);

dnnl_status_t append_relu(dnnl_post_ops_t operations);
dnnl_status_t append_sum(dnnl_post_ops_t operations);

/* Each describes a primitive. Descriptors in the order of struct conv_call's and pool_call's tensors; b NULL: no bias;
 * forward NULL: a forward. */
struct conv_descriptors {
    descriptor x, w, b, y;
};
dnnl_status_t describe_conv(dnnl_engine_t engine, const struct conv_call *conv, const struct conv_descriptors *d,
                            const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *desc);
dnnl_status_t describe_pool(dnnl_engine_t engine, const struct pool_call *pool, descriptor x, descriptor y,
                            const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr,
                            dnnl_primitive_desc_t *desc);
static inline dnnl_alg_kind_t pool_algorithm(const struct pool_call *pool)
{
    if (pool->max) return dnnl_pooling_max;
    return pool->count_padding ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
}
static inline dnnl_prop_kind_t pool_kind(const struct pool_call *pool)
{
    return pool->save ? dnnl_forward_training : dnnl_forward_inference;
}
