/* What attention promises beyond its numbers: padding is nowhere, dropout's elements are where they should be, both of
 * its rows give equal bits whatever the threads, on every backend that has it. */
#include "backend/network.h"
#include "numerics/token_batch.h"
#include "tests/support/device_mirror.h"
#include "tests/support/layer_settings.h"
#include "tests/support/same_bits.h"

#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, HEADS = 2, WIDTH = 8, STRIDE = 3 * WIDTH };

static const char *const backends[] = {"ref", "cpu", "cuda"};
enum { BACKENDS = sizeof backends / sizeof *backends };
#define FOR_BACKENDS(k)                                                                                                \
    for (int k = 0; k < BACKENDS; k++)                                                                                 \
        if (backend_opens(backends[k]))

/* One attention with all that its kernel reads and writes; x and dy are its input and its output's gradient. */
struct bench {
    struct backend *backend;
    struct graph *graph;
    struct network *network;
    int64_t tokens;
    float *batch, *x, *y, *dy, *dx;
    void *saved, *scratch;
    struct draw draw;
    struct mirror mirror;
};

static void *filled(struct bench *b, size_t bytes)
{
    void *block = aligned_alloc(ALIGNMENT, round_up(bytes + 1));
    cr_assert(block);
    memset(block, 0xff, bytes);
    mirror_add(&b->mirror, block, bytes);
    return block;
}

static struct bench set_up_as(const char *backend, int threads, int64_t batch, int64_t tokens,
                              const struct settings *settings)
{
    struct bench b = {.tokens = tokens, .draw = {.mode = RNG_COUNTER, .seed = 3, .node = 1, .step = 4}};
    const struct shape text = {2, {TOKEN_ROWS, tokens}};
    struct settings embedding = {.units = STRIDE, .vocabulary = 5, .positions = tokens, .segments = 2};
    const struct layer *text_layer = layer_find("embedding"), *layer = layer_find("attention");
    int inputs[] = {0, 0}, y;
    cr_assert(backend_open(backend, &(struct backend_options){.threads = threads}, &b.backend) == ST_OK);
    cr_assert(graph_create(&text, batch, &b.graph) == ST_OK);
    cr_assert(graph_add(b.graph, text_layer, settings_of(text_layer, &embedding), NULL, inputs, &inputs[0]) == ST_OK);
    cr_assert(graph_add(b.graph, layer, settings_of(layer, settings), NULL, inputs, &y) == ST_OK);
    cr_assert(network_prepare(b.graph, b.backend, &b.network) == ST_OK, "%s", status_message());
    const struct footprint *f = &b.network->binding[1].footprint;
    mirror_open(&b.mirror, b.backend);
    b.batch = filled(&b, b.graph->value[0].bytes);
    b.x = filled(&b, b.graph->value[1].bytes), b.dx = filled(&b, b.graph->value[1].bytes);
    b.y = filled(&b, b.graph->value[2].bytes), b.dy = filled(&b, b.graph->value[2].bytes);
    b.saved = f->saved ? filled(&b, f->saved) : NULL;
    const size_t backward = f->backward_scratch[PART_INDEX_INPUT];
    b.scratch = filled(&b, backward > f->forward_scratch ? backward : f->forward_scratch);
    return b;
}

static struct bench set_up(const char *backend, int threads, int64_t batch, int64_t tokens, double rate, int save)
{
    return set_up_as(backend, threads, batch, tokens, &(struct settings){.heads = HEADS, .rate = rate, .save = save});
}

static void tear_down(struct bench *b)
{
    free(b->batch), free(b->x), free(b->y), free(b->dy), free(b->dx), free(b->saved), free(b->scratch);
    mirror_close(&b->mirror);
    network_destroy(b->network);
    graph_destroy(b->graph);
    backend_close(b->backend);
}

/* Uniform in [-1, 1): a number depends on sample, token and column alone. */
static float number(int64_t n, int64_t t, int64_t column, uint32_t which)
{
    return 2 * rng_uniform(rng_words(8, RNG_DATA, (uint32_t)column, (uint32_t)n, (uint32_t)t, which).word[0]) - 1;
}

/* The first lengths[n] tokens of sample n are tokens; what lies in the padding depends on padding alone. dy is 0 there:
 * what attention writes for padding is not compared. */
