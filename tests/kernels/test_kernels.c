/* Kernels of the cpu and cuda backends against the reference kernels, in every layout, algorithm and chunk; and the
 * executor's assumptions: equal arguments give equal bits, in place or not, saving or not, in one part or two. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "tests/support/images.h"
#include "tests/support/layer_under_test.h"
#include "tests/support/token_batches.h"

enum { LAST = LAYOUT_CHANNELS_LAST, FIRST = LAYOUT_CHANNELS_FIRST, RELU = ACTIVATION_RELU, TANH = ACTIVATION_TANH };
#define WINDOW(k, s, p)                                                                                                \
    {                                                                                                                  \
        .kernel = k, .stride = s, .padding = p                                                                         \
    }
/* The bias is left out where there is no relu. */
#define GROUPED(c, g, s, a)                                                                                            \
    {                                                                                                                  \
        .channels = c, .groups = g, .kernel = 3, .stride = s, .padding = 1, .activation = a, .bias = a == RELU         \
    }
#define DILATED(c, k, s, p, d, g)                                                                                      \
    {                                                                                                                  \
        .channels = c, .kernel = k, .stride = s, .padding = p, .dilation = d, .groups = g, .bias = true                \
    }

static const struct subject_case cases[] = {
    /* convolutions: layer, x, settings, batch, bits, first, layout, algorithm, limit; what is left out is 0 */
    {"conv", IMAGE(9, 7, 5), CONV(6, 3, 1, 1, RELU), 3, false, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(9, 7, 5), CONV(6, 3, 1, 1, RELU), 3, true, false, FIRST, 0, KIB(65536)},
    {"conv", IMAGE(12, 13, 20), CONV(10, 5, 1, 2, RELU), 2, true, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(12, 13, 10), CONV(40, 5, 1, 2, RELU), 2, false, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(11, 8, 16), CONV(32, 3, 2, 1, RELU), 4, true, false, FIRST, 0, KIB(4096)},
    {"conv", IMAGE(11, 8, 16), CONV(32, 3, 2, 0, 0), 4, false, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(6, 6, 32), CONV(16, 1, 1, 0, RELU), 1, true, false, FIRST, 0, KIB(4096)},
    {"conv", IMAGE(6, 6, 32), CONV(18, 1, 2, 0, RELU), 5, true, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(16, 15, 16), CONV(32, 3, 1, 1, RELU), 5, true, false, FIRST, CONV_WINOGRAD, KIB(65536)},
    {"conv", IMAGE(20, 16, 64), CONV(64, 3, 1, 1, RELU), 7, false, false, FIRST, CONV_WINOGRAD, KIB(65536)},
    {"conv", IMAGE(28, 30, 16), CONV(48, 3, 1, 1, RELU), 5, true, false, FIRST, CONV_WINOGRAD, KIB(10240)},
    {"conv", IMAGE(19, 18, 32), CONV(64, 3, 1, 1, 0), 5, false, false, FIRST, CONV_DIRECT, KIB(1)},
    {"conv", IMAGE(10, 10, 64), CONV(48, 3, 1, 1, RELU), 3, false, false, FIRST},
    {"conv", IMAGE(17, 18, 3), CONV(16, 3, 1, 1, RELU), 5, true, true, FIRST, 0, KIB(8)},
    {"conv", IMAGE(17, 18, 3), CONV(16, 3, 1, 1, RELU), 5, true, true, LAST, 0, KIB(4096)},
    {"conv", IMAGE(16, 16, 1), CONV(10, 5, 1, 2, RELU), 3, false, true, LAST, 0, KIB(4096)},
    {"conv", IMAGE(12, 12, 1), CONV(16, 5, 1, 2, RELU), 2, false, true, FIRST, 0, KIB(4096)},
    {"conv", IMAGE(8, 8, 24), CONV(32, 3, 1, 1, RELU), 2, false, true, FIRST, 0, KIB(4096)},
    {"conv", IMAGE(8, 8, 16), GROUPED(16, 1, 1, 0), 3, false, false, FIRST, 0, KIB(65536)},
    {"conv", IMAGE(4, 4, 3), CONV(7, 4, 1, 0, 0), 1, false, true, LAST, 0, KIB(4096)},
    {"conv", IMAGE(5, 5, 3), CONV(3, 3, 1, 1, RELU), 11, true, false, FIRST, CONV_DIRECT, KIB(13)},
    {"conv", IMAGE(5, 5, 3), CONV(3, 3, 1, 1, RELU), 11, true, false, LAST, CONV_DIRECT, KIB(10)},
    /* so many pixels that a device shares the weights' gradient out: a lane for each chunk, for two, for all */
    {"conv", IMAGE(64, 64, 2), CONV(3, 3, 1, 1, RELU), 5, true, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(48, 48, 3), CONV(4, 3, 1, 1, RELU), 7, false, false, FIRST, 0, KIB(4096)},
    {"conv", IMAGE(48, 48, 3), CONV(4, 3, 1, 1, RELU), 7, false, false, FIRST, CONV_DIRECT, KIB(4)},
    {"conv", IMAGE(48, 48, 3), CONV(4, 3, 1, 1, RELU), 7, false, false, FIRST, CONV_WINOGRAD, KIB(10)},
    /* Winograd's: edges of tiles, channels that fill no block, padding from 0 to 2, a batch in logical order */
    {"conv", IMAGE(13, 11, 20), CONV(37, 3, 1, 0, RELU), 7, true, false, LAST, CONV_WINOGRAD, KIB(65536)},
    {"conv", IMAGE(13, 11, 20), CONV(37, 3, 1, 1, 0), 1, false, false, FIRST, CONV_WINOGRAD, KIB(65536)},
    {"conv", IMAGE(6, 22, 33), CONV(17, 3, 1, 2, RELU), 7, false, false, FIRST, CONV_WINOGRAD, KIB(2048)},
    {"conv", IMAGE(6, 22, 33), CONV(70, 3, 1, 1, RELU), 1, true, false, LAST, CONV_WINOGRAD, KIB(2048)},
    {"conv", IMAGE(17, 18, 3), CONV(16, 3, 1, 1, RELU), 5, true, true, FIRST, CONV_WINOGRAD, KIB(65536)},
    {"conv", IMAGE(16, 16, 32), GROUPED(32, 1, 1, 0), 7, false, false, FIRST, CONV_WINOGRAD, KIB(65536)},
    {"conv", IMAGE(13, 11, 20), CONV(37, 5, 1, 0, RELU), 3, true, false, LAST, CONV_WINOGRAD, KIB(65536)},
    {"conv", IMAGE(13, 12, 10), CONV(40, 5, 1, 2, RELU), 5, true, false, FIRST, CONV_WINOGRAD, KIB(2048)},
    {"conv", IMAGE(6, 22, 33), CONV(17, 5, 1, 4, 0), 2, false, false, LAST, CONV_WINOGRAD, KIB(65536)},
    {"conv", IMAGE(17, 18, 1), CONV(10, 5, 1, 2, RELU), 5, true, true, FIRST, CONV_WINOGRAD, KIB(65536)},
    /* convolutions in groups: depthwise, with channels that fill blocks and that do not, and less than depthwise */
    {"conv", IMAGE(9, 8, 32), GROUPED(32, 32, 1, RELU), 3, true, false, FIRST, 0, KIB(4096)},
    {"conv", IMAGE(9, 8, 32), GROUPED(32, 32, 1, RELU), 3, false, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(9, 8, 20), GROUPED(20, 20, 2, 0), 3, false, false, FIRST, 0, KIB(4096)},
    {"conv", IMAGE(9, 8, 20), GROUPED(20, 20, 2, RELU), 3, true, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(9, 8, 20), GROUPED(20, 20, 1, RELU), 5, true, false, FIRST, 0, KIB(2)},
    {"conv", IMAGE(9, 8, 16), GROUPED(32, 16, 1, 0), 2, false, false, LAYOUT_AUTO, 0, KIB(4096)},
    {"conv", IMAGE(9, 8, 64), GROUPED(32, 2, 1, RELU), 3, true, false, FIRST, CONV_WINOGRAD, KIB(4096)},
    {"conv", IMAGE(9, 8, 64), GROUPED(32, 2, 1, RELU), 3, false, false, LAST, CONV_WINOGRAD, KIB(4096)},
    {"conv", IMAGE(9, 8, 12), GROUPED(6, 3, 2, RELU), 3, true, false, LAYOUT_AUTO, 0, KIB(4096)},
    {"conv", IMAGE(9, 8, 12), GROUPED(6, 3, 2, RELU), 3, false, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(9, 8, 16), GROUPED(16, 16, 1, 0), 3, false, true, LAST, 0, KIB(4096)},
    {"conv", IMAGE(9, 8, 16), GROUPED(16, 16, 1, 0), 3, false, true, FIRST, 0, KIB(4096)},
    /* more spans than the weights' gradient keeps at once */
    {"conv",
     IMAGE(72, 72, 64),
     {.channels = 64, .groups = 8, .kernel = 5, .stride = 1, .padding = 2, .bias = true},
     2,
     false,
     false,
     LAST,
     0,
     KIB(4096)},
    /* pixels between those under a kernel: of products, in groups, and where taps meet a stride seldom or never */
    {"conv", IMAGE(13, 12, 20), DILATED(10, 3, 1, 2, 2, 1), 3, true, false, FIRST, 0, KIB(4096)},
    {"conv", IMAGE(13, 12, 20), DILATED(10, 3, 1, 0, 5, 1), 3, false, false, LAST, CONV_WINOGRAD, KIB(4096)},
    {"conv", IMAGE(13, 12, 20), DILATED(10, 3, 2, 3, 3, 1), 3, false, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(14, 17, 6), DILATED(7, 4, 4, 7, 6, 1), 2, false, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(14, 17, 6), DILATED(7, 2, 2, 9, 4, 1), 2, false, true, LAST, 0, KIB(4096)},
    {"conv", IMAGE(13, 12, 20), DILATED(20, 3, 1, 2, 2, 20), 3, true, false, FIRST, 0, KIB(4096)},
    {"conv", IMAGE(13, 40, 20), DILATED(20, 3, 2, 3, 3, 20), 3, false, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(13, 40, 20), DILATED(20, 3, 2, 9, 8, 5), 3, false, false, LAST, 0, KIB(4096)},
    {"conv", IMAGE(4, 3, 20), DILATED(20, 3, 1, 9, 8, 20), 3, false, false, LAST, 0, KIB(4096)},
    {"conv_transpose", IMAGE(6, 5, 20), DILATED(12, 3, 2, 1, 3, 1), 3, false, false, LAST, 0, KIB(4096)},
    /* transposed: products, Winograd's, pixels under no tap, a batch in logical order */
    {"conv_transpose", IMAGE(6, 5, 20), CONV(12, 2, 2, 0, 0), 3, false, false, FIRST, 0, KIB(4096)},
    {"conv_transpose", IMAGE(6, 5, 20), CONV(12, 2, 2, 0, 0), 3, false, false, LAST, 0, KIB(4096)},
    {"conv_transpose", IMAGE(9, 8, 20), CONV(37, 3, 1, 1, 0), 5, false, false, FIRST, CONV_WINOGRAD, KIB(65536)},
    {"conv_transpose", IMAGE(9, 8, 20), CONV(37, 3, 1, 0, 0), 5, false, false, LAST, CONV_WINOGRAD, KIB(65536)},
    {"conv_transpose", IMAGE(9, 8, 20), CONV(10, 5, 1, 2, 0), 5, false, false, FIRST, CONV_WINOGRAD, KIB(65536)},
    {"conv_transpose", IMAGE(9, 8, 10), CONV(21, 5, 1, 1, 0), 3, false, false, LAST, CONV_WINOGRAD, KIB(65536)},
    {"conv_transpose",
     IMAGE(6, 5, 20),
     {.channels = 7, .kernel = 3, .stride = 2, .padding = 1, .output_padding = 1, .bias = true},
     3,
     false,
     false,
     FIRST,
     0,
     KIB(4096)},
    {"conv_transpose", IMAGE(6, 5, 7), CONV(20, 2, 3, 0, 0), 3, false, false, FIRST, 0, KIB(64)},
    {"conv_transpose", IMAGE(6, 5, 3), CONV(20, 4, 2, 1, 0), 3, false, true, FIRST, 0, KIB(4096)},
    {"conv_transpose",
     IMAGE(40, 40, 20),
     {.channels = 3, .kernel = 5, .stride = 2, .padding = 2},
     2,
     false,
     false,
     LAST,
     0,
     KIB(4096)},
    {"pad", IMAGE(6, 5, 20), {.top = 1, .bottom = 2, .left = 3}, 3, false, false, FIRST},
    {"pad", IMAGE(6, 5, 20), {.top = -1, .bottom = -2, .left = 3, .right = -4}, 3, false, false, LAST},
    {"pad", IMAGE(6, 5, 20), {.top = -3, .bottom = 7, .left = -2, .right = -2}, 3, false, false, FIRST},
    {"pad", IMAGE(6, 5, 3), {.right = 1}, 3, false, true, LAST},
    /* vectors */
    {"linear", {1, {33}}, {.units = 17, .activation = RELU, .bias = true}, 5, true},
    {"linear", {1, {33}}, {.units = 600, .activation = RELU, .bias = true}, 5},
    {"linear", {1, {257}}, {.units = 10, .activation = TANH, .bias = true}, 1},
    {"linear", {1, {64}}, {.units = 32}, 64, false, true},
    {"relu", {1, {515}}, {0}, 3, true},
    /* sequences */
    {"linear", {2, {9, 33}}, {.units = 17, .activation = RELU, .bias = true}, 5, true},
    {"linear", {2, {9, 33}}, {.units = 17, .activation = RELU, .bias = true}, 5},
    {"linear", {2, {130, 64}}, {.units = 600, .bias = true}, 4},
    {"linear", {2, {1, 64}}, {.units = 32, .activation = TANH, .bias = true}, 1},
    {"linear", {2, {7, 40}}, {.units = 3}, 3, false, true},
    {"linear", {2, {190, 40}}, {.units = 700, .activation = RELU, .bias = true}, 3, true},
    {"layernorm", {2, {13, 40}}, {.epsilon = 1e-12}, 3},
    {"layernorm", {2, {130, 67}}, {.epsilon = 0.1}, 4},
    {"layernorm", {2, {5, 768}}, {.epsilon = 1e-12}, 2, false, true},
    {"layernorm", {1, {33}}, {.epsilon = 1e-5}, 5},
    {"gelu", {2, {13, 515}}, {0}, 3},
    {"gelu", IMAGE(9, 8, 20), {0}, 3, false, false, FIRST},
    {"silu", IMAGE(9, 8, 20), {0}, 3, false, false, FIRST},
    {"silu", {2, {13, 515}}, {0}, 3},
    {"hardswish", IMAGE(9, 8, 20), {0}, 3, false, false, FIRST},
    {"sigmoid", IMAGE(9, 8, 20), {0}, 3, false, false, FIRST},
    {"sigmoid", IMAGE(9, 8, 32), {0}, 3, false, false, FIRST},
    {"sigmoid", IMAGE(9, 8, 20), {0}, 3, false, false, LAST},
    {"tanh", IMAGE(9, 8, 20), {0}, 3, false, false, FIRST},
    {"leaky_relu", IMAGE(9, 8, 20), {.slope = 0.2}, 3, false, false, FIRST},
    {"scale", IMAGE(9, 8, 20), {.by = -0.3}, 3, false, false, FIRST},
    {"batch_norm", {1, {33}}, {.epsilon = 1e-5, .activation = RELU, .affine = true}, 5},
    {"batch_norm", {1, {700}}, {.epsilon = 1e-5, .affine = true}, 70, false, true},
    {"batch_norm", IMAGE(9, 7, 5), {.epsilon = 1e-5, .activation = RELU, .affine = true}, 3, false, false, LAST},
    {"batch_norm", IMAGE(9, 7, 20), {.epsilon = 1e-5, .activation = RELU, .affine = true}, 3, false, false, FIRST},
    {"batch_norm", IMAGE(60, 61, 16), {.epsilon = 1e-5}, 2, false, false, FIRST},
    {"batch_norm", IMAGE(60, 61, 1), {.epsilon = 1e-5, .activation = RELU}, 6, false, false, LAST},
    {"batch_norm", IMAGE(7, 7, 257), {.epsilon = 0.1, .activation = RELU, .affine = true}, 5, false, false, LAST},
    {"batch_norm_add", {1, {33}}, {.epsilon = 1e-5, .activation = RELU, .affine = true}, 5, true},
    {"batch_norm_add", {1, {33}}, {.epsilon = 1e-5, .affine = true}, 5},
    {"batch_norm_add", IMAGE(9, 7, 5), {.epsilon = 1e-5, .activation = RELU, .affine = true}, 3, false, false, LAST},
    {"batch_norm_add", IMAGE(9, 7, 20), {.epsilon = 1e-5, .activation = RELU, .affine = true}, 3, true, false, FIRST},
    {"batch_norm_add", IMAGE(9, 7, 20), {.epsilon = 1e-5, .activation = RELU}, 3, false, false, FIRST},
    {"batch_norm_add", IMAGE(60, 61, 16), {.epsilon = 1e-5}, 2, false, true, LAST},
    {"batch_norm_add", IMAGE(7, 7, 48), {.epsilon = 1e-5, .activation = RELU}, 3, true, false, FIRST},
    {"batch_norm_add", IMAGE(60, 61, 80), {.epsilon = 1e-5, .activation = RELU, .affine = true}, 5, true, false, FIRST},
    {"batch_norm_add", IMAGE(60, 61, 80), {.epsilon = 1e-5, .activation = RELU}, 5, false, false, FIRST},
    {"batch_norm_add", IMAGE(80, 81, 90), {.epsilon = 1e-5, .activation = RELU, .affine = true}, 2, true, true, LAST},
    {"select", {2, {13, 515}}, {0}, 3},
    {"select", {2, {13, 40}}, {.token = 12}, 3},
    {"relu", {2, {13, 515}}, {0}, 3, true},
    {"dropout", {2, {13, 515}}, {.rate = 0.1}, 3},
    {"add", {2, {13, 515}}, {0}, 3},
    {"concat", {2, {13, 515}}, {.other = 40}, 3},
    {"concat", {1, {33}}, {.other = 700}, 5},
    {"dropout", {1, {4500}}, {.rate = 0.5}, 3},
    /* text */
    {"embedding", {2, {3, 7}}, {.units = 35, .vocabulary = 11, .positions = 9, .segments = 2}, 3, false, true},
    {"embedding", {2, {3, 5}}, {.units = 3, .vocabulary = 9, .positions = 5, .segments = 2}, 2, false, true},
    {"embedding", {2, {3, 7}}, {.units = 35, .vocabulary = 11}, 3, false, true},
    {"embedding", {2, {3, 7}}, {.units = 35, .vocabulary = 11, .segments = 3}, 3, false, true},
    {"embedding", {2, {3, 7}}, {.units = 35, .vocabulary = 11, .positions = 9}, 3, false, true},
    {"attention", {2, {9, 24}}, {.heads = 2, .rate = 0.2}, 3},
    {"attention", {2, {17, 99}}, {.heads = 3, .rate = 0.1, .save = SAVE_NOTHING}, 2},
    {"attention", {2, {70, 48}}, {.heads = 1, .rate = 0.5, .save = SAVE_NOTHING}, 2},
    {"attention", {2, {40, 96}}, {.heads = 4}, 2},
    {"attention", {2, {1, 12}}, {.heads = 2, .save = SAVE_NOTHING}, 1},
    {"attention", {2, {17, 48}}, {.heads = 2, .of_image = true}, 3},
    {"attention", {2, {70, 48}}, {.heads = 1, .rate = 0.1, .save = SAVE_NOTHING, .of_image = true}, 2},
    {"cross_attention", {2, {9, 24}}, {.heads = 2, .rate = 0.2, .other = 48, .second = SECOND_LONGER}, 3},
    {"cross_attention", {2, {1, 36}}, {.heads = 3, .other = 72, .save = SAVE_NOTHING, .second = SECOND_LONGER}, 5},
    {"cross_attention", {2, {131, 48}}, {.heads = 4, .kv_heads = 2, .rate = 0.1, .other = 48}, 2},
    {"attention", {2, {150, 24}}, {.heads = 2, .causal = true}, 2},
    {"attention", {2, {64, 30}}, {.heads = 1, .rate = 0.1, .causal = true, .save = SAVE_NOTHING}, 2},
    {"attention", {2, {129, 48}}, {.heads = 2, .rate = 0.5, .causal = true, .save = SAVE_NOTHING}, 2},
    {"attention", {2, {17, 48}}, {.heads = 2, .rope = true}, 3},
    {"attention", {2, {70, 48}}, {.heads = 4, .kv_heads = 2, .rate = 0.1}, 2},
    {"attention", {2, {131, 40}}, {.heads = 6, .kv_heads = 2, .rate = 0.1, .causal = true, .rope = true}, 2},
    {"attention", {2, {131, 24}}, {.heads = 2, .kv_heads = 1, .causal = true, .rope = true, .save = SAVE_NOTHING}, 2},
    {"attention", {2, {40, 96}}, {.heads = 4, .rate = 0.1}, 7, false, false, 0, 0, KIB(4096 + 4 + 3 * 50)},
    {"attention", {2, {9, 24}}, {.heads = 4, .save = SAVE_NOTHING}, 5, false, false, 0, 0, KIB(4096 + 8)},
    /* pools */
    {"max_pool", IMAGE(8, 10, 16), WINDOW(2, 0, 0), 3, false, false, FIRST},
    {"max_pool", IMAGE(9, 7, 20), WINDOW(2, 2, 0), 3, false, false, LAST},
    {"max_pool", IMAGE(9, 7, 20), WINDOW(3, 2, 1), 2, false, false, FIRST},
    {"max_pool", IMAGE(9, 7, 5), WINDOW(3, 1, 1), 2, false, false, LAST},
    {"max_pool", IMAGE(9, 7, 5), WINDOW(1, 1, 0), 2, false, false, LAST},
    {"max_pool", IMAGE(9, 7, 5), WINDOW(1, 2, 0), 2, false, false, LAST},
    {"max_pool", IMAGE(20, 20, 3), WINDOW(17, 1, 0), 1, false, false, LAST},
    {"max_pool", IMAGE(9, 7, 3), WINDOW(2, 2, 0), 2, false, true, LAST},
    {"max_pool", IMAGE(8, 10, 16), {.kernel = 2, .activation = RELU}, 3, false, false, FIRST},
    {"max_pool", IMAGE(9, 7, 20), {.kernel = 3, .stride = 2, .padding = 1, .activation = RELU}, 2, false, false, LAST},
    {"max_pool", IMAGE(9, 7, 5), {.kernel = 1, .activation = RELU}, 2, false, false, LAST},
    {"max_pool", IMAGE(9, 7, 20), WINDOW(3, 1, 2), 2, false, false, FIRST},
    {"max_pool", IMAGE(9, 7, 5), WINDOW(4, 3, 3), 2, false, false, LAST},
    {"avg_pool", IMAGE(8, 10, 16), WINDOW(2, 0, 0), 3, false, false, FIRST},
    {"avg_pool", IMAGE(9, 7, 20), WINDOW(3, 1, 2), 2, false, false, FIRST},
    {"avg_pool", IMAGE(9, 7, 5), WINDOW(4, 3, 3), 2, false, false, LAST},
    {"avg_pool", IMAGE(9, 7, 20), WINDOW(3, 2, 1), 2, false, false, FIRST},
    {"avg_pool", IMAGE(9, 7, 5), WINDOW(3, 2, 1), 2, false, false, LAST},
    {"avg_pool", IMAGE(9, 7, 5), WINDOW(1, 1, 0), 2, false, false, LAST},
    {"avg_pool", IMAGE(9, 7, 20), {.kernel = 3, .padding = 2, .count_padding = true}, 2, false, false, FIRST},
    {"avg_pool", IMAGE(9, 7, 5), {.kernel = 4, .padding = 3, .count_padding = true}, 2, false, false, LAST},
    {"max_pool", IMAGE(9, 7, 20), {.kernel = 4, .stride = 3, .ceil_mode = true}, 2, false, false, FIRST},
    {"max_pool", IMAGE(9, 8, 5), {.kernel = 2, .padding = 1, .ceil_mode = true}, 2, false, false, LAST},
    {"avg_pool", IMAGE(9, 7, 20), {.kernel = 4, .stride = 3, .ceil_mode = true}, 2, false, false, FIRST},
    {"avg_pool",
     IMAGE(9, 8, 5),
     {.kernel = 3, .padding = 1, .count_padding = true, .ceil_mode = true},
     2,
     false,
     false,
     LAST},
    {"global_avg_pool", IMAGE(7, 6, 33), {0}, 3, false, false, LAST},
    {"global_avg_pool", IMAGE(7, 6, 33), {0}, 3, false, false, FIRST},
    /* elements */
    {"flatten", IMAGE(5, 4, 20), {0}, 3, false, false, FIRST},
    {"flatten", IMAGE(5, 4, 20), {0}, 3, false, false, LAST},
    {"flatten", IMAGE(5, 4, 3), {0}, 2, false, true, FIRST},
    {"tokens", IMAGE(5, 4, 20), {0}, 3, false, false, FIRST},
    {"tokens", IMAGE(5, 4, 20), {0}, 3, false, false, LAST},
    {"tokens", IMAGE(5, 4, 3), {0}, 2, false, true, FIRST},
    {"pixels", {2, {20, 20}}, {.height = 4}, 3, false, false, FIRST},
    {"pixels", {2, {16, 32}}, {0}, 3, false, false, LAST},
    {"class_token", {2, {130, 67}}, {0}, 3},
    {"class_token", {2, {5, 16}}, {0}, 300},
    {"positions", {2, {130, 67}}, {0}, 3},
    {"positions", {2, {5, 16}}, {0}, 300},
    {"latents", {2, {5, 16}}, {.tokens = 130, .units = 67}, 3},
    {"latents", {2, {5, 16}}, {.tokens = 5, .units = 16}, 300},
    {"global_avg_pool", {2, {130, 67}}, {0}, 3},
    {"relu", IMAGE(9, 8, 20), {0}, 3, true, false, FIRST},
    {"relu", IMAGE(9, 8, 20), {0}, 3, false, false, FIRST},
    {"relu", IMAGE(200, 180, 3), {0}, 2, true, false, LAST},
    {"relu6", IMAGE(9, 8, 20), {0}, 3, false, false, FIRST},
    {"relu6", IMAGE(200, 180, 3), {0}, 2, false, false, LAST},
    {"relu6", {2, {13, 515}}, {0}, 3},
    {"upsample", IMAGE(5, 4, 20), {.factor = 2}, 3, false, false, FIRST},
    {"upsample", IMAGE(5, 4, 20), {.factor = 3}, 3, false, false, LAST},
    {"upsample", IMAGE(7, 6, 33), {.factor = 4}, 2, false, false, FIRST},
    {"upsample", IMAGE(7, 6, 3), {.factor = 2}, 3, false, true, LAST},
    {"dropout", IMAGE(9, 8, 20), {.rate = 0.25}, 3, false, false, FIRST},
    {"dropout", IMAGE(2, 3, 5003), {.rate = 0.25}, 2, false, false, FIRST},
    {"dropout", IMAGE(9, 8, 20), {.rate = 0.25}, 3, false, false, LAST},
    {"add", IMAGE(9, 8, 20), {0}, 3, false, false, FIRST},
    {"add", IMAGE(9, 8, 20), {0}, 3, false, false, LAST},
    {"rms_norm", {2, {300, 67}}, {.epsilon = 1e-6}, 3},
    {"rms_norm", {1, {33}}, {.epsilon = 1e-6}, 5},
    {"group_norm", IMAGE(9, 8, 20), {.epsilon = 1e-5, .groups = 4}, 3, false, false, FIRST},
    {"group_norm", IMAGE(9, 8, 36), {.epsilon = 1e-5, .groups = 3}, 3, false, false, FIRST},
    {"group_norm", IMAGE(9, 8, 32), {.epsilon = 1e-5, .groups = 32}, 2, false, false, FIRST},
    {"group_norm", IMAGE(9, 8, 150), {.epsilon = 1e-5, .groups = 1}, 3, false, false, LAST},
    {"group_norm", IMAGE(31, 17, 20), {.epsilon = 1e-5, .groups = 5}, 3, false, false, LAST},
    {"group_norm", IMAGE(9, 8, 20), {.epsilon = 1e-5, .groups = GROUPS_OF_ONE}, 3, false, false, FIRST},
    {"multiply", IMAGE(9, 8, 20), {0}, 3, false, false, FIRST},
    {"multiply", IMAGE(9, 8, 20), {.second = SECOND_VECTOR}, 3, false, false, FIRST},
    {"multiply", IMAGE(9, 9, 20), {.second = SECOND_PIXEL}, 3, false, false, FIRST},
    {"multiply", IMAGE(9, 8, 150), {.second = SECOND_VECTOR}, 3, false, false, LAST},
    {"multiply", IMAGE(31, 17, 32), {.second = SECOND_VECTOR}, 2, false, false, FIRST},
    {"multiply", {2, {13, 515}}, {.second = SECOND_VECTOR}, 3},
    {"concat", IMAGE(9, 8, 20), {.other = 5}, 3, false, false, LAST},
    {"concat", IMAGE(9, 8, 32), {.other = 16}, 3, false, false, FIRST},
    {"concat", IMAGE(9, 8, 16), {.other = 20}, 3, false, false, FIRST},
    {"concat", IMAGE(9, 8, 20), {.other = 12}, 3, false, false, FIRST}, /* no padding of y */
    {"concat", IMAGE(9, 8, 20), {.other = 37}, 3, false, false, FIRST},
    {"concat", IMAGE(9, 8, 3), {.other = 2}, 3, false, false, FIRST},
    {"concat", IMAGE(9, 8, 20), {0}, 1, false, false, FIRST},
    {"concat", IMAGE(9, 8, 3), {.other = 16}, 3, false, true, FIRST},
    {"concat", IMAGE(9, 8, 3), {.other = 16}, 3, false, true, LAST},
};
enum { CASES = sizeof cases / sizeof *cases };

