/* The forward of the reference kernels against the same mathematics written another way, and the shapes they refuse.
 *
 * Windows: here every input pixel is scattered to the outputs that see it, where the kernels gather. */
#include "tests/support/same_bits.h"
#include "tests/support/single_layer.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * (1 + fabs(b)); }

static const struct window_case {
    struct shape x;
    int64_t kernel, stride, padding;
    int64_t height, width; /* of the output, worked out by hand */
} windows[] = {
    {{3, {5, 6, 3}}, 3, 1, 1, 5, 6}, {{3, {5, 6, 2}}, 3, 2, 0, 2, 2}, {{3, {4, 5, 2}}, 5, 3, 2, 2, 2},
    {{3, {4, 5, 1}}, 1, 1, 0, 4, 5}, {{3, {6, 4, 3}}, 2, 2, 1, 4, 3}, {{3, {7, 7, 2}}, 2, 2, 0, 3, 3},
    {{3, {3, 9, 2}}, 3, 3, 0, 1, 3}, {{3, {8, 8, 1}}, 2, 5, 0, 2, 2}, {{3, {5, 4, 2}}, 3, 1, 2, 7, 6},
    {{3, {2, 6, 1}}, 4, 3, 3, 2, 3},
};
enum { WINDOWS = sizeof windows / sizeof *windows, BATCH = 2, CHANNELS = 4, PLACES = 64, Y_MAX = 512 };

/* An output pixel that sees input pixel (n, h, w): its place in the batch, and which tap of its window it is. */
struct tap {
    int64_t place, tap;
};

/* All output pixels that see an input pixel; returns their number. */
static int taps_of(const struct window_case *c, int64_t n, int64_t h, int64_t w, struct tap tap[PLACES])
{
    int count = 0;
    for (int64_t p = 0; p < c->height; p++)
        for (int64_t q = 0; q < c->width; q++) {
            int64_t u = h + c->padding - p * c->stride, v = w + c->padding - q * c->stride;
            if (u < 0 || u >= c->kernel || v < 0 || v >= c->kernel) continue;
            tap[count++] = (struct tap){(n * c->height + p) * c->width + q, u * c->kernel + v};
        }
    return count;
}

static void open_window(struct single *single, const char *layer, const struct window_case *c, int activation,
                        bool count_padding)
{
    struct settings settings = {.channels = CHANNELS,
                                .kernel = c->kernel,
                                .stride = c->stride,
                                .padding = c->padding,
                                .activation = activation,
                                .count_padding = count_padding,
                                .bias = true};
    single_open(single, "ref", layer, &settings, &c->x, BATCH, false);
    const struct shape *y = &single->graph->value[1].shape;
    cr_assert(y->rank == 3 && y->dim[0] == c->height && y->dim[1] == c->width);
    cr_assert(shape_elements(y) * BATCH <= Y_MAX);
    single_forward(single);
}

/* Every input element sent to every output that sees it. */
static void conv_expected(const struct single *single, const struct window_case *c, double y[Y_MAX])
{
    struct tap tap[PLACES];
    const int64_t channels = c->x.dim[2], taps = c->kernel * c->kernel;
    for (int64_t j = 0; j < BATCH * c->height * c->width; j++)
        for (int64_t o = 0; o < CHANNELS; o++) y[j * CHANNELS + o] = single->parameter[1][o];
    for (int64_t n = 0, pixel = 0; n < BATCH; n++)
        for (int64_t h = 0; h < c->x.dim[0]; h++)
            for (int64_t w = 0; w < c->x.dim[1]; w++, pixel++) {
                int count = taps_of(c, n, h, w, tap);
                for (int t = 0; t < count; t++)
                    for (int64_t i = 0; i < channels; i++)
                        for (int64_t o = 0; o < CHANNELS; o++)
                            y[tap[t].place * CHANNELS + o] +=
                                (double)single->x[0][pixel * channels + i] *
                                single->parameter[0][(o * channels + i) * taps + tap[t].tap];
            }
}

Test(reference, conv_is_the_sum_of_its_taps)
{
    for (int k = 0; k < WINDOWS; k++)
        for (int activation = 0; activation < 2; activation++) {
            struct single single;
            double y[Y_MAX] = {0};
            open_window(&single, "conv", &windows[k], activation, false);
            conv_expected(&single, &windows[k], y);
            for (size_t j = 0; j < single.y_bytes / sizeof(float); j++) {
                double expected = activation && y[j] < 0 ? 0 : y[j];
                cr_assert(near(single.y[j], expected), "window %d, y[%zu]: %g, not %g", k, j, single.y[j], expected);
            }
            single_close(&single);
        }
}

