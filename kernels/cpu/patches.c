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
        spot[i].at = sample * p->image.sample + (y * p->image.width + x) * p->image.channels;
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

/* A run within one pixel. inside: of every patch. */
static void copy_pixels(const struct patches *p, const struct spot *spot, int64_t spots, const struct run *run,
                        bool inside, float *to, int64_t stride)
{
    const float *from = p->data + run->shift;
    for (int64_t i = 0; i < spots; i++, to += stride) {
        const uint64_t y = (uint64_t)(spot[i].y + run->y), x = (uint64_t)(spot[i].x + run->x);
        fetch(from + spot[lesser(i + AHEAD, spots - 1)].at, run->count);
        if (inside || (y < (uint64_t)p->image.height && x < (uint64_t)p->image.width))
            copy_numbers(to, from + spot[i].at, run->count);
        else
            memset(to, 0, (size_t)run->count * sizeof *to);
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

/* The run that begins with number term, of at most so many numbers. */
static struct run run_at(const struct patches *p, bool rows, int64_t term, int64_t most)
{
    const int64_t tap = term / p->channels, c = term % p->channels;
    struct run run = {tap / p->taps_x * p->gap, tap % p->taps_x * p->gap, .skip = rows ? c : 0};
    run.shift = (run.y * p->image.width + run.x) * p->image.channels + p->first + c;
    run.count = lesser(rows ? (p->taps_x - run.x) * p->channels - c : p->channels - c, most);
    return run;
}

/* Patches that are copied together, so that a line of the cache that has several runs is still there for the next. */
enum { SPOTS = 32 };

void patches_gather(const struct patches *p, int64_t patch, int64_t count, int64_t term, int64_t terms, float *to,
                    struct panels panels)
{
    struct spot spot[PATCHES_MOST];
    const bool rows = p->channels == p->image.channels && p->taps_x > 1 && p->gap == 1;
    const bool inside = p->y >= 0 && p->x >= 0 &&
                        p->y + (p->high - 1) * p->step + patch_extent(p, p->taps_y) <= p->image.height &&
                        p->x + (p->wide - 1) * p->step + patch_extent(p, p->taps_x) <= p->image.width;
    find_spots(p, patch, count, spot);
    for (int64_t i = 0; i < count; i += SPOTS, to += SPOTS * panels.stride)
        for (int64_t t = 0; t < terms;) {
            const int64_t panel = t / panels.wide, first = panel * panels.wide, some = lesser(SPOTS, count - i);
            const struct run run = run_at(p, rows, term + t, lesser(terms, first + panels.wide) - t);
            float *at = to + panel * panels.distance + t - first;
            if (rows)
                copy_row(p, spot + i, some, &run, at, panels.stride);
            else
                copy_pixels(p, spot + i, some, &run, inside, at, panels.stride);
            t += run.count;
        }
}

void pixels_write(const struct pixels *p, int64_t pixel, int64_t count, int64_t column, int64_t columns,
                  const float *sums, int64_t stride)
{
    struct target target = {.stride = p->step * p->image.channels, .relu = p->relu};
    if (p->bias != NULL) target.bias = p->bias + column;
    for (int64_t some; count > 0; count -= some, pixel += some, sums += some * stride) {
        const int64_t sample = pixel / (p->high * p->wide), row = pixel / p->wide % p->high, at = pixel % p->wide;
        const int64_t place = (p->y + row * p->step) * p->image.width + p->x + at * p->step;
        some = lesser(count, p->wide - at);
        target.data = p->data + sample * p->image.sample + place * p->image.channels + p->first + column;
        product_store(&target, &(struct block){.rows = some, .columns = columns}, sums, stride);
    }
}
