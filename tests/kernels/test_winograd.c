/* The Winograd convolution of the cpu backend has the bits that kernels/cpu/winograd.h defines: beside a scalar program
 * written from that definition alone, with any number of threads and any limit of scratch. */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/images.h"

#include "kernels/cpu/conv.h"

/* ---- The definition. Images are N H W C, weights O I K K. */
static const float a1 = 0.625f, a2 = 0.625f * 0.625f, a3 = 0.625f * 0.625f * 0.625f;
static const float b1 = 1.5f, b2 = 1.5f * 1.5f, b3 = 1.5f * 1.5f * 1.5f;
static const float n = (float)(256.0 / 225), na = (float)(-2048.0 / 2975), nb = (float)(128.0 / 1071),
                   ana = (float)(-256.0 / 595), bnb = (float)(64.0 / 357);

static void of_image(const float *d, float *r)
{
    const float ea = fmaf(-b2, d[2], d[4]), oa = fmaf(-b2, d[1], d[3]);
    const float eb = fmaf(-a2, d[2], d[4]), ob = fmaf(-a2, d[1], d[3]);
    r[0] = fmaf(a2 * b2, d[0], fmaf(-(a2 + b2), d[2], d[4]));
    r[1] = fmaf(a1, oa, ea), r[2] = fmaf(-a1, oa, ea), r[3] = fmaf(b1, ob, eb), r[4] = fmaf(-b1, ob, eb);
    r[5] = fmaf(a2 * b2, d[1], fmaf(-(a2 + b2), d[3], d[5]));
}

static void of_weights(const float *g, float *r)
{
    const float ea = fmaf(a2, g[2], g[0]) * na, oa = ana * g[1], eb = fmaf(b2, g[2], g[0]) * nb, ob = bnb * g[1];
    r[0] = g[0] * n, r[1] = ea + oa, r[2] = ea - oa, r[3] = eb + ob, r[4] = eb - ob, r[5] = g[2];
}

static void of_gradient(const float *d, float *r)
{
    const float ea = fmaf(a2, d[2], d[0]), oa = fmaf(a3, d[3], a1 * d[1]);
    const float eb = fmaf(b2, d[2], d[0]), ob = fmaf(b3, d[3], b1 * d[1]);
    r[0] = d[0], r[1] = ea + oa, r[2] = ea - oa, r[3] = eb + ob, r[4] = eb - ob, r[5] = d[3];
}

static void to_result(const float *m, float *r)
{
    const float sa = m[1] + m[2], da = m[1] - m[2], sb = m[3] + m[4], db = m[3] - m[4];
    r[0] = (m[0] + sa) + sb, r[1] = fmaf(b1, db, a1 * da), r[2] = fmaf(b2, sb, a2 * sa);
    r[3] = fmaf(b3, db, fmaf(a3, da, m[5]));
}

static void to_weights(const float *m, float *r)
{
    const float sa = (m[1] + m[2]) * na, sb = (m[3] + m[4]) * nb;
    r[0] = fmaf(n, m[0], sa + sb), r[1] = fmaf(bnb, m[3] - m[4], ana * (m[1] - m[2]));
    r[2] = fmaf(b2, sb, fmaf(a2, sa, m[5]));
}

static void of_weights5(const float *g, float *r)
{
    const float a4 = a2 * a2, b4 = b2 * b2;
    const float ea = fmaf(a4, g[4], fmaf(a2, g[2], g[0])) * na, oa = fmaf(a2, g[3], g[1]) * ana;
    const float eb = fmaf(b4, g[4], fmaf(b2, g[2], g[0])) * nb, ob = fmaf(b2, g[3], g[1]) * bnb;
    r[0] = g[0] * n, r[1] = ea + oa, r[2] = ea - oa, r[3] = eb + ob, r[4] = eb - ob, r[5] = g[4];
}

static void of_gradient2(const float *d, float *r)
{
    r[0] = d[0], r[1] = fmaf(a1, d[1], d[0]), r[2] = fmaf(-a1, d[1], d[0]);
    r[3] = fmaf(b1, d[1], d[0]), r[4] = fmaf(-b1, d[1], d[0]), r[5] = d[1];
}

static void to_result2(const float *m, float *r)
{
    r[0] = (m[0] + (m[1] + m[2])) + (m[3] + m[4]);
    r[1] = fmaf(b1, m[3] - m[4], fmaf(a1, m[1] - m[2], m[5]));
}

