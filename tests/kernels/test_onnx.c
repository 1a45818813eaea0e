/* Layers judged by ONNX's tests of single nodes, on every backend and layout, as the first layer and behind another.
 * Expected outputs are ONNX's own, which NumPy and PyTorch made. They judge forwards alone. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/onnx_layers.h"
#include "tests/support/onnx_walk.h"

static void put(const struct subject *s, const struct onnx_layer *layer)
{
    for (int i = 0; i < s->node->layer->inputs; i++) subject_put(s, s->node->inputs[i], layer->x[i], s->x[i].data);
    for (int i = 0; i < s->node->parameters; i++)
        memcpy(s->parameter[i].data, layer->parameter[i], s->parameter[i].bytes);
    for (int i = 0; i < s->node->states; i++) memcpy(s->running[i].data, layer->state[i], s->running[i].bytes);
}

/* Convolutions by transforms round more, as in test_kernels.c. */
static double cancelled(const struct subject *s)
{
    const char *how = s->footprint.implementation ? s->footprint.implementation : "";
    return strstr(how, "winograd") || strstr(how, "fft") ? 1e-4 : 1e-6;
}

static void check_outputs(const struct subject *s, const struct onnx_layer *layer, const struct onnx_test *test,
                          const char *where)
{
    const int value = s->node->output;
    const int64_t count = s->node->layer->loss ? 1 : subject_elements(s, value);
    float *y = calloc((size_t)count, sizeof *y);
    cr_assert(y != NULL && count == test->output[0].elements, "%s: %lld elements, not %lld", test->folder,
              (long long)count, (long long)test->output[0].elements);
    if (s->node->layer->loss)
        memcpy(y, s->y.data, sizeof *y);
    else
        subject_get(s, value, s->y.data, y);
    onnx_agree(test, where, "y", y, layer->y, count, cancelled(s));
    free(y);
    for (int i = 0; i < s->node->states; i++)
        if (layer->moved[i] != NULL)
            onnx_agree(test, where, "the running state", (const float *)(const void *)s->running[i].data,
                       layer->moved[i], (int64_t)(s->running[i].bytes / sizeof(float)), cancelled(s));
}

static void run(const struct onnx_layer *layer, const struct onnx_test *test, const char *backend, int layout,
                bool first)
{
    char where[64];
    struct subject s;
    struct subject_case c = layer->c;
    c.layout = layout;
    c.first |= first;
    snprintf(where, sizeof where, "%s, layout %d%s", backend, layout, c.first ? ", first layer" : "");
    subject_open(&s, backend, &c);
    s.evaluate = layer->evaluate;
    put(&s, layer);
    struct kernel_args args = subject_args(&s);
    int32_t *labels = calloc((size_t)c.batch, sizeof *labels);
    double divisor = (double)c.batch;
    cr_assert(labels != NULL);
    if (layer->labels != NULL) {
        memcpy(labels, layer->labels, (size_t)c.batch * sizeof *labels);
        divisor = s.node->layer->divisor(s.node->settings, &c.x, c.batch, labels);
        mirror_add(&s.mirror, labels, (size_t)c.batch * sizeof *labels);
        mirror_add(&s.mirror, &divisor, sizeof divisor);
        args.labels = labels, args.divisor = &divisor;
    }
    subject_forward(&s, &args);
    check_outputs(&s, layer, test, where);
    subject_close(&s);
    free(labels);
}

static const char *const backends[] = {"ref", "cpu", "cuda"};
enum { BACKENDS = sizeof backends / sizeof *backends };
static bool opens[BACKENDS];

static const char *judge(const struct onnx_test *test, struct region *region)
{
    struct onnx_layer layer;
    const char *reason = onnx_layer_express(test, region, &layer);
    if (reason != NULL) return reason;
    for (int i = 0; i < BACKENDS; i++) {
        if (!opens[i] || !backend_has(backends[i], layer.c.layer) || backend_refuses(backends[i], &layer.c.settings))
            continue;
        run(&layer, test, backends[i], LAYOUT_CHANNELS_LAST, true);
        run(&layer, test, backends[i], LAYOUT_CHANNELS_LAST, false);
        run(&layer, test, backends[i], LAYOUT_CHANNELS_FIRST, false);
    }
    return NULL;
}

/* least: as many as of ONNX 1.12. */
Test(onnx, layers_give_what_onnx_says)
{
    for (int i = 0; i < BACKENDS; i++) opens[i] = backend_opens(backends[i]);
    onnx_walk(onnx_layer_known, judge, 120);
}
