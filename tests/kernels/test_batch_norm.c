/* Batch normalisation of every backend against its formulas in double, computed here; and what it does with its running
 * state and with the statistics of the batch. */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/layer_under_test.h"

enum { LAST = LAYOUT_CHANNELS_LAST, FIRST = LAYOUT_CHANNELS_FIRST, RELU = ACTIVATION_RELU, POPULATION = 1 };

static const double epsilon = 1e-5, momentum = 0.3;

static const struct subject_case cases[] = {
    {"batch_norm", IMAGE(7, 5, 3), {.activation = RELU, .affine = true}, 3, .layout = LAST},
    {"batch_norm", IMAGE(7, 5, 16), {.activation = RELU, .affine = true}, 3, .layout = FIRST},
    {"batch_norm", IMAGE(7, 7, 35), {.affine = true, .variance = POPULATION}, 4, .layout = FIRST},
    {"batch_norm", IMAGE(1, 1, 19), {.activation = RELU}, 2, .layout = LAST},
    {"batch_norm", IMAGE(1, 1, 24), {.affine = true, .variance = POPULATION}, 9, .layout = FIRST},
    {"batch_norm", IMAGE(150, 160, 2), {.affine = true}, 1, .layout = LAST},
    {"batch_norm", IMAGE(70, 70, 16), {.activation = RELU, .affine = true}, 1, .layout = FIRST},
    {"batch_norm", IMAGE(40, 40, 24), {.activation = RELU, .affine = true}, 3, .layout = FIRST},
    {"batch_norm", IMAGE(13, 11, 300), {.activation = RELU, .variance = POPULATION}, 2, .layout = LAST},
    {"batch_norm", {1, {37}}, {.activation = RELU, .affine = true}, 50},
    {"batch_norm_add", IMAGE(7, 5, 3), {.activation = RELU, .affine = true}, 3, .layout = LAST},
    {"batch_norm_add", IMAGE(7, 5, 16), {.activation = RELU, .affine = true}, 3, true, .layout = FIRST},
    {"batch_norm_add", IMAGE(7, 7, 35), {.affine = true, .variance = POPULATION}, 4, .layout = FIRST},
    {"batch_norm_add", IMAGE(40, 40, 24), {.activation = RELU, .affine = true}, 3, true, .layout = FIRST},
    {"batch_norm_add", IMAGE(150, 160, 24), {.activation = RELU}, 2, .layout = FIRST}, /* larger than the caches */
    {"batch_norm_add", {1, {37}}, {.activation = RELU}, 50},
};
enum { CASES = sizeof cases / sizeof *cases };

static const char *const backends[] = {"ref", "cpu", "cuda"};
enum { BACKENDS = sizeof backends / sizeof *backends };
#define FOR_CASES(k, c)                                                                                                \
    for (int k = 0; k < BACKENDS; k++)                                                                                 \
        for (int c = backend_opens(backends[k]) ? 0 : CASES; c < CASES; c++)

/* A kernel and its operands in logical order. */
struct norm {
    struct subject s;
    struct subject_case c;
    int64_t channels, count, n; /* count: elements of x; n: values of a channel */
    float *x, *y, *dy, *dx;
    float *other, *d_other;     /* the second input, of zeros where there is none, and its gradient */
    const float *weight, *bias; /* NULL: none */
};

static float *floats(int64_t count)
{
    float *x = calloc((size_t)count, sizeof *x);
    cr_assert(x);
    return x;
}

static void fill(float *x, int64_t count, uint32_t which, double centre, double spread)
{
    for (int64_t i = 0; i < count; i++)
        x[i] =
            (float)(centre +
                    spread * (2 * (double)rng_uniform(rng_words(5, RNG_DATA, (uint32_t)i, which, 0, 0).word[0]) - 1));
}

static void put_x(struct norm *b) { subject_put(&b->s, b->s.node->inputs[0], b->x, b->s.x[0].data); }

