#include "grouped.h"

#include <string.h>

#include "numerics/shape.h"

/* Columns whose sums are kept in registers, for each of which a weight is loaded once. */
enum { COLUMNS = 4 };

static int64_t taps_of(const struct patches *p) { return p->taps_y * p->taps_x; }

/* Floats of a term's weights in scratch: whole vectors. */
static int64_t term_stride(const struct patches *p) { return multiple(p->channels, PANEL_MOST); }

size_t grouped_scratch(const struct patches *p, int64_t group)
{
    return (size_t)(taps_of(p) * group * term_stride(p)) * sizeof(float);
}

/* to[(tap * group + i) * stride + channel of the result]. */
static void pack_taps(const struct patches *p, const struct taps *taps, float *to)
{
    for (int64_t t = 0; t < taps_of(p) * taps->group; t++, to += term_stride(p)) {
        const int64_t tap = t / taps->group;
        const float *from = taps->weights + taps->first + tap / p->taps_x * taps->tap_y +
                            tap % p->taps_x * taps->tap_x + t % taps->group * taps->to_channel;
        memset(to, 0, (size_t)term_stride(p) * sizeof *to);
        for (int64_t c = 0; c < p->channels; c++)
            to[c] = from[c / taps->group * taps->to_group + c % taps->group * taps->to_column];
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
    return lanes_load_part(sample + (y * image->width + x) * image->channels, count);
}

/* A vector of channels of a row of pixels. */
struct strand {
    const float *from, *weights; /* of the sample, and of the first term */
    float *to;                   /* the row's first pixel */
    int64_t y;                   /* the patches' first row */
    int64_t count;               /* channels */
    lanes bias;
    lane_bits first; /* the lane of each lane's group's first channel */
};

/* Of every lane, channel number i of its group; group is a constant of a call. */
INLINED lanes channel_spread(lanes v, lane_bits first, int64_t group, int64_t i)
{
    return group == 1 ? v : lanes_picked(v, first + (int32_t)i);
}

INLINED void put(const struct pixels *p, const struct strand *s, int64_t column, lanes sum)
{
    sum += s->bias;
    if (p->relu) sum = lanes_rectified(sum);
    lanes_store_part(s->to + (p->x + column * p->step) * p->image.channels, sum, s->count);
}

INLINED void edge_pixel(const struct patches *p, const struct pixels *to, const struct strand *s, int64_t column,
                        int64_t group)
{
    lanes sum = {0};
    const float *w = s->weights;
    const int64_t x = p->x + column * p->step;
    for (int64_t h = 0; h < p->taps_y; h++)
        for (int64_t k = 0; k < p->taps_x; k++) {
            const lanes v = pixel_load(&p->image, s->from, s->y + h, x + k, s->count);
            for (int64_t i = 0; i < group; i++, w += term_stride(p))
                sum = lanes_fma(channel_spread(v, s->first, group, i), lanes_load(w), sum);
        }
    put(to, s, column, sum);
}

/* COLUMNS pixels whose patches have no column outside. The taps, the step, the group and whether vectors are whole are
 * constants of a call. */
INLINED void inner_pixels(const struct patches *p, const struct pixels *to, const struct strand *s, int64_t column,
                          int64_t taps_y, int64_t taps_x, int64_t step, int64_t group, bool whole)
{
    lanes sum[COLUMNS] = {{0}};
    const int64_t pixel = p->image.channels, stride = term_stride(p);
    const float *from = s->from + (s->y * p->image.width + p->x + column * step) * pixel, *w = s->weights;
#pragma GCC unroll 3
    for (int64_t h = 0; h < taps_y; h++, from += p->image.width * pixel)
#pragma GCC unroll 3
        for (int64_t k = 0; k < taps_x; k++) {
            lanes v[COLUMNS] = {{0}};
            const bool inside = s->y + h >= 0 && s->y + h < p->image.height;
            for (int j = 0; j < COLUMNS && inside; j++) {
                const float *at = from + (j * step + k) * pixel;
                v[j] = whole ? lanes_load(at) : lanes_load_part(at, s->count);
            }
            for (int64_t i = 0; i < group; i++, w += stride) {
                const lanes weight = lanes_load(w);
                for (int j = 0; j < COLUMNS; j++)
                    sum[j] = lanes_fma(channel_spread(v[j], s->first, group, i), weight, sum[j]);
            }
        }
    for (int j = 0; j < COLUMNS; j++) put(to, s, column + j, sum[j]);
}

/* COLUMNS columns from column on, or one: within: no patch has a column outside. */
INLINED void some_pixels(const struct patches *p, const struct pixels *to, const struct strand *s, int64_t column,
                         bool within, int64_t group)
{
    const bool three = p->taps_y == 3 && p->taps_x == 3 && s->count == LANES;
    if (!within)
        edge_pixel(p, to, s, column, group);
    else if (three && p->step == 1)
        inner_pixels(p, to, s, column, 3, 3, 1, group, true);
    else if (three && p->step == 2)
        inner_pixels(p, to, s, column, 3, 3, 2, group, true);
    else
        inner_pixels(p, to, s, column, p->taps_y, p->taps_x, p->step, group, false);
}

/* A row of pixels of a sample: columns outermost, since the channels of a pixel lie together. */
INLINED void row_apply(const struct patches *p, const struct pixels *to, const float *packed, int64_t sample,
                       int64_t row, int64_t group)
{
    const int64_t room = p->image.width - p->taps_x - p->x; /* of the last patch inside, from the first patch on */
    const int64_t end = room < 0 ? 0 : lesser(room / p->step + 1, p->wide);
    struct strand s = {.y = p->y + row * p->step, .first = lanes_groups(group)};
    for (int64_t column = 0, some; column < p->wide; column += some) {
        const bool within = p->x + column * p->step >= 0 && column + COLUMNS <= end;
        some = within ? COLUMNS : 1;
        for (int64_t c = 0; c < p->channels; c += LANES) {
            s.from = p->data + sample * p->image.sample + c, s.weights = packed + c;
            s.to = to->data + sample * to->image.sample + (to->y + row * to->step) * to->image.width * p->channels + c;
            s.count = lesser(LANES, p->channels - c);
            if (to->bias != NULL) s.bias = lanes_load_part(to->bias + c, s.count);
            some_pixels(p, to, &s, column, within, group);
        }
    }
}

void grouped_apply(const struct patches *p, const struct pixels *to, int64_t batch, const struct taps *taps,
                   float *scratch)
{
    pack_taps(p, taps, scratch);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < batch; n++)
        for (int64_t row = 0; row < p->high; row++)
            if (taps->group == 1)
                row_apply(p, to, scratch, n, row, 1);
            else if (taps->group == 4)
                row_apply(p, to, scratch, n, row, 4);
            else
                row_apply(p, to, scratch, n, row, taps->group);
}

