/* Binary cross-entropy of every row of x, one number, the logit of label 1, with the row's label, 0 or 1: a vector of
 * one number has one label, a sequence {T, 1} one a token, an image of one channel one a pixel. The loss is the mean,
 * over the labels of the whole batch that are 0 or 1, of log(1 + e^x) - label x, as PyTorch's BCEWithLogitsLoss has it;
 * 0 where none is. y = {loss, number of rows where x > 0 is the label}. */
#include "model/reference.h"

#include <math.h>

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    (void)settings;
    *output = (struct shape){1, {2}};
    if (shape_width(&inputs[0]) == 1) return ST_OK;
    return fail(ST_SPEC, "input %s; expected one channel or unit, the logit of label 1", shape_print(&inputs[0], text));
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t rows = reference_rows(r);
    double loss = 0, correct = 0;
    TRY(labels_expected(args->labels, r->batch, rows / r->batch, 2));
    for (int64_t n = 0; n < rows; n++) {
        const double x = ((const float *)args->x[0])[n];
        const int32_t label = args->labels[n];
        if (label == LABEL_NONE) continue;
        loss += (x > 0 ? x : 0) - x * label + log1p(exp(-fabs(x)));
        correct += (x > 0) == label;
    }
    ((float *)args->y)[0] = *args->divisor > 0 ? (float)(loss / loss_divisor(r, args)) : 0;
    ((float *)args->y)[1] = (float)correct;
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    for (int64_t n = 0; n < reference_rows(r); n++) {
        const double x = ((const float *)args->x[0])[n];
        const int32_t label = args->labels[n];
        ((float *)args->dx[0])[n] =
            label == LABEL_NONE ? 0 : (float)((1 / (1 + exp(-x)) - label) / loss_divisor(r, args));
    }
    return ST_OK;
}

const struct layer layer_bce = {.name = "bce",
                                .doc = "binary cross-entropy of the sigmoid of each row, one logit, with its label",
                                .inputs = 1,
                                .loss = true,
                                .predicts = true,
                                .binary = true,
                                .infer = infer,
                                .element_flops = {6, 0, 5},
                                .reference = REFERENCE_KERNEL(forward, backward),
                                .footprint = {.reads = {0, READS_X}}};
