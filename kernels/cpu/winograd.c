#include "winograd.h"

#include <omp.h>

#include "winograd_transforms.h"

/* Output channels whose products are transformed back together; tiles that a thread works on at once. With 12 of these,
 * layers of 256 channels and more are a third slower, since each weight that is loaded is used less; with more than 24
 * nothing is gained. */
enum { GROUP = 64, BLOCK_TILES = 24, BLOCK_LEAST = 12 };

/* Floats from a tile, and from a point, to the next: of the image's points [point][tile][input], of their products
 * [point][tile][output of a group], and of the weights [point][panel][input][PANEL]. */
struct distances {
    int64_t v_tile, v_point, m_tile, m_point, u_point;
};

static struct distances distances_of(const struct winograd *w)
{
    struct distances d = {.v_tile = multiple(w->inputs, CHANNELS_STEP) + SKEW, .m_tile = GROUP + SKEW};
    d.v_point = w->block * d.v_tile + SKEW;
    d.m_point = w->block * d.m_tile + SKEW;
    d.u_point = w->inputs * w->outputs + SKEW;
    return d;
}

/* As many threads as have scratch and work. */
static bool fit_workers(struct winograd *w, int64_t threads, int64_t room)
{
    const struct distances d = distances_of(w);
    const int64_t worker = POINTS * (d.v_point + d.m_point), left = room - POINTS * d.u_point;
    const int64_t wanted = lesser(threads, ratio_up(w->tiles, w->block));
    w->workers = left < 0 ? 0 : lesser(wanted, left / worker);
    w->scratch = (size_t)(POINTS * d.u_point + w->workers * worker) * sizeof(float);
    return w->workers == wanted;
}

/* The largest blocks and the fewest turns for which all threads have scratch; at last those for which some have. */
static bool fit_turns(struct winograd *w, int64_t threads, int64_t room)
{
    w->block = lesser(BLOCK_TILES, multiple(ratio_up(w->tiles, threads), BLOCK_LEAST));
    for (;; w->block = BLOCK_LEAST) {
        for (w->outputs = multiple(w->to.channels, TURN_LEAST);; w->outputs = multiple(w->outputs / 2, TURN_LEAST)) {
            if (fit_workers(w, threads, room)) return true;
            if (w->outputs == TURN_LEAST) break;
        }
        if (w->block == BLOCK_LEAST) return w->workers > 0;
    }
}

/* Each thread has its own scratch where each has two spans at least, and all fit. */
static bool fit_spans(struct winograd *w, int64_t threads, int64_t room)
{
    const int64_t floats = winograd_gradients_floats(w);
    w->workers = ratio_up(w->tiles, w->span) >= 2 * threads && threads * floats <= room ? threads : 1;
    w->scratch = (size_t)(w->workers * floats) * sizeof(float);
    return floats <= room;
}

/* Turns of channels whose gradients fit. */
static bool fit_gradients(struct winograd *w, int64_t threads, int64_t room)
{
    w->outputs = multiple(w->to.channels, TURN_LEAST);
    while (!fit_spans(w, threads, room)) {
        if (w->inputs <= CHANNELS_STEP && w->outputs == TURN_LEAST) return false;
        if (w->outputs >= w->inputs && w->outputs > TURN_LEAST)
            w->outputs = multiple(w->outputs / 2, TURN_LEAST);
        else
            w->inputs = multiple(w->inputs / 2, CHANNELS_STEP);
    }
    return true;
}

bool winograd_make(enum conv_pass pass, const struct extent *x, const struct extent *y, int64_t kernel, int64_t padding,
                   int64_t threads, uint64_t limit, struct winograd *w)
{
    const struct image image[] = {image_of(x), image_of(y)};
    const bool input = pass == CONV_INPUT;
    *w = (struct winograd){.from = image[input], .to = image[!input], .rotated = input, .batch = x->batch};
    w->kernel = (int)kernel, w->tile = PATCH + 1 - w->kernel;
    w->padding = input ? kernel - 1 - padding : padding;
    w->high = ratio_up(w->to.height, w->tile), w->wide = ratio_up(w->to.width, w->tile);
    w->tiles = w->batch * w->high * w->wide;
    w->span = kernel == 3 ? w->tiles : TILES_SPAN;
    w->inputs = w->from.channels;
    const int64_t room = (int64_t)(scratch_within(limit) / sizeof(float));
    return pass == CONV_PARAMS ? fit_gradients(w, threads, room) : fit_turns(w, threads, room);
}

/* The points of LANES outputs, of which count exist, for one input; weights: of the first one. kernel: w's, a constant
 * of a call. */
INLINED void weights_points(int kernel, const struct winograd *w, const float *weights, int64_t distance, int64_t count,
                            float *u, int64_t stride)
{
    const int taps = kernel * kernel;
    float rows[KERNEL_MOST * KERNEL_MOST][LANES] = {{0}};
    lanes g[KERNEL_MOST * KERNEL_MOST], m[PATCH][KERNEL_MOST], r[PATCH];
    for (int64_t k = 0; k < count; k++)
        for (int i = 0; i < taps; i++) rows[w->rotated ? taps - 1 - i : i][k] = weights[k * distance + i];
    for (int i = 0; i < taps; i++) g[i] = lanes_load(rows[i]);
    for (int j = 0; j < kernel; j++) {
        transform_weights(kernel, g + j, kernel, r);
        for (int i = 0; i < PATCH; i++) m[i][j] = r[i];
    }
    for (int i = 0; i < PATCH; i++) {
        transform_weights(kernel, m[i], 1, r);
        for (int j = 0; j < PATCH; j++) lanes_store(u + (i * PATCH + j) * stride, r[j]);
    }
}

