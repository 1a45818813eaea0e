/* What differs between oneDNN 2 and 3. dnnl_2.c or dnnl_3.c implements it; make compiles the one of the major that it
 * finds. */
#pragma once

#include "dnnl.h"

/* Instruction sets, the widest first, up to a name NULL. */
struct isa_name {
    unsigned isa;
    const char *name;
};
extern const struct isa_name isa_names[];

/* Whether the library has Winograd convolutions for AVX-512. */
extern const bool library_winograd;

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
dnnl_status_t describe_inner_product(dnnl_engine_t engine, const struct conv_descriptors *d,
                                     const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *desc);

static inline dnnl_alg_kind_t conv_algorithm(const struct conv_call *conv)
{
    return conv->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
}
static inline dnnl_alg_kind_t pool_algorithm(const struct pool_call *pool)
{
    return pool->max ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
}
static inline dnnl_prop_kind_t pool_kind(const struct pool_call *pool)
{
    return pool->save ? dnnl_forward_training : dnnl_forward_inference;
}
