/* A placement is canonical where no buffer can move down: some placement of least extent is. A depth-first search
 * builds them from the bottom up: of the boxes that could lie at the lowest offset, it takes one that lies in the
 * fullest section, since there least can be wasted. Either this box lies there, or it lies on a box that is still to be
 * placed; that raises its least offset, and often ends the search there. Where at most `capacity` bytes may be used, a
 * node has no solution if in some section the boxes that cannot lie below an offset do not fit between it and the
 * capacity. Where no unplaced buffer is alive on both sides of an instant, the sides are independent pieces.
 *
 * How long a search takes depends on luck with the preorder, by which one of several boxes is taken, so many of them
 * take turns with growing limits: first for the bound as capacity, then for one nearer to the smallest extent found. */
#include "plan/placement_search.h"

#include "base/region.h"
#include "base/work.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum found { FOUND, IMPOSSIBLE, UNDECIDED };

/* A buffer. Sections are the sets of buffers alive at once that no other such set contains, in the order of time. */
struct box {
    size_t bytes, offset;
    size_t least; /* the end of the highest placed box that it overlaps in time */
    int from, to; /* sections [from, to) */
    double length;
    size_t total; /* unplaced bytes of its fullest section, when its piece began */
    bool placed;
};

/* Boxes in their preorder, some placed since, and the sections [from, to) that only they are in. */
struct piece {
    int *box, boxes, from, to;
};

struct change {
    int box;
    size_t least; /* before */
};

/* Compares by the total first or not, then by share * log(bytes) + (1 - share) * log(length) + a number below noise
 * that the seed draws, the larger first. */
struct preorder {
    bool total;
    double share, noise;
    uint32_t seed;
};

/* A box that cannot lie below least. */
struct floor {
    size_t least;
    const struct box *box;
};

/* All shares, with the total and without, without noise and with. */
enum { SHARES = 9, PREORDERS = 4 * SHARES };

struct search {
    struct box *box;
    int boxes, sections;
    size_t *total;         /* unplaced bytes of a section */
    size_t *above;         /* bytes of its unplaced boxes that cannot lie below some offset */
    struct floor *floor;   /* room for all boxes */
    int *crossing;         /* unplaced boxes alive in a section and in the next */
    int *all;              /* the numbers of the boxes */
    struct change *change; /* of `least`, to be undone in reverse */
    size_t changes, room;
    size_t capacity;
    struct preorder preorder;
    long work; /* boxes and sections that this run may still visit */
};

/* ---- preorder ---- */

static double rank_of(const struct search *s, int box)
{
    const struct box *b = &s->box[box];
    const double share = s->preorder.share;
    uint32_t hash = (uint32_t)box * 2654435761U ^ s->preorder.seed * 40503U;
    hash = (hash ^ hash >> 15) * 2246822519U;
    hash = (hash ^ hash >> 13) * 3266489917U;
    hash ^= hash >> 16;
    return share * log((double)b->bytes) + (1 - share) * log(b->length) + s->preorder.noise * hash / UINT32_MAX;
}

static int compare(const void *x, const void *y, void *search)
{
    const struct search *s = search;
    const int i = *(const int *)x, j = *(const int *)y;
    const size_t a = s->box[i].total, b = s->box[j].total;
    if (s->preorder.total && a != b) return a > b ? -1 : 1;
    const double p = rank_of(s, i), q = rank_of(s, j);
    return p != q ? (p > q ? -1 : 1) : i - j;
}

static void sort(struct search *s, const struct piece *piece)
{
    for (int i = 0; i < piece->boxes; i++) {
        struct box *b = &s->box[piece->box[i]];
        b->total = 0;
        for (int k = b->from; k < b->to; k++)
            if (s->total[k] > b->total) b->total = s->total[k];
    }
    qsort_r(piece->box, (size_t)piece->boxes, sizeof *piece->box, compare, s);
}

/* ---- placing a box ---- */

static void remember(struct search *s, int box)
{
    if (s->changes == s->room) {
        struct change *more = allocate(2 * s->room + 1024, sizeof *more);
        if (s->changes) memcpy(more, s->change, s->changes * sizeof *more);
        free(s->change);
        s->change = more;
        s->room = 2 * s->room + 1024;
    }
    s->change[s->changes++] = (struct change){box, s->box[box].least};
}

static void undo(struct search *s, size_t changes)
{
    while (s->changes > changes) {
        const struct change *change = &s->change[--s->changes];
        s->box[change->box].least = change->least;
    }
}

