/* Convolutions as products over patches have the bits that kernels/cpu/conv_product.h defines: beside a scalar program
 * written from that definition alone, with any number of threads and any limit of scratch. */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "numerics/shape.h"
#include "tests/support/images.h"

#include "kernels/cpu/conv_product.h"

/* ---- The definition. Images are N H W C, weights O I H W. */
struct sum {
    int64_t terms;
    bool spans;
    float block, span, total;
};

static void close_block(struct sum *s)
{
    if (s->terms % 256 != 0 || s->terms == 0) return;
    const bool first = s->spans ? s->terms % 2048 == 256 : s->terms == 256;
    s->span = first ? s->block : s->span + s->block;
    s->block = 0;
    if (!s->spans || s->terms % 2048 != 0) return;
    s->total = s->terms == 2048 ? s->span : s->total + s->span;
}

static void add_term(struct sum *s, float p, float q)
{
    s->block = fmaf(p, q, s->block);
    s->terms++;
    close_block(s);
}

static float sum_of(struct sum s)
{
    const int64_t left = s.terms % 256, spans = s.spans ? s.terms / 2048 : 0, blocks = s.terms / 256 - spans * 8;
    if (left == 0 && blocks == 0) return spans > 0 ? s.total : 0;
    const float span = left == 0 ? s.span : blocks == 0 ? s.block : s.span + s.block;
    return spans > 0 ? s.total + span : span;
}

/* A convolution and its results by the definition. */
struct problem {
    struct images x, y, dx, dy;
    int64_t kernel, stride, padding, dilation, groups;
    float *weights, *bias, *dw, *db;
    bool relu, has_bias;
};

static int64_t images_count(const struct images *x) { return x->batch * x->height * x->width * x->channels; }

static float weight(const struct problem *p, int64_t output, int64_t input, int64_t h, int64_t w)
{
    const int64_t inputs = p->x.channels / p->groups;
    return p->weights[((output * inputs + input) * p->kernel + h) * p->kernel + w];
}

static void judge_forward(const struct problem *p)
{
    const int64_t inputs = p->x.channels / p->groups, outputs = p->y.channels / p->groups, k = p->kernel;
    for (int64_t i = 0; i < images_count(&p->y); i++) {
        const int64_t o = i % p->y.channels, at = i / p->y.channels, first = o / outputs * inputs;
        const int64_t n = at / p->y.width / p->y.height, row = at / p->y.width % p->y.height, column = at % p->y.width;
        struct sum s = {0};
        for (int64_t t = 0; t < k * k * inputs; t++) {
            const int64_t h = t / inputs / k, w = t / inputs % k, c = t % inputs;
            add_term(&s,
                     images_pixel(&p->x, n, row * p->stride - p->padding + h * p->dilation,
                                  column * p->stride - p->padding + w * p->dilation, first + c),
                     weight(p, o, c, h, w));
        }
        const float value = sum_of(s) + (p->has_bias ? p->bias[o] : 0);
        p->y.data[i] = p->relu && value <= 0 ? 0 : value;
    }
}

static void judge_input(const struct problem *p)
{
    const int64_t inputs = p->x.channels / p->groups, outputs = p->y.channels / p->groups, k = p->kernel;
    for (int64_t i = 0; i < images_count(&p->x); i++) {
        const int64_t c = i % p->x.channels, at = i / p->x.channels, first = c / inputs * outputs;
        const int64_t n = at / p->x.width / p->x.height;
        const int64_t row = at / p->x.width % p->x.height + p->padding, column = at % p->x.width + p->padding;
        struct sum s = {0};
        for (int64_t t = k * k - 1; t >= 0; t--) {
            const int64_t h = t / k, w = t % k, up = row - h * p->dilation, left = column - w * p->dilation;
            if (up % p->stride != 0 || left % p->stride != 0) continue;
            for (int64_t o = 0; o < outputs; o++)
                add_term(&s, images_pixel(&p->dy, n, up / p->stride, left / p->stride, first + o),
                         weight(p, first + o, c % inputs, h, w));
        }
        p->dx.data[i] = sum_of(s) + 0.0f;
    }
}

/* Input -1: of the bias. */
static float judge_gradient(const struct problem *p, int64_t output, int64_t input, int64_t h, int64_t w)
{
    struct sum s = {.spans = true};
    const int64_t first = output / (p->y.channels / p->groups) * (p->x.channels / p->groups);
    for (int64_t i = 0; i < p->y.batch * p->y.height * p->y.width; i++) {
        const int64_t n = i / p->y.width / p->y.height, row = i / p->y.width % p->y.height, column = i % p->y.width;
        const float x = input < 0 ? 1
                                  : images_pixel(&p->x, n, row * p->stride - p->padding + h * p->dilation,
                                                 column * p->stride - p->padding + w * p->dilation, first + input);
        add_term(&s, x, images_pixel(&p->dy, n, row, column, output));
    }
    return sum_of(s);
}

