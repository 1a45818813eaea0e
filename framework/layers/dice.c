/* Soft Dice loss of images with a label for each pixel (Milletari, Navab and Ahmadi, "V-Net", 2016, without squares):
 * the mean, over the channels and the images of the whole batch that have a label, of 1 - (2 sum p g + smooth) / (sum p
 * + sum g + smooth), with sums over the pixels of an image that have a label; 0 where none has. p: the softmax over the
 * channels, or of one channel the sigmoid, then the share of label 1 against 0; g: 1 where the label is that class,
 * else 0. So the losses and gradients of slices add up to the batch's. y = {loss, number of pixels that are predicted}:
 * the largest x (the first, where several are equal) is the label's, or of one channel x > 0. The backward computes p
 * again: nothing is saved. */
#include "model/reference.h"

#include <math.h>
#include <string.h>

struct settings {
    double smooth;
};
LOSS_SETTINGS_FIT(struct settings);

static const struct setting keys[] = {{SETTING(smooth), .type = SETTING_REAL, .min = 1e-9, .max = 1e9, .preset = "1",
                                       .doc = "added to both parts of each class's fraction"},
                                      {.key = NULL}};

/* In scratch, of a class: an image's fraction; p of a pixel. */
struct fraction {
    double above, below, p;
};

static void measure(const struct reference *r, struct footprint *footprint)
{
    footprint->forward_scratch = (size_t)shape_width(&r->x) * sizeof(struct fraction);
    footprint->backward_scratch[PART_INDEX_INPUT] = footprint->forward_scratch;
}

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings;
    *output = (struct shape){1, {2}};
    return image_expected(&inputs[0]);
}

static double divisor(const void *settings, const struct shape *x, int64_t samples, const int32_t *labels)
{
    const int64_t classes = shape_width(x), pixels = shape_elements(x) / classes;
    int64_t images = 0;
    (void)settings;
    for (int64_t n = 0, i; n < samples; n++, labels += pixels) {
        for (i = 0; i < pixels && labels[i] == LABEL_NONE;) i++;
        images += i < pixels;
    }
    return (double)(images * classes);
}

static bool is_class(int64_t class, int64_t classes, int32_t label) { return label == (classes == 1 ? 1 : class); }

/* Sets p. Returns the class that is predicted. A single channel stands beside one that is 0. */
static int64_t predict(const float *x, int64_t classes, struct fraction *c)
{
    int64_t place = 0;
    float most = classes == 1 ? 0 : x[0];
    for (int64_t j = 0; j < classes; j++)
        if (x[j] > most) most = x[j], place = classes == 1 ? 1 : j;
    double sum = classes == 1 ? exp(-(double)most) : 0;
    for (int64_t j = 0; j < classes; j++) sum += c[j].p = exp((double)x[j] - most);
    for (int64_t j = 0; j < classes; j++) c[j].p /= sum;
    return place;
}

/* The fractions of image n. Returns how many of its pixels are predicted. */
static int64_t add_up(const struct reference *r, const struct kernel_args *args, int64_t n)
{
    const double smooth = ((const struct settings *)r->settings)->smooth;
    const int64_t classes = shape_width(&r->x), pixels = r->x_elements / classes;
    struct fraction *c = args->scratch;
    int64_t correct = 0;
    for (int64_t j = 0; j < classes; j++) c[j] = (struct fraction){.above = smooth, .below = smooth};
    for (int64_t i = n * pixels; i < (n + 1) * pixels; i++) {
        const int32_t label = args->labels[i];
        if (label == LABEL_NONE) continue;
        correct += predict((const float *)args->x[0] + i * classes, classes, c) == label;
        for (int64_t j = 0; j < classes; j++) {
            const bool is = is_class(j, classes, label);
            c[j].above += is ? 2 * c[j].p : 0;
            c[j].below += c[j].p + is;
        }
    }
    return correct;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t classes = shape_width(&r->x);
    const struct fraction *c = args->scratch;
    double loss = 0, correct = 0;
    TRY(labels_expected(args->labels, r->batch, r->x_elements / classes, classes == 1 ? 2 : classes));
    for (int64_t n = 0; n < r->batch; n++) { /* an image without a label adds 0 */
        correct += (double)add_up(r, args, n);
        for (int64_t j = 0; j < classes; j++) loss += 1 - c[j].above / c[j].below;
    }
    ((float *)args->y)[0] = *args->divisor > 0 ? (float)(loss / loss_divisor(r, args)) : 0;
    ((float *)args->y)[1] = (float)correct;
    return ST_OK;
}

/* above - g below is the derivative of the loss by p. */
static void pixel_gradient(const float *x, int64_t classes, int32_t label, struct fraction *c, float *dx)
{
    double mean = 0; /* of the derivatives, weighted by p */
    predict(x, classes, c);
    for (int64_t j = 0; j < classes; j++) mean += c[j].p * (c[j].above - c[j].below * is_class(j, classes, label));
    for (int64_t j = 0; j < classes; j++)
        dx[j] = (float)(c[j].p * (c[j].above - c[j].below * is_class(j, classes, label) - mean));
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t classes = shape_width(&r->x), pixels = r->x_elements / classes;
    const double divisor = loss_divisor(r, args);
    struct fraction *c = args->scratch;
    memset(args->dx[0], 0, (size_t)(r->batch * r->x_elements) * sizeof(float));
    for (int64_t n = 0; n < r->batch; n++) {
        add_up(r, args, n);
        for (int64_t j = 0; j < classes; j++) {
            c[j].above /= c[j].below * c[j].below * divisor;
            c[j].below = 2 / (c[j].below * divisor);
        }
        for (int64_t i = n * pixels; i < (n + 1) * pixels; i++)
            if (args->labels[i] != LABEL_NONE)
                pixel_gradient((const float *)args->x[0] + i * classes, classes, args->labels[i], c,
                               (float *)args->dx[0] + i * classes);
    }
    return ST_OK;
}

const struct layer layer_dice = {.name = "dice",
                                 .doc = "soft Dice loss of each class in each image, a label a pixel",
                                 .inputs = 1,
                                 .loss = true,
                                 .predicts = true,
                                 .binary = true,
                                 .divisor = divisor,
                                 LAYER_SETTINGS,
                                 .infer = infer,
                                 .element_flops = {8, 0, 16},
                                 .reference = REFERENCE_KERNEL(forward, backward),
                                 .footprint = {.reads = {0, READS_X}},
                                 .measure = measure};
