/* linear_cross_entropy: in chunks, the bits are those of the two layers for each chunk's rows alone, added in ascending
 * order, whatever the threads; its scratch holds one chunk's logits. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backend/network.h"
#include "model/chunked_loss.h"
#include "tests/support/layer_settings.h"
#include "tests/support/same_bits.h"
#include "tests/support/single_layer.h"

enum { WIDTH = 24, UNITS = 401, TOKENS = 19, BATCH = 3, ROWS = TOKENS * BATCH, PARAMETERS = 2 };

static const char *const backends[] = {"ref", "cpu"};

/* Layers from one input on, and what they computed. */
struct bench {
    struct backend *backend;
    struct graph *graph;
    struct network *network;
    float x[ROWS * WIDTH], dx[ROWS * WIDTH], y[2];
    float parameter[PARAMETERS][UNITS * WIDTH], gradient[PARAMETERS][UNITS * WIDTH];
    int32_t labels[ROWS];
    double divisor;
};

static void add(struct bench *b, const char *name, const struct settings *settings, int *value)
{
    const struct layer *layer = layer_find(name);
    cr_assert(graph_add(b->graph, layer, settings_of(layer, settings), NULL, value, value) == ST_OK, "%s",
              status_message());
}

/* chunks 0: the two layers. tokens, batch: of the part of the rows that is computed. */
static struct bench *bench_open(const char *backend, int threads, int64_t tokens, int64_t batch, int64_t chunks,
                                bool bias)
{
    struct bench *b = calloc(1, sizeof *b);
    static double weights[UNITS]; /* of classes, in one half of the cases */
    struct settings settings = {.units = UNITS, .chunks = chunks, .bias = bias};
    int value = 0;
    for (int i = 0; i < UNITS; i++) weights[i] = i % 7 / 3.0;
    if (bias) settings.class_weights = (struct setting_list){UNITS, {.reals = weights}}, settings.label_smoothing = 0.1;
    cr_assert(b && backend_open(backend, &(struct backend_options){.threads = threads}, &b->backend) == ST_OK);
    cr_assert(graph_create(&(struct shape){2, {tokens, WIDTH}}, batch, &b->graph) == ST_OK);
    b->graph->value[0].wants_gradient = true;
    add(b, chunks ? "linear_cross_entropy" : "linear", &settings, &value);
    if (!chunks) add(b, "cross_entropy", &settings, &value);
    cr_assert(network_prepare(b->graph, b->backend, &b->network) == ST_OK, "%s", status_message());
    single_random(b->x, sizeof b->x, 1, 0);
    for (int p = 0; p < PARAMETERS; p++) single_random(b->parameter[p], sizeof b->parameter[p], 1, 1 + (uint32_t)p);
    for (int n = 0; n < ROWS; n++) b->labels[n] = n % 5 == 2 ? LABEL_NONE : n * 97 % UNITS;
    for (int n = 0; n < ROWS; n++) b->divisor += b->labels[n] != LABEL_NONE;
    memset(b->gradient, 0xff, sizeof b->gradient);
    return b;
}

static void bench_close(struct bench *b)
{
    network_destroy(b->network);
    graph_destroy(b->graph);
    backend_close(b->backend);
    free(b);
}

static struct kernel_args args_of(struct bench *b, int64_t first, float *dx)
{
    return (struct kernel_args){.x = {b->x + first * WIDTH},
                                .dx = {dx},
                                .y = b->y,
                                .labels = b->labels + first,
                                .divisor = &b->divisor,
                                .parameters = {b->parameter[0], b->parameter[1]},
                                .gradients = {b->gradient[0], b->gradient[1]},
                                .parts = PART_PARAMS | PART_INPUT};
}

static void pass(const struct bench *b, int node, bool backward, struct kernel_args args)
{
    const struct binding *n = &b->network->binding[node];
    const struct footprint *f = &n->footprint;
    const size_t bytes =
        backward ? footprint_scratch(f->backward_scratch, PART_PARAMS | PART_INPUT) : f->forward_scratch;
    args.scratch = aligned_alloc(ALIGNMENT, round_up(bytes + 1));
    memset(args.scratch, 0xff, bytes);
    cr_assert((backward ? n->kernel->backward : n->kernel->forward)(n->state, &args) == ST_OK, "%s", status_message());
    free(args.scratch);
}

static void run_chunked(struct bench *b)
{
    struct kernel_args args = args_of(b, 0, b->dx);
    args.evaluate = true;
    pass(b, 0, false, args);
    const float loss[2] = {b->y[0], b->y[1]};
    args.evaluate = false;
    pass(b, 0, false, args);
    cr_assert(b->y[0] == 0 && b->y[1] == 0 && loss[0] > 0);
    pass(b, 0, true, args);
    cr_assert(same_bits(loss, b->y, sizeof b->y), "%g in an evaluation, %g in training", (double)loss[0],
              (double)b->y[0]);
}

