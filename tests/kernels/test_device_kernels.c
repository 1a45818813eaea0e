/* Chunks and precision of a device's kernels. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/layer_under_test.h"
#include "tests/support/token_batches.h"

#define PLAIN                                                                                                          \
    {                                                                                                                  \
        .channels = 16, .kernel = 3, .stride = 1, .padding = 1                                                         \
    }

/* Attention processes as many samples at once as limit and library allow; convolutions keep the limit. */
Test(device_kernels, scratch_keeps_the_limit)
{
    enum { BATCH = 6, BLOCK = 4 * 40 * 40 * 4 };
    size_t before = 0;
    if (!backend_opens("cuda")) cr_skip_test("no device");
    for (int samples = 1; samples <= BATCH; samples++) {
        const uint64_t limit = (uint64_t)samples * 3 * BLOCK;
        const struct subject_case c = {
            "attention", {2, {40, 96}}, {.heads = 4, .rate = 0.1, .save = SAVE_NOTHING}, BATCH, false, false, 0,
            0,           limit};
        struct subject s;
        subject_open(&s, "cuda", &c);
        const size_t most = s.footprint.backward_scratch[PART_INDEX_INPUT];
        cr_assert(s.footprint.forward_scratch <= limit && most <= limit, "%zu of %llu", most,
                  (unsigned long long)limit);
        cr_assert(most >= before && (samples != 2 || most > before), "%zu after %zu", most, before);
        before = most;
        subject_close(&s);
    }
    /* with weights in another order beside the library's workspace */
    const uint64_t limit = device_is_real() ? KIB(1024) : 16 * 16 * 9 * 4 + 5 * 300;
    const struct subject_case last = {"conv", IMAGE(8, 8, 16),      PLAIN,       11,   false,
                                      false,  LAYOUT_CHANNELS_LAST, CONV_DIRECT, limit};
    struct subject conv;
    subject_open(&conv, "cuda", &last);
    cr_assert(conv.footprint.forward_scratch <= last.scratch_limit, "%zu", conv.footprint.forward_scratch);
    subject_close(&conv);
    /* more heads than the library takes at once */
    const struct subject_case many = {"attention", {2, {1, 1536}}, {.heads = 512}, 130, false, false, 0, 0, 1 << 26};
    struct subject s;
    subject_open(&s, "cuda", &many);
    struct kernel_args args = subject_args(&s);
    subject_forward(&s, &args);
    subject_close(&s);
}

