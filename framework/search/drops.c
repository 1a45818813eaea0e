/* It starts from nothing dropped, from all outputs that no backward reads, and from the best set of whole kinds: of
 * every subset where there are few kinds, else kind after kind, greedily. From each start single outputs are dropped
 * until nothing exceeds the limit, those that take away most bytes above it for their time; those that are not needed
 * are kept again; then each dropped output in turn is kept, and each kept one dropped, in place of others, where that
 * is faster. */
#include "search/drops.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/work.h"
#include "search/limits.h"

/* Sets that are improved: nothing, what no backward reads (its drop lets others drop their inputs), the best of kinds.
 */
enum { NOTHING, UNREAD, BEST, STARTS };

struct set {
    bool *dropped; /* by node */
    struct sequence_cost cost;
};

struct drops {
    const struct step_model *model;
    size_t limit;
    struct region *region;
    struct set now, before, start[STARTS];
    int starts;
    bool *due;  /* by node: dropped and not recomputed yet */
    bool *read; /* by node: a backward reads its value */
    int *kind, kinds;
    double *worth; /* by node: bytes above the limit that it took away for its time when last looked at */
    int *stack;
    int *order, nodes; /* that can be recomputed, by time */
    struct sequence sequence;
    double work;
};

/* Appends the recomputation of a value, after those of its inputs. */
static void recompute(struct drops *s, int value)
{
    const struct graph *graph = s->model->network->graph;
    int depth = 0;
    if (value && s->due[value - 1]) s->stack[depth++] = value - 1;
    while (depth) {
        const int n = s->stack[depth - 1];
        const struct node *node = &graph->node[n];
        int missing = -1;
        for (int k = 0; k < node->layer->inputs && missing < 0; k++)
            if (node->inputs[k] && s->due[node->inputs[k] - 1]) missing = node->inputs[k] - 1;
        if (missing >= 0) {
            s->stack[depth++] = missing;
            continue;
        }
        s->due[n] = false;
        s->sequence.item[s->sequence.length++] = n;
        depth--;
    }
}

static void evaluate(struct drops *s)
{
    const struct step_model *m = s->model;
    s->sequence.length = 0;
    s->work += m->events;
    memcpy(s->due, s->now.dropped, (size_t)m->nodes * sizeof *s->due);
    for (int i = 0; i < m->events; i++) {
        const struct step_event *e = &m->event[i];
        for (struct reading r = step_reading(m, e); e->kind != STEP_FORWARD && reading_next(&r);)
            if (!r.saved) recompute(s, r.node + 1);
        s->sequence.item[s->sequence.length++] = STEP_NEXT;
    }
    s->now.cost = sequence_evaluate(m, &s->sequence, s->limit);
}

static void copy(const struct drops *s, struct set *to, const struct set *from)
{
    memcpy(to->dropped, from->dropped, (size_t)s->model->nodes * sizeof *to->dropped);
    to->cost = from->cost;
}

static bool is_better(const struct sequence_cost *a, const struct sequence_cost *b)
{
    if ((a->excess > 0) != (b->excess > 0)) return !(a->excess > 0);
    return a->excess > 0 ? a->excess < b->excess : a->time < b->time;
}

/* ---- whole kinds ---- */

/* A layer's name; in a graph file, whose nodes are all of one layer, the last part of the node's name without its
 * number. */
static const char *kind_of(const struct drops *s, int node, int *length)
{
    const struct node *n = &s->model->network->graph->node[node];
    const char *name = s->model->network->backend ? n->layer->name : n->name, *part = strrchr(name, '.');
    if (part && strspn(part + 1, "0123456789") < strlen(part + 1)) name = part + 1;
    *length = (int)strlen(name);
    while (*length > 1 && (isdigit((unsigned char)name[*length - 1]) || strchr("._-", name[*length - 1]))) --*length;
    return name;
}