static void count(struct search *s, const struct box *box, int sign)
{
    for (int k = box->from; k < box->to; k++) s->total[k] += sign > 0 ? box->bytes : -box->bytes;
    for (int k = box->from; k + 1 < box->to; k++) s->crossing[k] += sign;
}

static int by_least(const void *x, const void *y)
{
    const struct floor *a = x, *b = y;
    return a->least < b->least ? 1 : -(a->least > b->least);
}

/* Whether in each of the sections [from, to), the unplaced boxes that cannot lie below an offset fit above it. */
static bool sections_fit(struct search *s, const struct piece *piece, int from, int to)
{
    int floors = 0;
    memset(s->above + from, 0, (size_t)(to - from) * sizeof *s->above);
    for (int i = 0; i < piece->boxes; i++) {
        const struct box *b = &s->box[piece->box[i]];
        if (!b->placed && b->from < to && b->to > from) s->floor[floors++] = (struct floor){b->least, b};
    }
    qsort(s->floor, (size_t)floors, sizeof *s->floor, by_least);
    s->work -= piece->boxes + 4 * floors;
    for (int i = 0; i < floors; i++) {
        const struct box *b = s->floor[i].box;
        const int first = b->from > from ? b->from : from, end = b->to < to ? b->to : to;
        s->work -= (end - first) / 4;
        for (int k = first; k < end; k++)
            if ((s->above[k] += b->bytes) + b->least > s->capacity) return false;
    }
    return true;
}

/* Raises the least offsets of what overlaps the new box. Returns whether all still fit in the sections of those raised.
 */
static bool raise_others(struct search *s, const struct piece *piece, const struct box *new)
{
    const size_t top = new->offset + new->bytes;
    int from = new->from, to = new->to;
    bool fit = true;
    for (int i = 0; i < piece->boxes; i++) {
        struct box *b = &s->box[piece->box[i]];
        if (b->placed || b->least >= top || b->from >= new->to || b->to <= new->from) continue;
        remember(s, piece->box[i]);
        b->least = top;
        if (b->from < from) from = b->from;
        if (b->to > to) to = b->to;
        fit &= top + b->bytes <= s->capacity;
    }
    s->work -= piece->boxes;
    return fit && sections_fit(s, piece, from, to);
}

static enum found solve(struct search *s, const struct piece *piece);

/* Solves the sections [from, to) of the piece, which no unplaced box leaves. box: room for all of the piece's. */
static enum found solve_part(struct search *s, const struct piece *piece, int from, int to, int *box)
{
    struct piece part = {box, 0, from, to};
    for (int i = 0; i < piece->boxes; i++) {
        const struct box *b = &s->box[piece->box[i]];
        if (!b->placed && from <= b->from && b->from < to) box[part.boxes++] = piece->box[i];
    }
    s->work -= piece->boxes;
    sort(s, &part);
    return solve(s, &part);
}

/* Goes on after placing the piece's box at `position`. */
static enum found solve_rest(struct search *s, const struct piece *piece, int position)
{
    const struct box *new = &s->box[piece->box[position]];
    bool parts = false;
    for (int k = new->from; k + 1 < new->to; k++) parts |= !s->crossing[k];
    if (!parts) return solve(s, piece);
    enum found found = FOUND;
    int *box = allocate((size_t)piece->boxes, sizeof *box), from = piece->from;
    for (int k = new->from; k < new->to &&found == FOUND; k++) {
        const bool last = k + 1 == new->to;
        if (!last && s->crossing[k]) continue;
        found = solve_part(s, piece, from, last ? piece->to : k + 1, box);
        from = k + 1;
    }
    free(box);
    return found;
}

/* Places the piece's box at `position`, solves the rest, and takes it away again; its offset stays. */
static enum found try_box(struct search *s, const struct piece *piece, int position)
{
    struct box *new = &s->box[piece->box[position]];
    const size_t changes = s->changes;
    new->placed = true;
    new->offset = new->least;
    count(s, new, -1);
    enum found found = IMPOSSIBLE;
    if (raise_others(s, piece, new)) found = solve_rest(s, piece, position);
    undo(s, changes);
    count(s, new, 1);
    new->placed = false;
    return found;
}

