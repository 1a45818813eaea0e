/* Inverted dropout: y = x / (1 - rate) where an element survives, else 0. Nothing is saved: the backward draws the same
 * numbers again. An evaluation copies x. */
#include "model/reference.h"

#include <stdlib.h>

enum { PIECE = 4096 };

static const struct setting keys[] = {
    {SETTING(rate), .type = SETTING_REAL, .max = 0.999999, .doc = "probability that an element is dropped"},
    {.key = NULL}};

static int64_t draws(const struct settings *settings, const struct shape *input)
{
    return settings->rate > 0 ? shape_elements(input) : 0;
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    (void)backend;
    *footprint = (struct footprint){.y_over_x = true, .dx_over_dy = true};
    return reference_state(graph, node, state);
}

static void drop(const struct reference *r, const struct draw *draw, const float *from, float *to)
{
    if (!rng_drops(draw, r->settings.rate)) {
        copy_batch(r, to, from);
        return;
    }
    const float scale = (float)(1 / (1 - r->settings.rate));
    uint8_t keep[PIECE];
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t first = 0; first < r->x_elements; first += PIECE) {
            int64_t count = r->x_elements - first < PIECE ? r->x_elements - first : PIECE;
            int64_t at = n * r->x_elements + first;
            rng_keep(draw, r->settings.rate, r->x_elements, n, first, count, keep);
            for (int64_t i = 0; i < count; i++) to[at + i] = keep[i] ? from[at + i] * scale : 0;
        }
}

static enum status forward(void *state, const struct kernel_args *args)
{
    drop(state, &args->draw, args->x[0], args->y);
    return ST_OK;
}

static enum status backward(void *state, const struct kernel_args *args, unsigned parts)
{
    if (parts & PART_INPUT && args->dx[0]) drop(state, &args->draw, args->dy, args->dx[0]);
    return ST_OK;
}

static const struct kernel reference = {
    .deterministic = true, .prepare = prepare, .forward = forward, .backward = backward, .release = free};

const struct layer layer_dropout = {.name = "dropout",
                                    .doc = "elements set to 0 at random, the others scaled up",
                                    .inputs = 1,
                                    .keys = keys,
                                    .infer = same_infer,
                                    .flops = element_flops,
                                    .draws = draws,
                                    .reference = &reference};