static const char *const backends[] = {"cpu", "cuda"};
enum { BACKENDS = sizeof backends / sizeof *backends };
#define FOR_CASES(k, c)                                                                                                \
    for (int k = 0; k < BACKENDS; k++)                                                                                 \
        for (const struct subject_case *c = backend_opens(backends[k]) ? cases : cases + CASES; c < cases + CASES;     \
             c++)                                                                                                      \
            if (backend_has(backends[k], c->layer) && !backend_refuses(backends[k], &c->settings))

/* Gives both subjects the same inputs and parameters. */
static void fill(struct subject *s)
{
    const bool text = s->node->layer->reads_batch || !strcmp(s->node->layer->name, "embedding");
    for (int i = 0; i < s->node->layer->inputs; i++) {
        const int x = s->node->inputs[i];
        float *values = random_floats(subject_elements(s, x), (uint32_t)i);
        if (text && x == 0) sentences_make(values, s->graph->batch, s->graph->value[0].shape.dim[1], 9, 1);
        for (int64_t k = 0; k < subject_elements(s, x); k++) values[k] *= range_of(s->node->layer);
        subject_put(s, x, values, s->x[i].data);
        free(values);
    }
    for (int i = 0; i < s->node->parameters; i++) {
        float *values = random_floats((int64_t)(s->parameter[i].bytes / 4), 4 + (uint32_t)i);
        memcpy(s->parameter[i].data, values, s->parameter[i].bytes);
        free(values);
    }
}

