/* The largest element of each window and channel; the first one in row order where several are equal, so that the
 * backward has one place to go. Padding never wins. An optional relu follows.
 *
 * Saved set: the winner's place in its window, 8 bits, where the window has more than one place and at most 256; a
 * larger window searches x again. A 1x1 window saves nothing, and with stride 1 it is the identity. A relu's derivative
 * comes from y and is taken in place on dy. */
#include "model/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_SAVED = 256 };

static const struct setting keys[] = {POOL_FIELDS,
                                      {SETTING(activation), .type = SETTING_CHOICE, .preset = "none",
                                       .values = relu_words,
                                       .doc = "applied to the output, which is kept for its backward"},
                                      {.key = NULL}};

static enum status infer(const struct settings *settings, const struct shape *inputs, struct shape *output)
{
    return pool_infer(settings, &inputs[0], output);
}

static struct flops flops(const struct settings *settings, const struct shape *input, const struct shape *output)
{
    (void)input;
    double outputs = (double)shape_elements(output);
    return (struct flops){outputs * (double)(settings->kernel * settings->kernel), 0, outputs};
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    (void)backend;
    TRY(reference_state(graph, node, state));
    const struct reference *r = *state;
    *footprint =
        (struct footprint){.y_over_x = pool_identity(&r->settings), .passes_gradient = pool_identity(&r->settings)};
    if (r->settings.activation == ACTIVATION_RELU) {
        footprint->reads[PART_INDEX_INPUT] = READS_Y;
        footprint->writes_dy = true;
    }
    if (r->settings.kernel == 1) return ST_OK;
    bool saves = r->settings.kernel * r->settings.kernel <= PLACES_SAVED;
    footprint->saved = saves ? (size_t)(r->batch * r->y_elements) : 0;
    footprint->reads[PART_INDEX_INPUT] |= saves ? READS_SAVED : READS_X;
    return ST_OK;
}

/* Place (row * kernel + column) of the largest element of channel c in the window at (top, left) of an image; *most is
 * that element. A NaN wins, so that it is seen. */
static int64_t search(const struct reference *r, const float *image, int64_t top, int64_t left, int64_t c, float *most)
{
    const int64_t k = r->settings.kernel, height = r->x.dim[0], width = r->x.dim[1];
    int64_t place = -1;
    for (int64_t u = 0; u < k; u++)
        for (int64_t v = 0; v < k; v++) {
            int64_t h = top + u, w = left + v;
            if (h < 0 || h >= height || w < 0 || w >= width) continue;
            float x = image[(h * width + w) * r->x.dim[2] + c];
            if (place >= 0 && !(x > *most) && !(isnan(x) && !isnan(*most))) continue;
            place = u * k + v;
            *most = x;
        }
    return place;
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t stride = pool_stride(&r->settings), padding = r->settings.padding;
    if (pool_identity(&r->settings)) {
        copy_batch(r, args->y, args->x[0]);
        return ST_OK;
    }
    float *y = args->y;
    bool save = args->save && r->settings.kernel > 1 && r->settings.kernel * r->settings.kernel <= PLACES_SAVED;
    uint8_t *places = save ? args->saved : NULL;
    for (int64_t n = 0; n < r->batch; n++) {
        const float *image = (const float *)args->x[0] + n * r->x_elements;
        for (int64_t h = 0; h < r->y.dim[0]; h++)
            for (int64_t w = 0; w < r->y.dim[1]; w++)
                for (int64_t c = 0; c < r->y.dim[2]; c++) {
                    int64_t place = search(r, image, h * stride - padding, w * stride - padding, c, y++);
                    if (places) *places++ = (uint8_t)place;
                }
    }
    activate(r, args->y, NULL);
    return ST_OK;
}

/* The winner's place in the window of output j of the batch, whose corner is (top, left). */
static int64_t winner(const struct reference *r, const struct kernel_args *args, int64_t j, int64_t top, int64_t left)
{
    const int64_t k = r->settings.kernel;
    float most;
    if (k == 1) return 0;
    if (k * k <= PLACES_SAVED) return ((const uint8_t *)args->saved)[j];
    const float *image = (const float *)args->x[0] + j / r->y_elements * r->x_elements;
    return search(r, image, top, left, j % r->y.dim[2], &most);
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    const struct reference *r = state;
    const int64_t k = r->settings.kernel, stride = pool_stride(&r->settings), padding = r->settings.padding;
    const float *dy = args->dy;
    if (!(parts & PART_INPUT) || !args->dx[0]) return ST_OK;
    activation_derivative(r, args->y, NULL, args->dy);
    memset(args->dx[0], 0, (size_t)(r->batch * r->x_elements) * sizeof(float));
    for (int64_t j = 0; j < r->batch * r->y_elements; j++) { /* j = ((n * H' + p) * W' + q) * C + c */
        int64_t c = j % r->y.dim[2], q = j / r->y.dim[2] % r->y.dim[1];
        int64_t p = j / (r->y.dim[2] * r->y.dim[1]) % r->y.dim[0], n = j / r->y_elements;
        int64_t top = p * stride - padding, left = q * stride - padding;
        int64_t place = winner(r, args, j, top, left);
        int64_t h = top + place / k, w = left + place % k;
        if (h < 0 || h >= r->x.dim[0] || w < 0 || w >= r->x.dim[1]) continue; /* saved places that were never written */
        ((float *)args->dx[0])[n * r->x_elements + (h * r->x.dim[1] + w) * r->x.dim[2] + c] += dy[j];
    }
    return ST_OK;
}

static const struct kernel reference = {
    .deterministic = true, .prepare = prepare, .forward = forward, .backward = backward, .release = free};

const struct layer layer_max_pool = {.name = "max_pool",
                                     .doc = "largest of each window",
                                     .family = "pool",
                                     .inputs = 1,
                                     .selects = true,
                                     .keys = keys,
                                     .infer = infer,
                                     .flops = flops,
                                     .reference = &reference};