/* Of the lowest unplaced boxes one that lies in the section of most unplaced bytes; -1: none is left. */
static int choose(struct search *s, const struct piece *piece)
{
    size_t lowest = SIZE_MAX, most = 0;
    int section = 0;
    for (int i = 0; i < piece->boxes; i++) {
        const struct box *b = &s->box[piece->box[i]];
        if (!b->placed && b->least < lowest) lowest = b->least;
    }
    s->work -= 2 * piece->boxes;
    if (lowest == SIZE_MAX) return -1;
    for (int i = 0; i < piece->boxes; i++) {
        const struct box *b = &s->box[piece->box[i]];
        if (b->placed || b->least != lowest) continue;
        for (int k = b->from; k < b->to; k++)
            if (s->total[k] > most) most = s->total[k], section = k;
        s->work -= (b->to - b->from) / 4;
    }
    for (int i = 0;; i++) {
        const struct box *b = &s->box[piece->box[i]];
        if (!b->placed && b->least == lowest && b->from <= section && section < b->to) return i;
    }
}

/* The box does not lie at its least offset, so it lies on one that is not placed yet. */
static bool lift(struct search *s, const struct piece *piece, int position)
{
    struct box *new = &s->box[piece->box[position]];
    size_t least = SIZE_MAX;
    for (int i = 0; i < piece->boxes; i++) {
        const struct box *b = &s->box[piece->box[i]];
        if (b == new || b->placed || b->from >= new->to || b->to <= new->from) continue;
        if (b->least + b->bytes < least) least = b->least + b->bytes;
    }
    s->work -= piece->boxes;
    if (least == SIZE_MAX || least + new->bytes > s->capacity) return false;
    remember(s, piece->box[position]);
    new->least = least;
    return sections_fit(s, piece, new->from, new->to);
}

/* Places the unplaced boxes of a piece; where several pieces are solved in turn, offsets of the solved ones stay. */
static enum found solve(struct search *s, const struct piece *piece)
{
    for (;;) {
        if (s->work <= 0) return UNDECIDED;
        const int next = choose(s, piece);
        if (next < 0) return FOUND;
        const enum found found = try_box(s, piece, next);
        if (found != IMPOSSIBLE) return found;
        if (!lift(s, piece, next)) return IMPOSSIBLE;
    }
}

/* ---- the capacity ---- */

static enum found run(struct search *s, size_t capacity, struct preorder preorder, long work)
{
    enum found found = FOUND;
    s->capacity = capacity;
    s->preorder = preorder;
    s->work = work;
    for (int i = 0; i < s->boxes; i++) s->all[i] = i;
    const struct piece whole = {s->all, s->boxes, 0, s->sections};
    int *box = allocate((size_t)s->boxes, sizeof *box);
    for (int from = 0, k = 0; k < s->sections && found == FOUND; k++) {
        if (s->crossing[k]) continue;
        found = solve_part(s, &whole, from, k + 1, box);
        from = k + 1;
    }
    free(box);
    undo(s, 0);
    return found;
}