/* Largest difference as a share of the largest magnitude. */
static double distance(const float *a, const float *b, int64_t count)
{
    double difference = 0, magnitude = 1e-30;
    for (int64_t i = 0; i < count; i++) {
        difference = fmax(difference, isnan(a[i]) || isnan(b[i]) ? INFINITY : fabs((double)a[i] - b[i]));
        magnitude = fmax(magnitude, fabs((double)b[i]));
    }
    return difference / magnitude;
}

/* The allowed difference. cuDNN's transforms round more than sums do; 1.5e-5 was observed for its Winograd. */
static double tolerance(const struct subject *own)
{
    const char *how = own->footprint.implementation;
    const bool transforms = strstr(how, "winograd") != NULL || strstr(how, "fft") != NULL;
    return device_is_real() && transforms ? 1e-4 : 2e-5;
}

/* Fails unless both subjects agree on a value. */
static void agree(const struct subject *own, const struct subject *ref, int value, const void *a, const void *b,
                  const char *what)
{
    const int64_t count = subject_elements(ref, value);
    float *one = malloc((size_t)count * 4), *other = malloc((size_t)count * 4);
    subject_get(own, value, a, one);
    subject_get(ref, value, b, other);
    double d = distance(one, other, count);
    cr_assert(d < tolerance(own), "%s, %s of %s, limit %llu, is off by %g", own->c->layer, what,
              own->footprint.implementation, (unsigned long long)own->c->scratch_limit, d);
    free(one), free(other);
}