static void to_weights5(const float *m, float *r)
{
    const float sa = (m[1] + m[2]) * na, sb = (m[3] + m[4]) * nb, da = (m[1] - m[2]) * ana, db = (m[3] - m[4]) * bnb;
    r[0] = fmaf(n, m[0], sa + sb), r[1] = fmaf(bnb, m[3] - m[4], da);
    r[2] = fmaf(b2, sb, a2 * sa), r[3] = fmaf(b2, db, a2 * da);
    r[4] = fmaf(b2 * b2, sb, fmaf(a2 * a2, sa, m[5]));
}

/* By the kernel: its side, that of a tile, and the transforms. */
struct algorithm {
    int kernel, tile;
    void (*of_weights)(const float *, float *), (*of_gradient)(const float *, float *);
    void (*to_result)(const float *, float *), (*to_weights)(const float *, float *);
};
static const struct algorithm of_3 = {3, 4, of_weights, of_gradient, to_result, to_weights};
static const struct algorithm of_5 = {5, 2, of_weights5, of_gradient2, to_result2, to_weights5};

static const struct algorithm *algorithm_of(int64_t kernel) { return kernel == 3 ? &of_3 : &of_5; }

/* The transform of columns, then of the rows: a square of side from to one of side to. */
static void square(void (*transform)(const float *, float *), int from, int to, const float *in, float *out)
{
    float half[36], column[6], made[6];
    for (int j = 0; j < from; j++) {
        for (int i = 0; i < from; i++) column[i] = in[i * from + j];
        transform(column, made);
        for (int i = 0; i < to; i++) half[i * from + j] = made[i];
    }
    for (int i = 0; i < to; i++) transform(half + i * from, out + i * to);
}

/* The points of the square of pixels from (row, column) on. */
static void points_of(void (*transform)(const float *, float *), int side, const struct images *x, int64_t sample,
                      int64_t row, int64_t column, int64_t c, float *points)
{
    float pixels[36];
    for (int i = 0; i < side * side; i++) pixels[i] = images_pixel(x, sample, row + i / side, column + i % side, c);
    square(transform, side, 6, pixels, points);
}

static int64_t tiles_across(const struct algorithm *a, int64_t pixels) { return (pixels + a->tile - 1) / a->tile; }

/* The tile's pixels of output k. v: the points of all inputs; u: those of the weights of k. */
static void judge_tile(const struct algorithm *a, const struct images *y, int64_t sample, int64_t row, int64_t column,
                       int64_t k, int64_t inputs, const float *v, const float *u, float bias, bool relu)
{
    float m[36] = {0}, pixels[16];
    for (int64_t c = 0; c < inputs; c++)
        for (int p = 0; p < 36; p++) m[p] = fmaf(v[c * 36 + p], u[c * 36 + p], m[p]);
    square(a->to_result, 6, a->tile, m, pixels);
    for (int64_t i = 0; i < a->tile * a->tile; i++) {
        const int64_t h = row + i / a->tile, w = column + i % a->tile;
        const float value = pixels[i] + bias;
        if (h < y->height && w < y->width)
            y->data[((sample * y->height + h) * y->width + w) * y->channels + k] = relu && value <= 0 ? 0 : value;
    }
}

static void judge_forward(const struct algorithm *a, const struct images *x, const float *weights, const float *bias,
                          bool relu, int64_t padding, const struct images *y)
{
    const int64_t inputs = x->channels, outputs = y->channels, wide = tiles_across(a, y->width);
    const int64_t tiles = tiles_across(a, y->height) * wide, taps = a->kernel * a->kernel;
    float *u = malloc((size_t)(outputs * inputs * 36) * 4), *v = malloc((size_t)inputs * 36 * 4);
    for (int64_t i = 0; i < outputs * inputs; i++) square(a->of_weights, a->kernel, 6, weights + i * taps, u + i * 36);
    for (int64_t t = 0; t < x->batch * tiles; t++) {
        const int64_t row = t % tiles / wide * a->tile, column = t % wide * a->tile;
        for (int64_t c = 0; c < inputs; c++)
            points_of(of_image, 6, x, t / tiles, row - padding, column - padding, c, v + c * 36);
        for (int64_t k = 0; k < outputs; k++)
            judge_tile(a, y, t / tiles, row, column, k, inputs, v, u + k * inputs * 36, bias ? bias[k] : 0, relu);
    }
    free(u), free(v);
}

