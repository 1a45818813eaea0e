/* A placement is canonical where no buffer can move down: some placement of least extent is. A depth-first search
 * builds them from the bottom up: of the boxes that could lie at the lowest offset, it takes one. Either this box lies
 * there, or it lies on a box that is still to be placed; that raises its least offset, and often ends the search there.
 * Where at most `capacity` bytes may be used, a node has no solution if in some section the boxes that cannot lie below
 * an offset do not fit between it and the capacity. Where no unplaced buffer is alive on both sides of an instant, the
 * sides are independent pieces. What can follow depends on the least offsets of the unplaced boxes alone, so a table of
 * their hashes tells what failed before.
 *
 * The box is taken from the section where failing is the likeliest: few boxes can lie at its bottom, little space may
 * be wasted, and the search failed there before (weights of failures as in Boussemart et al., ECAI 2004). How long a
 * search takes still depends on luck with the preorder, by which one of several boxes is taken, so many of them take
 * turns with growing limits: first for the bound as capacity, then for one nearer to the smallest extent found. */
#include "plan/placement_canonical.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- preorder ---- */

static double rank_of(const struct search *s, int box, const struct preorder *preorder, size_t peak)
{
    const struct box *b = &s->box[box];
    uint32_t hash = (uint32_t)box * 2654435761U ^ preorder->seed * 40503U;
    hash = (hash ^ hash >> 15) * 2246822519U;
    hash = (hash ^ hash >> 13) * 3266489917U;
    hash ^= hash >> 16;
    size_t total = 0;
    for (int k = b->from; k < b->to && preorder->total; k++)
        if (s->total[k] > total) total = s->total[k];
    return 1000.0 * (double)total / (double)peak + preorder->share * log((double)b->bytes) +
           (1 - preorder->share) * log(b->length) + preorder->noise * hash / UINT32_MAX;
}

void canonical_rank(struct search *s, struct preorder preorder)
{
    size_t peak = 1;
    for (int k = 0; k < s->sections; k++)
        if (s->total[k] > peak) peak = s->total[k];
    for (int i = 0; i < s->boxes; i++) s->box[i].rank = rank_of(s, i, &preorder, peak);
}

/* ---- the list ---- */

static void detach(struct search *s, int box)
{
    const struct box *b = &s->box[box];
    s->box[b->previous].next = b->next;
    s->box[b->next].previous = b->previous;
}

static void attach(struct search *s, int box, int previous)
{
    struct box *b = &s->box[box];
    b->previous = previous;
    b->next = s->box[previous].next;
    s->box[b->next].previous = s->box[previous].next = box;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93U;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93U;
    return x ^ x >> 32;
}

/* The state is the sum of these; two of the few million states of a search do not meet in 64 bits. */
static uint64_t hash_of(const struct search *s, int box)
{
    return mix(mix(mix((uint64_t)box + 1) + s->box[box].least) + s->capacity);
}

static void clear_list(struct search *s)
{
    s->box[s->boxes].previous = s->box[s->boxes].next = s->boxes;
    s->state = 0;
}

static void append(struct search *s, int box)
{
    attach(s, box, s->box[s->boxes].previous);
    s->state += hash_of(s, box);
}

static void raise(struct search *s, int box, size_t least, int before)
{
    struct box *b = &s->box[box];
    if (s->changes == s->room) {
        struct change *more = allocate(2 * s->room + 1024, sizeof *more);
        if (s->changes) memcpy(more, s->change, s->changes * sizeof *more);
        free(s->change);
        s->change = more;
        s->room = 2 * s->room + 1024;
    }
    s->change[s->changes++] = (struct change){box, b->previous, b->least, s->state};
    s->state -= hash_of(s, box);
    detach(s, box);
    b->least = least;
    attach(s, box, s->box[before].previous);
    s->state += hash_of(s, box);
}

static void undo(struct search *s, size_t changes)
{
    while (s->changes > changes) {
        const struct change *change = &s->change[--s->changes];
        detach(s, change->box);
        s->box[change->box].least = change->least;
        attach(s, change->box, change->previous);
        s->state = change->state;
    }
}

/* ---- placing a box ---- */

static void count(struct search *s, const struct box *box, int sign)
{
    for (int k = box->from; k < box->to; k++) s->total[k] += sign > 0 ? box->bytes : -box->bytes;
    for (int k = box->from; k + 1 < box->to; k++) s->crossing[k] += sign;
}