/* The same dy for both, 0 where rounding gave a relu's output different signs. */
static void fill_dy(struct subject *own, struct subject *ref)
{
    const int y = ref->node->output;
    const int64_t count = subject_elements(ref, y);
    float *dy = random_floats(count, 9), *one = malloc((size_t)count * 4), *other = malloc((size_t)count * 4);
    subject_get(own, y, own->y.data, one);
    subject_get(ref, y, ref->y.data, other);
    int64_t torn = 0;
    for (int64_t i = 0; i < count; i++)
        if ((one[i] > 0) != (other[i] > 0) && ++torn) dy[i] = 0;
    cr_assert(torn <= 2 + count / 1000);
    subject_put(own, y, dy, own->dy.data);
    subject_put(ref, y, dy, ref->dy.data);
    free(dy), free(one), free(other);
}

static void forward(struct subject *s)
{
    struct kernel_args args = subject_args(s);
    subject_forward(s, &args);
}

/* All parts, as one call or split; hidden: operands that the footprint does not list as read are overwritten first. */
static void backward(struct subject *s, bool split)
{
    struct kernel_args args = subject_args(s);
    unsigned reads = s->footprint.reads[0] | s->footprint.reads[1];
    if (!(reads & READS_Y)) spoil(s->y.data, s->y.bytes);
    if (!(reads & READS_SAVED)) spoil(s->saved.data, s->saved.bytes);
    if (s->footprint.passes_gradient || s->parts == 0) return;
    if (!split || !s->footprint.split || s->parts != (PART_PARAMS | PART_INPUT)) {
        subject_backward(s, &args, s->parts);
        return;
    }
    subject_backward(s, &args, PART_PARAMS);
    args.y = args.saved = NULL;
    args.x[0] = NULL;
    subject_backward(s, &args, PART_INPUT);
}