Test(reference, relu6_ends_at_0_and_6)
{
    const float x[] = {-7, -0.0f, 0, 0.5f, 5.5f, 6, 7, INFINITY}, y[] = {0, 0, 0, 0.5f, 5.5f, 6, 6, 6};
    const float dx[] = {0, 0, 0, 3, 3, 0, 0, 0};
    struct single single;
    single_open(&single, "ref", "relu6", NULL, &(struct shape){1, {8}}, 1, false);
    memcpy(single.x[0], x, sizeof x);
    for (int i = 0; i < 8; i++) single.dy[i] = 3;
    single_forward(&single);
    single_backward(&single);
    cr_assert(same_bits(single.y, y, sizeof y) && same_bits(single.dx[0], dx, sizeof dx));
    single_close(&single);
}

Test(reference, upsample_makes_squares)
{
    const float y[] = {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4};
    const float dx[] = {0 + 1 + 4 + 5, 2 + 3 + 6 + 7, 8 + 9 + 12 + 13, 10 + 11 + 14 + 15};
    struct single single;
    single_open(&single, "ref", "upsample", &(struct settings){.factor = 2}, &(struct shape){3, {2, 2, 1}}, 1, false);
    for (int i = 0; i < 4; i++) single.x[0][i] = (float)i + 1;
    for (int i = 0; i < 16; i++) single.dy[i] = (float)i;
    single_forward(&single);
    single_backward(&single);
    cr_assert(same_bits(single.y, y, sizeof y) && same_bits(single.dx[0], dx, sizeof dx));
    single_close(&single);
}

/* Largest, sum and number of what each output sees. */
static void pool_expected(const struct single *single, const struct window_case *c, double most[Y_MAX],
                          double sum[Y_MAX], int seen[Y_MAX])
{
    struct tap tap[PLACES];
    const int64_t channels = c->x.dim[2];
    for (int j = 0; j < Y_MAX; j++) most[j] = -INFINITY, sum[j] = 0, seen[j] = 0;
    for (int64_t n = 0, pixel = 0; n < BATCH; n++)
        for (int64_t h = 0; h < c->x.dim[0]; h++)
            for (int64_t w = 0; w < c->x.dim[1]; w++, pixel++) {
                int count = taps_of(c, n, h, w, tap);
                for (int t = 0; t < count; t++)
                    for (int64_t i = 0; i < channels; i++) {
                        double x = single->x[0][pixel * channels + i];
                        int64_t j = tap[t].place * channels + i;
                        most[j] = fmax(most[j], x), sum[j] += x, seen[j]++;
                    }
            }
}

Test(reference, pools_are_the_largest_and_the_mean)
{
    static double most[Y_MAX], sum[Y_MAX];
    static int seen[Y_MAX];
    for (int k = 0; k < WINDOWS; k++) {
        struct single max, avg, all;
        const double places = (double)(windows[k].kernel * windows[k].kernel);
        open_window(&max, "max_pool", &windows[k], 0, false);
        open_window(&avg, "avg_pool", &windows[k], 0, false);
        open_window(&all, "avg_pool", &windows[k], 0, true);
        pool_expected(&max, &windows[k], most, sum, seen);
        for (size_t j = 0; j < max.y_bytes / sizeof(float); j++) {
            cr_assert(seen[j] > 0 && max.y[j] == (float)most[j]);
            cr_assert(near(avg.y[j], sum[j] / seen[j]), "window %d: %g, not %g", k, avg.y[j], sum[j] / seen[j]);
            cr_assert(near(all.y[j], sum[j] / places), "window %d: %g, not %g", k, all.y[j], sum[j] / places);
        }
        single_close(&max), single_close(&avg), single_close(&all);
    }
}

Test(reference, max_pool_sends_ties_to_the_first)
{
    struct single single;
    single_open(&single, "ref", "max_pool", &(struct settings){.kernel = 2}, &(struct shape){3, {2, 4, 1}}, 1, false);
    memcpy(single.x[0], (float[]){1, 2, -3, -3, 2, 2, -3, -3}, 8 * sizeof(float)); /* rows 1 2 -3 -3 and 2 2 -3 -3 */
    memcpy(single.dy, (float[]){5, 7}, 2 * sizeof(float));
    single_forward(&single);
    single_backward(&single);
    cr_assert(single.y[0] == 2 && single.y[1] == -3);
    const float expected[] = {0, 5, 7, 0, 0, 0, 0, 0};
    cr_assert(same_bits(single.dx[0], expected, sizeof expected));
    single_close(&single);
}