/* ---- The kernels. */
struct shape_row {
    int64_t batch, height, width, inputs, outputs, kernel, stride, padding, groups;
    bool relu, bias;
    int64_t dilation; /* 0: 1 */
    bool tiny;        /* products are too small for a float: sums are 0 or -0 */
};

static struct problem problem_make(const struct shape_row *r)
{
    const int64_t dilation = r->dilation ? r->dilation : 1, extent = (r->kernel - 1) * dilation + 1;
    const int64_t h = (r->height + 2 * r->padding - extent) / r->stride + 1;
    const int64_t w = (r->width + 2 * r->padding - extent) / r->stride + 1, taps = r->kernel * r->kernel;
    const int64_t inputs = r->inputs / r->groups, count = r->outputs * inputs * taps;
    struct problem p = {.kernel = r->kernel, .stride = r->stride, .padding = r->padding, .groups = r->groups};
    p.dilation = dilation;
    p.relu = r->relu, p.has_bias = r->bias;
    p.x = images_make(r->batch, r->height, r->width, r->inputs, 1),
    p.dx = images_make(r->batch, r->height, r->width, r->inputs, 2);
    p.y = images_make(r->batch, h, w, r->outputs, 3), p.dy = images_make(r->batch, h, w, r->outputs, 4);
    p.weights = random_floats(count, 5), p.dw = random_floats(count, 6);
    p.bias = random_floats(r->outputs, 7), p.db = random_floats(r->outputs, 8);
    for (int64_t i = 0; r->tiny && i < images_count(&p.x); i++) p.x.data[i] *= 1e-30F;
    for (int64_t i = 0; r->tiny && i < images_count(&p.dy); i++) p.dy.data[i] *= 1e-30F;
    judge_forward(&p), judge_input(&p);
    for (int64_t i = 0; i < count; i++)
        p.dw[i] = judge_gradient(&p, i / taps / inputs, i / taps % inputs, i % taps / r->kernel, i % r->kernel);
    for (int64_t o = 0; o < r->outputs; o++) p.db[o] = judge_gradient(&p, o, -1, 0, 0);
    return p;
}

