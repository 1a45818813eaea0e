#include "grouped.h"

#include <string.h>

#include "numerics/shape.h"

/* Columns whose sums are kept in registers, for each of which a weight is loaded once. */
enum { COLUMNS = GROUPED_COLUMNS };

static int64_t taps_of(const struct patches *p) { return p->taps_y * p->taps_x; }

/* Floats of a term's weights in scratch: whole vectors. */
static int64_t term_stride(const struct patches *p) { return multiple(p->channels, PANEL_MOST); }

size_t grouped_scratch(const struct patches *p, int64_t group)
{
    return (size_t)((taps_of(p) * group + 1) * term_stride(p)) * sizeof(float);
}

/* to[(tap * group + i) * stride + channel of the result], and zeros behind them. */
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
    memset(to, 0, (size_t)term_stride(p) * sizeof *to);
}

/* The first count floats; whole: they are LANES. */
INLINED lanes lanes_some(const float *from, int64_t count, bool whole)
{
    return whole ? lanes_load(from) : lanes_load_part(from, count);
}

/* Of every lane, channel number i of its group, whose first one first names; group is a constant of a call. */
INLINED lanes channel_spread(lanes v, lane_bits first, int64_t group, int64_t i)
{
    return group == 1 ? v : lanes_picked(v, first + (int32_t)i);
}

/* Some columns of a row of pixels, and the places in an image that their patches have: the first, where all lie inside;
 * else every one, row by row, those outside being zeros. */
struct strip {
    const float *first, *at[GROUPED_PLACES];
    float *to;                             /* the first column */
    int64_t columns, row, pixel, to_pixel; /* places of a row; floats from a row of taps to the next, and of pixels */
};

/* n columns of a vector of channels from c on. What follows bias is constants of a call; inside: all places are. */
INLINED void strip_channels(const struct strip *s, const float *w, int64_t c, int64_t count, int64_t stride, lanes bias,
                            bool relu, int n, int64_t taps_y, int64_t taps_x, int64_t gap, int64_t step, int64_t group,
                            bool inside)
{
    lanes sum[COLUMNS] = {{0}}, v[COLUMNS];
    const lane_bits first = lanes_groups(group);
#pragma GCC unroll 3
    for (int64_t h = 0; h < taps_y; h++)
#pragma GCC unroll 3
        for (int64_t k = 0; k < taps_x; k++) {
            for (int j = 0; j < n; j++) {
                const int64_t place = j * step + k * gap;
                const float *at = inside ? s->first + h * s->row + place * s->pixel : s->at[h * s->columns + place];
                v[j] = lanes_some(at + c, count, count == LANES);
            }
            for (int64_t i = 0; i < group; i++, w += stride) {
                const lanes weight = lanes_load(w + c);
                for (int j = 0; j < n; j++) sum[j] = lanes_fma(channel_spread(v[j], first, group, i), weight, sum[j]);
            }
        }
    for (int j = 0; j < n; j++) {
        sum[j] += bias;
        if (relu) sum[j] = lanes_rectified(sum[j]);
        if (count == LANES)
            lanes_store(s->to + j * s->to_pixel + c, sum[j]);
        else
            lanes_store_part(s->to + j * s->to_pixel + c, sum[j], count);
    }
}

INLINED void strip_apply(const struct patches *p, const struct pixels *to, const struct strip *s, const float *w, int n,
                         int64_t taps_y, int64_t taps_x, int64_t gap, int64_t step, int64_t group, bool inside)
{
    const int64_t stride = term_stride(p), whole = p->channels / LANES * LANES, rest = p->channels - whole;
    lanes bias = {0};
    for (int64_t c = 0; c < whole; c += LANES) {
        if (to->bias != NULL) bias = lanes_load(to->bias + c);
        strip_channels(s, w, c, LANES, stride, bias, to->relu, n, taps_y, taps_x, gap, step, group, inside);
    }
    if (rest == 0) return;
    if (to->bias != NULL) bias = lanes_load_part(to->bias + whole, rest);
    strip_channels(s, w, whole, rest, stride, bias, to->relu, n, taps_y, taps_x, gap, step, group, inside);
}