static void judge_input(const struct algorithm *a, const struct images *dy, const float *weights, int64_t padding,
                        const struct images *dx)
{
    const int64_t inputs = dx->channels, outputs = dy->channels, taps = a->kernel * a->kernel;
    float *rotated = malloc((size_t)(outputs * inputs * taps) * 4);
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t i = 0; i < inputs; i++)
            for (int64_t t = 0; t < taps; t++)
                rotated[(i * outputs + o) * taps + t] = weights[(o * inputs + i) * taps + taps - 1 - t];
    judge_forward(a, dy, rotated, NULL, false, a->kernel - 1 - padding, dx);
    free(rotated);
}

/* to = x, or to + x. */
static void judge_add(int count, bool add, const float *x, float *to)
{
    for (int i = 0; i < count; i++) to[i] = add ? to[i] + x[i] : x[i];
}

/* Of input c and output k; the bias's too. */
static void judge_gradient(const struct algorithm *a, const struct images *x, const struct images *dy, int64_t padding,
                           int64_t c, int64_t k, float *weights, float *bias)
{
    const int64_t wide = tiles_across(a, dy->width), tiles = tiles_across(a, dy->height) * wide, all = x->batch * tiles;
    const int64_t length = a->kernel == 3 ? all : 2048;
    float span[36], block[36], v[36], w[36], made[25], block_bias = 0, span_bias = 0;
    for (int64_t t = 0; t < all; t++) {
        const int64_t row = t % tiles / wide * a->tile, column = t % wide * a->tile;
        if (t % 64 == 0) memset(block, 0, sizeof block), block_bias = 0;
        points_of(of_image, 6, x, t / tiles, row - padding, column - padding, c, v);
        points_of(a->of_gradient, a->tile, dy, t / tiles, row, column, k, w);
        for (int p = 0; p < 36; p++) block[p] = fmaf(v[p], w[p], block[p]);
        float tile_bias = 0;
        for (int i = 0; i < a->tile * a->tile; i++)
            tile_bias += images_pixel(dy, t / tiles, row + i / a->tile, column + i % a->tile, k);
        block_bias += tile_bias;
        if (t % 64 == 63 || t == all - 1)
            judge_add(36, t % length >= 64, block, span), judge_add(1, t % length >= 64, &block_bias, &span_bias);
        if (t % length != length - 1 && t < all - 1) continue;
        square(a->to_weights, 6, a->kernel, span, made);
        judge_add(a->kernel * a->kernel, t >= length, made, weights), judge_add(1, t >= length, &span_bias, bias);
    }
}

/* ---- The kernels. */

/* A convolution and its results by the definition. With a pool of y: the pool, its gradient, of which dy is made, and
 * its places, as numbers. */
struct problem {
    const struct algorithm *algorithm;
    struct images x, y, dx, dy, pool, dpool, places;
    int64_t padding;
    float *weights, *bias, *dw, *db;
    bool relu, has_bias, pooled;
};

/* Number of the window's place that has the gradient, 4: none; *most: its value. */
static int judge_window(const struct images *y, int64_t sample, int64_t row, int64_t column, int64_t k, bool relu,
                        float *most)
{
    int place = 0;
    for (int i = 0; i < 4; i++) {
        const float value = images_pixel(y, sample, row + i / 2, column + i % 2, k);
        if (i > 0 && !(value > *most) && !(isnan(value) && !isnan(*most))) continue;
        place = i, *most = value;
    }
    return relu && !(*most > 0) ? 4 : place;
}

static void judge_pool(struct problem *p)
{
    const struct images *y = &p->y;
    const int64_t h = y->height / 2, w = y->width / 2, c = y->channels;
    p->pooled = true;
    p->pool = images_make(y->batch, h, w, c, 10), p->dpool = images_make(y->batch, h, w, c, 11);
    p->places = images_make(y->batch, h, w, c, 12);
    memset(p->dy.data, 0, (size_t)(y->batch * y->height * y->width * c) * 4);
    for (int64_t i = 0; i < y->batch * h * w * c; i++) {
        const int64_t sample = i / c / w / h, row = i / c / w % h * 2, column = i / c % w * 2;
        const int place = judge_window(y, sample, row, column, i % c, p->relu, &p->pool.data[i]);
        p->places.data[i] = (float)place;
        if (place < 4)
            p->dy.data[((sample * y->height + row + place / 2) * y->width + column + place % 2) * c + i % c] +=
                p->dpool.data[i];
    }
}

