#include "patches.h"

#include "panel.h"

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

/* A run within one pixel. */
INLINED void copy_pixels(const struct patches *p, const struct spot *spot, int64_t spots, const struct run *run,
                         int64_t count, float *to, int64_t stride)
{
    for (int64_t i = 0; i < spots; i++, to += stride) {
        const uint64_t y = (uint64_t)(spot[i].y + run->y), x = (uint64_t)(spot[i].x + run->x);
        if (y < (uint64_t)p->image.height && x < (uint64_t)p->image.width)
            copy_numbers(to, p->data + spot[i].at + run->shift, count);
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
    find_spots(p, patch, count, spot);
    for (int64_t t = 0; t < terms;) {
        const struct run run = run_at(p, rows, term + t, terms - t);
        if (rows)
            copy_row(p, spot, count, &run, to + t, stride);
        else if (run.count == 16)
            copy_pixels(p, spot, count, &run, 16, to + t, stride);
        else
            copy_pixels(p, spot, count, &run, run.count, to + t, stride);
        t += run.count;
    }
}

/* Channels of a pixel that lie together: room floats, of which count are channels. */
static void write_run(const struct pixels *p, const float *sums, int64_t channel, int64_t count, int64_t room,
                      float *to)
{
    for (int64_t c = 0; c < room; c += LANES) {
        const int64_t some = count - c < 0 ? 0 : lesser(LANES, count - c);
        lanes s = lanes_load_part(sums + c, some);
        s += p->bias != NULL ? lanes_load_part(p->bias + channel + c, some) : (lanes){0};
        if (p->relu) s = lanes_rectified(s);
        lanes_store_part(to + c, s, lesser(LANES, room - c));
    }
}

void pixels_write(const struct pixels *p, int64_t pixel, int64_t count, int64_t column, int64_t columns,
                  const float *sums, int64_t stride)
{
    const int64_t block = p->image.block;
    for (int64_t c = 0, some; c < columns; c += some) {
        const int64_t channel = p->first + column + c;
        int64_t sample = pixel / (p->high * p->wide), row = pixel / p->wide % p->high, at = pixel % p->wide;
        some = lesser(columns - c, block - channel % block);
        const bool last = channel + some == p->image.channels;
        const int64_t room = last ? some + p->image.padded - p->image.channels : some;
        for (int64_t i = 0; i < count; i++) {
            const int64_t place = (p->y + row * p->step) * p->image.width + p->x + at * p->step;
            write_run(p, sums + i * stride + c, column + c, some, room,
                      p->data + sample * p->image.sample + place * block + channel_at(&p->image, channel));
            if (++at < p->wide) continue;
            at = 0;
            if (++row == p->high) row = 0, sample++;
        }
    }
}
