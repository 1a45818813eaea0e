/* Softmax cross-entropy: the mean over the batch of log(sum_j exp x_j) - x_label, the largest x subtracted first.
 * y = {loss, number of samples whose largest x (the first, where several are equal) is the label's}. The backward
 * computes the softmax again from x: nothing is saved. */
#include "model/reference.h"

#include <math.h>

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings;
    char text[96];
    if (inputs[0].rank != 1)
        return fail(ST_SPEC, "expects a vector with one element a class, its input is %s",
                    shape_print(&inputs[0], text));
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

static double exp_sum(const float *x, int64_t count, double most)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++) sum += exp(x[j] - most);
    return sum;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t classes = r->x_elements;
    double loss = 0, correct = 0;
    for (int64_t n = 0; n < r->batch; n++) {
        const float *x = (const float *)args->x[0] + n * classes;
        const int32_t label = args->labels[n];
        if (label < 0 || label >= classes)
            return fail(ST_FAILED, "label %d of sample %lld of the batch is not one of %lld classes", (int)label,
                        (long long)n, (long long)classes);
        int64_t index = largest(x, classes);
        loss += log(exp_sum(x, classes, x[index])) + x[index] - x[label];
        correct += index == label;
    }
    ((float *)args->y)[0] = (float)(loss / (double)r->mean_over);
    ((float *)args->y)[1] = (float)correct;
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t classes = r->x_elements;
    for (int64_t n = 0; n < r->batch; n++) {
        const float *x = (const float *)args->x[0] + n * classes;
        float *dx = (float *)args->dx[0] + n * classes;
        double most = x[largest(x, classes)], sum = exp_sum(x, classes, most);
        for (int64_t j = 0; j < classes; j++)
            dx[j] = (float)((exp(x[j] - most) / sum - (j == args->labels[n])) / (double)r->mean_over);
    }
    return ST_OK;
}

const struct layer layer_cross_entropy = {.name = "cross_entropy",
                                          .doc = "of the softmax with the label, mean over the batch",
                                          .inputs = 1,
                                          .loss = true,
                                          .predicts = true,
                                          .infer = infer,
                                          .element_flops = {4, 0, 4},
                                          .reference = REFERENCE_KERNEL(forward, backward),
                                          .footprint = {.reads = {0, READS_X}}};