static void judge_gradients(struct problem *p)
{
    const int64_t inputs = p->x.channels, outputs = p->y.channels;
    const struct algorithm *a = p->algorithm;
    judge_input(a, &p->dy, p->weights, p->padding, &p->dx);
    for (int64_t i = 0; i < outputs * inputs; i++)
        judge_gradient(a, &p->x, &p->dy, p->padding, i % inputs, i / inputs, p->dw + i * a->kernel * a->kernel,
                       &p->db[i / inputs]);
}

static struct problem problem_make(int64_t kernel, int64_t batch, int64_t height, int64_t width, int64_t inputs,
                                   int64_t outputs, int64_t padding, bool relu, bool bias)
{
    const int64_t h = height + 2 * padding + 1 - kernel, w = width + 2 * padding + 1 - kernel;
    const int64_t numbers = outputs * inputs * kernel * kernel;
    struct problem p = {.algorithm = algorithm_of(kernel), .padding = padding, .relu = relu, .has_bias = bias};
    p.x = images_make(batch, height, width, inputs, 1), p.dx = images_make(batch, height, width, inputs, 2);
    p.y = images_make(batch, h, w, outputs, 3), p.dy = images_make(batch, h, w, outputs, 4);
    p.weights = random_floats(numbers, 5), p.dw = random_floats(numbers, 6);
    p.bias = random_floats(outputs, 7), p.db = random_floats(outputs, 8);
    judge_forward(p.algorithm, &p.x, p.weights, bias ? p.bias : NULL, relu, padding, &p.y);
    judge_gradients(&p);
    return p;
}

