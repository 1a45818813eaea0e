/* Inverted dropout: y = x / (1 - rate) where an element survives, else 0. Nothing is saved: the backward draws the same
 * numbers again. An evaluation copies x. */
#include "model/reference.h"

enum { PIECE = 4096 };

struct settings {
    double rate; /* probability that an element is dropped */
};

static const struct setting keys[] = {
    {SETTING(rate), .type = SETTING_REAL, .max = 0.999999, .doc = "probability that an element is dropped"},
    {.key = NULL}};

static int64_t draws(const void *settings, const struct shape *input)
{
    return ((const struct settings *)settings)->rate > 0 ? shape_elements(input) : 0;
}

static void drop(const struct reference *r, const struct kernel_args *args, const float *from, float *to)
{
    const double rate = ((const struct settings *)r->settings)->rate;
    if (!kernel_drops(args, rate)) {
        copy_batch(r, to, from);
        return;
    }
    const float scale = (float)(1 / (1 - rate));
    uint8_t keep[PIECE];
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t first = 0; first < r->x_elements; first += PIECE) {
            int64_t count = r->x_elements - first < PIECE ? r->x_elements - first : PIECE;
            int64_t at = n * r->x_elements + first;
            rng_keep(&args->draw, rate, r->x_elements, n, first, count, keep);
            for (int64_t i = 0; i < count; i++) to[at + i] = keep[i] ? from[at + i] * scale : 0;
        }
}

static enum status forward(void *state, const struct kernel_args *args)
{
    drop(state, args, args->x[0], args->y);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args)
{
    drop(state, args, args->dy, args->dx[0]);
    return ST_OK;
}

const struct layer layer_dropout = {.name = "dropout",
                                    .doc = "elements set to 0 at random, the others scaled up",
                                    .inputs = 1,
                                    LAYER_SETTINGS,
                                    .element_flops = {1, 0, 1},
                                    .draws = draws,
                                    .reference = REFERENCE_KERNEL(forward, backward),
                                    .footprint = {.y_over_x = true, .dx_over_dy = true}};
