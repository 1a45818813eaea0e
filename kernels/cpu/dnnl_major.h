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

/* A descriptor of tensor's dimensions and tag, for descriptor_free(). */
dnnl_status_t descriptor_make(const struct tensor *tensor, descriptor *desc);
void descriptor_free(descriptor desc);
/* Dimensions; 0: of an argument that a call does not have. */
int descriptor_rank(descriptor desc);

dnnl_status_t append_relu(dnnl_post_ops_t operations);
dnnl_status_t append_sum(dnnl_post_ops_t operations);

/* Describes a convolution. Descriptors in the order of struct conv_call's tensors; b NULL: no bias. */
struct conv_descriptors {
    descriptor x, w, b, y;
};
dnnl_status_t describe_conv(dnnl_engine_t engine, const struct conv_call *conv, const struct conv_descriptors *d,
                            const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *desc);