/* The two layers for rows from first on, added to total. */
static void add_rows(struct bench *total, const char *backend, int64_t first, int64_t rows, bool bias)
{
    static float logits[ROWS * UNITS], gradient[ROWS * UNITS];
    struct bench *b = bench_open(backend, 2, rows, 1, 0, bias);
    struct kernel_args args = args_of(b, first, total->dx + first * WIDTH), loss = args;
    args.y = logits, args.dy = gradient;
    loss.x[0] = logits, loss.dx[0] = gradient;
    pass(b, 0, false, args);
    pass(b, 1, false, loss);
    pass(b, 1, true, loss);
    pass(b, 0, true, args);
    for (int i = 0; i < 2; i++) total->y[i] = first ? total->y[i] + b->y[i] : b->y[i];
    for (int p = 0; p < 1 + bias; p++)
        for (int i = 0; i < (p ? UNITS : UNITS * WIDTH); i++)
            total->gradient[p][i] = first ? total->gradient[p][i] + b->gradient[p][i] : b->gradient[p][i];
    bench_close(b);
}

static void expect_same(const struct bench *a, const struct bench *b, const char *what)
{
    cr_assert(same_bits(a->y, b->y, sizeof a->y), "%s: a loss of %.9g, not %.9g", what, (double)a->y[0],
              (double)b->y[0]);
    cr_assert(same_bits(a->dx, b->dx, sizeof a->dx), "%s: dx", what);
    cr_assert(same_bits(a->gradient, b->gradient, sizeof a->gradient), "%s: a gradient", what);
}

Test(chunked_loss, bits_are_those_of_the_layers_by_chunks)
{
    static const int64_t chunks[] = {1, 3, 4, ROWS};
    for (size_t k = 0; k < sizeof backends / sizeof *backends; k++)
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
            for (int bias = 0; bias < 2; bias++) {
                struct bench *b = bench_open(backends[k], 2, TOKENS, BATCH, chunks[c], bias);
                struct bench *sum = bench_open(backends[k], 2, TOKENS, BATCH, chunks[c], bias);
                const int64_t rows = chunk_rows(ROWS, chunks[c]);
                run_chunked(b);
                for (int64_t first = 0; first < ROWS; first += rows)
                    add_rows(sum, backends[k], first, ROWS - first < rows ? ROWS - first : rows, bias);
                expect_same(b, sum, backends[k]);
                bench_close(b), bench_close(sum);
            }
}

Test(chunked_loss, threads_change_no_bit)
{
    struct bench *one = bench_open("cpu", 1, TOKENS, BATCH, 4, true),
                 *two = bench_open("cpu", 3, TOKENS, BATCH, 4, true);
    run_chunked(one), run_chunked(two);
    expect_same(one, two, "threads");
    bench_close(one), bench_close(two);
}

/* With adds, all gradients of parameters are added to what is there, chunk by chunk. */
Test(chunked_loss, adds_to_gradients)
{
    for (size_t k = 0; k < sizeof backends / sizeof *backends; k++) {
        struct bench *b = bench_open(backends[k], 2, TOKENS, BATCH, 1, true),
                     *from = bench_open(backends[k], 2, TOKENS, BATCH, 1, true);
        run_chunked(from);
        cr_assert(b->network->binding[0].footprint.adds == 3);
        struct kernel_args args = args_of(b, 0, b->dx);
        for (int p = 0; p < PARAMETERS; p++) memcpy(b->gradient[p], b->parameter[p], sizeof b->gradient[p]);
        args.adds = 3;
        pass(b, 0, true, args);
        for (int p = 0; p < PARAMETERS; p++)
            for (int i = 0; i < (p ? UNITS : UNITS * WIDTH); i++)
                cr_assert(b->gradient[p][i] == b->parameter[p][i] + from->gradient[p][i], "%s: %d, %d", backends[k], p,
                          i);
        bench_close(b), bench_close(from);
    }
}

/* A frozen layer computes dx alone, one that reads what is not trained the gradients of its parameters alone. */
Test(chunked_loss, parts_are_those_of_the_whole)
{
    for (unsigned parts = PART_PARAMS; parts <= PART_INPUT; parts++) {
        struct bench *b = bench_open("cpu", 2, TOKENS, BATCH, 4, true),
                     *all = bench_open("cpu", 2, TOKENS, BATCH, 4, true);
        struct kernel_args args = args_of(b, 0, parts & PART_INPUT ? b->dx : NULL);
        args.parts = parts;
        run_chunked(all);
        pass(b, 0, true, args);
        if (!(parts & PART_INPUT)) memcpy(b->dx, all->dx, sizeof b->dx);
        if (!(parts & PART_PARAMS)) memcpy(b->gradient, all->gradient, sizeof b->gradient);
        expect_same(b, all, "a part");
        bench_close(b), bench_close(all);
    }
}

/* GPT-2's classes: a chunk's logits, and at most as much for products. */
Test(chunked_loss, scratch_is_of_one_chunk)
{
    struct bench *b = bench_open("cpu", 2, TOKENS, BATCH, 1, false);
    network_destroy(b->network), graph_destroy(b->graph);
    const struct settings settings = {.units = 50257, .chunks = 8};
    int value = 0;
    cr_assert(graph_create(&(struct shape){2, {64, 768}}, 4, &b->graph) == ST_OK);
    b->graph->value[0].wants_gradient = true;
    add(b, "linear_cross_entropy", &settings, &value);
    cr_assert(network_prepare(b->graph, b->backend, &b->network) == ST_OK, "%s", status_message());
    const size_t logits = sizeof(float) * 32 * 50257, *scratch = b->network->binding[0].footprint.backward_scratch;
    cr_assert(scratch[0] >= logits && scratch[0] <= 2 * logits + (1 << 16), "%zu of %zu", scratch[0], logits);
    bench_close(b);
}
