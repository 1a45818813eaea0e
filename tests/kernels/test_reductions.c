/* Sums over rows in the cpu backend: their values, and that no bit depends on the number of threads. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/reductions.h"
#include "tests/support/same_bits.h"
#include "tests/support/single_layer.h"

/* Small integers, so that sums are exact in any order. */
static float *integers(int64_t count)
{
    float *x = malloc((size_t)count * sizeof *x);
    cr_assert(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(rng_words(3, RNG_DATA, (uint32_t)i, 0, 0, 0).word[0] % 201) - 100;
    return x;
}

Test(reductions, columns_are_summed)
{
    static const int64_t rows[] = {1, 7, 255, 256, 257, 1000}, columns[] = {1, 5, 511, 512, 513, 1100};
    for (int r = 0; r < 6; r++)
        for (int c = 0; c < 6; c++) {
            float *x = integers(rows[r] * columns[c]), *out = integers(columns[c]);
            const size_t bytes = reduce_columns_scratch(rows[r], columns[c]);
            void *scratch = malloc(bytes + 1);
            cr_assert((bytes > 0) == (rows[r] > PIECE_ROWS));
            reduce_columns(x, rows[r], columns[c], scratch, out);
            for (int64_t i = 0; i < columns[c]; i++) {
                float sum = 0;
                for (int64_t n = 0; n < rows[r]; n++) sum += x[n * columns[c] + i];
                cr_assert(out[i] == sum, "%d rows, column %d of %d", (int)rows[r], (int)i, (int)columns[c]);
            }
            free(x), free(out), free(scratch);
        }
}

static const struct {
    const char *layer;
    struct shape x;
    struct settings settings;
} cases[] = {
    {"layernorm", {2, {200, 67}}, {.epsilon = 1e-12}},
    {"layernorm", {2, {128, 96}}, {.epsilon = 1e-12}},
    {"gelu", {2, {31, 67}}, {0}},
    {"select", {2, {31, 67}}, {.token = 1}},
    {"dropout", {2, {31, 67}}, {.rate = 0.1}},
    {"add", {2, {31, 67}}, {0}},
    {"concat", {2, {31, 67}}, {.other = 5}},
    {"concat", {3, {17, 19, 8}}, {.other = 3}},
};

/* All outputs of a forward and a backward, one after the other. */
static char *results(struct single *single, size_t *bytes)
{
    single_forward(single);
    single_random(single->dy, single->y_bytes, 1, 9);
    single_backward(single);
    const struct {
        const void *data;
        size_t bytes;
    } parts[] = {{single->y, single->y_bytes},
                 {single->saved, single->footprint.saved},
                 {single->once, single->footprint.once},
                 {single->dx[0], single->x_bytes[0]},
                 {single->dx[1], single->dx[1] ? single->x_bytes[1] : 0},
                 {single->gradient[0], single->parameter_bytes[0]},
                 {single->gradient[1], single->parameter_bytes[1]}};
    char *all = malloc(2 * single->x_bytes[0] + 2 * single->x_bytes[1] + single->y_bytes + single->footprint.saved +
                       single->footprint.once);
    cr_assert(all);
    *bytes = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].bytes) memcpy(all + *bytes, parts[i].data, parts[i].bytes);
        *bytes += parts[i].bytes;
    }
    return all;
}

Test(reductions, threads_change_no_bit)
{
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct single single;
        size_t bytes, again;
        single_open(&single, "cpu", cases[c].layer, &cases[c].settings, &cases[c].x, 5, false);
        omp_set_num_threads(1);
        char *one = results(&single, &bytes);
        for (int threads = 2; threads < 6; threads++) {
            omp_set_num_threads(threads);
            char *many = results(&single, &again);
            cr_assert(again == bytes && same_bits(one, many, bytes), "%s by %d threads", cases[c].layer, threads);
            free(many);
        }
        free(one);
        single_close(&single);
    }
}