INLINED void strip_of_step(const struct patches *p, const struct pixels *to, const struct strip *s, const float *w,
                           int64_t n, int64_t group, bool inside)
{
    if (n == 1)
        strip_apply(p, to, s, w, 1, p->taps_y, p->taps_x, p->gap, p->step, group, inside);
    else if (p->taps_y == 3 && p->taps_x == 3 && p->gap == 1 && p->step == 1)
        strip_apply(p, to, s, w, COLUMNS, 3, 3, 1, 1, group, inside);
    else if (p->taps_y == 3 && p->taps_x == 3 && p->gap == 1 && p->step == 2)
        strip_apply(p, to, s, w, COLUMNS, 3, 3, 1, 2, group, inside);
    else
        strip_apply(p, to, s, w, COLUMNS, p->taps_y, p->taps_x, p->gap, p->step, group, inside);
}

/* Finds the places of the strip from column on; whether all lie in the image. */
static bool find_places(const struct patches *p, const float *sample, const float *zeros, int64_t row, int64_t column,
                        struct strip *s)
{
    const int64_t y = p->y + row * p->step, x = p->x + column * p->step, high = p->image.height, wide = p->image.width;
    const float *first = sample + (y * p->image.width + x) * s->pixel;
    s->first = first;
    if (y >= 0 && x >= 0 && y + patch_extent(p, p->taps_y) <= high && x + s->columns <= wide) return true;
    for (int64_t i = 0; i < p->taps_y * s->columns; i++) {
        const int64_t h = i / s->columns, k = i % s->columns;
        const bool outside = y + h * p->gap < 0 || y + h * p->gap >= high || x + k < 0 || x + k >= wide;
        s->at[i] = outside ? zeros : first + h * s->row + k * s->pixel;
    }
    return false;
}

/* A row of pixels of a sample: columns outermost, since the channels of a pixel lie together. The last COLUMNS may
 * compute some again that the ones before them did. */
