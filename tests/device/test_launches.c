/* Launches of the cuda backend against loops that follow the definitions: small shapes and shapes of
 * several blocks, pointers that are multiples of 16 bytes and others. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/kernels.h"
#include "numerics/token_batch.h"

static cudaStream_t stream;

static void begin(void) { ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }

static void end(void)
{
    arrays_free();
    ok(cudaStreamDestroy(stream));
}

TestSuite(launches, .init = begin, .fini = end);

/* Multiples of 1 / 8 in [-8, 8]: small sums of them are exact. */
static float *numbers(int64_t count, uint32_t which)
{
    float *x = array_here((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(rng_words(3, RNG_DATA, (uint32_t)i, which, 0, 0).word[0] % 129) / 8 - 8;
    return x;
}

static float *floats(const float *from, int64_t count) { return array_upload(from, (size_t)count * sizeof *from); }

static float activated(enum function activation, float x)
{
    return activation == FUNCTION_RELU ? fmaxf(x, 0) : activation == FUNCTION_TANH ? tanhf(x) : x;
}

/* shift: floats between a multiple of 16 bytes and the value. */
static void check_activation(int64_t outer, int64_t units, int64_t inner, enum function activation, bool biased,
                             int shift)
{
    const int64_t count = outer * units * inner;
    const float *x = numbers(count + shift, 0), *dy = numbers(count, 2);
    float *b = numbers(units, 1);
    b[0] = fabsf(b[0]) + 1; /* which would be of the elements behind the last */
    float *y_there = floats(x, count + shift) + shift, *dy_there = floats(dy, count);
    uint8_t *signs_there = array_there(sign_bytes(count));
    const struct bias bias = {biased ? floats(b, units) : NULL, units, inner};
    launch_function(stream, y_there, bias, activation, count, y_there, signs_there);
    launch_derivative(stream, dy_there, y_there, shift ? signs_there : NULL,
                      activation == FUNCTION_NONE ? FUNCTION_NONE : FUNCTION_RELU, count, dy_there);
    const float *y = array_download(y_there, (size_t)count * sizeof *y),
                *dx = array_download(dy_there, (size_t)count * sizeof *dx);
    const uint8_t *signs = array_download(signs_there, sign_bytes(count));
    for (int64_t i = 0; i < count; i++) {
        const float right = activated(activation, x[i + shift] + (biased ? b[i / inner % units] : 0));
        cr_assert(fabsf(y[i] - right) < 1e-6f, "%d x %d x %d, activation %d: %g, not %g", (int)outer, (int)units,
                  (int)inner, activation, (double)y[i], (double)right);
        cr_assert((signs[i / 8] >> i % 8 & 1) == (y[i] > 0), "sign %d of %d", (int)i, (int)count);
        cr_assert(activation == FUNCTION_NONE || dx[i] == (y[i] > 0 ? dy[i] : 0), "derivative %d", (int)i);
    }
    cr_assert(count % 8 == 0 || signs[count / 8] >> count % 8 == 0, "signs behind the last");
    arrays_free();
}

Test(launches, activations)
{
    static const int64_t sizes[][3] = {{3, 7, 5}, {5, 64, 1}, {2, 10, 1}, {2, 3, 64}, {300, 30, 2}, {1, 1, 1}};
    for (int s = 0; s < 6; s++)
        for (int activation = FUNCTION_NONE; activation <= FUNCTION_TANH; activation++)
            for (int flags = 0; flags < 4; flags++)
                check_activation(sizes[s][0], sizes[s][1], sizes[s][2], (enum function)activation, flags & 1,
                                 flags / 2);
}

Test(launches, derivative_of_tanh)
{
    const int64_t count = 1003;
    const float *y = numbers(count, 0), *dy = numbers(count, 1);
    float *dx_there = floats(dy, count);
    launch_derivative(stream, dx_there, floats(y, count), NULL, FUNCTION_TANH, count, dx_there);
    const float *dx = array_download(dx_there, (size_t)count * sizeof *dx);
    for (int64_t i = 0; i < count; i++) cr_assert(dx[i] == dy[i] * (1 - y[i] * y[i]));
}

static void check_transpose(int64_t batch, int64_t rows, int64_t columns)
{
    const int64_t all = batch * rows * columns;
    const float *x = numbers(all, 0);
    float *to = array_there((size_t)all * sizeof *to);
    launch_transpose(stream, floats(x, all), batch, rows, columns, to);
    const float *y = array_download(to, (size_t)all * sizeof *y);
    for (int64_t i = 0; i < all; i++) {
        const int64_t n = i / (rows * columns), c = i / rows % columns, r = i % rows;
        cr_assert(y[i] == x[(n * rows + r) * columns + c], "%d x %d", (int)rows, (int)columns);
    }
    arrays_free();
}

Test(launches, transpositions)
{
    static const int64_t sizes[][3] = {{3, 40, 70}, {2, 5, 100}, {4, 64, 9}, {1, 32, 32}, {2, 100, 3}, {1, 1, 1}};
    for (int s = 0; s < 6; s++) check_transpose(sizes[s][0], sizes[s][1], sizes[s][2]);
}

static void check_sums(int64_t outer, int64_t units, int64_t inner)
{
    const int64_t all = outer * units * inner;
    const float *x = numbers(all, 0);
    float *to = array_there((size_t)units * sizeof *to);
    launch_reduce_units(stream, floats(x, all), outer, units, inner, to);
    const float *y = array_download(to, (size_t)units * sizeof *y);
    for (int64_t u = 0; u < units; u++) {
        double right = 0;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < inner; i++) right += (double)x[(o * units + u) * inner + i];
        cr_assert((double)y[u] == right, "%d x %d x %d, unit %d: %g, not %g", (int)outer, (int)units, (int)inner,
                  (int)u, (double)y[u], right);
    }
    arrays_free();
}

Test(launches, sums)
{
    static const int64_t sizes[][3] = {{1000, 30, 1}, {8, 700, 1},    {5, 3, 49}, {70, 3, 1024}, {1, 1, 1},
                                       {64, 1, 1},    {1, 1, 100001}, {9, 33, 1}, {20000, 1, 1}, {300, 2, 31}};
    for (int s = 0; s < 10; s++) check_sums(sizes[s][0], sizes[s][1], sizes[s][2]);
}

Test(launches, elements)
{
    const int64_t count = 1003;
    const float *a = numbers(count, 0), *b = numbers(count, 1);
    const uint64_t base = UINT64_C(1) << 40;
    float *a_there = floats(a, count), *b_there = floats(b, count);
    uint64_t *position = array_there(sizeof base);
    launch_add(stream, a_there, b_there, count, a_there);
    launch_fill(stream, 0x7fa00001, count - 1, b_there + 1); /* a signalling NaN */
    launch_stream_position(stream, array_upload(&base, sizeof base), 77, position);
    const float *sum = array_download(a_there, (size_t)count * sizeof *sum);
    const uint32_t *words = array_download(b_there, (size_t)count * sizeof *words);
    for (int64_t i = 0; i < count; i++)
        cr_assert(sum[i] == a[i] + b[i] && (i == 0 ? words[i] != 0x7fa00001 : words[i] == 0x7fa00001));
    cr_assert(*(uint64_t *)array_download(position, sizeof base) == base + 77);
}

/* Few different scores, so that several are the largest: the first of them counts. Every fourth row has no label. */
static void check_losses(int64_t batch, int64_t classes)
{
    const int64_t all = batch * classes;
    const size_t bytes = (size_t)batch * sizeof(int32_t);
    float *x = numbers(all, 0);
    int32_t *labels = array_here(bytes);
    double loss = 0, correct = 0;
    double counted = 0;
    for (int64_t i = 0; i < all; i++) x[i] = roundf(x[i] / 4);
    for (int64_t n = 0; n < batch; n++) {
        const float *row = x + n * classes;
        int32_t first = 0;
        double sum = 0;
        for (int32_t j = 1; j < classes; j++)
            if (row[j] > row[first]) first = j;
        labels[n] = n % 4 == 3 ? NO_LABEL : n % 3 ? first : (int32_t)(7 * n % classes);
        if (labels[n] == NO_LABEL) continue;
        for (int64_t j = 0; j < classes; j++) sum += exp((double)row[j] - (double)row[first]);
        loss += log(sum) + (double)row[first] - (double)row[labels[n]];
        correct += labels[n] == first;
        counted++;
    }
    float *y_there = array_there(2 * sizeof *y_there), *x_there = floats(x, all), *dx_there = floats(x, all);
    void *scratch = array_there(cross_entropy_scratch(batch));
    struct labelled rows = {
        x_there, array_upload(labels, bytes), array_upload(&counted, sizeof counted), batch, classes, 1};
    launch_cross_entropy(stream, rows, scratch, y_there);
    launch_cross_entropy_gradient(stream, rows, dx_there);
    const float *y = array_download(y_there, 2 * sizeof *y), *dx = array_download(dx_there, (size_t)all * sizeof *dx);
    const double mean = loss / counted;
    cr_assert(fabs((double)y[0] - mean) <= 1e-6 * mean && (double)y[1] == correct, "%d x %d: %g and %g, not %g and %g",
              (int)batch, (int)classes, (double)y[0], (double)y[1], mean, correct);
    for (int64_t i = 0; i < all; i++)
        cr_assert((dx[i] == 0) == (labels[i / classes] == NO_LABEL), "row %d: %g", (int)(i / classes), (double)dx[i]);
    for (int wrong = 0; wrong < 2; wrong++) { /* what is no class has no loss */
        labels[batch / 2] = wrong ? -2 : (int32_t)classes;
        rows.labels = array_upload(labels, bytes);
        launch_cross_entropy(stream, rows, scratch, y_there);
        y = array_download(y_there, 2 * sizeof *y);
        cr_assert(isnan(y[0]), "label %d of %d: %g", (int)labels[batch / 2], (int)classes, (double)y[0]);
    }
    arrays_free();
}

Test(launches, losses)
{
    static const int64_t sizes[][2] = {{1, 2}, {3, 10}, {300, 33}, {20, 100}, {70, 1000}};
    for (int s = 0; s < 5; s++) check_losses(sizes[s][0], sizes[s][1]);
}

/* Sums of squares in order over pieces and tensors, and the last tensor that is not finite. */
static void check_squares(int tensors, int pieces, int wrong)
{
    const double zero = 0;
    const int32_t none = -1;
    struct piece_result *result = array_here((size_t)pieces * sizeof *result);
    double *all = array_upload(&zero, sizeof zero), total = 0;
    int32_t *not_finite = array_upload(&none, sizeof none);
    for (int t = tensors - 1; t >= 0; t--) {
        double sum = 0;
        for (int i = 0; i < pieces; i++) sum += result[i].squares = 1 / (double)(t * pieces + i + 3);
        if (wrong >= 0 && (t == wrong || t == wrong / 2)) sum = result[pieces / 2].squares = INFINITY;
        total += sum;
        launch_judgement(stream, t, pieces, array_upload(result, (size_t)pieces * sizeof *result),
                         (struct judgement){0, NULL, all, not_finite});
    }
    cr_assert(*(double *)array_download(all, sizeof *all) == total, "%d x %d", tensors, pieces);
    cr_assert(*(int32_t *)array_download(not_finite, sizeof *not_finite) == wrong, "%d x %d", tensors, pieces);
    arrays_free();
}

Test(launches, squares)
{
    static const int sizes[][2] = {{1, 1}, {1, 1025}, {2, 5000}, {20, 2}};
    for (int s = 0; s < 4; s++) {
        check_squares(sizes[s][0], sizes[s][1], -1);
        check_squares(sizes[s][0], sizes[s][1], 0);
        check_squares(sizes[s][0], sizes[s][1], sizes[s][0] - 1);
    }
}

/* Attention's rows against double; drops: by counter, of the last samples of a batch; spread: of scores, beyond the
 * range of an exponential. */
static void check_attention(int64_t batch, int64_t heads, int64_t tokens, bool causal, bool drops, float spread)
{
    enum { FIRST = 2 };
    const double rate = 0.3;
    const int64_t each = heads * tokens * tokens, all = batch * each;
    const struct draw draw = {.mode = RNG_COUNTER, .seed = 7, .node = 3, .step = 5};
    const struct element_draw element = element_draw_of(&draw, rate);
    const struct attention_shape shape = {FIRST, batch, heads, tokens, 0.25f, drops ? survivor_factor(rate) : 1,
                                          causal};
    float *x = numbers(all, 0);
    const float *dp = numbers(all, 1);
    for (int64_t i = 0; i < all; i++) x[i] *= spread;
    float *text = numbers(batch * TOKEN_ROWS * tokens, 2);
    for (int64_t t = 0; batch > 1 && t < tokens; t++) text[(TOKEN_ROWS + TOKEN_MASK) * tokens + t] = 0;
    float *x_there = floats(x, all), *text_there = floats(text, batch * TOKEN_ROWS * tokens);
    float *p_there = floats(x, all), *slope_there = floats(dp, all), *left_there = floats(x, all);
    launch_attention_softmax(stream, shape, text_there, x_there, p_there, NULL, NULL);
    launch_attention_softmax(stream, shape, text_there, x_there, drops ? NULL : x_there, drops ? &element : NULL,
                             drops ? x_there : NULL);
    launch_attention_slope(stream, shape, p_there, &element, drops ? left_there : NULL, slope_there);
    const size_t bytes = (size_t)all * sizeof *x;
    const float *p = array_download(p_there, bytes), *left = array_download(drops ? left_there : p_there, bytes),
                *slope = array_download(slope_there, bytes);
    cr_assert(!memcmp(left, array_download(x_there, bytes), bytes), "dropped at once and again");
    uint8_t *keep = array_here((size_t)each);
    memset(keep, 1, (size_t)each);
    for (int64_t row = 0; row < batch * heads * tokens; row++) {
        const int64_t n = row / (heads * tokens), at = row * tokens, place = at - n * each;
        const float *mask = text + (n * TOKEN_ROWS + TOKEN_MASK) * tokens;
        double most = -INFINITY, sum = 0, total = 0;
        if (drops && place == 0) rng_keep(&draw, rate, each, FIRST + n, 0, each, keep);
        const int64_t seen = causal ? row % tokens + 1 : tokens;
        for (int64_t j = 0; j < seen; j++)
            if (mask[j] > 0) most = fmax(most, (double)x[at + j]);
        for (int64_t j = 0; j < seen; j++)
            if (mask[j] > 0) sum += exp(((double)x[at + j] - most) / 4);
        for (int64_t j = 0; j < tokens; j++) {
            const double right = j < seen && mask[j] > 0 ? exp(((double)x[at + j] - most) / 4) / sum : 0;
            cr_assert(fabs((double)p[at + j] - right) < 1e-6, "%d tokens: %g, not %g", (int)tokens, (double)p[at + j],
                      right);
            cr_assert(left[at + j] == (keep[place + j] ? p[at + j] * shape.factor : 0), "%d tokens", (int)tokens);
            total += (double)left[at + j] * (double)dp[at + j];
        }
        for (int64_t j = 0; j < tokens; j++) {
            const double right = ((double)left[at + j] * (double)dp[at + j] - (double)p[at + j] * total) / 4;
            cr_assert(fabs((double)slope[at + j] - right) < 1e-5, "slope: %g, not %g", (double)slope[at + j], right);
        }
    }
    arrays_free();
}

Test(launches, attention)
{
    static const int64_t sizes[][3] = {{2, 3, 8}, {2, 2, 33}, {1, 1, 128}, {2, 1, 200}, {1, 1, 600}, {1, 1, 1030}};
    for (int s = 0; s < 6; s++)
        for (int way = 0; way < 4; way++)
            check_attention(sizes[s][0], sizes[s][1], sizes[s][2], way / 2, way % 2, s == 1 || s == 3 ? 200 : 1);
}

Test(launches, masks)
{
    static const int64_t elements[] = {1, 4, 7, 8, 13, 64, 1001};
    for (int e = 0; e < 7; e++) {
        struct draw draw = {.mode = RNG_MASK, .seed = 7, .node = 3, .step = 5};
        const size_t bytes = rng_mask_bytes(elements[e], 3);
        draw.mask = array_here(bytes);
        rng_mask_fill(&draw, 0.4, elements[e], 3);
        const struct element_draw element = element_draw_of(&draw, 0.4);
        struct element_draw elsewhere = element; /* as a recorded step finds its number */
        elsewhere.step = 99, elsewhere.step_there = array_upload(&draw.step, sizeof draw.step);
        uint8_t *mask = array_there(bytes), *same = array_there(bytes);
        launch_dropout_mask(stream, &element, elements[e], 3, mask);
        launch_dropout_mask(stream, &elsewhere, elements[e], 3, same);
        cr_assert(!memcmp(array_download(mask, bytes), draw.mask, bytes), "%d elements", (int)elements[e]);
        cr_assert(!memcmp(array_download(same, bytes), draw.mask, bytes), "%d elements, step there", (int)elements[e]);
        arrays_free();
    }
}