Test(reference, a_nan_reaches_the_output)
{
    static const char *const layers[] = {"max_pool", "avg_pool", "relu",       "relu6", "global_avg_pool",
                                         "flatten",  "add",      "gelu",       "silu",  "hardswish",
                                         "sigmoid",  "tanh",     "leaky_relu", "scale"};
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
        for (int place = 0; place < 4; place++) {
            struct single single;
            bool seen = false;
            single_open(&single, "ref", layers[l], &(struct settings){.kernel = 2}, &(struct shape){3, {2, 2, 1}}, 1,
                        false);
            single.x[0][place] = NAN;
            single_forward(&single);
            for (size_t j = 0; j < single.y_bytes / sizeof(float); j++) seen |= isnan(single.y[j]);
            cr_assert(seen, "%s hides a NaN", layers[l]);
            single_close(&single);
        }
}

Test(reference, linear_is_a_product)
{
    for (int activation = 0; activation < 3; activation++) {
        struct single single;
        struct settings settings = {.units = 5, .activation = activation, .bias = true};
        single_open(&single, "ref", "linear", &settings, &(struct shape){1, {7}}, 3, false);
        single_forward(&single);
        for (int j = 14; j >= 0; j--) {
            long double y = 0;
            for (int i = 6; i >= 0; i--)
                y += (long double)single.x[0][j / 5 * 7 + i] * single.parameter[0][j % 5 * 7 + i];
            y += single.parameter[1][j % 5];
            double expected = (double)(activation == 1 ? fmaxl(y, 0) : activation == 2 ? tanhl(y) : y);
            cr_assert(near(single.y[j], expected));
        }
        single_close(&single);
    }
}

/* Each row alone is a vector of the same layer. */
Test(reference, linear_on_a_sequence_is_linear_on_its_rows)
{
    struct single all, row;
    struct settings settings = {.units = 5, .activation = ACTIVATION_TANH, .bias = true};
    single_open(&all, "ref", "linear", &settings, &(struct shape){2, {4, 7}}, 3, false);
    single_open(&row, "ref", "linear", &settings, &(struct shape){1, {7}}, 12, false);
    cr_assert(shape_equal(&all.graph->value[1].shape, &(struct shape){2, {4, 5}}));
    cr_assert(all.graph->node[0].flops.forward == row.graph->node[0].flops.forward);
    memcpy(row.x[0], all.x[0], all.x_bytes[0]);
    single_random(all.dy, all.y_bytes, 1, 9), single_random(row.dy, row.y_bytes, 1, 9);
    single_forward(&all), single_forward(&row);
    single_backward(&all), single_backward(&row);
    cr_assert(same_bits(all.y, row.y, all.y_bytes) && same_bits(all.dx[0], row.dx[0], all.x_bytes[0]));
    for (int i = 0; i < 2; i++) cr_assert(same_bits(all.gradient[i], row.gradient[i], all.parameter_bytes[i]));
    single_close(&all), single_close(&row);
}

/* A row comes out with the bias as its mean and the weight as its deviation, whatever went in. */
Test(reference, layernorm_gives_rows_of_mean_0_and_variance_1)
{
    struct single single;
    enum { ROWS = 6, WIDTH = 9 };
    single_open(&single, "ref", "layernorm", &(struct settings){.epsilon = 1e-12}, &(struct shape){2, {2, WIDTH}},
                ROWS / 2, false);
    for (int i = 0; i < ROWS * WIDTH; i++) single.x[0][i] = single.x[0][i] * (float)(1 << i / WIDTH) + 10;
    for (int i = 0; i < WIDTH; i++) single.parameter[0][i] = 3, single.parameter[1][i] = 2;
    single_forward(&single);
    for (int n = 0; n < ROWS; n++) {
        long double sum = 0, squares = 0;
        for (int i = WIDTH - 1; i >= 0; i--) sum += single.y[n * WIDTH + i];
        for (int i = 0; i < WIDTH; i++) squares += powl(single.y[n * WIDTH + i] - 2, 2);
        cr_assert(near((double)sum / WIDTH, 2) && near((double)squares / WIDTH, 9), "row %d", n);
        for (int i = 1; i < WIDTH; i++) /* in the order of x */
            cr_assert((single.y[n * WIDTH + i] > single.y[n * WIDTH + i - 1]) ==
                      (single.x[0][n * WIDTH + i] > single.x[0][n * WIDTH + i - 1]));
    }
    for (int i = 0; i < WIDTH; i++) single.x[0][i] = 7; /* no variance: the bias, and no NaN */
    single_forward(&single);
    for (int i = 0; i < WIDTH; i++) cr_assert(single.y[i] == 2);
    single_close(&single);
}

