/* oneDNN's convolutions, 2 or 3, in the orders of operands that it prefers: a rival in times. */
#pragma once

#include "kernels/cpu/image.h"

struct conv_shape {
    int64_t batch, side, inputs, outputs, kernel, stride, padding, groups;
};

struct onednn;
/* Its operands are random; ends the program where there is no such convolution. */
struct onednn *onednn_open(const struct conv_shape *shape, enum conv_pass pass, float *numbers(int64_t count));
void onednn_run(const struct onednn *conv);
void onednn_close(struct onednn *conv);