static void problem_free(struct problem *p)
{
    float *const all[] = {p->x.data, p->y.data, p->dx.data, p->dy.data, p->weights, p->bias, p->dw, p->db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_bits(const float *a, const float *b, int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        cr_assert(!memcmp(a + i, b + i, sizeof *a), "%s[%lld] is %.9g, by the definition %.9g", what, (long long)i,
                  (double)a[i], (double)b[i]);
}

/* Forward or the gradient of x. */
static void check_images(const struct problem *p, const struct conv_product *conv, bool input, const struct extent *x,
                         const struct extent *y)
{
    const struct images *from = input ? &p->dy : &p->x, *to = input ? &p->dx : &p->y;
    const struct extent *in = input ? y : x, *out = input ? x : y;
    float *source = spoiled_floats((size_t)in->count * 4), *result = spoiled_floats((size_t)out->count * 4);
    float *scratch = spoiled_floats(conv->scratch);
    memcpy(source, from->data, (size_t)in->count * 4);
    conv_product_apply(conv, source, p->weights, !input && p->has_bias ? p->bias : NULL, !input && p->relu, result,
                       scratch);
    check_bits(result, to->data, images_count(to), input ? "dx" : "y");
    free(source), free(result), free(scratch);
}

static void check_gradients(const struct problem *p, const struct conv_product *conv, const struct extent *x,
                            const struct extent *y)
{
    const int64_t count = p->y.channels * p->x.channels / p->groups * p->kernel * p->kernel;
    float *in = spoiled_floats((size_t)x->count * 4), *dy = spoiled_floats((size_t)y->count * 4),
          *scratch = spoiled_floats(conv->scratch);
    float *dw = spoiled_floats((size_t)count * 4), *db = spoiled_floats((size_t)p->y.channels * 4);
    memcpy(in, p->x.data, (size_t)x->count * 4), memcpy(dy, p->dy.data, (size_t)y->count * 4);
    conv_product_gradients(conv, in, dy, dw, p->has_bias ? db : NULL, scratch);
    check_bits(dw, p->dw, count, "dw");
    if (p->has_bias) check_bits(db, p->db, p->y.channels, "db");
    free(in), free(dy), free(scratch), free(dw), free(db);
}

static void check(const struct problem *p, int threads, uint64_t limit)
{
    const struct extent x = images_extent(&p->x), y = images_extent(&p->y);
    omp_set_num_threads(threads);
    for (enum conv_pass pass = 0; pass < CONV_PASSES; pass++) {
        struct conv_product conv = {.kernel = p->kernel, .stride = p->stride, .padding = p->padding};
        conv.dilation = p->dilation, conv.groups = p->groups, conv.threads = threads, conv.limit = limit;
        conv.bias = p->has_bias && pass == CONV_PARAMS;
        conv_product_make(pass, &x, &y, &conv);
        if (pass == CONV_PARAMS)
            check_gradients(p, &conv, &x, &y);
        else
            check_images(p, &conv, pass == CONV_INPUT, &x, &y);
    }
}

Test(conv_product, has_the_bits_of_its_definition, .timeout = 300)
{
    static const struct shape_row rows[] = {
        {2, 7, 9, 20, 37, 1, 1, 0, 1, true, true},
        {3, 9, 10, 16, 33, 1, 2, 0, 1, false, false},
        {2, 13, 11, 3, 18, 7, 2, 3, 1, true, true},
        {1, 12, 9, 17, 5, 5, 1, 2, 1, false, true},
        {2, 11, 14, 40, 16, 3, 2, 1, 1, true, true},
        {1, 8, 7, 16, 24, 4, 3, 1, 1, false, true},
        {1, 1, 1, 1, 1, 1, 1, 0, 1, true, true},
        {2, 3, 4, 300, 3, 3, 1, 2, 1, false, false},
        {1, 50, 61, 8, 16, 2, 1, 0, 1, false, true},
        {1, 6, 9, 32, 32, 2, 5, 0, 2, true, true},
        {2, 9, 19, 40, 40, 3, 1, 1, 40, true, true},
        {3, 31, 28, 17, 17, 5, 2, 2, 17, false, true},
        {2, 40, 40, 3, 3, 2, 3, 1, 3, true, false},
        {2, 9, 11, 24, 24, 3, 1, 1, 6, true, true},
        {3, 30, 28, 32, 32, 3, 2, 1, 8, false, true},
        {1, 7, 8, 6, 6, 3, 1, 2, 3, true, true},
        {2, 12, 13, 48, 48, 5, 2, 2, 6, true, true},
        {1, 9, 9, 12, 24, 3, 1, 1, 3, false, true},
        {1, 8, 8, 16, 16, 7, 1, 3, 2, false, true},
        {1, 33, 9, 8, 8, 3, 1, 1, 1, true, false},
        {2, 13, 12, 20, 10, 3, 1, 2, 1, true, true, 2},
        {2, 9, 19, 40, 40, 3, 1, 4, 40, true, true, 3},
        {3, 14, 17, 6, 7, 4, 4, 7, 1, false, true, 6},
        {1, 15, 28, 24, 24, 3, 2, 9, 6, false, true, 8},
        {2, 40, 40, 32, 32, 3, 1, 2, 4, false, true, 2},
        {2, 37, 41, 30, 45, 1, 1, 0, 1, false, false},
        {1, 5, 6, 9, 70, 1, 1, 0, 1, true, false},
        {2, 6, 7, 24, 36, 1, 1, 0, 2, false, false},
        {1, 3, 5, 1024, 20, 1, 1, 0, 1, false, true},
        {1, 4, 5, 8, 8, 1, 1, 1, 1, false, false},
        {2, 1, 1, 8, 9, 3, 3, 1, 1, false, false},
        {1, 3, 3, 8, 9, 1, 2, 1, 1, false, false},
        {1, 7, 9, 20, 37, 1, 1, 0, 1, true, false, 1, true},
        {1, 7, 9, 20, 37, 3, 1, 1, 1, true, true, 1, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct problem p = problem_make(&rows[i]);
        for (int threads = 1; threads <= 4; threads++) check(&p, threads, UINT64_MAX);
        problem_free(&p);
    }
}

Test(conv_product, has_the_same_bits_with_any_threads_and_limit, .timeout = 300)
{
    static const struct shape_row row = {3, 45, 43, 21, 39, 3, 2, 1, 3, false, true};
    struct problem p = problem_make(&row);
    for (int threads = 1; threads <= 4; threads++)
        for (uint64_t limit = 64 << 20; limit > 1000; limit /= 8) check(&p, threads, limit);
    problem_free(&p);
}
