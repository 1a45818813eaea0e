/* First fit in several orders. Within one order a buffer goes to the lowest offset at which it overlaps none of the
 * placed buffers that are alive with it; or, two-ended, long-lived ones grow up from the bottom and short-lived ones
 * are put above them first. Choosing the order is all the wit there is: each, or where buffers are many the best alone,
 * is mended some rounds long, whoever ended highest being placed first, and the smallest extent wins. The live peak,
 * which none can beat, ends the search. */
#include "place.h"

#include <stdlib.h>
#include <string.h>

/* A buffer as the orders see it. */
struct item {
    struct buffer *buffer;
    size_t bytes;
    int birth, death;
    size_t offset;
};

static int ascending(int a, int b) { return (a > b) - (a < b); }
static int descending_bytes(const struct item *a, const struct item *b)
{
    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}
static int length(const struct item *a) { return a->death - a->birth; }

/* Ties end with birth and death, so that every order is total up to interchangeable buffers. */
static int by_bytes(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    int order = descending_bytes(a, b);
    if (!order) order = ascending(a->birth, b->birth);
    return order ? order : ascending(b->death, a->death);
}

static int by_birth(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    int order = ascending(a->birth, b->birth);
    if (!order) order = ascending(b->death, a->death);
    return order ? order : descending_bytes(a, b);
}

static int by_death(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    int order = ascending(b->death, a->death);
    if (!order) order = ascending(a->birth, b->birth);
    return order ? order : descending_bytes(a, b);
}

static int by_lifetime(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    int order = ascending(length(b), length(a));
    return order ? order : by_bytes(x, y);
}

static int by_area(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    double one = (double)a->bytes * (length(a) + 1), two = (double)b->bytes * (length(b) + 1);
    int order = (one < two) - (one > two);
    return order ? order : by_birth(x, y);
}

/* Where an item was placed. */
struct spot {
    int birth, death;
    size_t offset, end;
};

/* Places items in their order; returns the extent. best: takes the tightest gap, else the lowest. spot: room for count,
 * kept by offset, so that the gaps between those alive with an item come in order. */
static size_t fit(struct item *item, size_t count, bool best, struct spot *spot)
{
    size_t extent = 0;
    for (size_t i = 0; i < count; i++) {
        const struct item *new = &item[i];
        size_t at = 0, chosen = SIZE_MAX, slack = SIZE_MAX;
        for (size_t j = 0; j < i; j++) {
            if (spot[j].birth > new->death || new->birth > spot[j].death) continue;
            if (spot[j].offset >= at + new->bytes) {
                const size_t left = spot[j].offset - at - new->bytes;
                if (left < slack) chosen = at, slack = left;
                if (!best) break;
            }
            if (spot[j].end > at) at = spot[j].end;
        }
        if (chosen == SIZE_MAX) chosen = at;
        size_t j = i;
        for (; j > 0 && spot[j - 1].offset > chosen; j--) spot[j] = spot[j - 1];
        spot[j] = (struct spot){new->birth, new->death, chosen, chosen + new->bytes};
        item[i].offset = chosen;
        if (spot[j].end > extent) extent = spot[j].end;
    }
    return extent;
}

static const struct trial {
    int (*order)(const void *, const void *);
    bool best;
} trials[] = {{by_bytes, false}, {by_bytes, true},  {by_area, false}, {by_area, true},      {by_birth, false},
              {by_birth, true},  {by_death, false}, {by_death, true}, {by_lifetime, false}, {by_lifetime, true}};

enum { TRIALS = sizeof trials / sizeof *trials, ROUNDS = 40 /* of mending an order */, MENDED_MAX = 300 };

struct placing {
    struct buffer *buffer;
    size_t count;
    struct item *item;
    struct spot *spot;
    size_t least; /* extent of what the buffers' offsets are, 0: none yet */
};

/* Places the items in their order and keeps the offsets where the extent is the least so far. */
static bool attempt(struct placing *p, bool best)
{
    size_t extent = fit(p->item, p->count, best, p->spot);
    if (p->least && extent >= p->least) return false;
    p->least = extent;
    for (size_t i = 0; i < p->count; i++) p->item[i].buffer->offset = p->item[i].offset;
    return true;
}

static void sort(struct placing *p, const struct trial *trial)
{
    for (size_t i = 0; i < p->count; i++) {
        struct buffer *b = &p->buffer[i];
        p->item[i] = (struct item){b, b->bytes, b->birth, b->death, 0};
    }
    qsort(p->item, p->count, sizeof *p->item, trial->order);
}

/* The item that ends highest goes to the front of the order. */
static void promote_highest(struct item *item, size_t count)
{
    size_t highest = 0;
    for (size_t i = 1; i < count; i++)
        if (item[i].offset + item[i].bytes > item[highest].offset + item[highest].bytes) highest = i;
    struct item first = item[highest];
    memmove(item + 1, item, highest * sizeof *item);
    item[0] = first;
}

static void mend(struct placing *p, bool best, size_t floor)
{
    for (int round = 0; round < ROUNDS && p->least != floor; round++) {
        promote_highest(p->item, p->count);
        attempt(p, best);
    }
}

/* Tries until the extent is floor, which none can beat. */
static void search(struct placing *p, size_t floor)
{
    const struct trial *winner = trials;
    const bool all = p->count <= MENDED_MAX;
    for (const struct trial *t = trials; t < trials + TRIALS && p->least != floor; t++) {
        sort(p, t);
        if (attempt(p, t->best)) winner = t;
        if (all) mend(p, t->best, floor);
    }
    if (all || p->least == floor) return;
    sort(p, winner);
    attempt(p, winner->best);
    mend(p, winner->best, floor);
}

enum status place(struct buffer *buffer, int buffers, size_t *arena_bytes)
{
    *arena_bytes = 0;
    if (buffers <= 0) return ST_OK;
    int ops = 1;
    for (int i = 0; i < buffers; i++)
        if (buffer[i].death >= ops) ops = buffer[i].death + 1;
    const size_t count = (size_t)buffers;
    size_t *live = calloc((size_t)ops + 1, sizeof *live);
    struct placing p = {
        .buffer = buffer, .count = count, .item = calloc(count, sizeof *p.item), .spot = calloc(count, sizeof *p.spot)};
    enum status status =
        p.item && p.spot && live ? ST_OK : fail(ST_FAILED, "out of memory for placing %d buffers", buffers);
    if (status == ST_OK) search(&p, buffers_live(buffer, buffers, ops, live));
    *arena_bytes = p.least;
    free(p.item);
    free(p.spot);
    free(live);
    return status;
}