/* The distribution function by Simpson's rule over the density. */
Test(reference, gelu_is_x_times_the_normal_distribution)
{
    enum { POINTS = 81, STEPS = 2000 };
    struct single single;
    single_open(&single, "ref", "gelu", &(struct settings){0}, &(struct shape){1, {POINTS}}, 1, false);
    for (int i = 0; i < POINTS; i++) single.x[0][i] = (float)(i - 40) / 8;
    single_forward(&single);
    for (int i = 0; i < POINTS; i++) {
        const double x = single.x[0][i];
        double p = 0;
        for (int k = 0; k <= STEPS; k++) {
            const double t = x * k / STEPS;
            p += (k == 0 || k == STEPS ? 1 : k % 2 ? 4 : 2) * exp(-t * t / 2);
        }
        p = 0.5 + p * x / STEPS / 3 / sqrt(2 * acos(-1));
        cr_assert(near(single.y[i], x * p), "gelu(%g) = %g, not %g", x, single.y[i], x * p);
    }
    single_close(&single);
}

Test(reference, select_takes_one_token)
{
    struct single single;
    single_open(&single, "ref", "select", &(struct settings){.token = 2}, &(struct shape){2, {4, 5}}, 3, false);
    single_random(single.dy, single.y_bytes, 1, 9);
    single_forward(&single);
    single_backward(&single);
    for (int n = 0; n < 3; n++)
        for (int t = 0; t < 4; t++)
            for (int i = 0; i < 5; i++) {
                const int at = (n * 4 + t) * 5 + i;
                cr_assert(t != 2 || single.y[n * 5 + i] == single.x[0][at]);
                cr_assert(single.dx[0][at] == (t == 2 ? single.dy[n * 5 + i] : 0));
            }
    single_close(&single);
}

/* The plain formula in long double, which these numbers do not overflow. */
Test(reference, cross_entropy_is_its_formula)
{
    struct single single;
    single_open(&single, "ref", "cross_entropy", &(struct settings){0}, &(struct shape){1, {6}}, 5, false);
    for (int i = 0; i < 30; i++) single.x[0][i] *= 40;
    single.x[0][4] = single.x[0][2] = 50, single.labels[0] = 2; /* the first of two equal ones is the prediction */
    single.x[0][9] = single.x[0][7] = 50, single.labels[1] = 0;
    single_forward(&single);
    single_backward(&single);
    long double loss = 0;
    int correct = 0;
    for (int n = 0; n < 5; n++) {
        const float *x = single.x[0] + n * 6;
        long double sum = 0;
        int best = 0;
        for (int j = 5; j >= 0; j--) sum += expl(x[j]), best = x[j] >= x[best] ? j : best;
        loss -= logl(expl(x[single.labels[n]]) / sum);
        correct += best == single.labels[n];
        for (int j = 0; j < 6; j++) {
            double expected = (double)(expl(x[j]) / sum - (j == single.labels[n])) / 5;
            cr_assert(near(single.dx[0][n * 6 + j], expected));
        }
    }
    cr_assert(near(single.y[0], (double)loss / 5), "%g, not %Lg", single.y[0], loss / 5);
    cr_assert(single.y[1] == (float)correct && correct >= 1);
    single_close(&single);
}

Test(reference, cross_entropy_of_large_numbers_is_finite)
{
    struct single single;
    single_open(&single, "ref", "cross_entropy", &(struct settings){0}, &(struct shape){1, {3}}, 1, false);
    memcpy(single.x[0], (float[]){1e30f, -1e30f, 0}, 3 * sizeof(float));
    single.labels[0] = 0;
    single_forward(&single);
    single_backward(&single);
    cr_assert(single.y[0] == 0 && single.y[1] == 1 && single.dx[0][0] == 0);
    single.labels[0] = 3;
    struct kernel_args args = single_args(&single);
    cr_assert(single.kernel->forward(single.state, &args) == ST_FAILED);
    cr_assert(strstr(status_message(), "label 3"), "%s", status_message());
    single_close(&single);
}