static void fill(struct bench *b, const int64_t lengths[BATCH], uint32_t padding)
{
    for (int64_t n = 0; n < BATCH; n++)
        for (int64_t t = 0; t < b->tokens; t++) {
            const bool token = t < lengths[n];
            for (int row = 0; row < TOKEN_ROWS; row++) b->batch[(n * TOKEN_ROWS + row) * b->tokens + t] = token;
            for (int64_t i = 0; i < STRIDE; i++)
                b->x[(n * b->tokens + t) * STRIDE + i] = number(n, t, i, token ? 1 : 10 + padding);
            const int64_t width = b->graph->value[2].shape.dim[1];
            for (int64_t i = 0; i < width; i++) b->dy[(n * b->tokens + t) * width + i] = token ? number(n, t, i, 2) : 0;
        }
}

static struct kernel_args args_of(struct bench *b)
{
    return (struct kernel_args){.x = {b->x, b->batch},
                                .y = b->y,
                                .dx = {b->dx, NULL},
                                .dy = b->dy,
                                .saved = b->saved,
                                .scratch = b->scratch,
                                .draw = b->draw,
                                .save = b->saved != NULL};
}

static void run(struct bench *b)
{
    const struct binding *binding = &b->network->binding[1];
    const struct kernel_args args = args_of(b);
    cr_assert(mirror_forward(&b->mirror, binding->kernel, binding->state, &args) == ST_OK, "%s", status_message());
    cr_assert(mirror_backward(&b->mirror, binding->kernel, binding->state, &args, PART_INPUT) == ST_OK, "%s",
              status_message());
}

static void expect_near(const float *a, const float *b, int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        cr_assert(fabsf(a[i] - b[i]) < 2e-6f, "%s: %g and %g at %d", what, (double)a[i], (double)b[i], (int)i);
}

/* A sentence in a longer row gets what it gets alone, and its padding neither takes part nor gets a gradient. */
Test(attention, padding_is_nowhere)
{
    static const int64_t lengths[BATCH] = {5, 2, 6};
    enum { SHORT = 6, LONG = 11 };
    FOR_BACKENDS(k)
    {
        struct bench a = set_up(backends[k], 2, BATCH, SHORT, 0, SAVE_PROBABILITIES);
        struct bench b = set_up(backends[k], 2, BATCH, LONG, 0, SAVE_PROBABILITIES);
        fill(&a, lengths, 0), fill(&b, lengths, 1);
        run(&a), run(&b);
        for (int64_t n = 0; n < BATCH; n++) {
            const int64_t from = n * SHORT, to = n * LONG;
            expect_near(b.y + to * WIDTH, a.y + from * WIDTH, lengths[n] * WIDTH, "y");
            expect_near(b.dx + to * STRIDE, a.dx + from * STRIDE, lengths[n] * STRIDE, "dx");
            for (int64_t t = lengths[n]; t < LONG; t++)
                for (int64_t i = WIDTH; i < STRIDE; i++) /* of keys and values */
                    cr_assert(b.dx[(to + t) * STRIDE + i] == 0, "%s: padding has a gradient", backends[k]);
            for (int64_t row = 0; row < HEADS * LONG; row++)
                for (int64_t t = lengths[n]; t < LONG; t++)
                    cr_assert(((float *)b.saved)[(n * HEADS * LONG + row) * LONG + t] == 0, "%s", backends[k]);
        }
        tear_down(&a), tear_down(&b);
    }
}

Test(attention, probabilities_of_a_row_sum_to_one)
{
    static const int64_t lengths[BATCH] = {13, 1, 7};
    FOR_BACKENDS(k)
    {
        struct bench b = set_up(backends[k], 2, BATCH, 13, 0.3, SAVE_PROBABILITIES);
        fill(&b, lengths, 0), run(&b);
        for (int64_t row = 0; row < BATCH * HEADS * 13; row++) {
            double sum = 0;
            for (int64_t t = 0; t < 13; t++) sum += (double)((float *)b.saved)[row * 13 + t];
            cr_assert(fabs(sum - 1) < 1e-6, "%s: %g", backends[k], sum);
        }
        tear_down(&b);
    }
}

/* Nothing to attend to: nothing comes out and no gradient goes in, rather than NaNs. */
Test(attention, a_sample_without_a_token_attends_to_nothing)
{
    static const int64_t lengths[BATCH] = {4, 0, 9};
    FOR_BACKENDS(k)
    for (int save = SAVE_PROBABILITIES; save <= SAVE_NOTHING; save++) {
        struct bench b = set_up(backends[k], 2, BATCH, 9, 0.3, save);
        fill(&b, lengths, 0), run(&b);
        for (int64_t i = 0; i < 9 * WIDTH; i++) cr_assert(b.y[9 * WIDTH + i] == 0, "%s: y", backends[k]);
        for (int64_t i = 0; i < 9 * STRIDE; i++) cr_assert(b.dx[9 * STRIDE + i] == 0, "%s: dx", backends[k]);
        tear_down(&b);
    }
}

