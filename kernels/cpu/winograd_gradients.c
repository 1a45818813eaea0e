/* The gradients of the weights and the bias, as winograd.h defines them. The threads share a block of tiles: each
 * transforms some of its tiles, then adds some of its products. */
#include "winograd.h"
#include "winograd_transforms.h"

/* Floats from one to the next: of the image's points [point][tile][input], of the gradient's [point][panel][tile]
 * [PANEL], and of their products [point][panel][input][PANEL]. */
struct distances {
    int64_t v_tile, v_point, w_panel, w_point, u_panel, u_point;
};

static struct distances distances_of(const struct winograd *w)
{
    struct distances d = {.v_tile = multiple(w->inputs, CHANNELS_STEP) + SKEW};
    d.v_point = TILES_BLOCK * d.v_tile + SKEW;
    d.w_panel = TILES_BLOCK * PANEL;
    d.w_point = TILES_BLOCK * w->outputs + SKEW;
    d.u_panel = multiple(w->inputs, ROWS_MOST) * PANEL;
    d.u_point = multiple(w->inputs, ROWS_MOST) * w->outputs + SKEW;
    return d;
}

size_t winograd_gradients_scratch(const struct winograd *w)
{
    const struct distances d = distances_of(w);
    return (size_t)(POINTS * (d.v_point + d.w_point + d.u_point) + TILES_BLOCK * w->outputs) * sizeof(float);
}

/* Some inputs and outputs, and where their points and products lie. */
struct turn {
    const float *x, *dy;
    const uint8_t *places;
    int64_t first_input, inputs, first_output, outputs;
    float *v, *w, *u, *sums;
};

static void tile_points(const struct winograd *w, const struct turn *turn, int64_t tile, int64_t t)
{
    const struct distances d = distances_of(w);
    const struct tile at = tile_at(w, tile);
    const bool unpools = w->pooled.channels > 0;
    tile_image(&w->from, turn->x, NULL, patch_of(w, at), turn->first_input, turn->inputs, turn->v + t * d.v_tile,
               d.v_point);
    tile_gradient(unpools ? &w->pooled : &w->to, turn->dy, unpools ? turn->places : NULL, at, turn->first_output,
                  turn->outputs, turn->w + t * PANEL, d.w_point, d.w_panel, turn->sums + t * w->outputs);
}

/* The products of a point's panel over a block's tiles; rows of inputs are fetched two ahead. */
static __attribute__((noinline)) void panel_products(const struct winograd *w, const struct turn *turn, int64_t point,
                                                     int64_t panel, int64_t tiles, bool add)
{
    const struct distances d = distances_of(w);
    const float *v = turn->v + point * d.v_point, *gradient = turn->w + point * d.w_point + panel * d.w_panel;
    float *u = turn->u + point * d.u_point + panel * d.u_panel;
    for (int64_t c = 0; c < turn->inputs; c += ROWS)
        multiply(tiles, v + c, 1, d.v_tile, gradient, u + c * PANEL, PANEL, add, v + c + 2 * ROWS, d.v_tile);
}

/* The bias's gradients over a block's tiles. */
static void bias_sums(const struct winograd *w, const struct turn *turn, int64_t tiles, bool add, float *bias)
{
    for (int64_t k = 0; k < turn->outputs; k += LANES) {
        const int64_t count = lesser(LANES, turn->outputs - k);
        float *to = bias + turn->first_output + k;
        lanes sum = {0};
        for (int64_t t = 0; t < tiles; t++) sum += lanes_load_part(turn->sums + t * w->outputs + k, count);
        lanes_store_part(to, add ? sum + lanes_load_part(to, count) : sum, count);
    }
}

/* The gradients of LANES outputs' weights, of which count exist, from their products; distance: of outputs. */
static void weights_result(const float *u, int64_t stride, int64_t distance, int64_t count, float *weights)
{
    lanes d[PATCH], m[KERNEL][PATCH], r[KERNEL];
    float rows[KERNEL * KERNEL][LANES];
    for (int j = 0; j < PATCH; j++) {
        for (int i = 0; i < PATCH; i++) d[i] = lanes_load(u + (i * PATCH + j) * stride);
        transform_weights_gradient(d, 1, r);
        for (int i = 0; i < KERNEL; i++) m[i][j] = r[i];
    }
    for (int i = 0; i < KERNEL; i++) {
        transform_weights_gradient(m[i], 1, r);
        for (int j = 0; j < KERNEL; j++) lanes_store(rows[i * KERNEL + j], r[j]);
    }
    for (int64_t k = 0; k < count; k++)
        for (int i = 0; i < KERNEL * KERNEL; i++) weights[k * distance + i] = rows[i][k];
}

static void turn_results(const struct winograd *w, const struct turn *turn, float *weights)
{
    const struct distances d = distances_of(w);
    const int64_t input = KERNEL * KERNEL, output = w->from.channels * input;
#pragma omp for collapse(2) schedule(static)
    for (int64_t k = 0; k < turn->outputs; k += LANES)
        for (int64_t c = 0; c < turn->inputs; c++)
            weights_result(turn->u + k / PANEL * d.u_panel + c * PANEL + k % PANEL, d.u_point, output,
                           lesser(LANES, turn->outputs - k),
                           weights + (turn->first_output + k) * output + (turn->first_input + c) * input);
}

static void turn_gradients(const struct winograd *w, const struct turn *turn, float *weights, float *bias)
{
    const struct distances d = distances_of(w);
    const int64_t panels = ratio_up(turn->outputs, PANEL), last = turn->outputs % PANEL;
    clear_margin(turn->v + turn->inputs, d.v_point, d.v_tile, TILES_BLOCK, SKEW);
    if (last > 0) clear_margin(turn->w + (panels - 1) * d.w_panel + last, d.w_point, PANEL, TILES_BLOCK, PANEL - last);
#pragma omp parallel
    {
        for (int64_t start = 0; start < w->tiles; start += TILES_BLOCK) {
            const int64_t tiles = lesser(TILES_BLOCK, w->tiles - start);
#pragma omp for schedule(static)
            for (int64_t t = 0; t < tiles; t++) tile_points(w, turn, start + t, t);
#pragma omp single nowait
            if (bias != NULL) bias_sums(w, turn, tiles, start > 0, bias);
#pragma omp for collapse(2) schedule(static)
            for (int64_t p = 0; p < POINTS; p++)
                for (int64_t k = 0; k < panels; k++) panel_products(w, turn, p, k, tiles, start > 0);
        }
        turn_results(w, turn, weights);
    }
}

void winograd_gradients(const struct winograd *w, const float *x, const float *dy, const uint8_t *places,
                        float *weights, float *bias, float *scratch)
{
    const struct distances d = distances_of(w);
    const int64_t inputs = w->from.channels, outputs = w->to.channels;
    float *const u = scratch + POINTS * (d.v_point + d.w_point);
    for (int64_t c = 0; c < inputs; c += w->inputs)
        for (int64_t k = 0; k < outputs; k += w->outputs) {
            const struct turn turn = {.x = x,
                                      .dy = dy,
                                      .places = places,
                                      .first_input = c,
                                      .inputs = lesser(w->inputs, inputs - c),
                                      .first_output = k,
                                      .outputs = lesser(w->outputs, outputs - k),
                                      .v = scratch,
                                      .w = scratch + POINTS * d.v_point,
                                      .u = u,
                                      .sums = u + POINTS * d.u_point};
            turn_gradients(w, &turn, weights, bias);
        }
}
