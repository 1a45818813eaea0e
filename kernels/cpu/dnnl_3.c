/* oneDNN 3: descriptors of memory are opaque, a primitive is described by one call. */
#include "dnnl_major.h"

dnnl_status_t descriptor_make(const struct tensor *tensor, descriptor *desc)
{
    dnnl_memory_desc_t made = NULL;
    const dnnl_status_t status =
        dnnl_memory_desc_create_with_tag(&made, tensor->rank, tensor->dims, dnnl_f32, tensor->tag);
    *desc = status == dnnl_success ? made : NULL;
    return status;
}

void descriptor_free(descriptor desc)
{
    if (desc != NULL) dnnl_memory_desc_destroy((dnnl_memory_desc_t)(uintptr_t)desc);
}

int descriptor_rank(descriptor desc)
{
    int rank = 0;
    return dnnl_memory_desc_query(desc, dnnl_query_ndims_s32, &rank) == dnnl_success ? rank : 0;
}

dnnl_status_t append_relu(dnnl_post_ops_t operations)
{
    return dnnl_post_ops_append_eltwise(operations, dnnl_eltwise_relu, 0.0f, 0.0f);
}

dnnl_status_t append_sum(dnnl_post_ops_t operations)
{
    return dnnl_post_ops_append_sum(operations, 1.0f, 0, dnnl_data_type_undef);
}

static const dnnl_dims_t no_dilation = {0, 0};

/* A backward needs its forward as a hint, but for convolutions the library accepts none. */
dnnl_status_t describe_conv(dnnl_engine_t engine, const struct conv_call *conv, const struct conv_descriptors *d,
                            const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *desc)
{
    const dnnl_dims_t strides = {conv->stride, conv->stride}, padding = {conv->padding, conv->padding};
    const dnnl_alg_kind_t algorithm = dnnl_convolution_direct;
    if (conv->pass == CONV_FORWARD)
        return dnnl_convolution_forward_primitive_desc_create(desc, engine, dnnl_forward_training, algorithm, d->x,
                                                              d->w, d->b, d->y, strides, no_dilation, padding, padding,
                                                              attr);
    if (conv->pass == CONV_PARAMS)
        return dnnl_convolution_backward_weights_primitive_desc_create(
            desc, engine, algorithm, d->x, d->w, d->b, d->y, strides, no_dilation, padding, padding, NULL, attr);
    return dnnl_convolution_backward_data_primitive_desc_create(desc, engine, algorithm, d->x, d->w, d->y, strides,
                                                                no_dilation, padding, padding, NULL, attr);
}