/* The same numbers for every subject of a case. */
static void put(struct subject *s, int value, uint32_t which, void *data)
{
    const int64_t count = subject_elements(s, value);
    float *x = malloc((size_t)count * sizeof *x);
    cr_assert(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = 2 * rng_uniform(rng_words(5, RNG_DATA, (uint32_t)i, which, 0, 0).word[0]) - 1;
    if (s->node->layer->reads_batch && value == 0)
        sentences_make(x, s->graph->batch, s->graph->value[0].shape.dim[1], 9, 1);
    subject_put(s, value, x, data);
    free(x);
}

/* A forward and a backward. */
static void run(struct subject *s)
{
    struct kernel_args args = subject_args(s);
    for (int i = 0; i < s->node->layer->inputs; i++) put(s, s->node->inputs[i], (uint32_t)i, s->x[i].data);
    put(s, s->node->output, 9, s->dy.data);
    for (int i = 0; i < s->node->parameters; i++)
        for (size_t k = 0; k < s->parameter[i].bytes / sizeof(float); k++)
            ((float *)(void *)s->parameter[i].data)[k] =
                2 * rng_uniform(rng_words(5, RNG_DATA, (uint32_t)k, 20 + (uint32_t)i, 0, 0).word[0]) - 1;
    subject_forward(s, &args);
    subject_backward(s, &args, s->parts);
}

static void check(const struct subject *own, const float *a, const float *b, int64_t count, bool rounds)
{
    double difference = 0, magnitude = 0;
    for (int64_t i = 0; i < count; i++) {
        difference = fmax(difference, isnan(a[i]) ? INFINITY : fabs((double)a[i] - (double)b[i]));
        magnitude = fmax(magnitude, fabs((double)b[i]));
    }
    const double off = difference / magnitude;
    /* a real library may take kernels that round less, or transforms that round more */
    const double least = device_is_real() ? 0 : 2e-5, most = device_is_real() ? 1e-4 : 2e-5;
    cr_assert(rounds ? off >= least && off < 1e-2 : off < most, "%s of %s, precision %d, is off by %g", own->c->layer,
              own->footprint.implementation, own->c->precision, off);
}

static void check_value(const struct subject *own, const struct subject *ref, int value, const void *a, const void *b,
                        bool rounds)
{
    const int64_t count = subject_elements(ref, value);
    float *one = malloc((size_t)count * sizeof *one), *other = malloc((size_t)count * sizeof *other);
    cr_assert(one && other);
    subject_get(own, value, a, one);
    subject_get(ref, value, b, other);
    check(own, one, other, count, rounds);
    free(one), free(other);
}

#define IMAGES(x, settings, batch, layout, limit)                                                                      \
    {                                                                                                                  \
        {"conv", x, settings, batch, false, false, layout, CONV_DIRECT, limit}, true                                   \
    }

static const struct {
    struct subject_case c;
    bool rounds;
} products[] = {
    IMAGES(IMAGE(8, 8, 16), PLAIN, 3, LAYOUT_CHANNELS_LAST, KIB(4096)),
    IMAGES(IMAGE(8, 8, 16), PLAIN, 3, LAYOUT_CHANNELS_FIRST, KIB(4096)),
    /* in chunks of 4 samples, which start at multiples of 16 bytes */
    IMAGES(IMAGE(5, 5, 3), CONV(3, 3, 1, 1, ACTIVATION_NONE), 11, LAYOUT_CHANNELS_FIRST, KIB(2)),
    IMAGES(IMAGE(5, 5, 3), CONV(3, 3, 1, 1, ACTIVATION_NONE), 11, LAYOUT_CHANNELS_LAST, KIB(2)),
    /* with many pixels and a bias */
    IMAGES(IMAGE(40, 40, 3), CONV(64, 1, 1, 0, ACTIVATION_NONE), 2, LAYOUT_CHANNELS_LAST, KIB(4096)),
    {{"linear", {1, {64}}, {.units = 32, .bias = true}, 8}, true},
    {{"attention", {2, {40, 96}}, {.heads = 4}, 2}, true},
    {{"attention", {2, {40, 96}}, {.heads = 4, .save = SAVE_NOTHING}, 2}, true},
    {{"attention", {2, {9, 24}}, {.heads = 2}, 3}, false},
    {{"attention", {2, {8, 18}}, {.heads = 3}, 3}, false},
};

/* On a device TF32 rounds the factors in every pass if it is asked for and matrices start at multiples of 16 bytes, and
 * only then. The layout auto then means channels last. */
Test(device_kernels, operands_are_rounded_in_tf32_alone)
{
    if (!backend_opens("cuda")) cr_skip_test("no device");
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        for (int precision = PRECISION_FP32; precision <= PRECISION_TF32; precision++) {
            struct subject own, ref;
            struct subject_case c = products[i].c;
            const bool rounds = products[i].rounds && precision == PRECISION_TF32;
            c.precision = precision;
            subject_open(&own, "cuda", &c), subject_open(&ref, "ref", &c);
            run(&own), run(&ref);
            check_value(&own, &ref, ref.node->output, own.y.data, ref.y.data, rounds);
            check_value(&own, &ref, ref.node->inputs[0], own.dx[0].data, ref.dx[0].data, rounds);
            if (ref.node->parameters > 0) /* the first: the weights */
                check(&own, (const void *)own.gradient[0].data, (const void *)ref.gradient[0].data,
                      (int64_t)(ref.gradient[0].bytes / sizeof(float)), rounds);
            subject_close(&own), subject_close(&ref);
            c.layout = LAYOUT_AUTO;
            subject_open(&own, "cuda", &c);
            cr_assert(c.x.rank != 3 || own.graph->value[own.node->output].layout == (precision == PRECISION_FP32));
            subject_close(&own);
        }
}
