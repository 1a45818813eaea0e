/* The loss with a label for every row: its formula, labels that do not count, bits that no number of threads changes,
 * and labels that are no class. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/network.h"
#include "tests/support/same_bits.h"
#include "tests/support/single_layer.h"

enum { BATCH = 3, TOKENS = 5, ROWS = BATCH * TOKENS, CLASSES = 1301 };

static const char *const backends[] = {"ref", "cpu"}; /* the host's; tests/device has the others */

struct bench {
    struct backend *backend;
    struct graph *graph;
    struct network *network;
    float *x, *dx, y[2];
    int32_t labels[ROWS];
    double divisor;
};

/* Scores in [-40, 40); every third label counts for nothing. */
static void open_bench(struct bench *b, const char *backend, int threads)
{
    const int input = 0;
    int output;
    const size_t bytes = sizeof(float) * ROWS * CLASSES;
    *b = (struct bench){.x = malloc(bytes), .dx = malloc(bytes)};
    cr_assert(backend_open(backend, &(struct backend_options){.threads = threads}, &b->backend) == ST_OK);
    cr_assert(graph_create(&(struct shape){2, {TOKENS, CLASSES}}, BATCH, &b->graph) == ST_OK);
    cr_assert(graph_add(b->graph, layer_find("cross_entropy"), NULL, NULL, &input, &output) == ST_OK);
    cr_assert(network_prepare(b->graph, b->backend, &b->network) == ST_OK, "%s", status_message());
    cr_assert(graph_labels(b->graph) == TOKENS);
    single_random(b->x, bytes, 1, 0);
    for (int i = 0; i < ROWS * CLASSES; i++) b->x[i] *= 40;
    for (int n = 0; n < ROWS; n++) b->labels[n] = n % 3 == 2 ? LABEL_NONE : n * 97 % CLASSES;
    for (int n = 0; n < ROWS; n++) b->divisor += b->labels[n] != LABEL_NONE;
}

static void close_bench(struct bench *b)
{
    free(b->x), free(b->dx);
    network_destroy(b->network);
    graph_destroy(b->graph);
    backend_close(b->backend);
}

static enum status run(struct bench *b)
{
    const struct binding *binding = &b->network->binding[0];
    float *scratch = aligned_alloc(ALIGNMENT, round_up(binding->footprint.forward_scratch + 1));
    struct kernel_args args = {.x = {b->x},
                               .y = b->y,
                               .dx = {b->dx},
                               .labels = b->labels,
                               .divisor = &b->divisor,
                               .scratch = scratch,
                               .parts = PART_INPUT};
    memset(b->dx, 0xff, sizeof(float) * ROWS * CLASSES);
    enum status status = binding->kernel->forward(binding->state, &args);
    if (status == ST_OK) status = binding->kernel->backward(binding->state, &args);
    free(scratch);
    return status;
}

/* The plain formula in long double, which these numbers do not overflow, for what counts. */
static void check_formula(const struct bench *b)
{
    long double loss = 0;
    int correct = 0;
    for (int n = 0; n < ROWS; n++) {
        const float *x = b->x + n * CLASSES, *dx = b->dx + n * CLASSES;
        long double sum = 0;
        int best = 0;
        for (int j = CLASSES - 1; j >= 0; j--) sum += expl(x[j]), best = x[j] >= x[best] ? j : best;
        for (int j = 0; j < CLASSES && b->labels[n] == LABEL_NONE; j++) cr_assert(dx[j] == 0);
        if (b->labels[n] == LABEL_NONE) continue;
        loss -= logl(expl(x[b->labels[n]]) / sum);
        correct += best == b->labels[n];
        for (int j = 0; j < CLASSES; j++) {
            const double right = (double)((expl(x[j]) / sum - (j == b->labels[n])) / b->divisor);
            const double near = 6e-6 * fabs(right) + (j == b->labels[n] ? 1e-8 : 1e-36); /* 1 is subtracted */
            cr_assert(fabs((double)dx[j] - right) <= near, "%g, not %g", (double)dx[j], right);
        }
    }
    cr_assert(fabs((double)(b->y[0] - loss / b->divisor)) < 1e-6 * (double)b->y[0], "%g", (double)b->y[0]);
    cr_assert(b->y[1] == (float)correct && correct == 2);
}

Test(cross_entropy, of_rows_is_its_formula)
{
    for (int k = 0; k < 2; k++) {
        struct bench b;
        open_bench(&b, backends[k], 2);
        b.labels[0] = 700, b.x[700] = b.x[701] = 50; /* the first of two equal ones is the prediction */
        b.labels[1] = 31, b.x[CLASSES + 30] = b.x[CLASSES + 31] = 50;
        b.labels[4] = 3, b.x[4 * CLASSES + 3] = 60;
        cr_assert(run(&b) == ST_OK, "%s", status_message());
        check_formula(&b);
        close_bench(&b);
    }
}

Test(cross_entropy, threads_change_no_bit)
{
    struct bench one, many;
    open_bench(&one, "cpu", 1);
    cr_assert(run(&one) == ST_OK);
    for (int threads = 2; threads < 5; threads++) {
        open_bench(&many, "cpu", threads);
        cr_assert(run(&many) == ST_OK);
        cr_assert(same_bits(one.y, many.y, sizeof one.y));
        cr_assert(same_bits(one.dx, many.dx, sizeof(float) * ROWS * CLASSES));
        close_bench(&many);
    }
    close_bench(&one);
}

Test(cross_entropy, of_nothing_is_nothing_and_of_a_nan_one)
{
    for (int k = 0; k < 2; k++) {
        struct bench b;
        open_bench(&b, backends[k], 2);
        b.x[3 * CLASSES + CLASSES - 1] = NAN;
        cr_assert(run(&b) == ST_OK && isnan(b.y[0]), "%s: %g", backends[k], (double)b.y[0]);
        for (int n = 0; n < ROWS; n++) b.labels[n] = LABEL_NONE;
        b.divisor = 0;
        cr_assert(run(&b) == ST_OK && b.y[0] == 0 && b.y[1] == 0);
        for (int i = 0; i < ROWS * CLASSES; i++) cr_assert(b.dx[i] == 0);
        close_bench(&b);
    }
}

Test(cross_entropy, a_label_that_is_no_class_is_refused_with_its_place)
{
    static const int32_t wrong[] = {CLASSES, LABEL_NONE - 1, INT32_MIN, INT32_MAX};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            struct bench b;
            char says[120];
            open_bench(&b, backends[k], 2);
            b.labels[2 * TOKENS + 4] = wrong[i];
            snprintf(says, sizeof says, "label %d at place 4 of sample 2 of the batch is not one of 1301 classes",
                     (int)wrong[i]);
            cr_assert(run(&b) == ST_FAILED && !strcmp(status_message(), says), "%s", status_message());
            close_bench(&b);
        }
}