/* Values are unit vectors, so that y shows what of the first WIDTH keys is kept: by rng_keep at
 * (head * T + query) * T + key of the sample. */
Test(attention, drops_the_element_that_the_counter_says)
{
    enum { T = WIDTH / HEADS };
    const double rate = 0.4;
    static const int64_t lengths[BATCH] = {T, T, T};
    FOR_BACKENDS(k)
    {
        struct bench b = set_up(backends[k], 2, BATCH, T, rate, SAVE_PROBABILITIES);
        fill(&b, lengths, 0);
        for (int64_t n = 0; n < BATCH; n++)
            for (int64_t t = 0; t < T; t++)
                for (int64_t i = 0; i < WIDTH; i++) b.x[(n * T + t) * STRIDE + 2 * WIDTH + i] = i % T == t;
        run(&b);
        for (int64_t n = 0; n < BATCH; n++)
            for (int64_t i = 0; i < HEADS * T * T; i++) {
                const int64_t h = i / (T * T), query = i / T % T, key = i % T;
                uint8_t keep;
                rng_keep(&b.draw, rate, HEADS * T * T, n, i, 1, &keep);
                const float p = ((float *)b.saved)[n * HEADS * T * T + i];
                const float y = b.y[(n * T + query) * WIDTH + h * T + key];
                cr_assert(fabs((double)y - (keep ? (double)p / (1 - rate) : 0)) < 1e-6, "%s: %g of %g", backends[k],
                          (double)y, (double)p);
            }
        tear_down(&b);
    }
}

/* Element c of row t of a head that starts at column first, turned as a complex number where rope is. */
static double turned(const float *rows, int64_t t, int64_t first, int64_t c, int64_t width, bool rope)
{
    const float *row = rows + t * STRIDE + first;
    if (!rope) return (double)row[c];
    const double complex pair = (double)row[c - c % 2] + (double)row[c - c % 2 + 1] * I;
    const double complex at = pair * cexp(I * (double)t / pow(10000, (double)(c - c % 2) / (double)width));
    return c % 2 ? cimag(at) : creal(at);
}

/* Output column c of a head's query t. */
static double attended(const struct bench *b, const struct settings *s, const float *x, int64_t h, int64_t t, int64_t c)
{
    const int64_t kv = s->kv_heads ? s->kv_heads : s->heads, d = STRIDE / (s->heads + 2 * kv);
    const int64_t key = (s->heads + h * kv / s->heads) * d, value = key + kv * d;
    double sum = 0, weighted = 0;
    for (int64_t j = 0; j < (s->causal ? t + 1 : b->tokens); j++) {
        double score = 0;
        for (int64_t k = 0; k < d; k++) score += turned(x, t, h * d, k, d, s->rope) * turned(x, j, key, k, d, s->rope);
        sum += exp(score / sqrt((double)d));
        weighted += exp(score / sqrt((double)d)) * (double)x[j * STRIDE + value + c];
    }
    return weighted / sum;
}

/* Plain loops over the definition, of sentences without padding. */
Test(attention, is_its_formula)
{
    enum { T = 70 };
    static const int64_t lengths[BATCH] = {T, T, T};
    static const struct settings all[] = {{.heads = 2},
                                          {.heads = 2, .causal = true},
                                          {.heads = 2, .rope = true},
                                          {.heads = 4, .kv_heads = 2},
                                          {.heads = 4, .kv_heads = 1, .rope = true, .causal = true}};
    FOR_BACKENDS(k)
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (backend_refuses(backends[k], &all[i])) continue;
        struct bench b = set_up_as(backends[k], 2, BATCH, T, &all[i]);
        fill(&b, lengths, 0), run(&b);
        const int64_t width = b.graph->value[2].shape.dim[1], d = width / all[i].heads;
        for (int64_t at = 0; at < BATCH * T * width; at += 7) {
            const int64_t n = at / (T * width), t = at / width % T, h = at % width / d;
            const double right = attended(&b, &all[i], b.x + n * T * STRIDE, h, t, at % d);
            cr_assert(fabs((double)b.y[at] - right) < 2e-6, "%s, %d: %g, not %g", backends[k], (int)i, (double)b.y[at],
                      right);
        }
        tear_down(&b);
    }
}