static void norm_open(struct norm *b, const char *backend, const struct subject_case *c)
{
    b->c = *c;
    b->c.settings.epsilon = epsilon, b->c.settings.momentum = momentum;
    subject_open(&b->s, backend, &b->c);
    b->channels = shape_width(&c->x);
    b->count = subject_elements(&b->s, b->s.node->inputs[0]), b->n = b->count / b->channels;
    b->other = floats(b->count), b->d_other = floats(b->count);
    b->x = floats(b->count), b->y = floats(b->count), b->dy = floats(b->count), b->dx = floats(b->count);
    fill(b->x, b->count, 0, 0.5, 2);
    fill(b->dy, b->count, 1, 0.2, 1);
    put_x(b);
    if (b->s.node->layer->inputs == 2) {
        fill(b->other, b->count, 4, 0, 1);
        subject_put(&b->s, b->s.node->inputs[1], b->other, b->s.x[1].data);
    }
    for (int i = 0; i < b->s.node->parameters; i++)
        fill((float *)(void *)b->s.parameter[i].data, b->channels, 2 + (uint32_t)i, i ? 0 : 1.2, 0.7);
    b->weight = c->settings.affine ? (const float *)(void *)b->s.parameter[0].data : NULL;
    b->bias = c->settings.affine ? (const float *)(void *)b->s.parameter[1].data : NULL;
}

static void norm_close(struct norm *b)
{
    free(b->x), free(b->y), free(b->dy), free(b->dx), free(b->other), free(b->d_other);
    subject_close(&b->s);
}

static const float *running(const struct norm *b, int i) { return (const float *)(void *)b->s.running[i].data; }
static const float *once(const struct norm *b) { return (const float *)(void *)b->s.once.data; }

static void forward(struct norm *b, bool first, bool commit)
{
    struct kernel_args args = subject_args(&b->s);
    args.first = first, args.commit = commit;
    subject_forward(&b->s, &args);
    subject_get(&b->s, b->s.node->output, b->s.y.data, b->y);
}

static void backward(struct norm *b)
{
    struct kernel_args args = subject_args(&b->s);
    subject_put(&b->s, b->s.node->output, b->dy, b->s.dy.data);
    if (!(b->s.footprint.reads[0] & READS_Y)) spoil(b->s.y.data, b->s.y.bytes);
    if (b->s.node->layer->inputs == 2) spoil(b->s.x[1].data, b->s.x[1].bytes);
    subject_backward(&b->s, &args, b->s.parts);
    subject_get(&b->s, b->s.node->inputs[0], b->s.dx[0].data, b->dx);
    if (b->s.node->layer->inputs == 2) subject_get(&b->s, b->s.node->inputs[1], b->s.dx[1].data, b->d_other);
}

/* ---- The formulas. ---- */

struct moments {
    double mean, variance;
};

static struct moments moments_of(const struct norm *b, const double *x, int64_t c)
{
    struct moments m = {0};
    for (int64_t i = c; i < b->count; i += b->channels) m.mean += x[i];
    m.mean /= (double)b->n;
    for (int64_t i = c; i < b->count; i += b->channels) m.variance += (x[i] - m.mean) * (x[i] - m.mean);
    m.variance /= (double)b->n;
    return m;
}

/* Of element i, of channel c, which is x. */
static double output(const struct norm *b, struct moments m, int64_t c, int64_t i, double x)
{
    const double h = (x - m.mean) / sqrt(m.variance + epsilon);
    const double y = (b->weight ? b->weight[c] : 1) * h + (b->bias ? b->bias[c] : 0) + b->other[i];
    return b->c.settings.activation == RELU && y < 0 ? 0 : y;
}

static double *doubles(const float *from, int64_t count)
{
    double *x = calloc((size_t)count, sizeof *x);
    cr_assert(x);
    for (int64_t i = 0; i < count; i++) x[i] = from[i];
    return x;
}

static void expect_near(const struct norm *b, double got, double right, double tolerance, const char *what, int64_t i)
{
    cr_assert(fabs(got - right) <= tolerance, "%s, element %d of %s: %.9g, not %.9g", b->s.backend->kind->name, (int)i,
              what, got, right);
}

