/* Within an order a buffer goes to the lowest gap that is large enough, or to the tightest, between the placed buffers
 * that are alive with it. Choosing the order is all the wit there is: several are tried, and each is mended some rounds
 * long, whoever ends too high being placed earlier; the smallest extent wins. The live peak, which none can beat, ends
 * the search. */
#include "plan/placement.h"

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

/* Places items in their order; returns the first that does not end below that, or count. best: takes the tightest gap,
 * else the lowest. spot: room for count, kept by offset, so that the gaps between those alive with an item come in
 * order. */
static size_t fit(struct item *item, size_t count, bool best, size_t below, struct spot *spot)
{
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
        if (chosen + new->bytes >= below) return i;
        size_t j = i;
        for (; j > 0 && spot[j - 1].offset > chosen; j--) spot[j] = spot[j - 1];
        spot[j] = (struct spot){new->birth, new->death, chosen, chosen + new->bytes};
        item[i].offset = chosen;
    }
    return count;
}

static const struct trial {
    int (*order)(const void *, const void *);
    bool best;
} trials[] = {{by_bytes, false}, {by_bytes, true},  {by_area, false}, {by_area, true},      {by_birth, false},
              {by_birth, true},  {by_death, false}, {by_death, true}, {by_lifetime, false}, {by_lifetime, true}};

enum { TRIALS = sizeof trials / sizeof *trials, ROUNDS = 80 };

/* Rounds of an order: fewer where there are thousands of buffers, each of which looks at all the others. */
static int rounds_of(size_t count)
{
    const double pairs = (double)count * (double)count, most = 1e8;
    return pairs * ROUNDS <= most ? ROUNDS : 1 + (int)(most / pairs);
}

struct placing {
    struct buffer *buffer;
    size_t count;
    struct item *item;
    struct spot *spot;
    size_t least; /* extent of what the buffers' offsets are, 0: none yet */
};

/* Places the items in their order and keeps the offsets where the extent is the least so far; else mends the order:
 * the first item that ends too high to be of use goes half way to the front. */
static void attempt(struct placing *p, bool best)
{
    const size_t failed = fit(p->item, p->count, best, p->least ? p->least : SIZE_MAX, p->spot);
    if (failed < p->count) {
        const size_t to = failed / 2;
        const struct item early = p->item[failed];
        memmove(p->item + to + 1, p->item + to, (failed - to) * sizeof early);
        p->item[to] = early;
        return;
    }
    p->least = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct item *item = &p->item[i];
        item->buffer->offset = item->offset;
        if (item->offset + item->bytes > p->least) p->least = item->offset + item->bytes;
    }
}

static void sort(struct placing *p, const struct trial *trial)
{
    for (size_t i = 0; i < p->count; i++) {
        struct buffer *b = &p->buffer[i];
        p->item[i] = (struct item){b, b->bytes, b->birth, b->death, 0};
    }
    qsort(p->item, p->count, sizeof *p->item, trial->order);
}

/* Tries until the extent is floor, which none can beat. */
static void search(struct placing *p, size_t floor)
{
    for (const struct trial *t = trials; t < trials + TRIALS && p->least != floor; t++) {
        sort(p, t);
        for (int round = rounds_of(p->count); round > 0 && p->least != floor; round--) attempt(p, t->best);
    }
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
