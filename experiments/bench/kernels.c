/* Times of single layers on the cpu backend's own kernels beside oneDNN's, as a table. Both are called in turn on the
 * same operands; a row has the least processor time of some calls, divided by the threads.
 *
 *   kernels [THREADS [CALLS [WORD]]]   WORD: rows whose name and pass contain it */
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kernels/cpu/conv.h"
#include "kernels/cpu/matrix.h"
#include "onednn.h"

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
    struct matrix_product of = {.c = {c, n}, .turned = turned};
    struct product product = matrix_product(m, n, k, a, b, &of);
    product.spans = spans;
    const struct product_plan plan = product_plan(&product, threads, SCRATCH_MOST);
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
    {"linear mlp 128x784x512", 128, 784, 512},      {"linear sample-cnn 16x1310720x32", 16, 1310720, 32},
};

/* ---- Convolutions. */
static const char *const passes[] = {"forward", "weights", "input"};

struct conv_row {
    const char *name;
    struct conv_shape shape;
};

static struct extent extent_of_images(int64_t batch, int64_t side, int64_t channels)
{
    const int64_t elements = side * side * channels;
    return (struct extent){batch, elements, batch * elements, {3, {side, side, channels}}, 0};
}

static int64_t side_of(const struct conv_shape *s) { return (s->side + 2 * s->padding - s->kernel) / s->stride + 1; }

/* Our kernel of a pass: Winograd's where it can be. */
struct own {
    struct conv_plan plan;
    float *x, *w, *y;
    void *scratch;
};

static void own_open(const struct conv_shape *r, enum conv_pass pass, bool winograd, struct own *own)
{
    const struct extent x = extent_of_images(r->batch, r->side, r->inputs);
    const struct extent y = extent_of_images(r->batch, side_of(r), r->outputs);
    *own = (struct own){.x = numbers(x.count), .y = numbers(y.count)};
    own->w = numbers(r->outputs * r->inputs / r->groups * r->kernel * r->kernel);
    if (winograd && winograd_make(pass, &x, &y, r->kernel, r->padding, threads, UINT64_MAX, &own->plan.winograd)) {
        own->scratch = reserve(own->plan.winograd.scratch);
        return;
    }
    own->plan.winograd.scratch = 0;
    own->plan.product = (struct conv_product){.kernel = r->kernel,
                                              .stride = r->stride,
                                              .padding = r->padding,
                                              .dilation = 1,
                                              .groups = r->groups,
                                              .threads = threads,
                                              .limit = UINT64_MAX};
    conv_product_make(pass, &x, &y, &own->plan.product);
    own->scratch = reserve(own->plan.product.scratch);
}

static void own_run(const struct own *own, enum conv_pass pass)
{
    const bool input = pass == CONV_INPUT;
    if (pass == CONV_PARAMS)
        conv_plan_gradients(&own->plan, own->x, own->y, NULL, own->w, NULL, own->scratch);
    else
        conv_plan_apply(&own->plan, input ? own->y : own->x, own->w, NULL, false, input ? own->x : own->y, NULL,
                        own->scratch);
}

static void own_close(const struct own *own) { free(own->x), free(own->w), free(own->y), free(own->scratch); }

static struct times time_calls(const struct own *own, const struct onednn *library, enum conv_pass pass)
{
    struct times least = {0};
    for (int i = 0; i < calls; i++) {
        const double began = seconds();
        own_run(own, pass);
        const double middle = seconds();
        onednn_run(library);
        least.ours = lesser_time(least.ours, middle - began);
        least.library = lesser_time(least.library, seconds() - middle);
    }
    return least;
}

static void time_conv(const struct conv_row *row_of, struct times *sum)
{
    const struct conv_shape *r = &row_of->shape;
    const int64_t to = side_of(r), k = r->kernel;
    const double flops = 2.0 * (double)(r->batch * to * to * r->outputs) * (double)(r->inputs / r->groups * k * k);
    for (enum conv_pass pass = 0; pass < CONV_PASSES; pass++) {
        struct own own;
        const bool of_data = pass == CONV_INPUT && r->inputs == 3; /* has no gradient */
        if (of_data || !wanted(row_of->name, passes[pass])) continue;
        own_open(r, pass, winograd_has_kernel(k) && r->stride == 1 && r->groups == 1, &own);
        struct onednn *library = onednn_open(r, pass, numbers);
        row(row_of->name, passes[pass], flops, time_calls(&own, library, pass), sum);
        own_close(&own);
        onednn_close(library);
    }
}