static void check_numbers(const struct subject *own, const struct subject *ref)
{
    if (!ref->footprint.passes_gradient && ref->parts & PART_INPUT)
        for (int k = 0; k < ref->node->layer->inputs; k++)
            if (ref->dx[k].bytes > 0)
                agree(own, ref, ref->node->inputs[k], own->dx[k].data, ref->dx[k].data, k ? "dx[1]" : "dx[0]");
    for (int i = 0; i < ref->node->parameters; i++) {
        const float *a = (const void *)own->gradient[i].data, *b = (const void *)ref->gradient[i].data;
        double d = distance(a, b, (int64_t)(ref->gradient[i].bytes / 4));
        cr_assert(d < tolerance(own), "%s, gradient %d of %s is off by %g", own->c->layer, i,
                  own->footprint.implementation, d);
    }
}

enum { EVALUATING = RNG_UNSAFE + 1 };

/* mode: enum rng_mode, or EVALUATING. */
static void check_mode(const char *backend, const struct subject_case *c, int mode)
{
    struct subject own, ref;
    subject_open(&own, backend, c);
    subject_open(&ref, "ref", c);
    own.evaluate = ref.evaluate = mode == EVALUATING;
    if (!own.evaluate) own.draw.mode = ref.draw.mode = (enum rng_mode)mode;
    fill(&own), fill(&ref);
    forward(&own), forward(&ref);
    agree(&own, &ref, ref.node->output, own.y.data, ref.y.data, "y");
    for (int split = 0; split < 2; split++) {
        forward(&own), forward(&ref);
        fill_dy(&own, &ref);
        backward(&own, split), backward(&ref, false);
        check_numbers(&own, &ref);
    }
    subject_close(&own), subject_close(&ref);
}

