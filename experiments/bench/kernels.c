/* Times of single layers on the cpu backend's own kernels beside oneDNN's, as a table. Both are called in turn on the
 * same operands; a row has the least processor time of some calls, divided by the threads.
 *
 *   kernels [THREADS [CALLS [WORD]]]   WORD: rows whose name and pass contain it */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kernels/cpu/matrix.h"

static int threads = 1, calls = 5;
static const char *word = "";

/* Whether the row is asked for. */
static bool wanted(const char *name, const char *pass)
{
    char text[128];
    snprintf(text, sizeof text, "%s %s", name, pass);
    return strstr(text, word) != NULL;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec) / threads;
}

/* In huge pages, as a run's memory is. */
static void *reserve(size_t bytes)
{
    enum { HUGE = 2 << 20 };
    const size_t room = (bytes + HUGE) / HUGE * HUGE;
    void *block = aligned_alloc(HUGE, room);
    if (block == NULL) {
        fprintf(stderr, "kernels: out of memory\n");
        exit(3);
    }
    madvise(block, room, MADV_HUGEPAGE);
    memset(block, 0, room);
    return block;
}

static float *numbers(int64_t count)
{
    float *x = reserve((size_t)count * sizeof *x);
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(state >> 8) / (1 << 24) - 0.5f;
    }
    return x;
}

struct times {
    double ours, library;
};

static void row(const char *name, const char *pass, double flops, struct times least, struct times *sum)
{
    printf("%-34s %-8s %8.2f %8.2f %7.1f %7.1f %6.2f\n", name, pass, least.ours * 1e3, least.library * 1e3,
           flops / least.ours * 1e-9 / threads, flops / least.library * 1e-9 / threads, least.library / least.ours);
    fflush(stdout);
    sum->ours += least.ours, sum->library += least.library;
}

static double lesser_time(double a, double b) { return a == 0 || b < a ? b : a; }

/* A linear layer: y = x w^T, dx = dy w, dw = dy^T x. */
static void time_product(const char *name, const char *pass, int64_t m, int64_t n, int64_t k, struct matrix a,
                         struct matrix b, float *c, bool spans, bool turned, struct times *sum)
{
    if (!wanted(name, pass)) return;
    struct matrix_product of = {.c = c, .stride = n, .turned = turned};
    struct product product = matrix_product(m, n, k, a, b, &of);
    product.spans = spans;
    const struct product_plan plan = product_plan(&product, threads, UINT64_MAX);
    void *scratch = reserve(plan.scratch);
    struct times least = {0};
    for (int i = 0; i < calls; i++) {
        const double began = seconds();
        product_run(&product, &plan, &of, scratch);
        const double middle = seconds();
        dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1, a.data, a.stride, b.data, b.stride,
                   0, c, n);
        least.ours = lesser_time(least.ours, middle - began);
        least.library = lesser_time(least.library, seconds() - middle);
    }
    row(name, pass, 2.0 * (double)m * (double)n * (double)k, least, sum);
    free(scratch);
}

static void time_linear(const char *name, int64_t rows, int64_t inputs, int64_t units, struct times *sum)
{
    float *x = numbers(rows * inputs), *w = numbers(units * inputs), *dy = numbers(rows * units);
    float *y = numbers(rows * units), *dx = numbers(rows * inputs), *dw = numbers(units * inputs);
    const bool few = rows <= 256;
    time_product(name, "forward", rows, units, inputs, (struct matrix){x, inputs, false},
                 (struct matrix){w, inputs, true}, y, false, few && units > rows, sum);
    time_product(name, "input", rows, inputs, units, (struct matrix){dy, units, false},
                 (struct matrix){w, inputs, false}, dx, false, few && inputs > rows, sum);
    time_product(name, "weights", units, inputs, rows, (struct matrix){dy, units, true},
                 (struct matrix){x, inputs, false}, dw, true, false, sum);
    free(x), free(w), free(dy), free(y), free(dx), free(dw);
}

static const struct {
    const char *name;
    int64_t rows, inputs, units;
} linears[] = {
    {"linear bert 8192x768x3072", 8192, 768, 3072}, {"linear bert 4096x3072x768", 4096, 3072, 768},
    {"linear bert 4096x768x768", 4096, 768, 768},   {"linear vgg16 64x25088x4096", 64, 25088, 4096},
    {"linear vgg16 64x4096x4096", 64, 4096, 4096},  {"linear vgg16 64x4096x1000", 64, 4096, 1000},
    {"linear mlp 128x784x512", 128, 784, 512},
};

int main(int argc, char **argv)
{
    if (argc > 1) threads = atoi(argv[1]);
    if (argc > 2) calls = atoi(argv[2]);
    if (threads < 1 || calls < 1) {
        fprintf(stderr, "usage: kernels [THREADS [CALLS [WORD]]]\n");
        return 2;
    }
    if (argc > 3) word = argv[3];
    omp_set_num_threads(threads);
    printf("%-34s %-8s %8s %8s %7s %7s %6s\n", "layer (" LANES_ISA ")", "pass", "ms", "oneDNN", "GF/s", "oneDNN",
           "ratio");
    struct times sum = {0};
    for (size_t i = 0; i < sizeof linears / sizeof *linears; i++)
        time_linear(linears[i].name, linears[i].rows, linears[i].inputs, linears[i].units, &sum);
    printf("all: oneDNN's time over ours %.3f\n", sum.library / sum.ours);
    return 0;
}