Test(reference, dropout_scales_what_survives)
{
    struct single single;
    uint8_t keep[5000];
    single_open(&single, "ref", "dropout", &(struct settings){.rate = 0.25}, &(struct shape){1, {5000}}, 3, false);
    single_forward(&single);
    for (int64_t n = 0; n < 3; n++) {
        rng_keep(&single.draw, 0.25, 5000, n, 0, 5000, keep);
        for (int64_t i = 0; i < 5000; i++) {
            float x = single.x[0][n * 5000 + i], y = single.y[n * 5000 + i];
            cr_assert(keep[i] ? near(y, x / 0.75) : y == 0);
        }
    }
    single_close(&single);
}

Test(reference, sums_and_copies)
{
    struct single single;
    single_open(&single, "ref", "sum", &(struct settings){0}, &(struct shape){3, {2, 3, 4}}, 2, false);
    double sum = 0;
    for (int i = 47; i >= 0; i--) sum += single.x[0][i];
    single_forward(&single);
    cr_assert(near(single.y[0], sum) && single.y[1] == 0);
    single_close(&single);

    single_open(&single, "ref", "global_avg_pool", &(struct settings){0}, &(struct shape){3, {2, 3, 4}}, 2, false);
    single_forward(&single);
    cr_assert(single.graph->value[1].shape.rank == 1 && single.graph->value[1].shape.dim[0] == 4);
    for (int n = 0; n < 2; n++)
        for (int c = 0; c < 4; c++) {
            double mean = 0;
            for (int i = 0; i < 6; i++) mean += single.x[0][n * 24 + i * 4 + c] / 6.0;
            cr_assert(near(single.y[n * 4 + c], mean));
        }
    single_close(&single);

    single_open(&single, "ref", "add", &(struct settings){0}, &(struct shape){1, {9}}, 2, false);
    single_forward(&single);
    for (int i = 0; i < 18; i++) cr_assert(single.y[i] == single.x[0][i] + single.x[1][i]);
    single_close(&single);

    single_open(&single, "ref", "concat", &(struct settings){.other = 2}, &(struct shape){3, {2, 3, 4}}, 2, false);
    single_forward(&single);
    cr_assert(single.y_bytes == 12 * 6 * sizeof(float) && single.x_bytes[1] == 12 * 2 * sizeof(float));
    for (int i = 0; i < 12; i++)
        for (int c = 0; c < 6; c++)
            cr_assert(single.y[i * 6 + c] == (c < 4 ? single.x[0][i * 4 + c] : single.x[1][i * 2 + c - 4]));
    single_close(&single);
}

/* ---- What is refused, and the words that must be in the message. */