/* All preorders in turn, each with `limit`, as long as work of `all` is left. */
static enum found run_all(struct search *s, size_t capacity, long limit, long all, long *work)
{
    enum found found = UNDECIDED;
    for (int i = 0; i < PREORDERS && found == UNDECIDED && *work > 0; i++) {
        const long most = limit < *work ? limit : *work;
        const int share = i % SHARES, noise = i / SHARES / 2;
        const struct preorder preorder = {i / SHARES % 2, (double)share / (SHARES - 1), noise, (uint32_t)i};
        found = run(s, capacity, preorder, most);
        *work -= most - s->work;
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
    const long least = 16L * s->boxes * s->boxes; /* enough to place each box once */
    long all = 1100L * 1000 * 1000, work = all;
    enum found found = UNDECIDED;
    for (long limit = least; found == UNDECIDED && work > 0; limit *= 2) found = run_all(s, *bound, limit, all, &work);
    if (found == FOUND) return keep(s, buffer);
    if (found == IMPOSSIBLE) *bound += step;
    work = all = 700L * 1000 * 1000;
    for (long limit = least; *bound < extent && work > 0;) {
        const size_t gap = (extent - *bound) / step, capacity = extent - (gap + 7) / 8 * step;
        found = run_all(s, capacity, limit, all, &work);
        if (found == FOUND) extent = keep(s, buffer);
        if (found == IMPOSSIBLE) *bound = capacity + step;
        if (found == UNDECIDED) limit *= 2;
    }
    return extent;
}

/* ---- sections ---- */

static int compare_int(const void *x, const void *y)
{
    const int a = *(const int *)x, b = *(const int *)y;
    return a > b ? 1 : -(a < b);
}

/* How many of the ascending numbers are below the limit. */
static int count_below(const int *number, int numbers, int limit)
{
    int low = 0;
    while (low < numbers) {
        const int middle = low + (numbers - low) / 2;
        if (number[middle] < limit)
            low = middle + 1;
        else
            numbers = middle;
    }
    return low;
}

/* Sets last[] to the last op of every section: the first death after a birth; returns how many there are. birth: room
 * for one number a buffer. */
static int find_sections(const struct buffer *buffer, int buffers, int *birth, int *last)
{
    int sections = 0, from = 0;
    for (int i = 0; i < buffers; i++) birth[i] = buffer[i].birth, last[i] = buffer[i].death;
    qsort(birth, (size_t)buffers, sizeof *birth, compare_int);
    qsort(last, (size_t)buffers, sizeof *last, compare_int);
    for (int i = 0; i < buffers; i++) {
        const int born = count_below(birth, buffers, last[i] + 1);
        if (born == from) continue;
        from = born;
        last[sections++] = last[i];
    }
    return sections;
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

static struct search set_up(const struct buffer *buffer, int buffers, struct region *region)
{
    struct search s = {.boxes = buffers};
    int *last;
    NEW(region, last, (size_t)buffers);
    NEW(region, s.all, (size_t)buffers);
    s.sections = find_sections(buffer, buffers, s.all, last);
    NEW(region, s.box, (size_t)buffers);
    NEW(region, s.total, (size_t)s.sections);
    NEW(region, s.above, (size_t)s.sections);
    NEW(region, s.floor, (size_t)buffers);
    NEW(region, s.crossing, (size_t)s.sections);
    for (int i = 0; i < buffers; i++) {
        const struct buffer *b = &buffer[i];
        s.box[i] = (struct box){.bytes = b->bytes,
                                .from = count_below(last, s.sections, b->birth),
                                .to = count_below(last, s.sections, b->death + 1),
                                .length = b->death - b->birth + 1};
        count(&s, &s.box[i], 1);
    }
    return s;
}

/* ---- many small buffers ---- */

/* The lowest offset at which the box overlaps no placed one. */
static size_t lowest_gap(const struct search *s, const struct box *new)
{
    size_t at = 0;
    for (int i = 0; i < s->boxes; i++) {
        const struct box *b = &s->box[i];
        if (!b->placed || b->from >= new->to || b->to <= new->from) continue;
        if (b->offset >= at + new->bytes || b->offset + b->bytes <= at) continue;
        at = b->offset + b->bytes;
        i = -1;
    }
    return at;
}

/* Searches with the buffers of at least `least` bytes alone; the others, by falling area, take the lowest gaps. Small
 * buffers hardly matter to the extent, but would multiply the placements to be searched. */
static size_t place_large_first(struct search *s, struct buffer *buffer, size_t extent, size_t bound, size_t least)
{
    struct region *region = region_create();
    struct buffer *large;
    int count = 0, next = 0;
    NEW(region, large, (size_t)s->boxes);
    for (int i = 0; i < s->boxes; i++)
        if (buffer[i].bytes >= least) large[count++] = buffer[i];
    struct search alone = set_up(large, count, region);
    const long all = 200L * 1000 * 1000;
    long work = all;
    if (run_all(&alone, bound, 16L * count * count, all, &work) == FOUND) {
        size_t top = 0;
        for (int i = 0; i < s->boxes; i++) {
            s->all[i] = i;
            s->box[i].placed = buffer[i].bytes >= least;
            if (s->box[i].placed) s->box[i].offset = alone.box[next++].offset;
        }
        s->preorder = (struct preorder){.share = 0.5};
        sort(s, &(struct piece){s->all, s->boxes, 0, s->sections});
        for (int k = 0; k < s->boxes; k++) {
            struct box *b = &s->box[s->all[k]];
            if (!b->placed) b->offset = lowest_gap(s, b);
            b->placed = true;
            if (b->offset + b->bytes > top) top = b->offset + b->bytes;
        }
        for (int i = 0; i < s->boxes; i++) s->box[i].placed = false;
        if (top < extent) extent = keep(s, buffer);
    }
    free(alone.change);
    region_destroy(region);
    return extent;
}

size_t placement_search(struct buffer *buffer, int buffers, size_t extent, size_t *bound)
{
    enum { BUFFERS_MAX = 10000 }; /* the recursion is as deep; and the work would not be enough to place more once */
    if (buffers > BUFFERS_MAX || extent == *bound) return extent;
    struct region *region = region_create();
    struct search s = set_up(buffer, buffers, region);
    size_t step = 0;
    for (int i = 0; i < buffers; i++) step = common_divisor(step, buffer[i].bytes);
    for (int shift = 8; shift <= 16 && extent > *bound; shift += 2)
        extent = place_large_first(&s, buffer, extent, *bound, *bound >> shift);
    if (extent > *bound) extent = minimise(&s, buffer, extent, bound, step);
    free(s.change);
    region_destroy(region);
    return extent;
}
