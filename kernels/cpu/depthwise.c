#include "depthwise.h"

#include <string.h>

#include "numerics/shape.h"

/* Columns whose sums are kept in registers, for each of which a weight is loaded once. */
enum { COLUMNS = 4 };

/* Channels of a vector: they lie together in both images. */
static int64_t step_of(const struct image *a, const struct image *b)
{
    return lesser(LANES, lesser(a->block, b->block));
}

/* Floats of a tap's weights in scratch: whole vectors. */
static int64_t tap_stride(const struct patches *p) { return multiple(p->channels, PANEL_MOST); }

static int64_t taps_of(const struct patches *p) { return p->taps_y * p->taps_x; }

size_t depthwise_scratch(const struct patches *p) { return (size_t)(taps_of(p) * tap_stride(p)) * sizeof(float); }

static void pack_taps(const struct patches *p, const struct taps *taps, float *to)
{
    for (int64_t t = 0; t < taps_of(p); t++, to += tap_stride(p)) {
        const float *from = taps->weights + taps->first + t / p->taps_x * taps->tap_y + t % p->taps_x * taps->tap_x;
        for (int64_t c = 0; c < tap_stride(p); c++) to[c] = c < p->channels ? from[c * taps->taps] : 0;
    }
}

static bool is_inside(const struct image *image, int64_t y, int64_t x)
{
    return y >= 0 && y < image->height && x >= 0 && x < image->width;
}

/* Channels of a pixel of a sample, zeros outside. */
INLINED lanes pixel_load(const struct image *image, const float *sample, int64_t y, int64_t x, int64_t count)
{
    if (!is_inside(image, y, x)) return (lanes){0};
    return lanes_load_part(sample + (y * image->width + x) * image->block, count);
}

/* A vector of channels of a row of pixels. */
struct strand {
    const float *from, *weights; /* of the sample, and of the first tap */
    float *to;                   /* the row's first pixel */
    int64_t y;                   /* the patches' first row */
    int64_t count, room;         /* channels, and with those that fill a block */
    lanes bias;
};

INLINED void put(const struct pixels *p, const struct strand *s, int64_t column, lanes sum)
{
    sum += s->bias;
    if (p->relu) sum = lanes_rectified(sum);
    float *to = s->to + (p->x + column * p->step) * p->image.block;
    if (s->count == LANES)
        lanes_store(to, sum);
    else
        lanes_store_part(to, lanes_keep(sum, lanes_first(s->count)), s->room);
}

static void edge_pixel(const struct patches *p, const struct pixels *to, const struct strand *s, int64_t column)
{
    lanes sum = {0};
    const float *w = s->weights;
    const int64_t x = p->x + column * p->step;
    for (int64_t h = 0; h < p->taps_y; h++)
        for (int64_t k = 0; k < p->taps_x; k++, w += tap_stride(p))
            sum = lanes_fma(pixel_load(&p->image, s->from, s->y + h, x + k, s->count), lanes_load(w), sum);
    put(to, s, column, sum);
}

/* COLUMNS pixels whose patches have no column outside. The taps, the step and whether vectors are whole are constants
 * of a call. */
INLINED void inner_pixels(const struct patches *p, const struct pixels *to, const struct strand *s, int64_t column,
                          int64_t taps_y, int64_t taps_x, int64_t step, bool whole)
{
    lanes sum[COLUMNS] = {{0}};
    const int64_t pixel = p->image.block, stride = tap_stride(p);
    const float *from = s->from + (s->y * p->image.width + p->x + column * step) * pixel, *w = s->weights;
#pragma GCC unroll 3
    for (int64_t h = 0; h < taps_y; h++, from += p->image.width * pixel, w += taps_x * stride)
#pragma GCC unroll 3
        for (int64_t k = 0; k < taps_x; k++) {
            const lanes weight = lanes_load(w + k * stride);
            const bool inside = s->y + h >= 0 && s->y + h < p->image.height;
            for (int i = 0; i < COLUMNS; i++) {
                const float *at = from + (i * step + k) * pixel;
                const lanes zeros = {0}, v = !inside ? zeros : whole ? lanes_load(at) : lanes_load_part(at, s->count);
                sum[i] = lanes_fma(v, weight, sum[i]);
            }
        }
    for (int i = 0; i < COLUMNS; i++) put(to, s, column + i, sum[i]);
}