static const struct refusal {
    const char *layer;
    struct shape x[NODE_INPUTS_MAX];
    struct settings settings;
    const char *says;
} refusals[] = {
    {"conv", {{1, {100}}}, {.channels = 1, .kernel = 1, .stride = 1}, "image"},
    {"conv",
     {{3, {4, 9, 1}}},
     {.channels = 1, .kernel = 7, .stride = 1, .padding = 1},
     "7x7 kernel is larger than its input 4x9x1"},
    {"conv", {{3, {4, 4, 6}}}, {.channels = 8, .kernel = 1, .stride = 1, .groups = 4}, "groups 4, channels 6 and 8"},
    {"conv", {{3, {4, 4, 6}}}, {.channels = 8, .kernel = 1, .stride = 1, .groups = 3}, "groups 3, channels 6 and 8"},
    {"conv_transpose", {{1, {9}}}, {.channels = 1, .kernel = 2, .stride = 2}, "image"},
    {"conv_transpose",
     {{3, {4, 4, 1}}},
     {.channels = 1, .kernel = 2, .stride = 2, .output_padding = 2},
     "output_padding 2 is not less than the stride 2"},
    {"conv_transpose",
     {{3, {4, 1, 1}}},
     {.channels = 1, .kernel = 2, .stride = 2, .padding = 1},
     "padding 1 leaves nothing of its input 4x1x1 under a 2x2 kernel"},
    {"pad", {{1, {9}}}, {.top = 1}, "image"},
    {"pad", {{3, {4, 4, 1}}}, {0}, "top, bottom, left and right are 0"},
    {"pad", {{3, {4, 5, 1}}}, {.top = -2, .bottom = -2, .left = 9}, "cuts off all of its input 4x5x1: top -2"},
    {"upsample", {{1, {9}}}, {.factor = 2}, "image"},
    {"max_pool", {{3, {9, 4, 1}}}, {.kernel = 5}, "5x5 kernel is larger than its input 9x4x1"},
    {"max_pool", {{3, {9, 9, 1}}}, {.kernel = 2, .padding = 2}, "padding 2"},
    {"avg_pool", {{2, {9, 9}}}, {.kernel = 2}, "image"},
    {"avg_pool", {{3, {9, 9, 1}}}, {.kernel = 1, .padding = 1}, "padding 1"},
    {"global_avg_pool", {{1, {9}}}, {0}, "an image (height x width x channels) or a sequence, its input is 9"},
    {"tokens", {{2, {9, 4}}}, {0}, "expects an image (height x width x channels), its input is 9x4"},
    {"pixels", {{1, {9}}}, {0}, "expects a sequence (tokens x width), its input is 9"},
    {"pixels", {{2, {12, 4}}}, {0}, "the 12 tokens of its input 12x4 are no square; expected: a height"},
    {"pixels", {{2, {12, 4}}}, {.height = 5}, "height 5 does not divide the 12 tokens of its input 12x4"},
    {"class_token", {{3, {2, 3, 4}}}, {0}, "expects a sequence (tokens x width), its input is 2x3x4"},
    {"positions", {{1, {9}}}, {0}, "expects a sequence (tokens x width), its input is 9"},
    {"cross_attention", {{3, {2, 2, 6}}, {2, {4, 12}}}, {.heads = 2}, "vector or a sequence"},
    {"cross_attention", {{2, {4, 6}}, {2, {4, 12}}}, {.heads = 4}, "queries a multiple of 4 wide"},
    {"cross_attention", {{2, {4, 6}}, {2, {4, 12}}}, {.heads = 3, .kv_heads = 2}, "expected a divisor of its 3 heads"},
    {"cross_attention",
     {{2, {4, 6}}, {2, {4, 12}}},
     {.heads = 3, .kv_heads = 1},
     "tokens x 4 for 1 heads of the queries' width; it is 4x12"},
    {"cross_attention",
     {{2, {4, 6}}, {1, {12}}},
     {.heads = 2},
     "tokens x 12 for 2 heads of the queries' width; it is 12"},
    {"linear", {{3, {2, 2, 3}}}, {.units = 1}, "flatten"},
    {"layernorm", {{3, {2, 2, 3}}}, {.epsilon = 1e-12}, "vector or a sequence"},
    {"rms_norm", {{3, {2, 2, 3}}}, {.epsilon = 1e-6}, "vector or a sequence"},
    {"group_norm", {{1, {12}}}, {.epsilon = 1e-5, .groups = 2}, "image"},
    {"group_norm",
     {{3, {4, 4, 6}}},
     {.epsilon = 1e-5, .groups = 4},
     "groups 4 do not divide the 6 channels of its input"},
    {"batch_norm", {{2, {5, 8}}}, {.epsilon = 1e-5}, "expects an image (height x width x channels) or a vector"},
    {"batch_norm_add", {{2, {5, 8}}, {2, {5, 8}}}, {.epsilon = 1e-5}, "expects an image (height x width x channels)"},
    {"batch_norm_add", {{3, {4, 4, 3}}, {3, {4, 4, 6}}}, {.epsilon = 1e-5}, "one shape, they are 4x4x3 and 4x4x6"},
    {"select", {{1, {12}}}, {0}, "a sequence (tokens x width), its input is 12"},
    {"select", {{2, {12, 5}}}, {.token = 12}, "token 12 is not in its input 12x5: the last is 11"},
    {"add", {{1, {3}}, {1, {4}}}, {0}, "3 and 4"},
    {"multiply", {{3, {4, 4, 3}}, {3, {4, 4, 6}}}, {0}, "each channel of the first, they are 4x4x3 and 4x4x6"},
    {"multiply", {{3, {4, 4, 3}}, {1, {4}}}, {0}, "they are 4x4x3 and 4"},
    {"multiply", {{1, {3}}, {3, {4, 4, 3}}}, {0}, "they are 3 and 4x4x3"},
    {"multiply", {{3, {4, 4, 3}}, {3, {1, 3, 1}}}, {0}, "they are 4x4x3 and 1x3x1"},
    {"concat", {{3, {4, 4, 3}}, {3, {4, 5, 3}}}, {0}, "differ in channels alone, they are 4x4x3 and 4x5x3"},
    {"concat", {{3, {4, 4, 3}}, {3, {2, 4, 8}}}, {0}, "differ in channels alone, they are 4x4x3 and 2x4x8"},
    {"concat", {{2, {4, 3}}, {2, {5, 3}}}, {0}, "differ in width alone, they are 4x3 and 5x3"},
    {"concat", {{1, {48}}, {3, {4, 4, 3}}}, {0}, "they are 48 and 4x4x3"},
};

