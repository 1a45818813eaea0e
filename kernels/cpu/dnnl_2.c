/* oneDNN 2: descriptors of memory and of operations are structs by value. */
#include "dnnl_major.h"

#include <stdlib.h>

#include "base/region.h"

dnnl_status_t descriptor_make(const struct tensor *tensor, descriptor *desc)
{
    dnnl_memory_desc_t *made = allocate(1, sizeof *made);
    *desc = made;
    return dnnl_memory_desc_init_by_tag(made, tensor->rank, tensor->dims, dnnl_f32, tensor->tag);
}

void descriptor_free(descriptor desc) { free((void *)(uintptr_t)desc); }

int descriptor_rank(descriptor desc) { return desc->ndims; }

dnnl_status_t append_relu(dnnl_post_ops_t operations)
{
    return dnnl_post_ops_append_eltwise(operations, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
}

dnnl_status_t append_sum(dnnl_post_ops_t operations) { return dnnl_post_ops_append_sum(operations, 1.0f); }

/* A backward needs its forward as a hint, but for convolutions the library accepts none. */
dnnl_status_t describe_conv(dnnl_engine_t engine, const struct conv_call *conv, const struct conv_descriptors *d,
                            const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *desc)
{
    const dnnl_dims_t strides = {conv->stride, conv->stride}, padding = {conv->padding, conv->padding};
    const dnnl_alg_kind_t algorithm = dnnl_convolution_direct;
    dnnl_convolution_desc_t operation;
    dnnl_status_t status = dnnl_unimplemented;
    if (conv->pass == CONV_FORWARD)
        status = dnnl_convolution_forward_desc_init(&operation, dnnl_forward_training, algorithm, d->x, d->w, d->b,
                                                    d->y, strides, padding, padding);
    else if (conv->pass == CONV_PARAMS)
        status = dnnl_convolution_backward_weights_desc_init(&operation, algorithm, d->x, d->w, d->b, d->y, strides,
                                                             padding, padding);
    else
        status = dnnl_convolution_backward_data_desc_init(&operation, algorithm, d->x, d->w, d->y, strides, padding,
                                                          padding);
    return status != dnnl_success ? status : dnnl_primitive_desc_create(desc, &operation, attr, engine, NULL);
}
