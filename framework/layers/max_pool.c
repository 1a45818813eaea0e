/* The largest element of each window and channel, the first one in row order where several are equal: it gets the
 * gradient. Padding never wins. An optional relu follows.
 *
 * Saved tensors: the winner's index in its window, 8 bits, where the window has 2 to 256 elements; a larger window is
 * searched again. A 1x1 window saves nothing, and with stride 1 it is the identity. A relu's derivative comes from y
 * and multiplies dy in place. */
#include "model/reference.h"

#include <math.h>
#include <string.h>

enum { INDICES_SAVED = 256 };

struct settings {
    struct window window;
    int activation;
};

static const struct setting keys[] = {POOL_KEYS,
                                      {SETTING(activation), .type = SETTING_CHOICE, .preset = "none",
                                       .values = relu_words,
                                       .doc = "applied to the output, which is kept for its backward"},
                                      {.key = NULL}};

static const struct window *window_of(const void *settings) { return &((const struct settings *)settings)->window; }

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    return pool_infer(window_of(settings), &inputs[0], output);
}

static bool selects(const void *settings) { return window_of(settings)->kernel > 1; }

static int64_t window_elements(const void *settings)
{
    return window_of(settings)->kernel * window_of(settings)->kernel;
}

static bool saves_indices(const void *settings)
{
    return selects(settings) && window_elements(settings) <= INDICES_SAVED;
}

static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    (void)input;
    double outputs = (double)shape_elements(output);
    return (struct flops){outputs * (double)window_elements(settings), 0, outputs};
}

static void measure(const struct reference *r, struct footprint *footprint)
{
    const bool relu = r->activation == ACTIVATION_RELU, saves = saves_indices(r->settings);
    footprint->y_over_x = footprint->passes_gradient = pool_identity(r, window_of(r->settings));
    footprint->writes_dy = relu;
    footprint->saved = saves ? (size_t)(r->batch * r->y_elements) : 0;
    footprint->reads[PART_INDEX_INPUT] = (relu ? READS_Y : 0u) | (saves                  ? READS_SAVED
                                                                  : selects(r->settings) ? READS_X
                                                                                         : 0u);
}

/* Index (row * kernel + column) of the largest element of channel c in the window at (top, left) of an image; *most is
 * that element. A NaN wins, so that it is noticed. */
static int64_t search(const struct reference *r, const float *image, int64_t top, int64_t left, int64_t c, float *most)
{
    const int64_t k = window_of(r->settings)->kernel, height = r->x.dim[0], width = r->x.dim[1];
    int64_t index = -1;
    for (int64_t u = 0; u < k; u++)
        for (int64_t v = 0; v < k; v++) {
            int64_t h = top + u, w = left + v;
            if (h < 0 || h >= height || w < 0 || w >= width) continue;
            float x = image[(h * width + w) * r->x.dim[2] + c];
            if (index >= 0 && !(x > *most) && !(isnan(x) && !isnan(*most))) continue;
            index = u * k + v;
            *most = x;
        }
    return index;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const struct window *window = window_of(r->settings);
    const int64_t stride = window_stride(window), padding = window->padding;
    if (pool_identity(r, window)) {
        copy_batch(r, args->y, args->x[0]);
        return ST_OK;
    }
    float *y = args->y;
    uint8_t *indices = args->save && saves_indices(r->settings) ? args->saved : NULL;
    for (int64_t n = 0; n < r->batch; n++) {
        const float *image = (const float *)args->x[0] + n * r->x_elements;
        for (int64_t h = 0; h < r->y.dim[0]; h++)
            for (int64_t w = 0; w < r->y.dim[1]; w++)
                for (int64_t c = 0; c < r->y.dim[2]; c++) {
                    int64_t index = search(r, image, h * stride - padding, w * stride - padding, c, y++);
                    if (indices) *indices++ = (uint8_t)index;
                }
    }
    activation_apply(r, args->y, NULL);
    return ST_OK;
}

/* The winner's index in the window of output j of the batch, whose corner is (top, left). */
static int64_t winner(const struct reference *r, const struct kernel_args *args, int64_t j, int64_t top, int64_t left)
{
    float most;
    if (!selects(r->settings)) return 0;
    if (saves_indices(r->settings)) return ((const uint8_t *)args->saved)[j];
    const float *image = (const float *)args->x[0] + j / r->y_elements * r->x_elements;
    return search(r, image, top, left, j % r->y.dim[2], &most);
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const struct window *window = window_of(r->settings);
    const int64_t k = window->kernel, stride = window_stride(window), padding = window->padding;
    const float *dy = args->dy;
    activation_derivative(r, args->y, NULL, args->dy);
    memset(args->dx[0], 0, (size_t)(r->batch * r->x_elements) * sizeof(float));
    for (int64_t j = 0; j < r->batch * r->y_elements; j++) { /* j = ((n * H' + p) * W' + q) * C + c */
        int64_t c = j % r->y.dim[2], q = j / r->y.dim[2] % r->y.dim[1];
        int64_t p = j / (r->y.dim[2] * r->y.dim[1]) % r->y.dim[0], n = j / r->y_elements;
        int64_t top = p * stride - padding, left = q * stride - padding;
        int64_t index = winner(r, args, j, top, left);
        int64_t h = top + index / k, w = left + index % k;
        if (h < 0 || h >= r->x.dim[0] || w < 0 || w >= r->x.dim[1]) continue; /* a saved index that was never written */
        ((float *)args->dx[0])[n * r->x_elements + (h * r->x.dim[1] + w) * r->x.dim[2] + c] += dy[j];
    }
    return ST_OK;
}

const struct layer layer_max_pool = {.name = "max_pool",
                                     .doc = "largest of each window",
                                     .family = "pool",
                                     .inputs = 1,
                                     LAYER_SETTINGS,
                                     .selects = selects,
                                     .infer = infer,
                                     .flops = flops,
                                     .reference = REFERENCE_KERNEL(forward, backward),
                                     .measure = measure};
