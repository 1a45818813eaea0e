/* How long a canonical search takes depends on luck with the preorder, by which one of several boxes is taken, so many
 * of them take turns with growing limits: first for the bound as capacity, then for one nearer to the least extent
 * found. */
#include "plan/placement_search.h"

#include "base/work.h"
#include "plan/placement_canonical.h"
#include "plan/spots.h"

#include <stdlib.h>

/* What searches may visit. A pass of a preorder that places each box once takes up to 2.6 times the square of the
 * boxes. Of large buffers alone: runs, and the preorders that they begin with; on plans of ResNets of 330 to 1001
 * layers these, of the four sequences tried, found placements within the live peak in the fewest. */
static const long WORK = 100L * 1000 * 1000, LARGE_WORK = 800L * 1000 * 1000;
enum { PASSES = 3, LARGE_RUNS = 4, LARGE_FIRST = 7, LARGE_STEP = 29 };

/* All shares, with the total and without, without noise and with. */
enum { SHARES = 9, PREORDERS = 4 * SHARES };

/* A run of a preorder with at most limit; takes what it did from the work. */
static enum found run(struct search *s, size_t capacity, int i, long limit, long *work)
{
    const long most = limit < *work ? limit : *work;
    const int share = i % SHARES, noise = i / SHARES / 2;
    const struct preorder preorder = {i / SHARES % 2, i % 4 == 3, (double)share / (SHARES - 1), noise, (uint32_t)i};
    const enum found found = canonical_run(s, capacity, preorder, most);
    *work -= most - s->work;
    return found;
}

/* All preorders in turn, each with `limit`, as long as work of `all` is left. */
static enum found run_all(struct search *s, size_t capacity, long limit, long all, long *work)
{
    enum found found = UNDECIDED;
    for (int i = 0; i < PREORDERS && found == UNDECIDED && *work > 0; i++) {
        found = run(s, capacity, i, limit, work);
        work_report("placing buffers", (double)(all - *work), (double)all);
    }
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
    /* fewer turns where not all would have one */
    const long square = (long)s->boxes * s->boxes, first = PREORDERS * square > 7 * WORK ? 16 * square : square;
    long all = 7 * WORK, work = all;
    enum found found = UNDECIDED;
    for (long limit = first; found == UNDECIDED && work > 0; limit *= 2) found = run_all(s, *bound, limit, all, &work);
    if (found == FOUND) return keep(s, buffer);
    if (found == IMPOSSIBLE) *bound += step;
    work = all = 11 * WORK;
    for (long limit = first; *bound < extent && work > 0;) {
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

/* Adds the buffers of fewer than `least` bytes to the others, each in the lowest gap, and keeps what ends below the
 * extent; returns that. */
static size_t add_small(struct search *s, struct buffer *buffer, size_t extent, size_t least)
{
    region_auto *region = region_create();
    struct spots spots = spots_create((size_t)s->boxes, s->sections, region);
    size_t top = 0;
    for (int i = 0; i < s->boxes; i++)
        if (s->box[i].bytes >= least) add_box(&spots, &s->box[i]);
    for (int k = 0; k < s->boxes; k++) {
        struct box *b = &s->box[s->all[k]];
        if (b->bytes < least) {
            b->offset = spots_gap(&spots, b->from, b->to - 1, b->bytes, false);
            add_box(&spots, b);
        }
        if (b->offset + b->bytes > top) top = b->offset + b->bytes;
    }
    return top < extent ? keep(s, buffer) : extent;
}

/* Searches with the buffers of at least `least` bytes alone, for placements that the others do not raise: small buffers
 * hardly matter to the extent, but would multiply the placements to be searched. Returns IMPOSSIBLE where these alone
 * cannot be placed within the bound. */
static enum found place_large_first(struct search *s, struct buffer *buffer, size_t *extent, size_t bound, size_t least,
                                    long *work)
{
    region_auto *region = region_create();
    struct buffer *large;
    int count = 0;
    NEW(region, large, (size_t)s->boxes);
    for (int i = 0; i < s->boxes; i++)
        if (buffer[i].bytes >= least) large[count++] = buffer[i];
    struct search alone = canonical_create(large, count, region);
    const long pass = (long)PASSES * count * count, limit = pass > WORK / LARGE_RUNS ? pass : WORK / LARGE_RUNS;
    enum found found = UNDECIDED;
    for (int i = 0; i != LARGE_RUNS && *work > 0 && *extent != bound && found != IMPOSSIBLE; i++) {
        found = run(&alone, bound, (LARGE_FIRST + i * LARGE_STEP) % PREORDERS, limit, work);
        work_report("placing buffers", (double)(LARGE_WORK - *work), (double)LARGE_WORK);
        for (int k = 0, next = 0; k < s->boxes && found == FOUND; k++)
            if (buffer[k].bytes >= least) s->box[k].offset = alone.box[next++].offset;
        if (found == FOUND) *extent = add_small(s, buffer, *extent, least);
    }
    free(alone.change);
    return found;
}

size_t placement_search(struct buffer *buffer, int buffers, size_t extent, size_t *bound)
{
    /* the recursion is as deep as there are large buffers; the work would not be enough to place more than ALL_MAX
     * once; of more small ones nothing is searched, so that it never takes long */
    enum { LARGE_MAX = 10000, ALL_MAX = 6600, SMALL_MAX = 40000 };
    if (extent == *bound || buffers > SMALL_MAX) return extent;
    region_auto *region = region_create();
    struct search s = canonical_create(buffer, buffers, region);
    size_t step = 0;
    for (int i = 0; i < buffers; i++) step = common_divisor(step, buffer[i].bytes);
    for (int i = 0; i < buffers; i++) s.all[i] = i;
    canonical_rank(&s, (struct preorder){.share = 0.5});
    qsort_r(s.all, (size_t)buffers, sizeof *s.all, by_rank, &s);
    long work = LARGE_WORK;
    enum found found = UNDECIDED;
    for (int shift = 6, before = 0; shift <= 16 && extent > *bound && found != IMPOSSIBLE; shift += 2) {
        int large = 0;
        for (int i = 0; i < buffers; i++) large += buffer[i].bytes >= *bound >> shift;
        if (large > before && large <= LARGE_MAX && large < buffers)
            found = place_large_first(&s, buffer, &extent, *bound, *bound >> shift, &work);
        before = large;
    }
    if (found == IMPOSSIBLE) *bound += step;
    if (extent > *bound && buffers <= ALL_MAX) extent = minimise(&s, buffer, extent, bound, step);
    free(s.change);
    return extent;
}