/* Columns [column, end), as many as there are fours; returns the first that is left. */
static int64_t inner_columns(const struct patches *p, const struct pixels *to, const struct strand *s, int64_t column,
                             int64_t end)
{
    const bool three = p->taps_y == 3 && p->taps_x == 3 && s->count == LANES;
    if (three && p->step == 1)
        for (; column + COLUMNS <= end; column += COLUMNS) inner_pixels(p, to, s, column, 3, 3, 1, true);
    else if (three && p->step == 2)
        for (; column + COLUMNS <= end; column += COLUMNS) inner_pixels(p, to, s, column, 3, 3, 2, true);
    else if (s->count == LANES)
        for (; column + COLUMNS <= end; column += COLUMNS)
            inner_pixels(p, to, s, column, p->taps_y, p->taps_x, p->step, true);
    else
        for (; column + COLUMNS <= end; column += COLUMNS)
            inner_pixels(p, to, s, column, p->taps_y, p->taps_x, p->step, false);
    return column;
}

static void strand_apply(const struct patches *p, const struct pixels *to, const struct strand *s)
{
    const int64_t room = p->image.width - p->taps_x - p->x; /* of the last patch inside, from the first patch on */
    const int64_t end = room < 0 ? 0 : lesser(room / p->step + 1, p->wide);
    int64_t column = 0;
    for (; column < p->wide && p->x + column * p->step < 0; column++) edge_pixel(p, to, s, column);
    if (column < end) column = inner_columns(p, to, s, column, end);
    for (; column < p->wide; column++) edge_pixel(p, to, s, column);
}

/* Row number row of the patches' grid, of a sample, for the channels that lie together from first on. */
static void row_apply(const struct patches *p, const struct pixels *to, const float *packed, int64_t sample,
                      int64_t row, int64_t first)
{
    const int64_t block = to->image.block, step = step_of(&to->image, &p->image),
                  padded = lesser(block, to->image.padded - first);
    for (int64_t c = first; c < first + padded; c += step) {
        struct strand s = {.from = p->data + sample * p->image.sample + channel_at(&p->image, c),
                           .weights = packed + c,
                           .y = p->y + row * p->step,
                           .room = lesser(step, first + padded - c)};
        s.count = p->channels - c < 0 ? 0 : lesser(s.room, p->channels - c);
        s.to = to->data + sample * to->image.sample + (to->y + row * to->step) * to->image.width * block +
               channel_at(&to->image, c);
        if (to->bias != NULL) s.bias = lanes_load_part(to->bias + c, s.count);
        strand_apply(p, to, &s);
    }
}

void depthwise_apply(const struct patches *p, const struct pixels *to, int64_t batch, const struct taps *taps,
                     float *scratch)
{
    pack_taps(p, taps, scratch);
#pragma omp parallel for collapse(3) schedule(static)
    for (int64_t n = 0; n < batch; n++)
        for (int64_t c = 0; c < to->image.padded; c += to->image.block)
            for (int64_t row = 0; row < p->high; row++) row_apply(p, to, scratch, n, row, c);
}

/* ---- Gradients: of a span, a row of scratch a tap and one for the bias. */
static int64_t spans_of(const struct patches *p, int64_t batch)
{
    return ratio_up(batch * p->high * p->wide, SUM_SPAN);
}

size_t depthwise_gradients_scratch(const struct patches *p, int64_t batch)
{
    return (size_t)(spans_of(p, batch) * (taps_of(p) + 1) * tap_stride(p)) * sizeof(float);
}

/* Adds the products of a pixel of dy with its patch to sum[tap], and the pixel to sum[taps]. */
INLINED void add_patch(const struct patches *p, const float *from, int64_t y, int64_t x, int64_t count, lanes slope,
                       int64_t taps_y, int64_t taps_x, bool whole, lanes *sum)
{
    const bool inside = y >= 0 && x >= 0 && y + taps_y <= p->image.height && x + taps_x <= p->image.width;
    const float *at = from + (y * p->image.width + x) * p->image.block;
    if (inside && whole) {
#pragma GCC unroll 3
        for (int64_t h = 0; h < taps_y; h++)
#pragma GCC unroll 3
            for (int64_t k = 0; k < taps_x; k++)
                sum[h * taps_x + k] =
                    lanes_fma(lanes_load(at + (h * p->image.width + k) * p->image.block), slope, sum[h * taps_x + k]);
    } else {
#pragma GCC unroll 3
        for (int64_t h = 0; h < taps_y; h++)
#pragma GCC unroll 3
            for (int64_t k = 0; k < taps_x; k++)
                sum[h * taps_x + k] =
                    lanes_fma(pixel_load(&p->image, from, y + h, x + k, count), slope, sum[h * taps_x + k]);
    }
    sum[taps_y * taps_x] = lanes_fma(lanes_all(1), slope, sum[taps_y * taps_x]);
}

