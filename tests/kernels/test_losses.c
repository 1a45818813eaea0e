/* The losses beside their formulas, written down plainly in long double here: values, gradients by differences of the
 * formula, predictions, and labels that count for nothing. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/single_layer.h"

enum { BATCH = 3, MOST = 256 };

static const double weights[] = {0.5, 2, 0, 1};
static const double smooth = 0.7, smoothing = 0.2;

struct judge {
    const char *layer;
    struct shape x;
    struct settings settings;
    /* The loss of the samples at x with these labels; *correct: how many are predicted. */
    long double (*loss)(const struct shape *shape, const long double *x, const int32_t *labels, int *correct);
};

static long double share(const long double *x, int64_t count, int64_t of)
{
    long double sum = 0;
    for (int64_t j = 0; j < count; j++) sum += expl(x[j]);
    return expl(x[of]) / sum;
}

static int64_t predicted(const long double *x, int64_t count)
{
    int64_t most = 0;
    for (int64_t j = 0; j < count; j++) most = x[j] > x[most] ? j : most;
    return count == 1 ? x[0] > 0 : most;
}

static long double weighed(const struct shape *shape, const long double *x, const int32_t *labels, int *correct)
{
    const int64_t classes = shape_width(shape), rows = BATCH * shape_elements(shape) / classes;
    long double sum = 0, divisor = 0;
    for (int64_t n = 0; n < rows; n++, x += classes) {
        if (labels[n] == LABEL_NONE) continue;
        for (int64_t j = 0; j < classes; j++) {
            const long double part = (j == labels[n] ? 1 - smoothing : 0) + smoothing / (double)classes;
            sum -= weights[j] * part * logl(share(x, classes, j));
        }
        divisor += weights[labels[n]];
        *correct += predicted(x, classes) == labels[n];
    }
    return sum / divisor;
}

static long double binary(const struct shape *shape, const long double *x, const int32_t *labels, int *correct)
{
    long double sum = 0;
    int count = 0;
    for (int64_t n = 0; n < BATCH * shape_elements(shape); n++) {
        const long double one = 1 / (1 + expl(-x[n]));
        if (labels[n] == LABEL_NONE) continue;
        sum -= labels[n] ? logl(one) : logl(1 - one);
        *correct += predicted(x + n, 1) == labels[n];
        count++;
    }
    return sum / count;
}

/* Of one class of one image. */
static long double overlap(const long double *x, const int32_t *labels, int64_t pixels, int64_t classes, int64_t class)
{
    long double common = 0, here = 0, there = 0;
    for (int64_t i = 0; i < pixels; i++, x += classes) {
        const long double p = classes > 1 ? share(x, classes, class) : 1 / (1 + expl(-*x));
        const bool is = classes > 1 ? labels[i] == class : labels[i] == 1;
        if (labels[i] == LABEL_NONE) continue;
        common += is ? p : 0, here += p, there += is;
    }
    return 1 - (2 * common + smooth) / (here + there + smooth);
}

static long double dice(const struct shape *shape, const long double *x, const int32_t *labels, int *correct)
{
    const int64_t classes = shape_width(shape), pixels = shape_elements(shape) / classes;
    long double sum = 0;
    int images = 0;
    for (int n = 0; n < BATCH; n++, x += pixels * classes, labels += pixels) {
        bool any = false;
        for (int64_t i = 0; i < pixels; i++) {
            any |= labels[i] != LABEL_NONE;
            *correct += labels[i] != LABEL_NONE && predicted(x + i * classes, classes) == labels[i];
        }
        for (int64_t j = 0; j < classes && any; j++) sum += overlap(x, labels, pixels, classes, j) / classes;
        images += any;
    }
    return sum / images;
}

static long double squares(const struct shape *shape, const long double *x, const int32_t *labels, int *correct)
{
    const int64_t count = BATCH * shape_elements(shape);
    const float *target = (const void *)labels;
    long double sum = 0;
    (void)correct;
    for (int64_t i = 0; i < count; i++) sum += (x[i] - target[i]) * (x[i] - target[i]);
    return sum / count;
}

static const struct judge judges[] = {
    {"cross_entropy", {1, {4}}, {.class_weights = {4, {.reals = weights}}, .label_smoothing = smoothing}, weighed},
    {"cross_entropy", {2, {5, 4}}, {.class_weights = {4, {.reals = weights}}, .label_smoothing = smoothing}, weighed},
    {"bce", {1, {1}}, {0}, binary},
    {"bce", {3, {4, 3, 1}}, {0}, binary},
    {"dice", {3, {4, 3, 3}}, {.smooth = smooth}, dice},
    {"dice", {3, {4, 3, 1}}, {.smooth = smooth}, dice},
    {"mse", {3, {4, 3, 2}}, {0}, squares},
};
enum { JUDGES = sizeof judges / sizeof *judges };

static const char *const backends[] = {"ref", "cpu"};

/* Of the last sample none counts, where samples have several labels; of the others some. */
static void set_labels(struct single *s)
{
    const int64_t each = graph_labels(s->graph);
    if (s->node->layer->targets) return;
    for (int64_t n = 1; n < BATCH * each; n += 4) s->labels[n] = LABEL_NONE;
    for (int64_t n = 0; n < each && each > 1; n++) s->labels[(BATCH - 1) * each + n] = LABEL_NONE;
    single_divide(s);
}

