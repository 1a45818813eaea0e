#include "patches.h"

/* A patch's first pixel, which may lie outside, and its place in memory. */
struct spot {
    int64_t at;
    int32_t y, x;
};

static void find_spots(const struct patches *p, int64_t patch, int64_t count, struct spot *spot)
{
    int64_t sample = patch / (p->high * p->wide), row = patch / p->wide % p->high, column = patch % p->wide;
    for (int64_t i = 0; i < count; i++) {
        const int64_t y = p->y + row * p->step, x = p->x + column * p->step;
        spot[i].at = sample * p->image.sample + (y * p->image.width + x) * p->image.block;
        spot[i].y = (int32_t)y, spot[i].x = (int32_t)x;
        if (++column < p->wide) continue;
        column = 0;
        if (++row == p->high) row = 0, sample++;
    }
}

struct stream patches_stream(const struct patches *p, int64_t patch, int64_t count, int64_t lines, int64_t *number)
{
    struct spot spot;
    int64_t line, first;
    const int64_t width = lesser(16, p->image.block);
    if (!stream_place(ratio_up(p->channels, width), count, lines, number, &line, &first)) return (struct stream){NULL};
    find_spots(p, patch + first, 1, &spot);
    return (struct stream){p->data + spot.at + channel_at(&p->image, p->first + line * width),
                           p->image.block * p->step};
}

struct stream pixels_stream(const struct pixels *p, int64_t pixel, int64_t count, int64_t lines, int64_t *number)
{
    const struct patches places = {p->image, p->data, p->first, p->channels, 1,      1,
                                   p->step,  p->y,    p->x,     p->high,     p->wide};
    return patches_stream(&places, pixel, count, lines, number);
}

/* Numbers of every patch that lie together in memory: those of a pixel, or of a row of pixels where a pixel's channels
 * are all of them. */
struct run {
    int64_t y, x, shift; /* from the patch's first pixel to the run's, and to its first number */
    int64_t skip;        /* numbers of the first pixel that are left out */
    int64_t count;
};

INLINED void copy_numbers(float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i += LANES) {
        const int64_t some = lesser(LANES, count - i);
        if (some == LANES)
            lanes_store(to + i, lanes_load(from + i));
        else
            lanes_store_part(to + i, lanes_load_part(from + i, some), some);
    }
}

/* A run within one pixel. inside: of every patch. */
INLINED void copy_pixels(const struct patches *p, const struct spot *spot, int64_t spots, const struct run *run,
                         int64_t count, bool inside, float *to, int64_t stride)
{
    const float *from = p->data + run->shift;
    for (int64_t i = 0; i < spots; i++, to += stride) {
        const uint64_t y = (uint64_t)(spot[i].y + run->y), x = (uint64_t)(spot[i].x + run->x);
        if (inside || (y < (uint64_t)p->image.height && x < (uint64_t)p->image.width))
            copy_numbers(to, from + spot[i].at, count);
        else
            memset(to, 0, (size_t)count * sizeof *to);
    }
}

/* A run over a row of pixels, which may begin before the image's row and end behind it. */
static void copy_row(const struct patches *p, const struct spot *spot, int64_t spots, const struct run *run, float *to,
                     int64_t stride)
{
    const int64_t width = p->image.width * p->channels;
    for (int64_t i = 0; i < spots; i++, to += stride) {
        const int64_t start = (spot[i].x + run->x) * p->channels + run->skip, end = lesser(start + run->count, width);
        const int64_t before = start < 0 ? lesser(-start, run->count) : 0, inside = end - start - before;
        const bool row = (uint64_t)(spot[i].y + run->y) < (uint64_t)p->image.height && inside > 0;
        if (!row || inside < run->count) memset(to, 0, (size_t)run->count * sizeof *to);
        if (row) copy_numbers(to + before, p->data + spot[i].at + run->shift + before, inside);
    }
}

/* The run that begins with number term and has at most so many. */
static struct run run_at(const struct patches *p, bool rows, int64_t term, int64_t most)
{
    const int64_t tap = term / p->channels, c = term % p->channels;
    struct run run = {tap / p->taps_x, tap % p->taps_x, .skip = rows ? c : 0};
    const int64_t channel = p->first + c, block = p->image.block;
    run.shift = (run.y * p->image.width + run.x) * block + channel_at(&p->image, channel);
    const int64_t left =
        rows ? (p->taps_x - run.x) * p->channels - c : lesser(p->channels - c, block - channel % block);
    run.count = lesser(left, most);
    return run;
}