Test(reference, shapes_that_do_not_fit_are_refused)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct shape y;
        const struct refusal *r = &refusals[i];
        const struct layer *layer = layer_find(r->layer);
        cr_assert(layer->infer(settings_of(layer, &r->settings), r->x, &y) == ST_SPEC, "%s, case %zu", r->layer, i);
        cr_assert(strstr(status_message(), r->says), "%s", status_message());
    }
}

Test(reference, pixels_become_tokens_and_tokens_pixels)
{
    const struct layer *tokens = layer_find("tokens"), *pixels = layer_find("pixels");
    struct shape image = {3, {2, 8, 5}}, sequence, back;
    cr_assert(tokens->infer(NULL, &image, &sequence) == ST_OK);
    cr_assert(shape_equal(&sequence, &(struct shape){2, {16, 5}}));
    cr_assert(pixels->infer(settings_of(pixels, &(struct settings){.height = 2}), &sequence, &back) == ST_OK);
    cr_assert(shape_equal(&back, &image));
    cr_assert(pixels->infer(settings_of(pixels, &(struct settings){.height = 0}), &sequence, &back) == ST_OK);
    cr_assert(shape_equal(&back, &(struct shape){3, {4, 4, 5}}));
}

Test(reference, parameters_and_flops_of_known_layers)
{
    struct parameter_definition p[NODE_PARAMETERS_MAX];
    struct shape x = {3, {224, 224, 3}}, y;
    struct settings conv = {.channels = 64, .kernel = 3, .stride = 1, .padding = 1, .bias = true};
    const struct layer *layer = layer_find("conv");
    const void *settings = settings_of(layer, &conv);
    cr_assert(layer->infer(settings, &x, &y) == ST_OK);
    cr_assert(layer->parameters(settings, &x, p) == 2);
    cr_assert(shape_elements(&p[0].shape) == 1728 && shape_elements(&p[1].shape) == 64);
    cr_assert(p[0].fan_in == 27 && p[0].fan_out == 576 && p[1].init == INIT_ZEROS);
    struct flops flops = layer->flops(settings, &x, &y);
    cr_assert(flops.forward == 173408256 && flops.backward_params == 173408256 && flops.backward_input == 173408256);

    struct settings grouped = {.channels = 64, .kernel = 3, .stride = 1, .padding = 1, .groups = 16};
    settings = settings_of(layer, &grouped);
    x.dim[2] = 32;
    cr_assert(layer->infer(settings, &x, &y) == ST_OK);
    cr_assert(layer->parameters(settings, &x, p) == 1);
    cr_assert(p[0].shape.dim[0] == 64 && p[0].shape.dim[1] == 2 && p[0].shape.dim[2] == 3 && p[0].shape.dim[3] == 3);
    cr_assert(p[0].fan_in == 18 && p[0].fan_out == 576);
    cr_assert(layer->flops(settings, &x, &y).backward_input == 2.0 * 224 * 224 * 64 * 18);

    struct settings linear = {.units = 4096, .init = INIT_HE_NORMAL};
    layer = layer_find("linear");
    settings = settings_of(layer, &linear);
    x = (struct shape){1, {25088}}, y = (struct shape){1, {4096}};
    cr_assert(layer->parameters(settings, &x, p) == 1);
    cr_assert(p[0].shape.dim[0] == 4096 && p[0].shape.dim[1] == 25088 && p[0].init == INIT_HE_NORMAL);
    cr_assert(p[0].fan_in == 25088 && p[0].fan_out == 4096);
    cr_assert(layer->flops(settings, &x, &y).forward == 2.0 * 4096 * 25088);
}