/* Numbers the kinds; without a number: those after the first few dozen. */
static void list_kinds(struct drops *s)
{
    struct {
        const char *name;
        int length;
    } kind[DROPS_KINDS_LISTED];
    int kinds = 0;
    for (int n = 0; n < s->model->nodes; n++) {
        int k = 0, length;
        const char *name = kind_of(s, n, &length);
        while (k < kinds && (kind[k].length != length || strncmp(kind[k].name, name, (size_t)length) != 0)) k++;
        s->kind[n] = k < DROPS_KINDS_LISTED ? k : -1;
        if (k < kinds || k == DROPS_KINDS_LISTED) continue;
        kind[kinds].name = name;
        kind[kinds++].length = length;
    }
    s->kinds = kinds;
}

/* Evaluates the set, and keeps the first ones and the best as starts. */
static void try_set(struct drops *s)
{
    evaluate(s);
    if (s->starts < STARTS)
        copy(s, &s->start[s->starts++], &s->now);
    else if (is_better(&s->now.cost, &s->start[BEST].cost))
        copy(s, &s->start[BEST], &s->now);
}

/* The set of all nodes of the kinds; and the same with those whose values no backward reads. Returns the better cost.
 */
static struct sequence_cost try_kinds(struct drops *s, const bool *kinds)
{
    struct sequence_cost cost[2];
    for (int more = 0; more < 2; more++) {
        for (int i = 0; i < s->nodes; i++) {
            const int n = s->order[i];
            s->now.dropped[n] = (more && !s->read[n]) || (s->kind[n] >= 0 && kinds[s->kind[n]]);
        }
        try_set(s);
        cost[more] = s->now.cost;
    }
    return cost[is_better(&cost[1], &cost[0])];
}

static void try_subsets(struct drops *s)
{
    bool kinds[DROPS_KINDS_LISTED] = {false};
    for (int subset = 0; subset < 1 << s->kinds && s->work < DROPS_WORK / 2.0; subset++) {
        for (int k = 0; k < s->kinds; k++) kinds[k] = subset >> k & 1;
        try_kinds(s, kinds);
    }
}

/* Adds or removes the kind that makes the set best, until none does. */
static void try_greedily(struct drops *s)
{
    bool kinds[DROPS_KINDS_LISTED] = {false};
    struct sequence_cost least = try_kinds(s, kinds);
    for (int best = 0; best >= 0 && s->work < DROPS_WORK / 2.0;) {
        best = -1;
        for (int k = 0; k < s->kinds; k++) {
            kinds[k] = !kinds[k];
            const struct sequence_cost cost = try_kinds(s, kinds);
            kinds[k] = !kinds[k];
            if (is_better(&cost, &least)) best = k, least = cost;
        }
        if (best >= 0) kinds[best] = !kinds[best];
    }
}

/* ---- single outputs ---- */

/* Bytes above the limit that dropping one output more takes away, for its time. */
static double gain_of(struct drops *s, int node)
{
    const struct sequence_cost before = s->now.cost;
    s->now.dropped[node] = true;
    evaluate(s);
    const double gain = (before.excess - s->now.cost.excess) / fmax(s->now.cost.time - before.time, 1e-300);
    s->now.dropped[node] = false;
    s->now.cost = before;
    return gain;
}

/* The node that looked best before, but the one left out; -1: none helped. */
static int best_known(const struct drops *s, int out)
{
    int best = -1;
    for (int i = 0; i < s->nodes; i++) {
        const int n = s->order[i];
        if (!s->now.dropped[n] && n != out && s->worth[n] > (best < 0 ? 0 : s->worth[best])) best = n;
    }
    return best;
}

/* Drops one output more, not that of node out; false: none helps. */
static bool drop_best(struct drops *s, int out)
{
    const bool exact = s->model->forwards <= DROPS_EXACT_NODES;
    for (int i = 0; exact && i < s->nodes; i++) {
        const int n = s->order[i];
        s->worth[n] = s->now.dropped[n] || n == out ? 0 : gain_of(s, n);
    }
    for (int best, before = -1; (best = best_known(s, out)) >= 0; before = best) {
        if (!exact && best != before && s->work < DROPS_WORK) {
            s->worth[best] = gain_of(s, best);
            continue;
        }
        s->now.dropped[best] = true;
        evaluate(s);
        return true;
    }
    return false;
}

static int by_time(const void *x, const void *y, void *times)
{
    const int a = *(const int *)x, b = *(const int *)y;
    const double *time = times;
    return time[a] != time[b] ? (time[a] > time[b] ? -1 : 1) : a - b;
}