void patches_gather(const struct patches *p, int64_t patch, int64_t count, int64_t term, int64_t terms, float *to,
                    int64_t stride)
{
    struct spot spot[PATCHES_MOST];
    const bool rows = p->channels == p->image.block && p->taps_x > 1;
    const bool inside = p->y >= 0 && p->x >= 0 && p->y + (p->high - 1) * p->step + p->taps_y <= p->image.height &&
                        p->x + (p->wide - 1) * p->step + p->taps_x <= p->image.width;
    find_spots(p, patch, count, spot);
    for (int64_t t = 0; t < terms;) {
        const struct run run = run_at(p, rows, term + t, terms - t);
        if (rows)
            copy_row(p, spot, count, &run, to + t, stride);
        else if (run.count == 16 && inside)
            copy_pixels(p, spot, count, &run, 16, true, to + t, stride);
        else if (run.count == 16)
            copy_pixels(p, spot, count, &run, 16, false, to + t, stride);
        else if (run.count == 8 && LANES == 8)
            copy_pixels(p, spot, count, &run, 8, inside, to + t, stride);
        else
            copy_pixels(p, spot, count, &run, run.count, inside, to + t, stride);
        t += run.count;
    }
}

/* Channels that lie together in every pixel: room floats, of which count are channels; channel: of the bias. */
struct band {
    int64_t channel, count, room;
    float *to; /* of the first sample's first pixel */
};

/* One pixel's band; whole: it has vectors alone. */
INLINED void write_band(const struct pixels *p, const struct band *b, const float *sums, float *to, bool whole)
{
    for (int64_t c = 0; c < b->room; c += LANES) {
        const int64_t some = whole ? LANES : b->count - c < 0 ? 0 : lesser(LANES, b->count - c);
        lanes s = whole ? lanes_load(sums + c) : lanes_load_part(sums + c, some), add = {0};
        if (p->bias != NULL && whole) add = lanes_load(p->bias + b->channel + c);
        if (p->bias != NULL && !whole) add = lanes_load_part(p->bias + b->channel + c, some);
        s += add;
        if (p->relu) s = lanes_rectified(s);
        if (whole)
            lanes_store(to + c, s);
        else
            lanes_store_part(to + c, s, lesser(LANES, b->room - c));
    }
}

/* A band of count pixels from pixel on. */
INLINED void write_pixels(const struct pixels *p, const struct band *b, int64_t pixel, int64_t count, const float *sums,
                          int64_t stride, bool whole)
{
    const int64_t step = p->step * p->image.block;
    int64_t sample = pixel / (p->high * p->wide), row = pixel / p->wide % p->high, at = pixel % p->wide;
    while (count > 0) {
        const int64_t some = lesser(count, p->wide - at);
        const int64_t place = (p->y + row * p->step) * p->image.width + p->x + at * p->step;
        float *to = b->to + sample * p->image.sample + place * p->image.block;
        for (int64_t i = 0; i < some; i++, sums += stride, to += step) write_band(p, b, sums, to, whole);
        count -= some, at = 0;
        if (++row == p->high) row = 0, sample++;
    }
}

void pixels_write(const struct pixels *p, int64_t pixel, int64_t count, int64_t column, int64_t columns,
                  const float *sums, int64_t stride)
{
    const int64_t block = p->image.block;
    for (int64_t c = 0, some; c < columns; c += some) {
        const int64_t channel = p->first + column + c;
        some = lesser(columns - c, block - channel % block);
        const bool last = channel + some == p->image.channels;
        const struct band b = {column + c, some, last ? some + p->image.padded - p->image.channels : some,
                               p->data + channel_at(&p->image, channel)};
        if (b.room == 16 && some == 16)
            write_pixels(p, &(struct band){b.channel, 16, 16, b.to}, pixel, count, sums + c, stride, true);
        else if (b.room % LANES == 0 && some == b.room)
            write_pixels(p, &b, pixel, count, sums + c, stride, true);
        else
            write_pixels(p, &b, pixel, count, sums + c, stride, false);
    }
}