static const struct conv_row convs[] = {
    {"resnet50 7x7/2 224 3-64", {8, 224, 3, 64, 7, 2, 3, 1}},
    {"resnet50 1x1 56 64-64", {8, 56, 64, 64, 1, 1, 0, 1}},
    {"resnet50 1x1 56 64-256", {8, 56, 64, 256, 1, 1, 0, 1}},
    {"resnet50 1x1 56 256-64", {8, 56, 256, 64, 1, 1, 0, 1}},
    {"resnet50 1x1 28 128-512", {8, 28, 128, 512, 1, 1, 0, 1}},
    {"resnet50 1x1 28 512-128", {8, 28, 512, 128, 1, 1, 0, 1}},
    {"resnet50 1x1 14 256-1024", {8, 14, 256, 1024, 1, 1, 0, 1}},
    {"resnet50 1x1 14 1024-256", {8, 14, 1024, 256, 1, 1, 0, 1}},
    {"resnet50 1x1 7 512-2048", {8, 7, 512, 2048, 1, 1, 0, 1}},
    {"resnet50 1x1 7 2048-512", {8, 7, 2048, 512, 1, 1, 0, 1}},
    {"resnet50 1x1/2 56 256-512", {8, 56, 256, 512, 1, 2, 0, 1}},
    {"resnet50 3x3/2 56 128-128", {8, 56, 128, 128, 3, 2, 1, 1}},
    {"resnet50 3x3/2 14 512-512", {8, 14, 512, 512, 3, 2, 1, 1}},
    {"sample-cnn 5x5 256 10-40", {2, 256, 10, 40, 5, 1, 2, 1}},
    {"sample-cnn 5x5 256 40-20", {2, 256, 40, 20, 5, 1, 2, 1}},
    {"sample-cnn 5x5 256 20-10", {2, 256, 20, 10, 5, 1, 2, 1}},
    {"vgg16 3x3 224 3-64", {4, 224, 3, 64, 3, 1, 1, 1}},
    {"vgg16 3x3 224 64-64", {4, 224, 64, 64, 3, 1, 1, 1}},
    {"vgg16 3x3 56 256-256", {8, 56, 256, 256, 3, 1, 1, 1}},
    {"vgg16 3x3 14 512-512", {8, 14, 512, 512, 3, 1, 1, 1}},
    {"resnext 3x3/2 56 128-128 g32", {8, 56, 128, 128, 3, 2, 1, 32}},
    {"mobilenet 3x3 112 32 depthwise", {8, 112, 32, 32, 3, 1, 1, 32}},
    {"mobilenet 3x3/2 56 144 depthwise", {8, 56, 144, 144, 3, 2, 1, 144}},
    {"mobilenet 3x3 14 384 depthwise", {8, 14, 384, 384, 3, 1, 1, 384}},
};

/* ---- Winograd beside the product where it begins to pay: few tiles or channels. */
static const struct conv_row limits[] = {
    {"limit 16 tiles 512-512", {1, 14, 512, 512, 3, 1, 1, 1}},
    {"limit 32 tiles 512-512", {2, 14, 512, 512, 3, 1, 1, 1}},
    {"limit 16 tiles 256-256", {1, 14, 256, 256, 3, 1, 1, 1}},
    {"limit 32 tiles 256-256", {2, 14, 256, 256, 3, 1, 1, 1}},
    {"limit 56 16-16", {4, 56, 16, 16, 3, 1, 1, 1}},
    {"limit 56 8-32", {4, 56, 8, 32, 3, 1, 1, 1}},
    {"limit 56 32-8", {4, 56, 32, 8, 3, 1, 1, 1}},
    {"limit 56 3-64", {4, 56, 3, 64, 3, 1, 1, 1}},
    {"limit 5x5 16 tiles 192-192", {1, 8, 192, 192, 5, 1, 2, 1}},
    {"limit 5x5 49 tiles 192-192", {1, 14, 192, 192, 5, 1, 2, 1}},
    {"limit 5x5 98 tiles 64-64", {2, 14, 64, 64, 5, 1, 2, 1}},
    {"limit 5x5 28 8-16", {4, 28, 8, 16, 5, 1, 2, 1}},
    {"limit 5x5 256 1-10", {1, 256, 1, 10, 5, 1, 2, 1}},
    {"limit 5x5 128 2-32", {1, 128, 2, 32, 5, 1, 2, 1}},
    {"limit 5x5 128 3-64", {1, 128, 3, 64, 5, 1, 2, 1}},
    {"limit 5x5 128 4-32", {1, 128, 4, 32, 5, 1, 2, 1}},
    {"limit 5x5 128 6-16", {1, 128, 6, 16, 5, 1, 2, 1}},
    {"limit 5x5 128 10-40", {1, 128, 10, 40, 5, 1, 2, 1}},
    {"limit 5x5 128 40-20", {1, 128, 40, 20, 5, 1, 2, 1}},
    {"limit 5x5 128 20-10", {1, 128, 20, 10, 5, 1, 2, 1}},
};

static double time_own(const struct own *own, enum conv_pass pass)
{
    const double began = seconds();
    own_run(own, pass);
    return seconds() - began;
}

static void time_limits(void)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (enum conv_pass pass = 0; pass < CONV_PASSES; pass++) {
            const struct conv_row *r = &limits[i];
            struct own own[2];
            double least[2] = {0};
            if (!wanted(r->name, passes[pass])) continue;
            for (int w = 0; w < 2; w++) own_open(&r->shape, pass, w == 0, &own[w]);
            for (int c = 0; c < 2 * calls; c++) least[c % 2] = lesser_time(least[c % 2], time_own(&own[c % 2], pass));
            printf("%-34s %-8s %8.2f %8.2f of the product %15.2f\n", r->name, passes[pass], least[0] * 1e3,
                   least[1] * 1e3, least[1] / least[0]);
            for (int w = 0; w < 2; w++) own_close(&own[w]);
        }
}

/* Rows of a network follow each other; its name is the first word. */
static void time_convs(void)
{
    const size_t count = sizeof convs / sizeof *convs;
    for (size_t first = 0, end; first < count; first = end) {
        const size_t length = strcspn(convs[first].name, " ");
        struct times sum = {0};
        for (end = first; end < count && !strncmp(convs[end].name, convs[first].name, length); end++)
            time_conv(&convs[end], &sum);
        if (sum.ours > 0)
            printf("  %.*s: oneDNN's time over ours %.3f\n", (int)length, convs[first].name, sum.library / sum.ours);
    }
    time_limits();
}

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
    if (sum.ours > 0) printf("  linear layers: oneDNN's time over ours %.3f\n", sum.library / sum.ours);
    time_convs();
    return 0;
}