/* Drops until the limit is kept, never node out, and keeps again what it leaves room for, but node in; false: the limit
 * is exceeded. */
static bool settle(struct drops *s, int out, int in)
{
    while (s->now.cost.excess > 0)
        if (s->work > 2 * DROPS_WORK || !drop_best(s, out)) return false;
    for (int i = 0; i < s->nodes && s->work < 2 * DROPS_WORK; i++) {
        const int n = s->order[i];
        const struct sequence_cost before = s->now.cost;
        if (!s->now.dropped[n] || n == in) continue;
        s->now.dropped[n] = false;
        evaluate(s);
        if (!(s->now.cost.excess > 0) && s->now.cost.time < before.time) continue;
        s->now.dropped[n] = true;
        s->now.cost = before;
    }
    return true;
}

/* Keeps an output that is dropped, or drops one that is kept, in place of others; true: that is faster. */
static bool exchange(struct drops *s, int node)
{
    const bool keep = s->now.dropped[node];
    copy(s, &s->before, &s->now);
    s->now.dropped[node] = !keep;
    evaluate(s);
    if (settle(s, keep ? node : -1, keep ? -1 : node) && s->now.cost.time < s->before.cost.time) return true;
    copy(s, &s->now, &s->before);
    return false;
}

static bool improve(struct drops *s)
{
    bool better = false;
    for (int keep = 1; keep >= 0; keep--)
        for (int i = 0; i < s->nodes && s->work < DROPS_WORK; i++)
            if (s->now.dropped[s->order[i]] == keep) better |= exchange(s, s->order[i]);
    return better;
}

/* ---- the search ---- */

static void prepare(struct drops *s)
{
    const size_t nodes = (size_t)s->model->nodes;
    NEW(s->region, s->now.dropped, nodes);
    NEW(s->region, s->before.dropped, nodes);
    for (int i = 0; i < STARTS; i++) NEW(s->region, s->start[i].dropped, nodes);
    NEW(s->region, s->due, nodes);
    NEW(s->region, s->read, nodes);
    NEW(s->region, s->kind, nodes);
    NEW(s->region, s->worth, nodes);
    NEW(s->region, s->stack, nodes);
    NEW(s->region, s->order, nodes);
    NEW(s->region, s->sequence.item, (size_t)s->model->events + nodes);
    for (int i = 0; i < s->model->events; i++) {
        const struct step_event *e = &s->model->event[i];
        for (struct reading r = step_reading(s->model, e); e->kind != STEP_FORWARD && reading_next(&r);)
            if (!r.saved) s->read[r.node] = true;
    }
    for (int n = 0; n < s->model->nodes; n++)
        if (s->model->again[n] && network_has_forward(s->model->network, n)) s->order[s->nodes++] = n;
    qsort_r(s->order, (size_t)s->nodes, sizeof *s->order, by_time, s->model->time);
    list_kinds(s);
}

struct sequence drops_search(const struct step_model *model, size_t limit, struct region *region)
{
    struct drops s = {.model = model, .limit = limit, .region = region};
    struct set best = {.cost.excess = 1};
    prepare(&s);
    NEW(region, best.dropped, (size_t)model->nodes);
    (s.kinds <= DROPS_KINDS ? try_subsets : try_greedily)(&s);
    for (int i = 0; i < s.starts; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen |= !memcmp(s.start[k].dropped, s.start[i].dropped, (size_t)model->nodes * sizeof *best.dropped);
        if (seen) continue;
        s.work = 0;
        copy(&s, &s.now, &s.start[i]);
        for (int n = 0; n < model->nodes; n++) /* at most: beside every op */
            s.worth[n] = (double)model->value[n] * model->events / fmax(model->time[n], 1e-300);
        if (!settle(&s, -1, -1)) continue;
        while (s.work < DROPS_WORK && improve(&s)) continue;
        if (is_better(&s.now.cost, &best.cost)) copy(&s, &best, &s.now);
        work_report("dropping outputs", i + 1, s.starts);
    }
    if (best.cost.excess > 0) return (struct sequence){0, NULL};
    copy(&s, &s.now, &best);
    evaluate(&s);
    return s.sequence;
}
