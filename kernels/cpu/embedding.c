/* Word, position and segment rows summed, of the tables that there are; see framework/layers/embedding.c.
 *
 * Contract: a table's gradient is summed token by token in ascending order for any number of threads: each thread owns
 * columns, whole cache lines. Where the table of words is shared, they are added to what is there. An id without a row
 * in its table reads row 0. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "numerics/token_batch.h"

enum { LINE = 16, TABLES = 3 }; /* floats in a cache line */

struct embedding {
    struct backend *backend;
    int64_t batch, tokens, width;
    int tables;
    int64_t rows[TABLES];
    int line[TABLES]; /* of the batch, whose numbers are rows of the table; -1: positions are */
};

static enum status embedding_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                     struct footprint *footprint, void **state)
{
    struct embedding *embedding = *state = allocate(1, sizeof *embedding);
    static const struct {
        const char *key;
        int line;
    } all[TABLES] = {{"vocabulary", TOKEN_IDS}, {"positions", -1}, {"segments", TOKEN_SEGMENTS}};
    *embedding = (struct embedding){.backend = backend,
                                    .batch = graph->batch,
                                    .tokens = graph->value[node->inputs[0]].shape.dim[1],
                                    .width = node_integer(node, "units")};
    for (int k = 0; k < TABLES; k++) {
        const int64_t rows = node_integer(node, all[k].key);
        embedding->rows[embedding->tables] = rows;
        embedding->line[embedding->tables] = all[k].line;
        embedding->tables += rows > 0;
    }
    *footprint = (struct footprint){.reads = {READS_X, 0}, .implementation = "loops"};
    return ST_OK;
}

/* Where the rows that token t of sample n reads start in their tables. */
static void starts_of(const struct embedding *e, const float *x, int64_t n, int64_t t, int64_t starts[TABLES])
{
    const float *sample = x + n * TOKEN_ROWS * e->tokens;
    for (int k = 0; k < e->tables; k++)
        starts[k] = (e->line[k] < 0 ? t : token_row(sample[e->line[k] * e->tokens + t], e->rows[k])) * e->width;
}

static enum status embedding_forward(void *state, const struct kernel_args *args)
{
    const struct embedding *e = state;
    const float *const *tables = args->parameters;
    float *y = args->y;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < e->batch; n++)
        for (int64_t t = 0; t < e->tokens; t++) {
            int64_t starts[TABLES];
            starts_of(e, args->x[0], n, t, starts);
            float *restrict row = y + (n * e->tokens + t) * e->width;
            memcpy(row, tables[0] + starts[0], (size_t)e->width * sizeof *row);
            for (int k = 1; k < e->tables; k++) {
                const float *restrict more = tables[k] + starts[k];
                for (int64_t i = 0; i < e->width; i++) row[i] += more[i];
            }
        }
    clock_lap(e->backend, CLOCK_OTHER);
    return ST_OK;
}

/* Adds columns [from, to) of every token's dy to the rows it read. */
static void scatter(const struct embedding *e, const struct kernel_args *args, int64_t from, int64_t to)
{
    for (int64_t n = 0; n < e->batch; n++)
        for (int64_t t = 0; t < e->tokens; t++) {
            int64_t starts[TABLES];
            starts_of(e, args->x[0], n, t, starts);
            const float *restrict dy = (const float *)args->dy + (n * e->tokens + t) * e->width;
            for (int k = 0; k < e->tables; k++) {
                float *restrict row = args->gradients[k] + starts[k];
                for (int64_t i = from; i < to; i++) row[i] += dy[i];
            }
        }
}

static enum status embedding_backward(void *state, const struct kernel_args *args)
{
    const struct embedding *e = state;
    const int64_t lines = ratio_up(e->width, LINE), threads = e->backend->options.threads;
#pragma omp parallel
    {
        for (int k = args->adds & 1; k < e->tables; k++) {
#pragma omp for schedule(static)
            for (int64_t row = 0; row < e->rows[k]; row++)
                memset(args->gradients[k] + row * e->width, 0, (size_t)e->width * sizeof(float));
        }
#pragma omp for schedule(static)
        for (int64_t slice = 0; slice < threads; slice++) {
            const int64_t to = (slice + 1) * lines / threads * LINE;
            scatter(e, args, slice * lines / threads * LINE, to < e->width ? to : e->width);
        }
    }
    clock_lap(e->backend, CLOCK_OTHER);
    return ST_OK;
}

const struct kernel cpu_embedding = {true, embedding_prepare, embedding_forward, embedding_backward, free, true};
