/* Drops the output that takes away most bytes above the limit for its time, until none are left. Then each dropped
 * output in turn is kept and others are dropped in its place, where that is faster, up to a number of evaluations. */
#include "search/drop_search.h"

#include <math.h>
#include <string.h>

enum { EVALUATIONS_MAX = 50000 };

struct drop_search {
    const struct step_model *model;
    size_t limit;
    struct region *region;
    bool *dropped, *due; /* by node; due: and not recomputed yet */
    bool *read;          /* by node: by a backward; what none reads is dropped from the start */
    struct sequence sequence;
    struct sequence_cost cost; /* of what is dropped */
    bool *before;              /* room for a copy of dropped */
    int evaluations;
};

/* Appends the recomputation of a value, after those of its inputs. */
static void recompute(struct drop_search *s, int value)
{
    const int n = value - 1;
    if (n < 0 || !s->due[n]) return;
    s->due[n] = false;
    const struct node *node = &s->model->network->graph->node[n];
    for (int k = 0; k < node->layer->inputs; k++) recompute(s, node->inputs[k]);
    s->sequence.item[s->sequence.length++] = n;
}

static struct sequence_cost evaluate(struct drop_search *s)
{
    const struct step_model *m = s->model;
    s->sequence.length = 0;
    s->evaluations++;
    for (int n = 0; n < m->nodes; n++) s->due[n] = s->dropped[n];
    for (int i = 0; i < m->events; i++) {
        const struct step_event *e = &m->event[i];
        const struct node *node = &m->network->graph->node[e->node];
        const bool backward = e->kind != STEP_FORWARD;
        for (int k = 0; backward && k < inputs_read(e->reads, node->layer->inputs); k++) recompute(s, node->inputs[k]);
        if (backward && e->reads & READS_Y) recompute(s, node->output);
        s->sequence.item[s->sequence.length++] = STEP_NEXT;
    }
    return sequence_evaluate(m, &s->sequence, s->limit);
}

static void find_read(struct drop_search *s)
{
    for (int i = s->model->nodes; i < s->model->events; i++) {
        const struct step_event *e = &s->model->event[i];
        const struct node *node = &s->model->network->graph->node[e->node];
        for (int k = 0; k < inputs_read(e->reads, node->layer->inputs); k++)
            if (node->inputs[k]) s->read[node->inputs[k] - 1] = true;
        if (e->reads & READS_Y) s->read[e->node] = true;
    }
    for (int n = 0; n < s->model->nodes; n++) s->dropped[n] = !s->read[n];
}

/* Drops one output more, not that of node; false: none helps. */
static bool drop_best(struct drop_search *s, int node)
{
    int best = -1;
    double most = 0;
    for (int n = 0; n < s->model->nodes; n++) {
        if (s->dropped[n] || n == node) continue;
        s->dropped[n] = true;
        const struct sequence_cost cost = evaluate(s);
        const double gain = (s->cost.excess - cost.excess) / fmax(cost.time - s->cost.time, 1e-300);
        if (gain > most) most = gain, best = n;
        s->dropped[n] = false;
    }
    if (best < 0) return false;
    s->dropped[best] = true;
    s->cost = evaluate(s);
    return true;
}

/* Drops until the limit is kept, and keeps again what it leaves room for; false: the limit is exceeded. */
static bool settle(struct drop_search *s, int node)
{
    while (s->cost.excess > 0)
        if (!drop_best(s, node)) return false;
    for (int n = 0; n < s->model->nodes; n++) {
        if (!s->dropped[n] || !s->read[n]) continue;
        s->dropped[n] = false;
        const struct sequence_cost cost = evaluate(s);
        s->dropped[n] = cost.excess > 0 || cost.time >= s->cost.time;
        if (!s->dropped[n]) s->cost = cost;
    }
    return true;
}

/* Keeps each dropped output in turn, where others in its place make the schedule faster. */
static bool improve(struct drop_search *s)
{
    const size_t bytes = (size_t)s->model->nodes * sizeof *s->dropped;
    bool better = false;
    for (int n = 0; n < s->model->nodes && s->evaluations < EVALUATIONS_MAX; n++) {
        if (!s->dropped[n] || !s->read[n]) continue;
        const struct sequence_cost before = s->cost;
        memcpy(s->before, s->dropped, bytes);
        s->dropped[n] = false;
        s->cost = evaluate(s);
        if (settle(s, n) && s->cost.time < before.time) {
            better = true;
        } else {
            memcpy(s->dropped, s->before, bytes);
            s->cost = before;
        }
    }
    return better;
}

struct sequence drop_search(const struct step_model *model, size_t limit, struct region *region)
{
    struct drop_search s = {.model = model, .limit = limit, .region = region};
    const size_t nodes = (size_t)model->nodes;
    NEW(region, s.dropped, nodes);
    NEW(region, s.before, nodes);
    NEW(region, s.due, nodes);
    NEW(region, s.read, nodes);
    NEW(region, s.sequence.item, (size_t)model->events + nodes);
    find_read(&s);
    s.cost = evaluate(&s);
    if (!settle(&s, -1)) return (struct sequence){0, NULL};
    while (s.evaluations < EVALUATIONS_MAX && improve(&s)) continue;
    evaluate(&s);
    return s.sequence;
}
