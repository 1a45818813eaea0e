#include "search/knapsack_bound.h"

#include <math.h>
#include <stdlib.h>

#include "search/limits.h"

/* What later events read of one forward: its value, its saved tensors, or both. */
enum holds { HOLDS_VALUE = 1, HOLDS_SAVED = 2, HOLDS_MAX = 4 };

struct item {
    size_t bytes;
    double time;
    int node;
    unsigned holds; /* enum holds, or'ed */
};

struct knapsack {
    const struct moments *moments;
    struct item *all; /* one a node for each of enum holds, by worth */
    int alls;
    /* of one moment */
    unsigned *held;    /* by node: enum holds */
    struct item *item; /* by worth */
    size_t *bytes;     /* of items [0, i) */
    double *time;      /* of items [i, items) */
    int items;
    size_t room;
    /* of all moments */
    int64_t scanned;
    int branches; /* after BOUNDS_BRANCHES the relaxed bounds are used, which hold, too */
    double most;  /* the largest bound of a moment so far: a search that cannot exceed it is cut off */
    double least; /* least time of the items that one moment leaves out, so far */
};

static int by_worth(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    double one = a->time * (double)b->bytes, two = b->time * (double)a->bytes;
    return one != two ? (one < two) - (one > two) : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static void list_items(struct knapsack *s)
{
    const struct step_model *model = s->moments->model;
    for (int i = 0; i < model->nodes; i++)
        for (unsigned holds = 1; holds < HOLDS_MAX; holds++) {
            struct item made = {.time = model->time[i], .node = i, .holds = holds};
            if (holds & HOLDS_VALUE) made.bytes += model->value[i];
            if (holds & HOLDS_SAVED) made.bytes += model->saved[i];
            if (made.bytes) s->all[s->alls++] = made;
        }
    qsort(s->all, (size_t)s->alls, sizeof *s->all, by_worth);
}

/* Collects the items of a moment. */
static void gather(struct knapsack *s, const struct moment *at)
{
    const struct moments *m = s->moments;
    moment_mark(m, at, true);
    for (int n = 0; n < m->model->nodes; n++)
        s->held[n] =
            n >= at->done ? 0 : (moment_value(m, at, n) ? HOLDS_VALUE : 0) | (moment_saved(m, at, n) ? HOLDS_SAVED : 0);
    moment_mark(m, at, false);
    s->items = 0;
    s->room = at->room;
    s->scanned += s->alls;
    for (int i = 0; i < s->alls; i++)
        if (s->all[i].holds == s->held[s->all[i].node]) s->item[s->items++] = s->all[i];
    s->bytes[0] = 0;
    for (int i = 0; i < s->items; i++) s->bytes[i + 1] = s->bytes[i] + s->item[i].bytes;
    s->time[s->items] = 0;
    for (int i = s->items; i-- > 0;) s->time[i] = s->time[i + 1] + s->item[i].time;
}

/* Least time left out of items [from, items) with room bytes, where items may be divided; *most: where none may, it is
 * at most that of keeping all that come before the first one that does not fit. */
static double relaxed(const struct knapsack *s, int from, size_t room, double *most)
{
    int low = from, high = s->items; /* items [from, low) fit */
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (s->bytes[middle] - s->bytes[from] <= room)
            low = middle;
        else
            high = middle - 1;
    }
    *most = s->time[low];
    if (low == s->items) return 0;
    size_t left = room - (s->bytes[low] - s->bytes[from]);
    return s->time[low + 1] + s->item[low].time * (1 - (double)left / (double)s->item[low].bytes);
}

static void branch(struct knapsack *s, int from, size_t room, double out)
{
    double most;
    while (from < s->items && ++s->branches < BOUNDS_BRANCHES) {
        if (s->least <= s->most || out + relaxed(s, from, room, &most) >= s->least) return;
        if (s->item[from].bytes <= room) branch(s, from + 1, room - s->item[from].bytes, out);
        out += s->item[from++].time;
    }
    if (from == s->items && out < s->least) s->least = out;
}

/* Time left out where each item that still fits is kept, in order of worth. */
static double greedy(const struct knapsack *s)
{
    size_t room = s->room;
    double out = 0;
    for (int i = 0; i < s->items; i++) {
        if (s->item[i].bytes <= room)
            room -= s->item[i].bytes;
        else
            out += s->item[i].time;
    }
    return out;
}

/* The bound of the moment's items undivided, where that may be larger than the most so far. */
static void search_exactly(struct knapsack *s)
{
    if ((s->least = greedy(s)) <= s->most) return;
    branch(s, 0, s->room, 0);
    if (s->branches < BOUNDS_BRANCHES && s->least > s->most) s->most = s->least;
}

/* All moments are relaxed first; then those are searched whose exact bound may be larger. */
double knapsack_bound(const struct moments *moments, bool divided)
{
    const double noise = 1e-9;
    region_auto *region = region_create();
    struct knapsack s = {.moments = moments};
    const size_t nodes = (size_t)moments->model->nodes;
    double *most;
    int count = 0;
    NEW(region, s.all, nodes * (HOLDS_MAX - 1));
    NEW(region, s.held, nodes);
    NEW(region, s.item, nodes);
    NEW(region, s.bytes, nodes + 1);
    NEW(region, s.time, nodes + 1);
    NEW(region, most, (size_t)moments->count);
    list_items(&s);
    for (; count < moments->count && moments->moment[count].excess && s.scanned < BOUNDS_KNAPSACK_ITEMS; count++) {
        gather(&s, &moments->moment[count]);
        s.most = fmax(s.most, relaxed(&s, 0, s.room, &most[count]));
    }
    for (int i = 0; i < count && !divided && s.branches < BOUNDS_BRANCHES; i++) {
        if (most[i] * (1 + noise) <= s.most) continue;
        gather(&s, &moments->moment[i]);
        search_exactly(&s);
    }
    return s.most;
}
