/* Softmax cross-entropy of every row of x with the row's label: a vector has one, a sequence {T, V} one a token, an
 * image one a pixel. The loss is the mean, over the labels of the whole batch that are a class, of
 * log(sum_j exp x_j) - x_label, the largest x subtracted first; 0 where none is. label_smoothing: a share
 * e of the label's weight is divided among all classes (Szegedy et al., 2016), so that x_label becomes
 * (1 - e) x_label + e times the mean of x. The loss and the gradients of slices of the batch add up to the batch's,
 * whatever the slices have of labels that do not count. An auxiliary loss is multiplied by its node's weight. y =
 * {loss, number of rows whose largest x (the first, where several are equal) is the label's}. The backward computes the
 * softmax again from x: nothing is saved; dx may be x. */
#include "model/reference.h"

#include <math.h>

struct settings {
    int64_t chunks; /* 0: the logits are a value of their own */
    double label_smoothing;
};
LOSS_SETTINGS_FIT(struct settings);

static const struct setting keys[] = {
    {SETTING(chunks), .type = SETTING_INT, .min = 1, .max = 1 << 24, .preset = "0",
     .doc = "parts of the rows for which the last linear layer and the loss are computed one by one, forward and "
            "backward, so that the logits are never whole"},
    {SETTING(label_smoothing), .type = SETTING_REAL, .min = 1e-9, .max = 0.999999, .preset = "0",
     .doc = "share of a label's weight that is divided among all classes"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings, (void)inputs;
    *output = (struct shape){1, {2}};
    return ST_OK;
}

/* The first index of the largest element. */
static int64_t largest(const float *x, int64_t count)
{
    int64_t index = 0;
    for (int64_t j = 1; j < count; j++)
        if (x[j] > x[index]) index = j;
    return index;
}

static double smoothing(const struct reference *r) { return ((const struct settings *)r->settings)->label_smoothing; }

/* What a row with that label is measured by: the label's x, or a mixture with the mean of all. */
static double target(const float *x, int64_t count, int32_t label, double smoothing)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++) sum += x[j];
    return (1 - smoothing) * x[label] + smoothing * sum / (double)count;
}

/* What the sum over the rows is divided by. */
static double divisor(const struct reference *r, const struct kernel_args *args)
{
    return (double)*args->counted / r->weight;
}

static double exp_sum(const float *x, int64_t count, double most)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++) sum += exp(x[j] - most);
    return sum;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t classes = shape_width(&r->x), rows = reference_rows(r);
    double loss = 0, correct = 0;
    TRY(labels_expected(args->labels, r->batch, rows / r->batch, classes));
    for (int64_t n = 0; n < rows; n++) {
        const float *x = (const float *)args->x[0] + n * classes;
        const int32_t label = args->labels[n];
        if (label == LABEL_NONE) continue;
        int64_t index = largest(x, classes);
        loss += log(exp_sum(x, classes, x[index])) + x[index] - target(x, classes, label, smoothing(r));
        correct += index == label;
    }
    ((float *)args->y)[0] = *args->counted ? (float)(loss / divisor(r, args)) : 0;
    ((float *)args->y)[1] = (float)correct;
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t classes = shape_width(&r->x);
    const double all = smoothing(r) / (double)classes, own = 1 - smoothing(r);
    for (int64_t n = 0; n < reference_rows(r); n++) {
        const float *x = (const float *)args->x[0] + n * classes;
        float *dx = (float *)args->dx[0] + n * classes;
        const bool counts = args->labels[n] != LABEL_NONE;
        double most = x[largest(x, classes)], sum = exp_sum(x, classes, most);
        for (int64_t j = 0; j < classes; j++)
            dx[j] =
                counts ? (float)((exp(x[j] - most) / sum - own * (j == args->labels[n]) - all) / divisor(r, args)) : 0;
    }
    return ST_OK;
}

const struct layer layer_cross_entropy = {.name = "cross_entropy",
                                          .doc = "of the softmax of each row with its label, mean over the labels",
                                          .inputs = 1,
                                          .loss = true,
                                          .predicts = true,
                                          .chunked = &layer_linear_cross_entropy,
                                          LAYER_SETTINGS,
                                          .infer = infer,
                                          .element_flops = {4, 0, 4},
                                          .reference = REFERENCE_KERNEL(forward, backward),
                                          .footprint = {.reads = {0, READS_X}}};