/* The statistics of x, and y of them. */
static void check_statistics(struct norm *b)
{
    double *x = doubles(b->x, b->count);
    forward(b, true, false);
    for (int64_t c = 0; c < b->channels; c++) {
        const struct moments m = moments_of(b, x, c);
        const double rstd = 1 / sqrt(m.variance + epsilon), mean = once(b)[c];
        expect_near(b, mean, m.mean, fabs(m.mean) * 0x1p-23 + 1e-6 / rstd, "the means", c);
        expect_near(b, once(b)[b->channels + c], rstd, 2e-6 * rstd, "the rstds", c);
        /* y stands on the rounded mean */
        for (int64_t i = c; i < b->count; i += b->channels)
            expect_near(b, b->y[i], output(b, (struct moments){mean, m.variance}, c, i, x[i]), 1e-5, "y", i);
    }
    free(x);
}

Test(batch_norm, statistics_are_those_of_the_batch, .timeout = 300)
{
    static const double centre[] = {0, 1e4, -3e3}, spread[] = {1, 0.3, 1e-2};
    FOR_CASES(k, c)
    for (int i = 0; i < 3; i++) {
        struct norm b;
        norm_open(&b, backends[k], &cases[c]);
        fill(b.x, b.count, 7, centre[i], spread[i]);
        put_x(&b);
        check_statistics(&b);
        norm_close(&b);
    }
}

/* Rows of zeros, a constant channel and rare large values: a piece's first values say nothing of the others. */
Test(batch_norm, statistics_of_uneven_images)
{
    FOR_CASES(k, c)
    {
        struct norm b;
        norm_open(&b, backends[k], &cases[c]);
        for (int64_t i = 0; i < b.count; i++) {
            const int64_t row = i / b.channels, channel = i % b.channels;
            if (channel == 1) b.x[i] = 3;
            if (channel == 0) b.x[i] = row < b.n / 2 ? 0 : 1000 + b.x[i];
            if (channel == 2 && row % 7 == 0) b.x[i] *= 100;
        }
        put_x(&b);
        check_statistics(&b);
        norm_close(&b);
    }
}

/* ---- The running state. ---- */

Test(batch_norm, steps_move_the_running_state)
{
    FOR_CASES(k, c)
    {
        struct norm b;
        norm_open(&b, backends[k], &cases[c]);
        double *mean = doubles(running(&b, 0), b.channels), *variance = doubles(running(&b, 1), b.channels);
        const bool unbiased = cases[c].settings.variance != POPULATION;
        for (uint32_t step = 0; step < 4; step++) {
            fill(b.x, b.count, 20 + step, step, 1 + step);
            put_x(&b);
            forward(&b, true, true);
            forward(&b, false, false);
            double *x = doubles(b.x, b.count);
            for (int64_t i = 0; i < b.channels; i++) {
                const struct moments m = moments_of(&b, x, i);
                const double n = (double)b.n, moved = unbiased ? m.variance * n / (n - 1) : m.variance;
                mean[i] = (1 - momentum) * mean[i] + momentum * m.mean;
                variance[i] = (1 - momentum) * variance[i] + momentum * moved;
                expect_near(&b, running(&b, 0)[i], mean[i], 2e-6, "the running mean", i);
                expect_near(&b, running(&b, 1)[i], variance[i], 2e-6 * variance[i], "the running variance", i);
            }
            free(x);
        }
        free(mean), free(variance);
        norm_close(&b);
    }
}

static unsigned char *bits_of(const struct block *block)
{
    unsigned char *bits = malloc(block->bytes + 1);
    cr_assert(bits);
    return memcpy(bits, block->data, block->bytes);
}

static bool unchanged(const struct block *block, unsigned char *bits)
{
    const bool same = !memcmp(block->data, bits, block->bytes);
    free(bits);
    return same;
}

