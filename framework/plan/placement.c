/* Buffers are placed one after the other, each in the lowest gap that is large enough, or in the tightest, between the
 * buffers placed before it that are alive with it. Only the order matters. Ten orders are tried; each is repaired for
 * up to 80 rounds by moving the first buffer that exceeds the smallest extent forward. An extent equal to the live
 * peak, its lower bound, ends the search. */
#include "plan/placement.h"

#include "base/work.h"
#include "plan/spots.h"

#include <stdlib.h>
#include <string.h>

/* A buffer to be placed. */
struct item {
    struct buffer *buffer;
    size_t bytes;
    int birth, death;
    size_t offset;
};

/* What an order sorts by; the larger value comes first, but the earlier birth. */
enum key { BIRTH = 1, DEATH, BYTES, LIFETIME, AREA };

static double value_of(const struct item *item, enum key key)
{
    const int length = item->death - item->birth;
    const double value[] = {[BIRTH] = -item->birth,
                            [DEATH] = item->death,
                            [BYTES] = (double)item->bytes,
                            [LIFETIME] = length,
                            [AREA] = (double)item->bytes * (length + 1)};
    return value[key];
}

/* By keys up to the first 0: all end with birth, death and bytes in some order, so that only interchangeable buffers
 * compare as equal. */
static int compare(const void *x, const void *y, void *keys)
{
    for (const enum key *key = keys; *key; key++) {
        const double a = value_of(x, *key), b = value_of(y, *key);
        if (a != b) return a > b ? -1 : 1;
    }
    return 0;
}

enum { REPORT_EACH = 8192 };

/* Places items in their order; returns the first that does not end below the limit, or count. */
static size_t place_all(struct item *item, size_t count, bool tightest, size_t limit, struct spots *spots)
{
    spots_clear(spots);
    for (size_t i = 0; i < count; i++) {
        struct item *new = &item[i];
        if (i && i % REPORT_EACH == 0) work_report("placing buffers", (double)i, (double)count);
        new->offset = spots_gap(spots, new->birth, new->death, new->bytes, tightest);
        if (new->offset + new->bytes >= limit) return i;
        spots_add(spots, (struct spot){new->birth, new->death, new->offset, new->offset + new->bytes});
    }
    return count;
}

enum { KEYS_MAX = 5, ROUNDS = 80 };

/* Each order is tried with the lowest gap, then with the tightest. */
static enum key orders[][KEYS_MAX] = {{BYTES, BIRTH, DEATH},
                                      {AREA, BIRTH, DEATH, BYTES},
                                      {BIRTH, DEATH, BYTES},
                                      {DEATH, BIRTH, BYTES},
                                      {LIFETIME, BYTES, BIRTH, DEATH}};

enum { TRIALS = 2 * sizeof orders / sizeof *orders };

/* Rounds of a trial and trials: fewer where there are thousands of buffers, since a round compares all pairs. The first
 * order is the best as a rule. */
static int at_most(int times, double pairs, size_t count)
{
    const double rounds = pairs / ((double)count * (double)count);
    return rounds >= times ? times : 1 + (int)rounds;
}

struct placement {
    struct buffer *buffer;
    size_t count;
    struct item *item;
    struct spots spots;
    size_t extent; /* the smallest so far, which the buffers' offsets have; 0: none yet */
};

/* Places the items in their order and keeps the offsets where the extent is the smallest so far; else repairs the
 * order: the first item that ends beyond the smallest extent moves half way to the front. */
static void attempt(struct placement *p, bool tightest)
{
    const size_t failed = place_all(p->item, p->count, tightest, p->extent ? p->extent : SIZE_MAX, &p->spots);
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

static void sort(struct placement *p, enum key *keys)
{
    for (size_t i = 0; i < p->count; i++) {
        struct buffer *b = &p->buffer[i];
        p->item[i] = (struct item){b, b->bytes, b->birth, b->death, 0};
    }
    qsort_r(p->item, p->count, sizeof *p->item, compare, keys);
}

size_t placement_assign(struct buffer *buffer, int buffers)
{
    if (buffers <= 0) return 0;
    int ops = 1;
    for (int i = 0; i < buffers; i++)
        if (buffer[i].death >= ops) ops = buffer[i].death + 1;
    region_auto *region = region_create();
    struct placement p = {.buffer = buffer, .count = (size_t)buffers};
    size_t *live;
    NEW(region, live, (size_t)ops + 1);
    NEW(region, p.item, p.count);
    p.spots = spots_create(p.count, ops, region);
    const size_t least = buffers_live(buffer, buffers, ops, live);
    const int trials = at_most(TRIALS, 4e9, p.count), rounds = at_most(ROUNDS, 1e8, p.count);
    for (int trial = 0; trial < trials && p.extent != least; trial++) {
        sort(&p, orders[trial / 2]);
        for (int round = rounds; round > 0 && p.extent != least; round--) attempt(&p, trial % 2);
    }
    return p.extent;
}