static void check_case(const char *backend, const struct subject_case *c) { check_mode(backend, c, RNG_COUNTER); }

Test(kernels, agree_with_the_reference, .timeout = 300) { FOR_CASES(k, c) check_case(backends[k], c); }

Test(kernels, agree_for_every_source_of_randomness, .timeout = 300)
{
    FOR_CASES(k, c)
    for (int mode = RNG_STASH; c->settings.rate > 0 && mode <= EVALUATING; mode++) check_mode(backends[k], c, mode);
}

/* What both subjects hold of a value, equal in every bit but those of a NaN. */
static void agree_exactly(const struct subject *own, const struct subject *ref, int value, const void *a, const void *b)
{
    const int64_t count = subject_elements(ref, value);
    float *one = malloc((size_t)count * 4), *other = malloc((size_t)count * 4);
    subject_get(own, value, a, one);
    subject_get(ref, value, b, other);
    for (int64_t i = 0; i < count; i++)
        cr_assert(!memcmp(&one[i], &other[i], 4) || (isnan(one[i]) && isnan(other[i])), "kernel %d: %g, expected %g",
                  (int)own->c->settings.kernel, (double)one[i], (double)other[i]);
    free(one), free(other);
}

/* Of equal elements the first wins, and so does a NaN: on coarse numbers with some of them. */
Test(kernels, max_pools_select_as_the_reference_does)
{
    int checked = 0;
    for (const struct subject_case *c = cases; c < cases + CASES; c++) {
        struct subject own, ref;
        if (strcmp(c->layer, "max_pool")) continue;
        subject_open(&own, "cpu", c), subject_open(&ref, "ref", c);
        const int x = ref.node->inputs[0];
        float *values = random_floats(subject_elements(&ref, x), 0);
        for (int64_t i = 0; i < subject_elements(&ref, x); i++) values[i] = i % 23 ? roundf(2 * values[i]) / 2 : NAN;
        subject_put(&own, x, values, own.x[0].data), subject_put(&ref, x, values, ref.x[0].data);
        forward(&own), forward(&ref);
        agree_exactly(&own, &ref, ref.node->output, own.y.data, ref.y.data);
        fill_dy(&own, &ref);
        backward(&own, false), backward(&ref, false);
        if (!ref.footprint.passes_gradient) agree_exactly(&own, &ref, x, own.dx[0].data, ref.dx[0].data);
        free(values);
        subject_close(&own), subject_close(&ref);
        checked++;
    }
    cr_assert(checked > 8);
}