INLINED void row_apply(const struct patches *p, const struct pixels *to, const float *w, int64_t sample, int64_t row,
                       int64_t group)
{
    const int64_t n = p->wide < COLUMNS ? 1 : COLUMNS, pixel = to->image.channels;
    const float *from = p->data + sample * p->image.sample, *zeros = w + taps_of(p) * group * term_stride(p);
    float *y = to->data + sample * to->image.sample + ((to->y + row * to->step) * to->image.width + to->x) * pixel;
    struct strip s = {.columns = (n - 1) * p->step + patch_extent(p, p->taps_x),
                      .row = p->gap * p->image.width * p->image.channels,
                      .pixel = p->image.channels,
                      .to_pixel = to->step * pixel};
    for (int64_t next = 0; next < p->wide; next += n) {
        const int64_t column = lesser(next, p->wide - n);
        s.to = y + column * s.to_pixel;
        if (find_places(p, from, zeros, row, column, &s))
            strip_of_step(p, to, &s, w, n, group, true);
        else
            strip_of_step(p, to, &s, w, n, group, false);
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

/* ---- Gradients: of a span, a row of scratch a term and one for the bias; as many spans in a turn as SPANS_BYTES hold,
 * behind the sum of the turns before. */
enum { SPANS_BYTES = 256 << 10 };

static int64_t spans_of(const struct patches *p, int64_t batch)
{
    return ratio_up(batch * p->high * p->wide, SUM_SPAN);
}

static int64_t span_floats(const struct patches *p, int64_t group) { return (taps_of(p) * group + 1) * term_stride(p); }

static int64_t spans_in_turn(const struct patches *p, int64_t group, int64_t batch)
{
    const int64_t most = SPANS_BYTES / (span_floats(p, group) * (int64_t)sizeof(float));
    return lesser(most > 1 ? most : 1, spans_of(p, batch));
}

size_t grouped_gradients_scratch(const struct patches *p, int64_t group, int64_t batch)
{
    return (size_t)((1 + spans_in_turn(p, group, batch)) * span_floats(p, group)) * sizeof(float);
}

/* Some pixels of dy, in order, and count channels from c on; i: channel of their groups in x. */
struct stretch {
    int64_t first, pixels, c, count, i;
};

/* Pixels of a row whose patches have the same places inside the image: rows [top, bottom), columns [left, right). */
struct run {
    const float *from, *slopes; /* the first patch's first place, and the first pixel of dy */
    int64_t pixels, top, bottom, left, right;
};

/* sum[tap] += the products of pixels with the places of their patches, sum[taps] += the pixels. What follows s is
 * constants of a call. */
INLINED void add_run(const struct patches *p, int64_t pixel, const struct run *r, const struct stretch *s,
                     int64_t taps_y, int64_t taps_x, int64_t group, bool whole, lanes *sum)
{
    const int64_t place = p->image.channels, row = p->gap * p->image.width * place, column = p->gap * place;
    const lane_bits first = lanes_groups(group);
    const float *from = r->from, *slopes = r->slopes;
    for (int64_t n = 0; n < r->pixels; n++, from += p->step * place, slopes += pixel) {
        const lanes slope = lanes_some(slopes, s->count, whole);
#pragma GCC unroll 3
        for (int64_t h = 0; h < taps_y; h++)
#pragma GCC unroll 3
            for (int64_t k = 0; k < taps_x; k++) {
                const bool inside = h >= r->top && h < r->bottom && k >= r->left && k < r->right;
                const float *at = from + h * row + k * column;
                lanes v = {0};
                if (inside) v = lanes_some(at, s->count, whole);
                lanes *to = &sum[h * taps_x + k];
                *to = lanes_fma(channel_spread(v, first, group, s->i), slope, *to);
            }
        sum[taps_y * taps_x] = lanes_fma(lanes_all(1), slope, sum[taps_y * taps_x]);
    }
}

/* Taps, gap apart, that lie in so many pixels; 0 where there are none. */
static int64_t taps_in(int64_t pixels, int64_t gap) { return pixels > 0 ? ratio_up(pixels, gap) : 0; }

/* The pixels from column on, at most so many, whose patches lie in the image as that of the first does. */
static struct run run_at(const struct patches *p, int64_t y, int64_t column, int64_t most)
{
    const int64_t x = p->x + column * p->step, right = p->image.width - x;
    const int64_t extent = patch_extent(p, p->taps_x);
    struct run r = {.top = taps_in(-y, p->gap),
                    .bottom = lesser(p->taps_y, taps_in(p->image.height - y, p->gap)),
                    .left = taps_in(-x, p->gap),
                    .right = lesser(p->taps_x, taps_in(right, p->gap))};
    const bool within = x >= 0 && right >= extent;
    r.pixels = within ? lesser(most, (right - extent) / p->step + 1) : 1;
    return r;
}

/* block[tap] = the sums over a stretch. The taps, the group and whether vectors are whole are constants of a call. */
INLINED void add_stretch(const struct patches *p, const struct patches *dy, const struct stretch *s, int64_t taps_y,
                         int64_t taps_x, int64_t group, bool whole, lanes *block)
{
    const int64_t image = p->high * p->wide, pixel = dy->image.channels;
#pragma GCC unroll 10
    for (int64_t t = 0; t <= taps_y * taps_x; t++) block[t] = (lanes){0};
    for (int64_t n = s->first, end = n + s->pixels; n < end;) {
        const int64_t sample = n / image, row = n / p->wide % p->high, column = n % p->wide;
        const int64_t y = p->y + row * p->step, x = p->x + column * p->step;
        struct run r = run_at(p, y, column, lesser(end - n, p->wide - column));
        r.from = p->data + sample * p->image.sample + (y * p->image.width + x) * p->image.channels + s->c;
        r.slopes = dy->data + sample * dy->image.sample + (row * dy->image.width + column) * pixel + s->c;
        if (r.top == 0 && r.left == 0 && r.bottom == taps_y && r.right == taps_x) {
            const struct run all = {r.from, r.slopes, r.pixels, 0, taps_y, 0, taps_x};
            add_run(p, pixel, &all, s, taps_y, taps_x, group, whole, block);
        } else {
            add_run(p, pixel, &r, s, taps_y, taps_x, group, whole, block);
        }
        n += r.pixels;
    }
}

static void stretch_sums(const struct patches *p, const struct patches *dy, const struct stretch *s, int64_t group,
                         lanes *block)
{
    lanes sum[3 * 3 + 1];
    const bool three = p->taps_y == 3 && p->taps_x == 3 && s->count == LANES;
    if (three && group == 1)
        add_stretch(p, dy, s, 3, 3, 1, true, sum);
    else if (three)
        add_stretch(p, dy, s, 3, 3, group, true, sum);
    else
        add_stretch(p, dy, s, p->taps_y, p->taps_x, group, false, block);
    if (three) memcpy(block, sum, sizeof sum);
}

static void span_sums(const struct patches *p, const struct patches *dy, int64_t group, struct stretch s, int64_t end,
                      float *sums)
{
    lanes block[SUM_BLOCK + 1];
    const int64_t taps = taps_of(p), first = s.first;
    for (; s.first < end; s.first += SUM_BLOCK) {
        s.pixels = lesser(SUM_BLOCK, end - s.first);
        stretch_sums(p, dy, &s, group, block);
        for (int64_t t = 0; t < taps + (s.i == 0); t++) {
            float *to = sums + (t < taps ? t * group + s.i : taps * group) * term_stride(p) + s.c;
            if (s.first > first) block[t] = lanes_load_part(to, s.count) + block[t];
            lanes_store_part(to, block[t], s.count);
        }
    }
}

/* all = the sum of the spans that lie behind it, in order; more: and of what it was, first. */
static void add_spans(const struct patches *p, int64_t group, int64_t spans, bool more, float *all)
{
    const int64_t each = span_floats(p, group);
#pragma omp for schedule(static)
    for (int64_t t = 0; t <= taps_of(p) * group; t++)
        for (int64_t c = t * term_stride(p); c < t * term_stride(p) + p->channels; c++) {
            float sum = more ? all[c] + all[each + c] : all[each + c];
            for (int64_t s = 2; s <= spans; s++) sum += all[s * each + c];
            all[c] = sum;
        }
}

static void write_gradients(const struct patches *p, int64_t group, const float *all, float *weights, float *bias)
{
    const int64_t terms = taps_of(p) * group;
#pragma omp for schedule(static)
    for (int64_t c = 0; c < p->channels; c++) {
        for (int64_t t = 0; t < terms; t++)
            weights[(c * group + t % group) * taps_of(p) + t / group] = all[t * term_stride(p) + c];
        if (bias != NULL) bias[c] = all[terms * term_stride(p) + c];
    }
}

void grouped_gradients(const struct patches *p, const struct patches *dy, int64_t group, int64_t batch, float *weights,
                       float *bias, float *scratch)
{
    const int64_t spans = spans_of(p, batch), turn = spans_in_turn(p, group, batch), each = span_floats(p, group);
    const int64_t pixels = batch * p->high * p->wide;
#pragma omp parallel
    {
        for (int64_t first = 0; first < spans; first += turn) {
            const int64_t count = lesser(turn, spans - first);
#pragma omp for collapse(3) schedule(static)
            for (int64_t s = 0; s < count; s++)
                for (int64_t c = 0; c < p->channels; c += LANES)
                    for (int64_t i = 0; i < group; i++) {
                        const int64_t from = (first + s) * SUM_SPAN, end = lesser(from + SUM_SPAN, pixels);
                        const struct stretch some = {from, 0, c, lesser(LANES, p->channels - c), i};
                        span_sums(p, dy, group, some, end, scratch + (1 + s) * each);
                    }
            add_spans(p, group, count, first > 0, scratch);
        }
        write_gradients(p, group, scratch, weights, bias);
    }
}