/* Saving nothing, and another number of threads, change no bit. */
static void check_rows_and_threads(const char *backend, int64_t tokens, struct settings settings)
{
    const int64_t lengths[BATCH] = {tokens, 5, 20};
    if (backend_refuses(backend, &settings)) return;
    struct bench a = set_up_as(backend, 2, BATCH, tokens, &settings);
    fill(&a, lengths, 0), run(&a);
    for (int threads = 1; threads < 4; threads++)
        for (settings.save = SAVE_PROBABILITIES; settings.save <= SAVE_NOTHING; settings.save++) {
            struct bench b = set_up_as(backend, threads, BATCH, tokens, &settings);
            fill(&b, lengths, 0), run(&b);
            cr_assert((b.saved == NULL) == (settings.save == SAVE_NOTHING));
            cr_assert(same_bits(a.y, b.y, a.graph->value[2].bytes), "%s: y", backend);
            cr_assert(same_bits(a.dx, b.dx, a.graph->value[1].bytes), "%s: dx", backend);
            tear_down(&b);
        }
    tear_down(&a);
}

Test(attention, both_rows_and_all_threads_give_equal_bits)
{
    FOR_BACKENDS(k)
    for (int dropping = 0; dropping < 2; dropping++) {
        const double rate = 0.25 * dropping;
        const struct settings grouped = {.heads = 4, .kv_heads = 1, .rate = rate, .rope = true, .causal = true};
        check_rows_and_threads(backends[k], 37, (struct settings){.heads = HEADS, .rate = rate});
        check_rows_and_threads(backends[k], 37, (struct settings){.heads = HEADS, .rate = rate, .causal = true});
        check_rows_and_threads(backends[k], 131, (struct settings){.heads = HEADS, .rate = rate, .causal = true});
        check_rows_and_threads(backends[k], 131, grouped);
    }
}

/* What follows a token changes no bit of its output, and gets no gradient from it. */
Test(attention, causal_sees_no_later_token)
{
    enum { T = 131, SEEN = 70 };
    static const int64_t lengths[BATCH] = {T, T, T};
    FOR_BACKENDS(k)
    for (int save = SAVE_PROBABILITIES; save <= SAVE_NOTHING; save++) {
        const struct settings settings = {.heads = HEADS, .rate = 0.1, .save = save, .causal = true};
        struct bench a = set_up_as(backends[k], 2, BATCH, T, &settings),
                     b = set_up_as(backends[k], 2, BATCH, T, &settings);
        fill(&a, lengths, 0), fill(&b, lengths, 0);
        for (int64_t n = 0; n < BATCH; n++)
            for (int64_t t = SEEN; t < T; t++) {
                for (int64_t i = 0; i < STRIDE; i++) b.x[(n * T + t) * STRIDE + i] += 1;
                for (int64_t i = 0; i < WIDTH; i++) b.dy[(n * T + t) * WIDTH + i] = 0;
            }
        run(&a), run(&b);
        for (int64_t n = 0; n < BATCH; n++) {
            cr_assert(same_bits(a.y + n * T * WIDTH, b.y + n * T * WIDTH, SEEN * WIDTH * sizeof(float)), "%s",
                      backends[k]);
            for (int64_t i = SEEN * STRIDE; i < T * STRIDE; i++)
                cr_assert(b.dx[n * T * STRIDE + i] == 0, "%s: a later token has a gradient", backends[k]);
        }
        tear_down(&a), tear_down(&b);
    }
}

Test(attention, scratch_is_that_of_a_thread_whatever_the_batch)
{
    FOR_BACKENDS(k)
    for (int save = SAVE_PROBABILITIES; save <= SAVE_NOTHING; save++) {
        struct bench one = set_up(backends[k], 2, 1, 16, 0.1, save), many = set_up(backends[k], 2, 64, 16, 0.1, save);
        const struct footprint *a = &one.network->binding[1].footprint, *b = &many.network->binding[1].footprint;
        cr_assert(a->saved == (save == SAVE_NOTHING ? 0 : HEADS * 16 * 16 * 4) && b->saved == 64 * a->saved);
        cr_assert(a->forward_scratch == b->forward_scratch);
        cr_assert(a->backward_scratch[PART_INDEX_INPUT] == b->backward_scratch[PART_INDEX_INPUT]);
        tear_down(&one), tear_down(&many);
    }
}

/* A thread's scratch grows with the tokens, not with their square. */
Test(attention, causal_scratch_is_linear_on_cpu)
{
    const struct settings settings = {.heads = HEADS, .rate = 0.1, .save = SAVE_NOTHING, .causal = true};
    struct bench one = set_up_as("cpu", 2, 1, 256, &settings), more = set_up_as("cpu", 2, 1, 1024, &settings);
    const struct footprint *a = &one.network->binding[1].footprint, *b = &more.network->binding[1].footprint;
    cr_assert(a->saved == 0 && b->saved == 0);
    cr_assert(b->forward_scratch <= 4 * a->forward_scratch);
    cr_assert(b->backward_scratch[PART_INDEX_INPUT] <= 4 * a->backward_scratch[PART_INDEX_INPUT]);
    tear_down(&one), tear_down(&more);
}