/* Whether in each of the sections [from, to), the unplaced boxes that cannot lie below an offset fit above it. */
static bool sections_fit(struct search *s, int from, int to)
{
    memset(s->above + from, 0, (size_t)(to - from) * sizeof *s->above);
    for (int i = s->box[s->boxes].previous; i != s->boxes; i = s->box[i].previous) {
        const struct box *b = &s->box[i];
        const int first = b->from > from ? b->from : from, end = b->to < to ? b->to : to;
        s->work -= 2;
        if (first >= end) continue;
        s->work -= (end - first) / 4;
        size_t most = 0;
        for (int k = first; k < end; k++) {
            s->above[k] += b->bytes;
            if (s->above[k] > most) most = s->above[k];
        }
        if (most + b->least <= s->capacity) continue;
        int k = first;
        while (s->above[k] < most) k++;
        s->weight[k]++;
        return false;
    }
    return true;
}

/* Raises the least offsets of what overlaps the new box. Returns whether all still fit in the sections of those raised.
 */
static bool raise_others(struct search *s, const struct box *new)
{
    const size_t top = new->offset + new->bytes;
    int from = new->from, to = new->to, last = s->box[s->boxes].next, next;
    while (last != s->boxes && s->box[last].least < top) last = s->box[last].next, s->work--;
    for (int i = s->box[s->boxes].next; i != last && s->box[i].least < top; i = next) {
        const struct box *b = &s->box[i];
        next = b->next;
        if (b->from >= new->to || b->to <= new->from) continue;
        raise(s, i, top, last);
        if (b->from < from) from = b->from;
        if (b->to > to) to = b->to;
    }
    return sections_fit(s, from, to);
}

static enum found solve(struct search *s);

/* Solves the parts of the list's piece between the sections in [from, to) that no unplaced box leaves. First looks for
 * one that is known to fail. */
static enum found solve_parts(struct search *s, int from, int to)
{
    const uint64_t state = s->state;
    int boxes = 0, *box = allocate((size_t)s->boxes + 1, sizeof *box);
    for (int i = s->box[s->boxes].next; i != s->boxes; i = s->box[i].next) box[boxes++] = i;
    enum found found = FOUND;
    for (int pass = 0; pass < 2; pass++)
        for (int first = 0, k = from; k < to && found == FOUND; k++) {
            const int end = k + 1 == to ? s->sections : k + 1;
            if (k + 1 < to && s->crossing[k]) continue;
            clear_list(s);
            for (int i = 0; i < boxes; i++)
                if (first <= s->box[box[i]].from && s->box[box[i]].from < end) append(s, box[i]);
            s->work -= boxes;
            first = end;
            const size_t changes = s->changes;
            if (pass) found = solve(s);
            if (!pass && s->failed[s->state % STATES] == s->state && s->state) found = IMPOSSIBLE;
            undo(s, changes);
        }
    clear_list(s);
    for (int i = 0; i < boxes; i++) attach(s, box[i], s->box[s->boxes].previous);
    s->state = state;
    free(box);
    return found;
}

/* Goes on after placing the box. */
static enum found solve_rest(struct search *s, const struct box *new)
{
    for (int k = new->from; k + 1 < new->to; k++)
        if (!s->crossing[k]) return solve_parts(s, new->from, new->to);
    return solve(s);
}

/* Places the box, solves the rest, and takes it away again; its offset stays. */
static enum found try_box(struct search *s, int box)
{
    struct box *new = &s->box[box];
    const size_t changes = s->changes;
    const uint64_t state = s->state;
    s->state -= hash_of(s, box);
    new->offset = new->least;
    detach(s, box);
    count(s, new, -1);
    enum found found = IMPOSSIBLE;
    if (raise_others(s, new)) found = solve_rest(s, new);
    undo(s, changes);
    count(s, new, 1);
    attach(s, box, new->previous);
    s->state = state;
    return found;
}

/* The section in which to place a box at the lowest offset: with few boxes that could lie there, little space to waste
 * and many failures. */