/* A recomputation reads the statistics that are there, and so does one that moves the running state, by mistake. */
Test(batch_norm, a_recomputation_reads_the_statistics)
{
    FOR_CASES(k, c)
    {
        struct norm b;
        norm_open(&b, backends[k], &cases[c]);
        forward(&b, true, true); /* from 1 */
        const float moved = running(&b, 0)[0];
        unsigned char *y = bits_of(&b.s.y), *state = bits_of(&b.s.running[0]), *statistics = bits_of(&b.s.once);
        forward(&b, false, false);
        cr_assert(unchanged(&b.s.running[0], state), "case %d: the running state moved", c);
        forward(&b, false, true);
        cr_assert(unchanged(&b.s.y, y), "case %d: y", c);
        cr_assert(unchanged(&b.s.once, statistics), "case %d: the statistics", c);
        expect_near(&b, running(&b, 0)[0], (1 - momentum) * moved + moved - (1 - momentum), 1e-6,
                    "the running mean, moved twice", 0);
        for (int64_t i = 0; i < b.channels; i++) ((float *)(void *)b.s.once.data)[i] += 1;
        forward(&b, false, false);
        float *shifted = floats(b.count);
        memcpy(shifted, b.y, (size_t)b.count * sizeof *shifted);
        forward(&b, true, false);
        cr_assert(memcmp(shifted, b.y, (size_t)b.count * sizeof *shifted), "case %d: other statistics, same y", c);
        free(shifted);
        norm_close(&b);
    }
}

Test(batch_norm, an_evaluation_normalises_with_the_running_state)
{
    FOR_CASES(k, c)
    {
        struct norm b;
        norm_open(&b, backends[k], &cases[c]);
        fill((float *)(void *)b.s.running[0].data, b.channels, 30, 0, 1);
        fill((float *)(void *)b.s.running[1].data, b.channels, 31, 2, 1);
        unsigned char *mean = bits_of(&b.s.running[0]), *variance = bits_of(&b.s.running[1]);
        b.s.evaluate = true;
        struct kernel_args args = subject_args(&b.s);
        cr_assert(args.once == NULL);
        subject_forward(&b.s, &args);
        subject_get(&b.s, b.s.node->output, b.s.y.data, b.y);
        for (int64_t i = 0; i < b.count; i++) {
            const int64_t channel = i % b.channels;
            const struct moments m = {running(&b, 0)[channel], running(&b, 1)[channel]};
            expect_near(&b, b.y[i], output(&b, m, channel, i, b.x[i]), 1e-5, "y", i);
        }
        cr_assert(unchanged(&b.s.running[0], mean) && unchanged(&b.s.running[1], variance), "case %d", c);
        norm_close(&b);
    }
}

/* ---- Gradients, against central differences in double of the sum of dy * y, where no relu changes its side. ---- */

/* Of channel c; nearest: lowered to the smallest |y| before the relu. */
static double objective(const struct norm *b, const double *x, int64_t c, double *nearest)
{
    struct norm straight = *b;
    straight.c.settings.activation = ACTIVATION_NONE;
    const struct moments m = moments_of(b, x, c);
    double sum = 0;
    for (int64_t i = c; i < b->count; i += b->channels) {
        const double y = output(&straight, m, c, i, x[i]);
        *nearest = fmin(*nearest, fabs(y));
        sum += b->dy[i] * (b->c.settings.activation == RELU && y < 0 ? 0 : y);
    }
    return sum;
}

/* By the element of x to which value points, of channel c. */
static void check_derivative(struct norm *b, double *x, double *value, int64_t c, double got, const char *what)
{
    const double h = 1e-6, before = *value;
    double nearest = INFINITY;
    *value = before + h;
    const double up = objective(b, x, c, &nearest);
    *value = before - h;
    const double down = objective(b, x, c, &nearest);
    *value = before;
    if (b->c.settings.activation == RELU && nearest < 1e-5) return;
    expect_near(b, got, (up - down) / (2 * h), 3e-5 * (1 + fabs(got)), what, c);
}

Test(batch_norm, gradients_are_derivatives, .timeout = 300)
{
    int checked = 0;
    FOR_CASES(k, c)
    {
        if (cases[c].x.dim[0] > 13 && cases[c].x.rank == 3) continue; /* many pixels */
        struct norm b;
        norm_open(&b, backends[k], &cases[c]);
        forward(&b, true, true);
        backward(&b);
        double *x = doubles(b.x, b.count);
        for (int64_t i = 0; i < b.count; i += 1 + b.count / 500, checked++)
            check_derivative(&b, x, &x[i], i % b.channels, b.dx[i], "dx");
        for (int64_t i = 0; b.s.node->layer->inputs == 2 && i < b.count; i++)
            cr_assert(b.d_other[i] == (cases[c].settings.activation == RELU && b.y[i] <= 0 ? 0 : b.dy[i]),
                      "%s, case %d: element %d of dx[1]", backends[k], c, (int)i);
        for (int64_t i = 0; b.weight && i < b.channels; i++) {
            double weight = 0, bias = 0;
            const struct moments m = moments_of(&b, x, i);
            for (int64_t j = i; j < b.count; j += b.channels) {
                if (cases[c].settings.activation == RELU && output(&b, m, i, j, x[j]) == 0) continue;
                weight += b.dy[j] * (x[j] - m.mean) / sqrt(m.variance + epsilon);
                bias += b.dy[j];
            }
            expect_near(&b, ((float *)(void *)b.s.gradient[0].data)[i], weight, 2e-5 * (double)b.n, "dw", i);
            expect_near(&b, ((float *)(void *)b.s.gradient[1].data)[i], bias, 2e-5 * (double)b.n, "db", i);
        }
        free(x);
        norm_close(&b);
    }
    cr_assert(checked > 1000);
}