static void problem_free(struct problem *p)
{
    float *const all[] = {p->x.data,      p->y.data,  p->dx.data, p->dy.data, p->pool.data, p->dpool.data,
                          p->places.data, p->weights, p->bias,    p->dw,      p->db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_bits(const float *a, const float *b, int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        cr_assert(!memcmp(a + i, b + i, sizeof *a) || (isnan(a[i]) && isnan(b[i])),
                  "%s[%lld] is %.9g, by the definition %.9g", what, (long long)i, (double)a[i], (double)b[i]);
}

/* count places; made: those that the definition has. To be freed. */
static uint8_t *places_of(const struct problem *p, int64_t count, bool made)
{
    if (!p->pooled) return NULL;
    uint8_t *places = malloc((size_t)count);
    for (int64_t i = 0; i < count; i++) places[i] = made ? (uint8_t)p->places.data[i] : 255;
    return places;
}

/* Forward or the gradient of x. y: of the pool, where there is one. */
static void check_images(const struct problem *p, const struct winograd *w, enum conv_pass pass, const struct extent *x,
                         const struct extent *y)
{
    const bool input = pass == CONV_INPUT;
    const struct images *dy = p->pooled ? &p->dpool : &p->dy, *judged = p->pooled ? &p->pool : &p->y;
    const struct images *from = input ? dy : &p->x, *to = input ? &p->dx : judged;
    const struct extent *in = input ? y : x, *out = input ? x : y;
    float *source = spoiled_floats((size_t)in->count * 4), *result = spoiled_floats((size_t)out->count * 4);
    float *scratch = spoiled_floats(w->scratch);
    memcpy(source, from->data, (size_t)in->count * 4);
    uint8_t *places = places_of(p, y->count, input);
    winograd_apply(w, source, p->weights, !input && p->has_bias ? p->bias : NULL, !input && p->relu, result, places,
                   scratch);
    check_bits(result, to->data, to->batch * to->height * to->width * to->channels, input ? "dx" : "y");
    for (int64_t i = 0; p->pooled && i < y->count; i++)
        cr_assert(places[i] == p->places.data[i], "place %lld is %d", (long long)i, places[i]);
    free(source), free(result), free(scratch), free(places);
}

static void check_gradients(const struct problem *p, const struct winograd *w, const struct extent *x,
                            const struct extent *y)
{
    const int64_t outputs = p->y.channels,
                  numbers = outputs * p->x.channels * p->algorithm->kernel * p->algorithm->kernel;
    float *in = spoiled_floats((size_t)x->count * 4), *dy = spoiled_floats((size_t)y->count * 4),
          *scratch = spoiled_floats(w->scratch);
    float *dw = spoiled_floats((size_t)numbers * 4), *db = spoiled_floats((size_t)outputs * 4);
    memcpy(in, p->x.data, (size_t)x->count * 4),
        memcpy(dy, p->pooled ? p->dpool.data : p->dy.data, (size_t)y->count * 4);
    uint8_t *places = places_of(p, y->count, true);
    winograd_gradients(w, in, dy, places, dw, p->has_bias ? db : NULL, scratch);
    check_bits(dw, p->dw, numbers, "dw");
    if (p->has_bias) check_bits(db, p->db, outputs, "db");
    free(in), free(dy), free(scratch), free(dw), free(db), free(places);
}

/* Every pass at limits of scratch from unlimited down to too little; returns how many were enough. */
static int check_limits(const struct problem *p, int threads)
{
    const struct extent x = images_extent(&p->x), y = images_extent(&p->y);
    const struct extent written = p->pooled ? images_extent(&p->pool) : y;
    int enough = 0;
    omp_set_num_threads(threads);
    for (enum conv_pass pass = 0; pass < CONV_PASSES; pass++) {
        struct winograd w;
        for (uint64_t limit = UINT64_MAX;
             winograd_make(pass, &x, &y, p->algorithm->kernel, p->padding, threads, limit, &w);
             limit = w.scratch / 5 * 4, enough++) {
            cr_assert(w.scratch > 0 && w.scratch <= limit && w.scratch <= SCRATCH_MOST);
            if (p->pooled) w.pooled = image_of(&written);
            if (pass == CONV_PARAMS)
                check_gradients(p, &w, &x, &written);
            else
                check_images(p, &w, pass, &x, &written);
        }
    }
    return enough;
}

Test(winograd, has_the_bits_of_its_definition, .timeout = 300)
{
    static const struct {
        int64_t kernel, batch, height, width, inputs, outputs, padding;
        bool relu, bias;
    } rows[] = {
        {3, 1, 4, 4, 16, 32, 1, false, false},  {3, 7, 14, 14, 32, 16, 1, true, true},
        {3, 1, 1, 1, 1, 1, 1, true, true},      {3, 7, 9, 13, 20, 37, 0, true, false},
        {3, 3, 3, 3, 7, 5, 0, false, true},     {3, 2, 6, 7, 40, 70, 2, true, true},
        {3, 7, 17, 19, 3, 9, 1, false, true},   {3, 2, 5, 40, 8, 12, 3, true, true},
        {3, 2, 150, 140, 2, 3, 1, false, true}, {5, 2, 14, 14, 16, 32, 2, true, true},
        {5, 1, 1, 1, 1, 1, 2, true, true},      {5, 3, 9, 13, 20, 37, 0, true, false},
        {5, 3, 5, 5, 7, 5, 0, false, true},     {5, 2, 6, 7, 40, 70, 1, true, true},
        {5, 3, 17, 19, 10, 9, 3, false, true},  {5, 2, 5, 40, 40, 20, 4, true, true},
        {5, 2, 7, 6, 1, 10, 5, false, false},   {5, 1, 100, 90, 2, 10, 2, true, true},
        {5, 2, 200, 190, 2, 3, 2, false, true}, /* spans for three threads */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct problem p = problem_make(rows[i].kernel, rows[i].batch, rows[i].height, rows[i].width, rows[i].inputs,
                                        rows[i].outputs, rows[i].padding, rows[i].relu, rows[i].bias);
        check_limits(&p, 2);
        problem_free(&p);
    }
}

Test(winograd, has_the_same_bits_with_any_threads_and_limit, .timeout = 300)
{
    for (int64_t kernel = 3; kernel <= 5; kernel += 2) {
        struct problem p = problem_make(kernel, 3, 30, 29, 75, 133, kernel / 2, true, true);
        for (int pool = 0; pool < 2; pool++) {
            if (pool) judge_pool(&p), judge_gradients(&p);
            for (int threads = 1; threads <= 3; threads++)
                cr_expect(check_limits(&p, threads) >= 12, "%d threads", threads);
        }
        problem_free(&p);
    }
}

/* Pools of even and odd images. The first sample is 0, so that all pixels of a window are equal; the last one has a
 * NaN, whose windows have NaNs and numbers. */
Test(winograd, a_pool_has_the_bits_of_one_of_its_own, .timeout = 300)
{
    static const struct {
        int64_t kernel, height, width, inputs, outputs, padding;
        bool relu, bias;
    } rows[] = {
        {3, 8, 8, 16, 32, 1, true, true},    {3, 9, 13, 20, 37, 1, true, true},  {3, 14, 14, 3, 16, 1, false, true},
        {3, 6, 11, 40, 70, 2, true, true},   {3, 13, 12, 8, 12, 0, false, true}, {3, 2, 2, 1, 1, 1, true, false},
        {3, 7, 5, 16, 5, 3, true, false},    {5, 8, 8, 16, 32, 2, true, true},   {5, 9, 13, 20, 37, 1, true, true},
        {5, 14, 14, 10, 16, 0, false, true}, {5, 6, 11, 40, 7, 3, true, true},   {5, 7, 5, 16, 5, 4, true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct problem p = problem_make(rows[i].kernel, 4, rows[i].height, rows[i].width, rows[i].inputs,
                                        rows[i].outputs, rows[i].padding, rows[i].relu, rows[i].bias);
        const int64_t sample = rows[i].height * rows[i].width * rows[i].inputs;
        memset(p.x.data, 0, (size_t)sample * 4);
        p.x.data[4 * sample - 1] = NAN;
        judge_forward(p.algorithm, &p.x, p.weights, p.has_bias ? p.bias : NULL, p.relu, p.padding, &p.y);
        judge_pool(&p), judge_gradients(&p);
        check_limits(&p, 2);
        problem_free(&p);
    }
}

Test(winograd, scratch_is_bounded_for_every_layer)
{
    for (int64_t channels = 3; channels <= 2048; channels = channels * 7 / 3)
        for (int64_t side = 1; side <= 224; side *= 3)
            for (int64_t batch = 1; batch <= 1024; batch *= 32)
                for (int threads = 1; threads <= 128; threads = threads * 3 + 1) {
                    const struct images images = {batch, side, side, channels, NULL};
                    const struct extent x = images_extent(&images);
                    for (enum conv_pass pass = 0; pass < CONV_PASSES; pass++) {
                        struct winograd w;
                        cr_assert(winograd_make(pass, &x, &x, 3, 1, threads, UINT64_MAX, &w));
                        cr_assert(w.scratch <= SCRATCH_MOST);
                        cr_assert(pass == CONV_PARAMS || (w.workers >= 1 && w.workers <= threads));
                    }
                }
}

/* Plans have the same bytes whatever the vectors of a build are. */
Test(winograd, scratch_is_the_same_in_every_build)
{
    static const struct {
        int64_t side, inputs, outputs, limit;
        size_t bytes[CONV_PASSES]; /* 0: too little */
    } rows[] = {{56, 64, 64, 64 << 20, {1707264, 2014208, 1707264}},
                {28, 500, 24, 64 << 20, {6518016, 7498624, 2665728}},
                {14, 512, 512, 64 << 20, {23088384, 26320640, 23088384}},
                {14, 512, 512, 4 << 20, {3416832, 3156992, 3416832}},
                {14, 512, 512, 1 << 20, {0, 918400, 0}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct images in = {8, rows[i].side, rows[i].side, rows[i].inputs, NULL};
        struct images out = in;
        out.channels = rows[i].outputs;
        const struct extent x = images_extent(&in), y = images_extent(&out);
        for (enum conv_pass pass = 0; pass < CONV_PASSES; pass++) {
            struct winograd w;
            const bool fits = winograd_make(pass, &x, &y, 3, 1, 2, (uint64_t)rows[i].limit, &w);
            cr_expect((fits ? w.scratch : 0) == rows[i].bytes[pass], "row %zu, pass %d: %zu", i, (int)pass,
                      fits ? w.scratch : 0);
        }
    }
}

/* y, dw and dx in double; sums of products, which are to be 0 at first. */
static void exact_passes(const struct problem *p, double *sums[CONV_PASSES])
{
    const int64_t k = p->algorithm->kernel, inputs = p->x.channels, outputs = p->y.channels;
    const int64_t pixels = p->y.batch * p->y.height * p->y.width;
    for (int64_t i = 0; i < pixels * k * k; i++) {
        const int64_t pixel = i / k / k, tap = i % (k * k), sample = pixel / p->y.width / p->y.height;
        const int64_t row = pixel / p->y.width % p->y.height + tap / k - p->padding;
        const int64_t column = pixel % p->y.width + tap % k - p->padding;
        if (row < 0 || row >= p->x.height || column < 0 || column >= p->x.width) continue;
        const int64_t from = ((sample * p->x.height + row) * p->x.width + column) * inputs;
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t c = 0; c < inputs; c++) {
                const int64_t weight = (o * inputs + c) * k * k + tap;
                const double x = p->x.data[from + c], w = p->weights[weight], dy = p->dy.data[pixel * outputs + o];
                sums[CONV_FORWARD][pixel * outputs + o] += x * w;
                sums[CONV_PARAMS][weight] += x * dy;
                sums[CONV_INPUT][from + c] += dy * w;
            }
    }
}

/* The relative L2 error of a pass, by Winograd or as a product. */
static double error_of(const struct problem *p, enum conv_pass pass, bool winograd, const double *exact, int64_t count)
{
    const struct extent x = images_extent(&p->x), y = images_extent(&p->y);
    const struct images *from = pass == CONV_INPUT ? &p->dy : &p->x;
    const int64_t kernel = p->algorithm->kernel;
    struct conv_plan plan = {
        .product = {.kernel = kernel, .stride = 1, .padding = p->padding, .dilation = 1, .groups = 1, .threads = 1}};
    plan.product.limit = SCRATCH_MOST;
    if (winograd)
        cr_assert(winograd_make(pass, &x, &y, kernel, p->padding, 1, SCRATCH_MOST, &plan.winograd));
    else
        conv_product_make(pass, &x, &y, &plan.product);
    float *scratch = spoiled_floats(winograd ? plan.winograd.scratch : plan.product.scratch);
    float *to = spoiled_floats((size_t)count * 4);
    if (pass == CONV_PARAMS)
        conv_plan_gradients(&plan, p->x.data, p->dy.data, NULL, to, NULL, scratch);
    else
        conv_plan_apply(&plan, from->data, p->weights, NULL, false, to, NULL, scratch);
    double wrong = 0, all = 0;
    for (int64_t i = 0; i < count; i++) wrong += (to[i] - exact[i]) * (to[i] - exact[i]), all += exact[i] * exact[i];
    free(scratch), free(to);
    return sqrt(wrong / all);
}

/* Relative L2 errors beside double are at most 4 times those of the product, which are about 3e-7. */
Test(winograd, is_nearly_as_accurate_as_the_product, .timeout = 300)
{
    static const int64_t rows[][4] = {{3, 50, 20, 24}, {3, 20, 64, 64}, {5, 100, 10, 20}, {5, 64, 40, 20}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t kernel = rows[i][0], side = rows[i][1], inputs = rows[i][2], outputs = rows[i][3];
        struct problem p = problem_make(kernel, 1, side, side, inputs, outputs, kernel / 2, false, false);
        const int64_t counts[] = {side * side * outputs, outputs * inputs * kernel * kernel, side * side * inputs};
        double *exact[CONV_PASSES];
        for (int pass = 0; pass < CONV_PASSES; pass++) exact[pass] = calloc((size_t)counts[pass], sizeof(double));
        exact_passes(&p, exact);
        for (enum conv_pass pass = 0; pass < CONV_PASSES; pass++) {
            const double ours = error_of(&p, pass, true, exact[pass], counts[pass]);
            const double product = error_of(&p, pass, false, exact[pass], counts[pass]);
            cr_expect(ours < 4 * product && product < 1e-6, "row %zu, pass %d: %g, as a product %g", i, (int)pass, ours,
                      product);
            free(exact[pass]);
        }
        problem_free(&p);
    }
}

Test(winograd, a_relu_keeps_nan)
{
    struct problem p = problem_make(3, 1, 8, 8, 16, 16, 1, true, true);
    const struct extent e = images_extent(&p.x);
    struct winograd w;
    cr_assert(winograd_make(CONV_FORWARD, &e, &e, 3, 1, 1, UINT64_MAX, &w));
    float *scratch = spoiled_floats(w.scratch), *y = spoiled_floats((size_t)e.count * 4);
    p.x.data[0] = NAN;
    winograd_apply(&w, p.x.data, p.weights, p.bias, true, y, NULL, scratch);
    cr_expect(isnan(y[0]) && !isnan(y[e.count - 1]));
    free(scratch), free(y);
    problem_free(&p);
}