static int choose_section(struct search *s)
{
    const size_t lowest = s->box[s->box[s->boxes].next].least;
    int from = s->sections, to = 0, section = 0;
    for (int i = s->box[s->boxes].next; i != s->boxes && s->box[i].least == lowest; i = s->box[i].next) {
        const struct box *b = &s->box[i];
        for (; from > b->from; from--) s->lowest[from - 1] = 0;
        if (to < from) to = from;
        for (; to < b->to; to++) s->lowest[to] = 0;
        for (int k = b->from; k < b->to; k++) s->lowest[k]++;
        s->work -= 2 + (b->to - b->from) / 4;
    }
    double best = -1;
    s->work -= (to - from) / 2;
    for (int k = from; k < to; k++) {
        if (!s->lowest[k]) continue;
        const double choices = s->lowest[k], waste = (double)(s->capacity - lowest - s->total[k]) / (double)s->capacity;
        const double value =
            s->fullest ? (double)s->total[k] : (1 + 0.003 * s->weight[k]) / ((0.05 + waste) * choices * choices);
        if (value > best) best = value, section = k;
    }
    return section;
}

/* Of the lowest boxes in the section the first in the preorder. */
static int choose(struct search *s)
{
    const int section = choose_section(s), first = s->box[s->boxes].next;
    int best = -1;
    for (int i = first; i != s->boxes && s->box[i].least == s->box[first].least; i = s->box[i].next) {
        const struct box *b = &s->box[i];
        if (b->from <= section && section < b->to && (best < 0 || b->rank > s->box[best].rank)) best = i;
    }
    return best;
}

/* The box does not lie at its least offset, so it lies on one that is not placed yet. */
static bool lift(struct search *s, int box)
{
    const struct box *new = &s->box[box];
    size_t least = SIZE_MAX;
    int i = s->box[s->boxes].next;
    for (; i != s->boxes && s->box[i].least < least; i = s->box[i].next) {
        const struct box *b = &s->box[i];
        s->work--;
        if (b == new || b->from >= new->to || b->to <= new->from) continue;
        if (b->least + b->bytes < least) least = b->least + b->bytes;
    }
    if (least == SIZE_MAX || least + new->bytes > s->capacity) return false;
    for (i = new->next; i != s->boxes && s->box[i].least < least;) i = s->box[i].next;
    raise(s, box, least, i);
    return sections_fit(s, new->from, new->to);
}

/* Places the boxes of the list; where several pieces are solved in turn, offsets of the solved ones stay. The caller
 * undoes its changes. */
static enum found solve(struct search *s)
{
    const size_t changes = s->changes;
    do {
        if (s->work <= 0) return UNDECIDED;
        if (s->box[s->boxes].next == s->boxes) return FOUND;
        if (s->failed[s->state % STATES] == s->state) break;
        const int next = choose(s);
        const enum found found = try_box(s, next);
        if (found != IMPOSSIBLE) return found;
        if (!lift(s, next)) break;
    } while (true);
    for (size_t i = changes; i < s->changes; i++) s->failed[s->change[i].state % STATES] = s->change[i].state;
    s->failed[s->state % STATES] = s->state;
    return IMPOSSIBLE;
}

/* ---- a run ---- */

enum found canonical_run(struct search *s, size_t capacity, struct preorder preorder, long work)
{
    s->capacity = capacity;
    s->work = work;
    s->fullest = preorder.fullest;
    canonical_rank(s, preorder);
    for (int k = 0; k < s->sections; k++) s->weight[k] *= 0.9;
    clear_list(s);
    for (int i = 0; i < s->boxes; i++) append(s, i);
    return solve_parts(s, 0, s->sections);
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

struct search canonical_create(const struct buffer *buffer, int buffers, struct region *region)
{
    struct search s = {.boxes = buffers};
    int *last;
    NEW(region, last, (size_t)buffers);
    NEW(region, s.all, (size_t)buffers);
    s.sections = find_sections(buffer, buffers, s.all, last);
    NEW(region, s.box, (size_t)buffers + 1);
    NEW(region, s.total, (size_t)s.sections);
    NEW(region, s.above, (size_t)s.sections);
    NEW(region, s.crossing, (size_t)s.sections);
    NEW(region, s.lowest, (size_t)s.sections);
    NEW(region, s.weight, (size_t)s.sections);
    NEW(region, s.failed, STATES);
    s.box[buffers].least = SIZE_MAX;
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