static void check(const struct judge *judge, const char *backend)
{
    struct single s;
    long double x[MOST];
    int correct = 0, moved = 0;
    single_open(&s, backend, judge->layer, &judge->settings, &judge->x, BATCH, RELU_OUTPUT);
    const int64_t count = BATCH * shape_elements(&judge->x);
    cr_assert(count <= MOST);
    for (int64_t i = 0; i < count; i++) x[i] = s.x[0][i] *= 3;
    set_labels(&s);
    memset(s.dx[0], 0xff, s.x_bytes[0]);
    single_forward(&s), single_backward(&s);
    const long double loss = judge->loss(&judge->x, x, s.labels, &correct);
    cr_assert(fabsl(s.y[0] - loss) < 2e-7L * loss, "%s on %s: %.9g, not %.9Lg", judge->layer, backend, (double)s.y[0],
              loss);
    cr_assert(s.y[1] == (float)correct, "%s on %s: %g, not %d", judge->layer, backend, (double)s.y[1], correct);
    for (int64_t i = 0; i < count; i++) {
        const long double at = x[i], h = 1e-6L;
        x[i] = at + h;
        const long double up = judge->loss(&judge->x, x, s.labels, &moved);
        x[i] = at - h;
        const long double slope = (up - judge->loss(&judge->x, x, s.labels, &moved)) / (2 * h);
        x[i] = at;
        cr_assert(fabsl(s.dx[0][i] - slope) < 1e-6L * fabsl(slope) + 1e-9L, "%s on %s, %d: %.9g, not %.9Lg",
                  judge->layer, backend, (int)i, (double)s.dx[0][i], slope);
        cr_assert(slope != 0 || s.dx[0][i] == 0);
    }
    single_close(&s);
}

Test(losses, are_their_formulas)
{
    for (int b = 0; b < 2; b++)
        for (int j = 0; j < JUDGES; j++) check(&judges[j], backends[b]);
}

/* Where no label counts, also as all have a class of weight 0. */
Test(losses, of_nothing_are_nothing)
{
    for (int b = 0; b < 2; b++)
        for (int j = 0; j < 2 * JUDGES; j++) {
            const struct judge *judge = &judges[j % JUDGES];
            const bool weightless = j >= JUDGES;
            struct single s;
            if (weightless && !judge->settings.class_weights.count) continue;
            single_open(&s, backends[b], judge->layer, &judge->settings, &judge->x, BATCH, RELU_OUTPUT);
            for (int64_t n = 0; n < BATCH * graph_labels(s.graph); n++) s.labels[n] = weightless ? 2 : LABEL_NONE;
            single_divide(&s);
            single_forward(&s), single_backward(&s);
            for (int64_t i = 0; i < BATCH * shape_elements(&judge->x) && !s.node->layer->targets; i++)
                cr_assert(s.dx[0][i] == 0, "%s: %g", judge->layer, (double)s.dx[0][i]);
            cr_assert(s.y[0] == 0 || s.node->layer->targets);
            single_close(&s);
        }
}

/* Logits that overflow exp(). */
Test(losses, of_large_logits_are_finite)
{
    struct single s;
    single_open(&s, "ref", "bce", NULL, &(struct shape){1, {1}}, BATCH, RELU_OUTPUT);
    s.x[0][0] = 3e4F, s.x[0][1] = -3e4F, s.x[0][2] = 3e4F;
    s.labels[0] = 1, s.labels[1] = 0, s.labels[2] = 0;
    single_forward(&s), single_backward(&s);
    cr_assert(s.y[0] == 1e4F && s.y[1] == 2 && s.dx[0][0] == 0 && s.dx[0][1] == 0 && s.dx[0][2] == 1 / 3.0F);
    single_close(&s);
    single_open(&s, "ref", "dice", NULL, &(struct shape){3, {1, 1, 2}}, 1, RELU_OUTPUT);
    s.x[0][0] = 3e4F, s.x[0][1] = -3e4F, s.labels[0] = 0;
    single_forward(&s), single_backward(&s);
    cr_assert(s.y[0] == 0 && s.y[1] == 1 && s.dx[0][0] == 0 && s.dx[0][1] == 0);
    single_close(&s);
}

Test(losses, refuse_labels_that_are_no_class)
{
    static const struct {
        const char *layer;
        struct shape x;
        int classes;
    } cases[] = {{"bce", {1, {1}}, 2}, {"dice", {3, {2, 2, 1}}, 2}, {"dice", {3, {2, 2, 3}}, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct single s;
        char says[80];
        single_open(&s, "ref", cases[i].layer, NULL, &cases[i].x, BATCH, RELU_OUTPUT);
        const struct kernel_args args = single_args(&s);
        s.labels[0] = cases[i].classes;
        snprintf(says, sizeof says, "of sample 0 of the batch is not one of %d classes", cases[i].classes);
        cr_assert(s.kernel->forward(s.state, &args) == ST_FAILED && strstr(status_message(), says), "%s",
                  status_message());
        single_close(&s);
    }
}
