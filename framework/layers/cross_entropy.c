/* Softmax cross-entropy of every row of x with the row's label: a vector has one, a sequence {T, V} one a token, an
 * image one a pixel. The loss is the mean, over the labels of the whole batch that are a class, of
 * log(sum_j exp x_j) - x_label, the largest x subtracted first; 0 where none is. label_smoothing: a share
 * e of the label's weight is divided among all classes (Szegedy et al., 2016), so that x_label becomes
 * (1 - e) x_label + e times the mean of x. class_weights: what each class has of a row's loss is multiplied by the
 * class's weight, and the sum is divided by the weights of the labels, as by PyTorch. The loss and the gradients of
 * slices of the batch add up to the batch's, whatever the slices have of labels that do not count. An auxiliary loss is
 * multiplied by its node's weight. y = {loss, number of rows whose largest x (the first, where several are equal) is
 * the label's}. The backward computes the softmax again from x: nothing is saved; dx may be x. */
#include "model/reference.h"

#include <math.h>
#include <string.h>

struct settings {
    int64_t chunks; /* 0: the logits are a value of their own */
    double label_smoothing;
    struct setting_list class_weights;
};
LOSS_SETTINGS_FIT(struct settings);

static const struct setting keys[] = {
    {SETTING(chunks), .type = SETTING_INT, .min = 1, .max = 1 << 24, .preset = "0",
     .doc = "parts of the rows for which the last linear layer and the loss are computed one by one, forward and "
            "backward, so that the logits are never whole"},
    {SETTING(label_smoothing), .type = SETTING_REAL, .min = 1e-9, .max = 0.999999, .preset = "0",
     .doc = "share of a label's weight that is divided among all classes"},
    {SETTING(class_weights), .type = SETTING_REALS, .preset = "",
     .doc = "a number for each class: what its labels count for in the mean; unset: 1"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    *output = (struct shape){1, {2}};
    return class_weights_expected(&((const struct settings *)settings)->class_weights, shape_width(&inputs[0]));
}

static double divisor(const void *settings, const struct shape *x, int64_t samples, const int32_t *labels)
{
    const struct settings *s = settings;
    return class_weights_sum(&s->class_weights, labels, samples * shape_elements(x) / shape_width(x));
}

/* The first index of the largest element. */
static int64_t largest(const float *x, int64_t count)
{
    int64_t index = 0;
    for (int64_t j = 1; j < count; j++)
        if (x[j] > x[index]) index = j;
    return index;
}

/* The sum of what the logarithms of a row's shares are multiplied by in its loss. */
static double parts(const struct settings *s, int64_t classes, int32_t label)
{
    double sum = 0;
    if (!s->class_weights.count) return 1;
    for (int64_t j = 0; j < classes; j++) sum += s->class_weights.reals[j];
    return (1 - s->label_smoothing) * class_weight(&s->class_weights, label) +
           s->label_smoothing * sum / (double)classes;
}

/* What a row with that label is measured by: the label's x, or a mixture with the mean of all. */
static double target(const struct settings *s, const float *x, int64_t count, int32_t label)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++) sum += class_weight(&s->class_weights, j) * x[j];
    return (1 - s->label_smoothing) * class_weight(&s->class_weights, label) * x[label] +
           s->label_smoothing * sum / (double)count;
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
    const struct settings *s = r->settings;
    const int64_t classes = shape_width(&r->x), rows = reference_rows(r);
    double loss = 0, correct = 0;
    TRY(labels_expected(args->labels, r->batch, rows / r->batch, classes));
    for (int64_t n = 0; n < rows; n++) {
        const float *x = (const float *)args->x[0] + n * classes;
        const int32_t label = args->labels[n];
        if (label == LABEL_NONE) continue;
        int64_t index = largest(x, classes);
        loss +=
            (log(exp_sum(x, classes, x[index])) + x[index]) * parts(s, classes, label) - target(s, x, classes, label);
        correct += index == label;
    }
    ((float *)args->y)[0] = *args->divisor > 0 ? (float)(loss / loss_divisor(r, args)) : 0;
    ((float *)args->y)[1] = (float)correct;
    return ST_OK;
}

static void row_gradient(const struct settings *s, const float *x, int64_t classes, int32_t label, double divisor,
                         float *dx)
{
    const double all = s->label_smoothing / (double)classes, own = 1 - s->label_smoothing;
    const double sum_of_parts = parts(s, classes, label), most = x[largest(x, classes)],
                 sum = exp_sum(x, classes, most);
    for (int64_t j = 0; j < classes; j++) {
        const double weight = class_weight(&s->class_weights, j), share = sum_of_parts * exp(x[j] - most) / sum;
        dx[j] = (float)((share - own * weight * (j == label) - all * weight) / divisor);
    }
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t classes = shape_width(&r->x);
    for (int64_t n = 0; n < reference_rows(r); n++) {
        float *dx = (float *)args->dx[0] + n * classes;
        if (args->labels[n] == LABEL_NONE || !(*args->divisor > 0))
            memset(dx, 0, (size_t)classes * sizeof *dx);
        else
            row_gradient(r->settings, (const float *)args->x[0] + n * classes, classes, args->labels[n],
                         loss_divisor(r, args), dx);
    }
    return ST_OK;
}

const struct layer layer_cross_entropy = {.name = "cross_entropy",
                                          .doc = "of the softmax of each row with its label, mean over the labels",
                                          .inputs = 1,
                                          .loss = true,
                                          .predicts = true,
                                          .divisor = divisor,
                                          .chunked = &layer_linear_cross_entropy,
                                          LAYER_SETTINGS,
                                          .infer = infer,
                                          .element_flops = {4, 0, 4},
                                          .reference = REFERENCE_KERNEL(forward, backward),
                                          .footprint = {.reads = {0, READS_X}}};