/* From unlimited scratch down to too little for Winograd: turns of channels, then a product. */
Test(kernels, agree_at_every_scratch_limit, .timeout = 300)
{
    struct subject_case c = {"conv", IMAGE(15, 16, 128), CONV(128, 3, 1, 1, RELU), 5, true, false, FIRST,
                             0,      KIB(1 << 20)};
    struct subject s;
    subject_open(&s, "cpu", &c);
    const size_t most = s.footprint.backward_scratch[0];
    int ours = 0, others = 0;
    subject_close(&s);
    for (uint64_t share = 1; share <= 64; share *= share < 4 ? 2 : 4) {
        c.scratch_limit = most / share - (share > 1);
        check_case("cpu", &c);
        subject_open(&s, "cpu", &c);
        const bool winograd = strncmp(strchr(s.footprint.implementation, '|'), "| winograd", 10) == 0; /* of PARAMS */
        cr_assert(!winograd || s.footprint.backward_scratch[0] <= c.scratch_limit, "%s", s.footprint.implementation);
        *(winograd ? &ours : &others) += 1;
        subject_close(&s);
    }
    cr_assert(ours >= 3 && others >= 1, "%d limits with Winograd, %d without", ours, others);
}

/* All outputs of a forward and a backward. */
static size_t results(const struct subject *s, unsigned char *to)
{
    const struct block *const blocks[] = {&s->dx[0], &s->dx[1], &s->gradient[0], &s->gradient[1]};
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (to != NULL && blocks[i]->bytes > 0) memcpy(to + bytes, blocks[i]->data, blocks[i]->bytes);
        bytes += blocks[i]->bytes;
    }
    return bytes;
}