/* The points of the weights of outputs outputs from first on, for all inputs. */
static void turn_weights(const struct winograd *w, const float *weights, int64_t first, int64_t outputs, float *u)
{
    const struct distances d = distances_of(w);
    const int64_t own = w->kernel * w->kernel, row = own * (w->rotated ? w->to.channels : w->inputs);
    const int64_t input = w->rotated ? row : own, output = w->rotated ? own : row;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t k = 0; k < outputs; k += LANES)
        for (int64_t c = 0; c < w->inputs; c++) {
            const int64_t count = lesser(LANES, w->to.channels - first - k);
            float *to = u + (k / PANEL * w->inputs + c) * PANEL + k % PANEL;
            const float *from = weights + (first + k) * output + c * input;
            if (w->kernel == 3)
                weights_points(3, w, from, output, count, to, d.u_point);
            else
                weights_points(5, w, from, output, count, to, d.u_point);
        }
}

/* The products of a panel of weights, of which columns exist, for all tiles of a block; next: the panel that follows,
 * which is fetched meanwhile. */
static __attribute__((noinline)) void panel_products(int64_t inputs, int64_t columns, const float *v, int64_t v_tile,
                                                     int64_t tiles, const float *u, const float *next, float *m,
                                                     int64_t m_tile)
{
    const int64_t parts = ratio_up(tiles, ROWS);
    const struct ending ending = {ROWS, multiple(columns, LANES)};
    for (int64_t t = 0; t < parts; t++)
        multiply_panel(false, inputs, v + t * ROWS * v_tile, v_tile, u, m + t * ROWS * m_tile, m_tile, &ending,
                       next + t * inputs * PANEL / parts, PANEL / parts);
}

/* What a turn reads and writes. */
struct turn {
    const float *x, *bias, *u;
    float *y;
    uint8_t *places;
    int64_t first, outputs;
    bool relu;
};

/* The turn's outputs from first on of a tile. */
static void write_tile(const struct winograd *w, const struct turn *turn, const float *m, struct tile tile,
                       int64_t first, int64_t count)
{
    const struct distances d = distances_of(w);
    if (w->pooled.channels > 0 && !w->rotated)
        tile_pooled_result(w->tile, &w->pooled, m, d.m_point, tile, first, count, turn->bias, turn->relu, turn->y,
                           turn->places);
    else
        tile_result(w->tile, &w->to, m, d.m_point, tile, first, count, turn->bias, turn->relu, turn->y);
}

/* All outputs of the turn for tiles tiles from start on; v: scratch of a thread. */
static void block_apply(const struct winograd *w, const struct turn *turn, int64_t start, int64_t tiles, float *v)
{
    const struct distances d = distances_of(w);
    const bool unpools = w->pooled.channels > 0 && w->rotated;
    float *m = v + POINTS * d.v_point;
    for (int64_t t = 0, beside; t < tiles; t += beside) {
        beside = tiles_beside(w, start + t, tiles - t);
        tile_images(w->tile, unpools ? &w->pooled : &w->from, turn->x, unpools ? turn->places : NULL,
                    patch_of(w, tile_at(w, start + t)), beside, 0, w->inputs, v + t * d.v_tile, d.v_tile, d.v_point);
    }
    clear_margin(v + tiles * d.v_tile, d.v_point, d.v_tile, multiple(tiles, ROWS) - tiles, w->inputs);
    for (int64_t k = 0; k < turn->outputs; k += GROUP) {
        const int64_t some = lesser(GROUP, turn->outputs - k), first = turn->first + k;
        for (int64_t p = 0; p < POINTS; p++)
            for (int64_t c = 0; c < some; c += PANEL) {
                const float *u = turn->u + p * d.u_point + (k + c) * w->inputs;
                const float *next = c + PANEL < some ? u + PANEL * w->inputs : u - c * w->inputs + d.u_point;
                panel_products(w->inputs, w->to.channels - first - c, v + p * d.v_point, d.v_tile, tiles, u, next,
                               m + p * d.m_point + c, d.m_tile);
            }
        for (int64_t t = 0; t < tiles; t++)
            write_tile(w, turn, m + t * d.m_tile, tile_at(w, start + t), first, lesser(some, w->to.channels - first));
    }
}

/* Blocks of tiles until there are none; next: the first tile of those that no thread has taken. */
static void blocks_apply(const struct winograd *w, const struct turn *turn, int64_t *next, float *v)
{
    for (;;) {
        int64_t start;
#pragma omp atomic capture
        {
            start = *next;
            *next += w->block;
        }
        if (start >= w->tiles) return;
        block_apply(w, turn, start, lesser(w->block, w->tiles - start), v);
    }
}

void winograd_apply(const struct winograd *w, const float *x, const float *weights, const float *bias, bool relu,
                    float *y, uint8_t *places, float *scratch)
{
    const struct distances d = distances_of(w);
    const int64_t all = multiple(w->to.channels, PANEL);
    for (int64_t first = 0; first < all; first += w->outputs) {
        const struct turn turn = {x, bias, scratch, y, places, first, lesser(w->outputs, all - first), relu};
        int64_t next = 0;
        turn_weights(w, weights, first, turn.outputs, scratch);
        /* Threads without scratch stay in the team, since a smaller one would end them. */
#pragma omp parallel
        if (omp_get_thread_num() < w->workers)
            blocks_apply(w, &turn, &next,
                         scratch + POINTS * (d.u_point + omp_get_thread_num() * (d.v_point + d.m_point)));
    }
}
