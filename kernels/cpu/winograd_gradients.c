/* The gradients of the weights and the bias, as winograd.h defines them. Where there are spans enough, each thread sums
 * some of them alone. Else the threads share a block of tiles: each transforms some of its tiles, then adds some of its
 * products. */
#include <omp.h>

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

int64_t winograd_gradients_floats(const struct winograd *w)
{
    const struct distances d = distances_of(w);
    return POINTS * (d.v_point + d.w_point + d.u_point) + (TILES_BLOCK + 1) * w->outputs;
}

/* Some inputs and outputs, and where their points and products lie. */
struct turn {
    const float *x, *dy;
    const uint8_t *places;
    int64_t first_input, inputs, first_output, outputs;
    float *v, *w, *u, *sums, *span; /* sums: of tiles; span: of its blocks, for the bias */
};

/* Of count tiles from number tile on, which are the block's from number t on. */
static void tile_points(const struct winograd *w, const struct turn *turn, int64_t tile, int64_t t, int64_t count)
{
    const struct distances d = distances_of(w);
    const bool unpools = w->pooled.channels > 0;
    for (int64_t i = 0, beside; i < count; i += beside) {
        beside = tiles_beside(w, tile + i, count - i);
        tile_images(w->tile, &w->from, turn->x, NULL, patch_of(w, tile_at(w, tile + i)), beside, turn->first_input,
                    turn->inputs, turn->v + (t + i) * d.v_tile, d.v_tile, d.v_point);
    }
    for (int64_t i = 0; i < count; i++)
        tile_gradient(w->tile, unpools ? &w->pooled : &w->to, turn->dy, unpools ? turn->places : NULL,
                      tile_at(w, tile + i), turn->first_output, turn->outputs, turn->w + (t + i) * PANEL, d.w_point,
                      d.w_panel, turn->sums + (t + i) * w->outputs);
}

/* The products of a point's panel over a block's tiles; rows of inputs are fetched two ahead. */
static __attribute__((noinline)) void panel_products(const struct winograd *w, const struct turn *turn, int64_t point,
                                                     int64_t panel, int64_t tiles, bool add)
{
    const struct distances d = distances_of(w);
    const float *v = turn->v + point * d.v_point, *gradient = turn->w + point * d.w_point + panel * d.w_panel;
    float *u = turn->u + point * d.u_point + panel * d.u_panel;
    const struct ending ending = {ROWS, multiple(turn->outputs - panel * PANEL, LANES), add};
    for (int64_t c = 0; c < turn->inputs; c += ROWS)
        multiply_panel(true, tiles, v + c, d.v_tile, gradient, u + c * PANEL, PANEL, &ending, v + c + 2 * ROWS,
                       d.v_tile);
}

/* to = or += x. */
INLINED void sum_into(lanes x, float *to, int64_t count, bool add)
{
    if (add) x = lanes_load_part(to, count) + x;
    lanes_store_part(to, x, count);
}

/* The bias's gradients over the tiles of a block, assigned or added to those of the span. */
static void bias_sums(const struct winograd *w, const struct turn *turn, int64_t tiles, bool add)
{
    for (int64_t k = 0; k < turn->outputs; k += LANES) {
        const int64_t count = lesser(LANES, turn->outputs - k);
        lanes sum = {0};
        for (int64_t t = 0; t < tiles; t++) sum += lanes_load_part(turn->sums + t * w->outputs + k, count);
        sum_into(sum, turn->span + k, count, add);
    }
}

/* The bias's gradients of a span, assigned or added to those of all. */
static void bias_results(const struct turn *turn, bool add, float *bias)
{
    for (int64_t k = 0; k < turn->outputs; k += LANES) {
        const int64_t count = lesser(LANES, turn->outputs - k);
        sum_into(lanes_load_part(turn->span + k, count), bias + turn->first_output + k, count, add);
    }
}

/* The gradients of LANES outputs' weights, of which count exist, from their products, assigned or added; distance: of
 * outputs. kernel: a constant of a call. */
INLINED void weights_result(int kernel, const float *u, int64_t stride, int64_t distance, int64_t count, bool add,
                            float *weights)
{
    lanes d[PATCH], m[KERNEL_MOST][PATCH], r[KERNEL_MOST];
    float rows[KERNEL_MOST * KERNEL_MOST][LANES];
    for (int j = 0; j < PATCH; j++) {
        for (int i = 0; i < PATCH; i++) d[i] = lanes_load(u + (i * PATCH + j) * stride);
        transform_weights_gradient(kernel, d, 1, r);
        for (int i = 0; i < kernel; i++) m[i][j] = r[i];
    }
    for (int i = 0; i < kernel; i++) {
        transform_weights_gradient(kernel, m[i], 1, r);
        for (int j = 0; j < kernel; j++) lanes_store(rows[i * kernel + j], r[j]);
    }
    for (int64_t k = 0; k < count; k++)
        for (int i = 0; i < kernel * kernel; i++) {
            float *to = weights + k * distance + i;
            *to = add ? *to + rows[i][k] : rows[i][k];
        }
}

