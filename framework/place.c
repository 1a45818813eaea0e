/* First fit in several orders. Within one order a buffer goes to the lowest offset at which it overlaps none of the
 * placed buffers that are alive with it; or, two-ended, long-lived ones grow up from the bottom and short-lived ones
 * are put above them first. Choosing the order is all the wit there is: each is mended some rounds long, whoever ended
 * highest being placed first, and the smallest extent wins. The live peak, which none can beat, ends the search. */
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

static int by_offset(const void *x, const void *y)
{
    const struct item *a = *(struct item *const *)x, *b = *(struct item *const *)y;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* The items placed so far, by when they live: in blocks of BLOCK ops, those born in the block and those already alive
 * when it begins. Whoever is alive with an item was alive when the block of its birth began or is born in one of its
 * blocks. */
enum { BLOCK = 32 };
struct entry {
    size_t item;
    int next; /* entry, 0: none */
};
struct calendar {
    int blocks, used;
    int *born, *alive; /* block -> first entry */
    struct entry *entry;
};

static void calendar_add(struct calendar *c, int *first, size_t item)
{
    c->entry[++c->used] = (struct entry){item, *first};
    *first = c->used;
}

/* Appends those of a list that are alive with item[i]. */
static size_t gather(const struct calendar *c, int first, struct item *item, size_t i, struct item **neighbour,
                     size_t neighbours)
{
    for (int e = first; e; e = c->entry[e].next) {
        struct item *other = &item[c->entry[e].item];
        if (other->birth <= item[i].death && item[i].birth <= other->death) neighbour[neighbours++] = other;
    }
    return neighbours;
}

/* Places items in their order; returns the extent. fit: best takes the tightest gap, else the lowest. neighbour: room
 * for count pointers. */
static size_t fit(struct item *item, size_t count, bool best, struct calendar *calendar, struct item **neighbour)
{
    size_t extent = 0;
    calendar->used = 0;
    memset(calendar->born, 0, (size_t)calendar->blocks * sizeof *calendar->born);
    memset(calendar->alive, 0, (size_t)calendar->blocks * sizeof *calendar->alive);
    for (size_t i = 0; i < count; i++) {
        const int from = item[i].birth / BLOCK, to = item[i].death / BLOCK;
        size_t neighbours = gather(calendar, calendar->alive[from], item, i, neighbour, 0);
        for (int b = from; b <= to; b++)
            neighbours = gather(calendar, calendar->born[b], item, i, neighbour, neighbours);
        qsort(neighbour, neighbours, sizeof *neighbour, by_offset);
        size_t at = 0, chosen = SIZE_MAX, slack = SIZE_MAX;
        for (size_t j = 0; j < neighbours; j++) {
            if (neighbour[j]->offset >= at + item[i].bytes) {
                size_t left = neighbour[j]->offset - at - item[i].bytes;
                if (left < slack) chosen = at, slack = left;
                if (!best) break;
            }
            size_t end = neighbour[j]->offset + neighbour[j]->bytes;
            if (end > at) at = end;
        }
        item[i].offset = chosen == SIZE_MAX ? at : chosen;
        calendar_add(calendar, &calendar->born[from], i);
        for (int b = from + 1; b <= to; b++) calendar_add(calendar, &calendar->alive[b], i);
        if (item[i].offset + item[i].bytes > extent) extent = item[i].offset + item[i].bytes;
    }
    return extent;
}

static const struct trial {
    int (*order)(const void *, const void *);
    bool best;
} trials[] = {{by_bytes, false}, {by_bytes, true},  {by_area, false}, {by_area, true},      {by_birth, false},
              {by_birth, true},  {by_death, false}, {by_death, true}, {by_lifetime, false}, {by_lifetime, true}};

enum { TRIALS = sizeof trials / sizeof *trials, ROUNDS = 40 /* of mending each */ };

struct placing {
    struct buffer *buffer;
    size_t count;
    struct item *item, **neighbour;
    struct calendar calendar;
    size_t least; /* extent of what the buffers' offsets are, 0: none yet */
};

/* Places the items in their order and keeps the offsets where the extent is the least so far. */
static void attempt(struct placing *p, bool best)
{
    size_t extent = fit(p->item, p->count, best, &p->calendar, p->neighbour);
    if (p->least && extent >= p->least) return;
    p->least = extent;
    for (size_t i = 0; i < p->count; i++) p->item[i].buffer->offset = p->item[i].offset;
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

/* Tries until the extent is floor, which none can beat. */
static void search(struct placing *p, size_t floor)
{
    for (const struct trial *t = trials; t < trials + TRIALS && p->least != floor; t++) {
        sort(p, t);
        attempt(p, t->best);
        for (int round = 0; round < ROUNDS && p->least != floor; round++) {
            promote_highest(p->item, p->count);
            attempt(p, t->best);
        }
    }
}

enum status place(struct buffer *buffer, int buffers, size_t *arena_bytes)
{
    *arena_bytes = 0;
    if (buffers <= 0) return ST_OK;
    int ops = 1;
    for (int i = 0; i < buffers; i++)
        if (buffer[i].death >= ops) ops = buffer[i].death + 1;
    size_t count = (size_t)buffers, entries = 1, *live = calloc((size_t)ops + 1, sizeof *live);
    for (int i = 0; i < buffers; i++) entries += (size_t)(1 + buffer[i].death / BLOCK - buffer[i].birth / BLOCK);
    struct placing p = {.buffer = buffer,
                        .count = count,
                        .item = calloc(count, sizeof *p.item),
                        .neighbour = calloc(count, sizeof *p.neighbour),
                        .calendar = {.blocks = ops / BLOCK + 1, .entry = calloc(entries, sizeof *p.calendar.entry)}};
    p.calendar.born = calloc((size_t)p.calendar.blocks, sizeof *p.calendar.born);
    p.calendar.alive = calloc((size_t)p.calendar.blocks, sizeof *p.calendar.alive);
    enum status status = p.item && p.neighbour && live && p.calendar.entry && p.calendar.born && p.calendar.alive
                             ? ST_OK
                             : fail(ST_FAILED, "out of memory for placing %d buffers", buffers);
    if (status == ST_OK) search(&p, buffers_live(buffer, buffers, ops, live));
    *arena_bytes = p.least;
    free(p.item);
    free(p.neighbour);
    free(live);
    free(p.calendar.entry);
    free(p.calendar.born);
    free(p.calendar.alive);
    return status;
}