/* Some pixels, in order, and a vector of channels from c on. */
struct stretch {
    int64_t first, pixels, c, count;
};

/* block[tap] = the sums over a stretch. The taps and whether vectors are whole are constants of a call. */
INLINED void add_patches(const struct patches *p, const struct patches *dy, const struct stretch *s, int64_t taps_y,
                         int64_t taps_x, bool whole, lanes *block)
{
    const int64_t image = p->high * p->wide;
    int64_t sample = s->first / image, row = s->first / p->wide % p->high, column = s->first % p->wide;
#pragma GCC unroll 10
    for (int64_t t = 0; t <= taps_y * taps_x; t++) block[t] = (lanes){0};
    for (int64_t i = 0; i < s->pixels; i++) {
        const float *from = p->data + sample * p->image.sample + channel_at(&p->image, s->c);
        const float *slopes = dy->data + sample * dy->image.sample + channel_at(&dy->image, s->c);
        slopes += (row * dy->image.width + column) * dy->image.block;
        const lanes slope = whole ? lanes_load(slopes) : lanes_load_part(slopes, s->count);
        add_patch(p, from, p->y + row * p->step, p->x + column * p->step, s->count, slope, taps_y, taps_x, whole,
                  block);
        if (++column < p->wide) continue;
        column = 0;
        if (++row == p->high) row = 0, sample++;
    }
}

static void block_sums(const struct patches *p, const struct patches *dy, const struct stretch *s, lanes *block)
{
    if (p->taps_y == 3 && p->taps_x == 3 && s->count == LANES) {
        lanes sum[3 * 3 + 1];
        add_patches(p, dy, s, 3, 3, true, sum);
        memcpy(block, sum, sizeof sum);
    } else {
        add_patches(p, dy, s, p->taps_y, p->taps_x, false, block);
    }
}

static void span_sums(const struct patches *p, const struct patches *dy, int64_t span, int64_t pixels, int64_t c,
                      float *sums)
{
    lanes block[SUM_BLOCK + 1];
    const int64_t count = lesser(step_of(&p->image, &dy->image), p->channels - c),
                  end = lesser((span + 1) * SUM_SPAN, pixels);
    for (int64_t i = span * SUM_SPAN; i < end; i += SUM_BLOCK) {
        const struct stretch some = {i, lesser(SUM_BLOCK, end - i), c, count};
        block_sums(p, dy, &some, block);
        for (int64_t t = 0; t <= taps_of(p); t++) {
            float *to = sums + t * tap_stride(p) + c;
            if (i > span * SUM_SPAN) block[t] = lanes_load_part(to, count) + block[t];
            lanes_store_part(to, block[t], count);
        }
    }
}

void depthwise_gradients(const struct patches *p, const struct patches *dy, int64_t batch, float *weights, float *bias,
                         float *scratch)
{
    const int64_t spans = spans_of(p, batch), taps = taps_of(p), each = (taps + 1) * tap_stride(p);
    const int64_t step = step_of(&p->image, &dy->image);
#pragma omp parallel
    {
#pragma omp for collapse(2) schedule(static)
        for (int64_t s = 0; s < spans; s++)
            for (int64_t c = 0; c < p->channels; c += step)
                span_sums(p, dy, s, batch * p->high * p->wide, c, scratch + s * each);
#pragma omp for schedule(static)
        for (int64_t c = 0; c < p->channels; c++)
            for (int64_t t = 0; t <= taps; t++) {
                const float *from = scratch + t * tap_stride(p) + c;
                float sum = *from;
                for (int64_t s = 1; s < spans; s++) sum += from[s * each];
                if (t < taps)
                    weights[c * taps + t] = sum;
                else if (bias != NULL)
                    bias[c] = sum;
            }
    }
}