/* A forward and a backward of a new kernel on the same numbers; copies out all outputs. */
static void trial(const char *backend, const struct subject_case *c, bool split, unsigned char **y,
                  unsigned char **rest, size_t bytes[2])
{
    struct subject s;
    subject_open(&s, backend, c);
    fill(&s);
    forward(&s);
    bytes[0] = s.y.bytes, bytes[1] = results(&s, NULL);
    *y = malloc(bytes[0]), *rest = malloc(bytes[1] + 1);
    memcpy(*y, s.y.data, s.y.bytes);
    float *dy = random_floats(subject_elements(&s, s.node->output), 9);
    subject_put(&s, s.node->output, dy, s.dy.data);
    backward(&s, split);
    results(&s, *rest);
    free(dy);
    subject_close(&s);
}

Test(kernels, equal_arguments_give_equal_bits, .timeout = 300)
{
    FOR_CASES(k, c)
    {
        unsigned char *y[2], *rest[2];
        size_t bytes[2];
        trial(backends[k], c, false, &y[0], &rest[0], bytes);
        trial(backends[k], c, true, &y[1], &rest[1], bytes);
        cr_assert(!memcmp(y[0], y[1], bytes[0]), "%s, case %d, %s: y", backends[k], (int)(c - cases), c->layer);
        cr_assert(!memcmp(rest[0], rest[1], bytes[1]), "%s, case %d, %s: gradients", backends[k], (int)(c - cases),
                  c->layer);
        for (int i = 0; i < 2; i++) free(y[i]), free(rest[i]);
    }
}

/* A fused relu changes no bit but the sign of a zero, so a relu may move behind a pool. */
Test(kernels, a_fused_relu_changes_no_other_bit, .timeout = 300)
{
    FOR_CASES(k, c)
    {
        if (strcmp(c->layer, "conv") || c->settings.activation != RELU) continue;
        struct subject_case without = *c;
        struct subject fused, plain;
        without.settings.activation = ACTIVATION_NONE;
        subject_open(&fused, backends[k], c);
        subject_open(&plain, backends[k], &without);
        fill(&fused), fill(&plain), forward(&fused), forward(&plain);
        const float *y = (const void *)fused.y.data, *x = (const void *)plain.y.data;
        float *dy = random_floats(subject_elements(&fused, fused.node->output), 9), *masked = (void *)plain.dy.data;
        subject_put(&fused, fused.node->output, dy, fused.dy.data);
        memcpy(masked, fused.dy.data, fused.dy.bytes);
        for (size_t i = 0; i < fused.y.bytes / sizeof *y; i++) {
            cr_assert(y[i] == (x[i] > 0 ? x[i] : 0), "%s, case %d: y[%zu]", backends[k], (int)(c - cases), i);
            masked[i] = y[i] > 0 ? masked[i] : 0;
        }
        backward(&fused, true), backward(&plain, true);
        for (int i = 0; i < fused.node->parameters; i++)
            cr_assert(!memcmp(fused.gradient[i].data, plain.gradient[i].data, plain.gradient[i].bytes), "gradient");
        cr_assert(!memcmp(fused.dx[0].data, plain.dx[0].data, plain.dx[0].bytes), "dx");
        subject_close(&fused), subject_close(&plain), free(dy);
    }
}

/* A recomputation without saving, one that saves, and one in place give the bits of the first forward; without save
 * nothing is saved. */
Test(kernels, a_recomputation_gives_the_same_bits, .timeout = 300)
{
    FOR_CASES(k, c)
    {
        struct subject s;
        subject_open(&s, backends[k], c);
        fill(&s);
        forward(&s);
        unsigned char *y = malloc(s.y.bytes), *saved = malloc(s.saved.bytes + 1), *first = malloc(s.saved.bytes + 1);
        memcpy(y, s.y.data, s.y.bytes), memcpy(first, s.saved.data, s.saved.bytes);
        memset(s.saved.data, 0x5a, s.saved.bytes), memset(saved, 0x5a, s.saved.bytes);
        spoil(s.y.data, s.y.bytes);
        struct kernel_args args = subject_args(&s);
        args.save = args.first = args.commit = false;
        args.saved = NULL;
        subject_forward(&s, &args);
        cr_assert(!memcmp(s.y.data, y, s.y.bytes), "%s, case %d, %s", backends[k], (int)(c - cases), c->layer);
        cr_assert(!memcmp(s.saved.data, saved, s.saved.bytes), "%s, case %d, %s", backends[k], (int)(c - cases),
                  c->layer);
        args.save = s.saved.bytes > 0, args.saved = s.saved.data;
        spoil(s.y.data, s.y.bytes);
        subject_forward(&s, &args);
        cr_assert(!memcmp(s.y.data, y, s.y.bytes), "%s, case %d, %s", backends[k], (int)(c - cases), c->layer);
        cr_assert(!memcmp(s.saved.data, first, s.saved.bytes), "%s, case %d, %s", backends[k], (int)(c - cases),
                  c->layer);
        args.save = false;
        if (s.footprint.y_over_x) {
            cr_assert(s.y.bytes == s.x[0].bytes);
            args.y = s.x[0].data;
            subject_forward(&s, &args);
            cr_assert(!memcmp(s.x[0].data, y, s.y.bytes), "%s, case %d, %s over x", backends[k], (int)(c - cases),
                      c->layer);
        }
        free(y), free(saved), free(first);
        subject_close(&s);
    }
}

Test(kernels, a_gradient_may_be_in_place, .timeout = 300)
{
    FOR_CASES(k, c)
    {
        unsigned char *y, *rest;
        size_t bytes[2];
        struct subject s;
        subject_open(&s, backends[k], c);
        if (s.footprint.dx_over_dy && s.parts & PART_INPUT) {
            trial(backends[k], c, false, &y, &rest, bytes);
            fill(&s);
            forward(&s);
            float *dy = random_floats(subject_elements(&s, s.node->output), 9);
            subject_put(&s, s.node->output, dy, s.dy.data);
            struct kernel_args args = subject_args(&s);
            args.dx[0] = s.dy.data;
            subject_backward(&s, &args, s.parts);
            cr_assert(!memcmp(s.dy.data, rest, s.dx[0].bytes), "%s, case %d, %s", backends[k], (int)(c - cases),
                      c->layer);
            free(y), free(rest), free(dy);
        }
        subject_close(&s);
    }
}
