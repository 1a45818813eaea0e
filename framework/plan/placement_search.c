/* How long a canonical search takes depends on luck with the preorder, by which one of several boxes is taken, so many
 * of them take turns with growing limits: first for the bound as capacity, then for one nearer to the least extent
 * found. */
#include "plan/placement_search.h"

#include "base/work.h"
#include "plan/placement_canonical.h"
#include "plan/spots.h"

#include <stdlib.h>

static const long WORK = 100L * 1000 * 1000;

/* All shares, with the total and without, without noise and with. */
enum { SHARES = 9, PREORDERS = 4 * SHARES };

/* All preorders in turn, each with `limit`, as long as work of `all` is left. */
static enum found run_all(struct search *s, size_t capacity, long limit, long all, long *work)
{
    enum found found = UNDECIDED;
    for (int i = 0; i < PREORDERS && found == UNDECIDED && *work > 0; i++) {
        const long most = limit < *work ? limit : *work;
        const int share = i % SHARES, noise = i / SHARES / 2;
        const struct preorder preorder = {i / SHARES % 2, i % 4 == 3, (double)share / (SHARES - 1), noise, (uint32_t)i};
        found = canonical_run(s, capacity, preorder, most);
        *work -= most - s->work;
        work_report("placing buffers", (double)(all - *work), (double)all);
    }
    return found;
}

/* The same with limits that double, until one decides or the work is done. */
static enum found run_turns(struct search *s, size_t capacity, long limit, long work)
{
    const long all = work;
    enum found found = UNDECIDED;
    for (; found == UNDECIDED && work > 0; limit *= 2) found = run_all(s, capacity, limit, all, &work);
    return found;
}

static size_t keep(const struct search *s, struct buffer *buffer)
{
    size_t extent = 0;
    for (int i = 0; i < s->boxes; i++) {
        buffer[i].offset = s->box[i].offset;
        if (buffer[i].offset + buffer[i].bytes > extent) extent = buffer[i].offset + buffer[i].bytes;
    }
    return extent;
}

/* Sizes, and so extents, are multiples of step. */
static size_t minimise(struct search *s, struct buffer *buffer, size_t extent, size_t *bound, size_t step)
{
    const long once = (long)s->boxes * s->boxes; /* enough to place each box once, as a rule */
    const long all = 11 * WORK;
    long work = all;
    enum found found = run_turns(s, *bound, once, 7 * WORK);
    if (found == FOUND) return keep(s, buffer);
    if (found == IMPOSSIBLE) *bound += step;
    for (long limit = once; *bound < extent && work > 0;) {
        const size_t gap = (extent - *bound) / step, capacity = extent - (gap + 7) / 8 * step;
        found = run_all(s, capacity, limit, all, &work);
        if (found == FOUND) extent = keep(s, buffer);
        if (found == IMPOSSIBLE) *bound = capacity + step;
        if (found == UNDECIDED) limit *= 2;
    }
    return extent;
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* ---- many small buffers ---- */

/* Sections stand for ops there. */
static void add_box(struct spots *spots, const struct box *box)
{
    spots_add(spots, (struct spot){box->from, box->to - 1, box->offset, box->offset + box->bytes});
}

static int by_rank(const void *x, const void *y, void *search)
{
    const struct search *s = search;
    const int i = *(const int *)x, j = *(const int *)y;
    const double p = s->box[i].rank, q = s->box[j].rank;
    return p != q ? (p > q ? -1 : 1) : i - j;
}

/* Searches with the buffers of at least `least` bytes alone; the others, by falling rank, take the lowest gaps. Small
 * buffers hardly matter to the extent, but would multiply the placements to be searched. Lowers *extent where all end
 * below it. */
static enum found place_large_first(struct search *s, struct buffer *buffer, size_t *extent, size_t bound, size_t least)
{
    region_auto *region = region_create();
    struct buffer *large;
    int count = 0, next = 0;
    NEW(region, large, (size_t)s->boxes);
    for (int i = 0; i < s->boxes; i++)
        if (buffer[i].bytes >= least) large[count++] = buffer[i];
    struct search alone = canonical_create(large, count, region);
    const long once = (long)count * count;
    const enum found found = run_turns(&alone, bound, once, once > WORK / 8 ? 8 * once : WORK);
    free(alone.change);
    if (found != FOUND) return found;
    struct spots spots = spots_create((size_t)s->boxes, s->sections, region);
    size_t top = 0;
    for (int i = 0; i < s->boxes; i++) {
        if (buffer[i].bytes < least) continue;
        s->box[i].offset = alone.box[next++].offset;
        add_box(&spots, &s->box[i]);
    }
    for (int k = 0; k < s->boxes; k++) {
        struct box *b = &s->box[s->all[k]];
        if (b->bytes < least) {
            b->offset = spots_gap(&spots, b->from, b->to - 1, b->bytes, false);
            add_box(&spots, b);
        }
        if (b->offset + b->bytes > top) top = b->offset + b->bytes;
    }
    if (top < *extent) *extent = keep(s, buffer);
    return found;
}

size_t placement_search(struct buffer *buffer, int buffers, size_t extent, size_t *bound)
{
    /* the recursion is as deep as there are buffers, and the work would not be enough to place more once; of more
     * small ones nothing is searched, so that it never takes long */
    enum { BUFFERS_MAX = 10000, SMALL_MAX = 40000 };
    if (extent == *bound || buffers > SMALL_MAX) return extent;
    region_auto *region = region_create();
    struct search s = canonical_create(buffer, buffers, region);
    size_t step = 0;
    for (int i = 0; i < buffers; i++) step = common_divisor(step, buffer[i].bytes);
    for (int i = 0; i < buffers; i++) s.all[i] = i;
    canonical_rank(&s, (struct preorder){.share = 0.75});
    qsort_r(s.all, (size_t)buffers, sizeof *s.all, by_rank, &s);
    enum found found = FOUND; /* else more buffers are not placed either */
    for (int shift = 6; shift <= 12 && extent > *bound && found == FOUND; shift += 2) {
        int large = 0;
        for (int i = 0; i < buffers; i++) large += buffer[i].bytes >= *bound >> shift;
        found = large > BUFFERS_MAX ? UNDECIDED : place_large_first(&s, buffer, &extent, *bound, *bound >> shift);
    }
    if (found == IMPOSSIBLE) *bound += step;
    if (extent > *bound && buffers <= BUFFERS_MAX) extent = minimise(&s, buffer, extent, bound, step);
    free(s.change);
    return extent;
}
