/* Softmax cross-entropy: the mean over the batch of log(sum_j exp x_j) - x_label, the largest x subtracted first.
 * y = {loss, number of samples whose largest x (the first, where several are equal) is the label's}. The backward
 * computes the softmax again from x: nothing is saved. */
#include "model/reference.h"

#include <math.h>
#include <stdlib.h>

static enum status infer(const struct settings *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings;
    char text[96];
    if (inputs[0].rank != 1)
        return fail(ST_SPEC, "expects a vector with one element a class, its input is %s",
                    shape_print(&inputs[0], text));
    *output = (struct shape){1, {2}};
    return ST_OK;
}

static struct flops flops(const struct settings *settings, const struct shape *input, const struct shape *output)
{
    (void)settings, (void)output;
    double classes = (double)shape_elements(input);
    return (struct flops){4 * classes, 0, 4 * classes};
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    (void)backend;
    *footprint = (struct footprint){.reads = {0, READS_X}};
    return reference_state(graph, node, state);
}

/* The first place of the largest element. */
static int64_t largest(const float *x, int64_t count)
{
    int64_t place = 0;
    for (int64_t j = 1; j < count; j++)
        if (x[j] > x[place]) place = j;
    return place;
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
        int64_t place = largest(x, classes);
        loss += log(exp_sum(x, classes, x[place])) + x[place] - x[label];
        correct += place == label;
    }
    ((float *)args->y)[0] = (float)(loss / (double)r->batch);
    ((float *)args->y)[1] = (float)correct;
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct reference *r = state;
    const int64_t classes = r->x_elements;
    if (!(parts & PART_INPUT) || !args->dx[0]) return ST_OK;
    for (int64_t n = 0; n < r->batch; n++) {
        const float *x = (const float *)args->x[0] + n * classes;
        float *dx = (float *)args->dx[0] + n * classes;
        double most = x[largest(x, classes)], sum = exp_sum(x, classes, most);
        for (int64_t j = 0; j < classes; j++)
            dx[j] = (float)((exp(x[j] - most) / sum - (j == args->labels[n])) / (double)r->batch);
    }
    return ST_OK;
}

static const struct kernel reference = {
    .deterministic = true, .prepare = prepare, .forward = forward, .backward = backward, .release = free};

const struct layer layer_cross_entropy = {.name = "cross_entropy",
                                          .doc = "of the softmax with the label, mean over the batch",
                                          .inputs = 1,
                                          .loss = true,
                                          .predicts = true,
                                          .keys = no_keys,
                                          .infer = infer,
                                          .flops = flops,
                                          .reference = &reference};