/* ---- Gradients: of a span, a row of scratch a term and one for the bias. */
static int64_t spans_of(const struct patches *p, int64_t batch)
{
    return ratio_up(batch * p->high * p->wide, SUM_SPAN);
}

size_t grouped_gradients_scratch(const struct patches *p, int64_t group, int64_t batch)
{
    return (size_t)(spans_of(p, batch) * (taps_of(p) * group + 1) * term_stride(p)) * sizeof(float);
}

/* Adds the products of a pixel of dy with its patch to sum[tap], and the pixel to sum[taps]; i: channel of the patch's
 * groups. */
INLINED void add_patch(const struct patches *p, const float *from, int64_t y, int64_t x, int64_t count, lanes slope,
                       int64_t taps_y, int64_t taps_x, int64_t group, int64_t i, bool whole, lanes *sum)
{
    const bool inside = y >= 0 && x >= 0 && y + taps_y <= p->image.height && x + taps_x <= p->image.width;
    const float *at = from + (y * p->image.width + x) * p->image.channels;
    const lane_bits first = lanes_groups(group);
#pragma GCC unroll 3
    for (int64_t h = 0; h < taps_y; h++)
#pragma GCC unroll 3
        for (int64_t k = 0; k < taps_x; k++) {
            const lanes v = inside && whole ? lanes_load(at + (h * p->image.width + k) * p->image.channels)
                                            : pixel_load(&p->image, from, y + h, x + k, count);
            sum[h * taps_x + k] = lanes_fma(channel_spread(v, first, group, i), slope, sum[h * taps_x + k]);
        }
    sum[taps_y * taps_x] = lanes_fma(lanes_all(1), slope, sum[taps_y * taps_x]);
}

