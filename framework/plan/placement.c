/* Buffers are placed one after the other, each in the lowest gap that is large enough, or in the tightest, between the
 * buffers placed before it that are alive with it. Only the order matters. Ten orders are tried; each is repaired for
 * up to 80 rounds by moving the first buffer that exceeds the smallest extent forward. An extent equal to the live
 * peak, its lower bound, ends the search. */
#include "plan/placement.h"

#include "base/region.h"

#include <stdlib.h>
#include <string.h>

/* A buffer to be placed. */
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

/* Ties are broken by birth and death, so that only interchangeable buffers compare as equal. */
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

/* Places items in their order; returns the first that does not end below the limit, or count. tightest: takes the
 * tightest gap, else the lowest. spot: room for count, sorted by offset, so that gaps come in that order. */
static size_t place_all(struct item *item, size_t count, bool tightest, size_t limit, struct spot *spot)
{
    for (size_t i = 0; i < count; i++) {
        const struct item *new = &item[i];
        size_t at = 0, chosen = SIZE_MAX, slack = SIZE_MAX;
        for (size_t j = 0; j < i; j++) {
            if (spot[j].birth > new->death || new->birth > spot[j].death) continue;
            if (spot[j].offset >= at + new->bytes) {
                const size_t left = spot[j].offset - at - new->bytes;
                if (left < slack) chosen = at, slack = left;
                if (!tightest) break;
            }
            if (spot[j].end > at) at = spot[j].end;
        }
        if (chosen == SIZE_MAX) chosen = at;
        if (chosen + new->bytes >= limit) return i;
        size_t j = i;
        for (; j > 0 && spot[j - 1].offset > chosen; j--) spot[j] = spot[j - 1];
        spot[j] = (struct spot){new->birth, new->death, chosen, chosen + new->bytes};
        item[i].offset = chosen;
    }
    return count;
}

static const struct trial {
    int (*order)(const void *, const void *);
    bool tightest;
} trials[] = {{by_bytes, false}, {by_bytes, true},  {by_area, false}, {by_area, true},      {by_birth, false},
              {by_birth, true},  {by_death, false}, {by_death, true}, {by_lifetime, false}, {by_lifetime, true}};

enum { TRIALS = sizeof trials / sizeof *trials, ROUNDS = 80 };

/* Rounds of an order: fewer where there are thousands of buffers, since a round compares all pairs. */
static int rounds_of(size_t count)
{
    const double pairs = (double)count * (double)count, most = 1e8;
    return pairs * ROUNDS <= most ? ROUNDS : 1 + (int)(most / pairs);
}

struct placement {
    struct buffer *buffer;
    size_t count;
    struct item *item;
    struct spot *spot;
    size_t extent; /* the smallest so far, which the buffers' offsets have; 0: none yet */
};

/* Places the items in their order and keeps the offsets where the extent is the smallest so far; else repairs the
 * order: the first item that ends beyond the smallest extent moves half way to the front. */
static void attempt(struct placement *p, bool tightest)
{
    const size_t failed = place_all(p->item, p->count, tightest, p->extent ? p->extent : SIZE_MAX, p->spot);
    if (failed < p->count) {
        const size_t to = failed / 2;
        const struct item early = p->item[failed];
        memmove(p->item + to + 1, p->item + to, (failed - to) * sizeof early);
        p->item[to] = early;
        return;
    }
    p->extent = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct item *item = &p->item[i];
        item->buffer->offset = item->offset;
        if (item->offset + item->bytes > p->extent) p->extent = item->offset + item->bytes;
    }
}

static void sort(struct placement *p, const struct trial *trial)
{
    for (size_t i = 0; i < p->count; i++) {
        struct buffer *b = &p->buffer[i];
        p->item[i] = (struct item){b, b->bytes, b->birth, b->death, 0};
    }
    qsort(p->item, p->count, sizeof *p->item, trial->order);
}

size_t placement_assign(struct buffer *buffer, int buffers)
{
    if (buffers <= 0) return 0;
    int ops = 1;
    for (int i = 0; i < buffers; i++)
        if (buffer[i].death >= ops) ops = buffer[i].death + 1;
    struct region *region = region_create();
    struct placement p = {.buffer = buffer, .count = (size_t)buffers};
    size_t *live;
    NEW(region, live, (size_t)ops + 1);
    NEW(region, p.item, p.count);
    NEW(region, p.spot, p.count);
    const size_t least = buffers_live(buffer, buffers, ops, live);
    for (const struct trial *t = trials; t < trials + TRIALS && p.extent != least; t++) {
        sort(&p, t);
        for (int round = rounds_of(p.count); round > 0 && p.extent != least; round--) attempt(&p, t->tightest);
    }
    region_destroy(region);
    return p.extent;
}