/* The sums of the tiles from first to end, which are a span, by all threads of the region; bias: also of the bias. */
static void span_sums(const struct winograd *w, const struct turn *turn, int64_t first, int64_t end, bool bias)
{
    const int64_t panels = ratio_up(turn->outputs, PANEL), share = ratio_up(TILES_BLOCK, omp_get_num_threads());
    for (int64_t start = first; start < end; start += TILES_BLOCK) {
        const int64_t tiles = lesser(TILES_BLOCK, end - start);
#pragma omp for schedule(static)
        for (int64_t t = 0; t < tiles; t += share) tile_points(w, turn, start + t, t, lesser(share, tiles - t));
#pragma omp single nowait
        if (bias) bias_sums(w, turn, tiles, start > first);
#pragma omp for collapse(2) schedule(static)
        for (int64_t p = 0; p < POINTS; p++)
            for (int64_t k = 0; k < panels; k++) panel_products(w, turn, p, k, tiles, start > first);
    }
}

/* The gradients of a span, assigned or added, by all threads of the region. */
static void span_results(const struct winograd *w, const struct turn *turn, bool add, float *weights, float *bias)
{
    const struct distances d = distances_of(w);
    const int64_t input = w->kernel * w->kernel, output = w->from.channels * input;
#pragma omp single nowait
    if (bias != NULL) bias_results(turn, add, bias);
#pragma omp for collapse(2) schedule(static)
    for (int64_t k = 0; k < turn->outputs; k += LANES)
        for (int64_t c = 0; c < turn->inputs; c++) {
            const int64_t count = lesser(LANES, turn->outputs - k);
            const float *u = turn->u + k / PANEL * d.u_panel + c * PANEL + k % PANEL;
            float *to = weights + (turn->first_output + k) * output + (turn->first_input + c) * input;
            if (w->kernel == 3)
                weights_result(3, u, d.u_point, output, count, add, to);
            else
                weights_result(5, u, d.u_point, output, count, add, to);
        }
}

/* The turn with the scratch of a thread, whose rows end with zeros where there are no more channels. */
static struct turn turn_of(const struct winograd *w, const struct turn *turn, int64_t thread)
{
    const struct distances d = distances_of(w);
    const int64_t panels = ratio_up(turn->outputs, PANEL), last = turn->outputs % PANEL;
    struct turn own = *turn;
    own.v += thread * winograd_gradients_floats(w);
    own.w = own.v + POINTS * d.v_point;
    own.u = own.w + POINTS * d.w_point;
    own.sums = own.u + POINTS * d.u_point;
    own.span = own.sums + TILES_BLOCK * w->outputs;
    clear_margin(own.v + own.inputs, d.v_point, d.v_tile, TILES_BLOCK, SKEW);
    if (last > 0) clear_margin(own.w + (panels - 1) * d.w_panel + last, d.w_point, PANEL, TILES_BLOCK, PANEL - last);
    return own;
}

static void share_blocks(const struct winograd *w, const struct turn *turn, float *weights, float *bias)
{
    const struct turn all = turn_of(w, turn, 0);
#pragma omp parallel
    for (int64_t first = 0; first < w->tiles; first += w->span) {
        span_sums(w, &all, first, lesser(first + w->span, w->tiles), bias != NULL);
        span_results(w, &all, first > 0, weights, bias);
    }
}

/* A region of one thread is within that of all. */
static void share_spans(const struct winograd *w, const struct turn *turn, float *weights, float *bias)
{
#pragma omp parallel
    {
        const struct turn own = turn_of(w, turn, omp_get_thread_num());
#pragma omp for ordered schedule(static, 1)
        for (int64_t first = 0; first < w->tiles; first += w->span) {
#pragma omp parallel num_threads(1)
            span_sums(w, &own, first, lesser(first + w->span, w->tiles), bias != NULL);
#pragma omp ordered
#pragma omp parallel num_threads(1)
            span_results(w, &own, first > 0, weights, bias);
        }
    }
}

void winograd_gradients(const struct winograd *w, const float *x, const float *dy, const uint8_t *places,
                        float *weights, float *bias, float *scratch)
{
    const int64_t inputs = w->from.channels, outputs = w->to.channels;
    for (int64_t c = 0; c < inputs; c += w->inputs)
        for (int64_t k = 0; k < outputs; k += w->outputs) {
            const struct turn turn = {.x = x,
                                      .dy = dy,
                                      .places = places,
                                      .first_input = c,
                                      .inputs = lesser(w->inputs, inputs - c),
                                      .first_output = k,
                                      .outputs = lesser(w->outputs, outputs - k),
                                      .v = scratch};
            if (omp_get_max_threads() <= w->workers)
                share_spans(w, &turn, weights, bias);
            else
                share_blocks(w, &turn, weights, bias);
        }
}