/* Some pixels, in order, and a vector of channels from c on; i: channel of their groups. */
struct stretch {
    int64_t first, pixels, c, count, i;
};

/* block[tap] = the sums over a stretch. The taps, the group and whether vectors are whole are constants of a call. */
INLINED void add_patches(const struct patches *p, const struct patches *dy, const struct stretch *s, int64_t taps_y,
                         int64_t taps_x, int64_t group, bool whole, lanes *block)
{
    const int64_t image = p->high * p->wide;
    int64_t sample = s->first / image, row = s->first / p->wide % p->high, column = s->first % p->wide;
#pragma GCC unroll 10
    for (int64_t t = 0; t <= taps_y * taps_x; t++) block[t] = (lanes){0};
    for (int64_t k = 0; k < s->pixels; k++) {
        const float *from = p->data + sample * p->image.sample + s->c;
        const float *slopes =
            dy->data + sample * dy->image.sample + (row * dy->image.width + column) * dy->image.channels + s->c;
        const lanes slope = whole ? lanes_load(slopes) : lanes_load_part(slopes, s->count);
        add_patch(p, from, p->y + row * p->step, p->x + column * p->step, s->count, slope, taps_y, taps_x, group, s->i,
                  whole, block);
        if (++column < p->wide) continue;
        column = 0;
        if (++row == p->high) row = 0, sample++;
    }
}

static void block_sums(const struct patches *p, const struct patches *dy, const struct stretch *s, int64_t group,
                       lanes *block)
{
    lanes sum[3 * 3 + 1];
    const bool three = p->taps_y == 3 && p->taps_x == 3 && s->count == LANES;
    if (three && group == 1)
        add_patches(p, dy, s, 3, 3, 1, true, sum);
    else if (three)
        add_patches(p, dy, s, 3, 3, group, true, sum);
    else
        add_patches(p, dy, s, p->taps_y, p->taps_x, group, false, block);
    if (three) memcpy(block, sum, sizeof sum);
}

static void span_sums(const struct patches *p, const struct patches *dy, int64_t group, struct stretch s, int64_t end,
                      float *sums)
{
    lanes block[SUM_BLOCK + 1];
    const int64_t taps = taps_of(p), first = s.first;
    for (; s.first < end; s.first += SUM_BLOCK) {
        s.pixels = lesser(SUM_BLOCK, end - s.first);
        block_sums(p, dy, &s, group, block);
        for (int64_t t = 0; t < taps + (s.i == 0); t++) {
            float *to = sums + (t < taps ? t * group + s.i : taps * group) * term_stride(p) + s.c;
            if (s.first > first) block[t] = lanes_load_part(to, s.count) + block[t];
            lanes_store_part(to, block[t], s.count);
        }
    }
}

void grouped_gradients(const struct patches *p, const struct patches *dy, int64_t group, int64_t batch, float *weights,
                       float *bias, float *scratch)
{
    const int64_t spans = spans_of(p, batch), terms = taps_of(p) * group, pixels = batch * p->high * p->wide;
    const int64_t each = (terms + 1) * term_stride(p);
#pragma omp parallel
    {
#pragma omp for collapse(3) schedule(static)
        for (int64_t s = 0; s < spans; s++)
            for (int64_t c = 0; c < p->channels; c += LANES)
                for (int64_t i = 0; i < group; i++) {
                    const struct stretch some = {s * SUM_SPAN, 0, c, lesser(LANES, p->channels - c), i};
                    span_sums(p, dy, group, some, lesser((s + 1) * SUM_SPAN, pixels), scratch + s * each);
                }
#pragma omp for schedule(static)
        for (int64_t c = 0; c < p->channels; c++)
            for (int64_t t = 0; t <= terms; t++) {
                const float *from = scratch + t * term_stride(p) + c;
                float sum = *from;
                for (int64_t s = 1; s < spans; s++) sum += from[s * each];
                if (t < terms)
                    weights[(c * group + t % group) * taps_of(p) + t / group] = sum;
                else if (bias != NULL)
                    bias[c] = sum;
            }
    }
}