/* ---- Threads. ---- */

static void step_by(struct norm *b, int threads, const struct subject_case *c)
{
    norm_open(b, "cpu", c);
    omp_set_num_threads(threads);
    forward(b, true, true);
    backward(b);
}

static bool same_block(const struct block *a, const struct block *b)
{
    return a->bytes == b->bytes && !memcmp(a->data, b->data, a->bytes);
}

static bool same_results(const struct norm *a, const struct norm *b)
{
    const size_t bytes = (size_t)a->count * sizeof(float);
    bool same = !memcmp(a->y, b->y, bytes) && !memcmp(a->dx, b->dx, bytes) && same_block(&a->s.once, &b->s.once);
    for (int i = 0; i < 2; i++) same &= same_block(&a->s.running[i], &b->s.running[i]);
    for (int i = 0; i < a->s.node->parameters; i++) same &= same_block(&a->s.gradient[i], &b->s.gradient[i]);
    return same;
}

Test(batch_norm, threads_change_no_bit)
{
    for (int c = 0; c < CASES; c++) {
        struct norm one, many;
        step_by(&one, 1, &cases[c]);
        for (int threads = 2; threads < 6; threads++) {
            step_by(&many, threads, &cases[c]);
            cr_assert(same_results(&one, &many), "case %d by %d threads", c, threads);
            norm_close(&many);
        }
        norm_close(&one);
    }
}

/* ---- What is not a number, and what has no variance. ---- */

Test(batch_norm, a_nan_reaches_its_channel_and_no_other)
{
    FOR_CASES(k, c)
    {
        struct norm b;
        norm_open(&b, backends[k], &cases[c]);
        b.x[b.channels - 1] = NAN;
        put_x(&b);
        forward(&b, true, true);
        for (int64_t i = 0; i < b.count; i++)
            cr_assert(isnan(b.y[i]) == (i % b.channels == b.channels - 1), "%s, case %d: y[%d] is %g", backends[k], c,
                      (int)i, (double)b.y[i]);
        for (int64_t i = 0; i < b.channels; i++)
            cr_assert(isnan(running(&b, 1)[i]) == (i == b.channels - 1), "%s, case %d", backends[k], c);
        norm_close(&b);
    }
}

Test(batch_norm, one_value_a_channel_is_refused)
{
    static const struct shape shapes[] = {{1, {8}}, {3, {1, 1, 8}}, {3, {1, 2, 8}}};
    const struct settings settings = {.epsilon = epsilon};
    const int inputs[] = {0, 0};
    for (int i = 0; i < 12; i++) {
        const struct layer *layer = layer_find(i % 2 ? "batch_norm" : "batch_norm_add");
        struct graph *graph;
        int output_value;
        cr_assert(graph_create(&shapes[i / 2 % 3], 1 + i / 6, &graph) == ST_OK);
        const enum status status =
            graph_add(graph, layer, settings_of(layer, &settings), "norm", inputs, &output_value);
        cr_assert(status == (i < 4 ? ST_SPEC : ST_OK), "case %d", i);
        cr_assert(status == ST_OK || strstr(status_message(), "layer 'norm'"), "%s", status_message());
        cr_assert(status == ST_OK ||
                      strstr(status_message(), "one value has no variance; expected a larger batch than 1"),
                  "%s", status_message());
        graph_destroy(graph);
    }
}
