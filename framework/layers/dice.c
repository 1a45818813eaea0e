/* Soft Dice loss of images with a label for each pixel (Milletari, Navab and Ahmadi, "V-Net", 2016, without squares).
 * p: the softmax over the channels, or of one channel the sigmoid, then the share of label 1 against 0; g: 1 where the
 * label is that class, else 0. Of each image and class, with sums over its pixels that have a label,
 *
 *     1 - (2 sum p g + smooth) / (sum p + sum g + smooth)
 *
 * and the loss is the mean of that over the channels and the images of the whole batch that have a label; 0 where none
 * has. So the losses and gradients of slices add up to the batch's. y = {loss, number of pixels whose largest x (the
 * first, where several are equal) is the label's}. The backward computes p again: nothing is saved. */
#include "model/reference.h"

#include <math.h>
#include <string.h>

struct settings {
    double smooth;
};
LOSS_SETTINGS_FIT(struct settings);

static const struct setting keys[] = {
    {SETTING(smooth), .type = SETTING_REAL, .min = 1e-9, .max = 1e9, .preset = "1",
     .doc = "added to both parts of the fraction, so that a class that an image lacks costs little where little of it "
            "is predicted"},
    {.key = NULL}};

/* By class, of an image: sum p g; sum p + sum g; and p of one pixel. */
struct sums {
    double *common, *both, *p;
};

static struct sums divide(const struct reference *r, void *scratch)
{
    const int64_t classes = shape_width(&r->x);
    double *at = scratch;
    return (struct sums){at, at + classes, at + 2 * classes};
}

static void measure(const struct reference *r, struct footprint *footprint)
{
    footprint->forward_scratch = 3 * (size_t)shape_width(&r->x) * sizeof(double);
    footprint->backward_scratch[PART_INDEX_INPUT] = footprint->forward_scratch;
}

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    (void)settings;
    *output = (struct shape){1, {2}};
    return image_expected(&inputs[0]);
}

static bool has_label(const int32_t *labels, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++)
        if (labels[i] != LABEL_NONE) return true;
    return false;
}

static double divisor(const void *settings, const struct shape *x, int64_t samples, const int32_t *labels)
{
    const int64_t classes = shape_width(x), pixels = shape_elements(x) / classes;
    int64_t images = 0;
    (void)settings;
    for (int64_t n = 0; n < samples; n++) images += has_label(labels + n * pixels, pixels);
    return (double)(images * classes);
}

static double share_of(int64_t class, int64_t classes, int32_t label) { return classes == 1 ? label : class == label; }

/* p of a pixel. Returns the class that is predicted. */
static int64_t predict(const float *x, int64_t classes, double *p)
{
    int64_t most = 0;
    double sum = 0;
    for (int64_t j = 1; j < classes; j++)
        if (x[j] > x[most]) most = j;
    for (int64_t j = 0; j < classes; j++) sum += p[j] = exp((double)x[j] - x[most]);
    for (int64_t j = 0; j < classes; j++) p[j] /= sum;
    if (classes > 1) return most;
    *p = 1 / (1 + exp(-(double)*x));
    return *x > 0;
}

/* Returns how many pixels are predicted. */
static int64_t add_up(const struct reference *r, const float *x, const int32_t *labels, struct sums s)
{
    const int64_t classes = shape_width(&r->x), pixels = r->x_elements / classes;
    int64_t correct = 0;
    memset(s.common, 0, 2 * (size_t)classes * sizeof(double));
    for (int64_t i = 0; i < pixels; i++) {
        if (labels[i] == LABEL_NONE) continue;
        correct += predict(x + i * classes, classes, s.p) == labels[i];
        for (int64_t j = 0; j < classes; j++) {
            const double g = share_of(j, classes, labels[i]);
            s.common[j] += s.p[j] * g;
            s.both[j] += s.p[j] + g;
        }
    }
    return correct;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const double smooth = ((const struct settings *)r->settings)->smooth;
    const int64_t classes = shape_width(&r->x), pixels = r->x_elements / classes;
    const struct sums s = divide(r, args->scratch);
    double loss = 0, correct = 0;
    TRY(labels_expected(args->labels, r->batch, pixels, classes == 1 ? 2 : classes));
    for (int64_t n = 0; n < r->batch; n++) { /* an image without a label adds 0 */
        correct += (double)add_up(r, (const float *)args->x[0] + n * r->x_elements, args->labels + n * pixels, s);
        for (int64_t j = 0; j < classes; j++) loss += 1 - (2 * s.common[j] + smooth) / (s.both[j] + smooth);
    }
    ((float *)args->y)[0] = *args->divisor > 0 ? (float)(loss / *args->divisor) : 0;
    ((float *)args->y)[1] = (float)correct;
    return ST_OK;
}

/* Of a pixel with that label: from p, through the derivatives by p of the image's losses. */
static void pixel_gradient(const struct sums *s, int64_t classes, int32_t label, double smooth, double divisor,
                           float *dx)
{
    double mean = 0; /* of the derivatives, weighted by p */
    for (int64_t part = 0; part < 2; part++)
        for (int64_t j = 0; j < classes; j++) {
            const double whole = s->both[j] + smooth, g = share_of(j, classes, label);
            const double slope = (2 * s->common[j] + smooth - 2 * g * whole) / (whole * whole) / divisor;
            if (part == 0) mean += s->p[j] * slope;
            if (part == 1) dx[j] = (float)(s->p[j] * (slope - mean));
        }
    if (classes == 1) *dx = (float)(mean * (1 - *s->p));
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const double smooth = ((const struct settings *)r->settings)->smooth;
    const int64_t classes = shape_width(&r->x), pixels = r->x_elements / classes;
    const struct sums s = divide(r, args->scratch);
    for (int64_t n = 0; n < r->batch; n++) {
        const float *x = (const float *)args->x[0] + n * r->x_elements;
        float *dx = (float *)args->dx[0] + n * r->x_elements;
        const int32_t *labels = args->labels + n * pixels;
        add_up(r, x, labels, s);
        memset(dx, 0, (size_t)r->x_elements * sizeof *dx);
        for (int64_t i = 0; i < pixels; i++) {
            if (labels[i] == LABEL_NONE) continue;
            predict(x + i * classes, classes, s.p);
            pixel_gradient(&s, classes, labels[i], smooth, *args->divisor, dx + i * classes);
        }
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
