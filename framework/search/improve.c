#include "search/improve.h"

#include <math.h>
#include <string.h>

#include "base/work.h"
#include "search/limits.h"
#include "search/state_search.h"

struct windows {
    const struct step_model *model;
    size_t limit;
    struct sequence sequence, trial; /* with room for as many items */
    int room;
    struct sequence_cost cost;
    int *at; /* by event: its place in the sequence */
    unsigned char *needed;
    bool *again, *listed;
    int *node, nodes; /* of the window */
    double work;
};

static void find_events(struct windows *w)
{
    for (int i = 0, event = 0; i < w->sequence.length; i++)
        if (w->sequence.item[i] == STEP_NEXT) w->at[event++] = i;
}

static bool list_node(struct windows *w, int node)
{
    if (node < 0 || w->listed[node]) return true;
    if (w->nodes == STATE_NODES_MAX) return false;
    w->listed[node] = true;
    w->node[w->nodes++] = node;
    return true;
}

/* Lists the node as one that may be recomputed, with its inputs; false: there is no room. */
static bool list_again(struct windows *w, int node)
{
    const struct node *n = &w->model->network->graph->node[node];
    if (w->nodes + 1 + n->layer->inputs > STATE_NODES_MAX) return false;
    w->again[node] = true;
    list_node(w, node);
    for (int k = 0; k < n->layer->inputs; k++) list_node(w, n->inputs[k] - 1);
    return true;
}

static bool list_operands(struct windows *w, int from, int to)
{
    bool fits = true;
    for (int e = from; e < to; e++) {
        const struct step_event *event = &w->model->event[e];
        fits &= list_node(w, event->node);
        for (struct reading r = step_reading(w->model, event); reading_next(&r);) fits &= list_node(w, r.node);
    }
    return fits;
}

/* What the window recomputes now and what its events read come first; then their inputs, so that they can be recomputed
 * in turn; then, from the window's nodes down, what is needed after it. */
static bool list_nodes(struct windows *w, int from, int to)
{
    const struct step_model *m = w->model;
    int again = 0;
    memset(w->again, 0, (size_t)m->nodes * sizeof *w->again);
    memset(w->listed, 0, (size_t)m->nodes * sizeof *w->listed);
    w->nodes = 0;
    if (!list_operands(w, from, to)) return false;
    for (int i = w->at[from]; i < w->at[to - 1]; i++)
        if (w->sequence.item[i] >= 0 && !w->again[w->sequence.item[i]] && list_again(w, w->sequence.item[i])) again++;
    for (int i = 0; i < w->nodes && again < WINDOWS_AGAIN; i++)
        if (!w->again[w->node[i]] && list_again(w, w->node[i])) again++;
    for (int n = m->event[from].node; n >= 0 && again < WINDOWS_AGAIN; n--)
        if (w->needed[n] && !w->again[n] && list_again(w, n)) again++;
    return true;
}

/* Sets the trial to the sequence with that of a window in place of items [from, to); false: there is no room. */
static bool splice(struct windows *w, int from, int to, const struct sequence *inside)
{
    const struct sequence *s = &w->sequence;
    const int length = s->length - (to - from) + inside->length;
    int *item = w->trial.item;
    if (length > w->room) return false;
    memcpy(item, s->item, (size_t)from * sizeof *item);
    memcpy(item + from, inside->item, (size_t)inside->length * sizeof *item);
    memcpy(item + from + inside->length, s->item + to, (size_t)(s->length - to) * sizeof *item);
    w->trial.length = length;
    return true;
}

/* Searches events [from, to); returns whether the sequence became faster. */
static bool search(struct windows *w, int from, int to)
{
    const struct step_model *m = w->model;
    const int first = w->at[from], end = w->at[to - 1] + 1;
    region_auto *region = region_create();
    struct sequence found[WINDOWS_RESULTS];
    double time = 0;
    bool any = false;
    for (int i = 0; i < end; i++)
        if (w->sequence.item[i] >= 0) {
            time += m->time[w->sequence.item[i]];
            any |= i > first;
        }
    if (!any) return false; /* nothing to win */
    sequence_needs(m, &w->sequence, end, w->needed);
    w->work += m->events + WINDOWS_WINDOW;
    if (!list_nodes(w, from, to)) return false;
    const struct state_window window = {from, to, w->needed, w->again, w->node, w->nodes};
    const int count = state_search_window(m, &window, w->limit, time * (1 - 1e-9),
                                          (struct state_effort){WINDOWS_WIDTH, 1, ESTIMATE_ITEMS, false},
                                          WINDOWS_RESULTS, found, region);
    for (int i = 0; i < count; i++) {
        if (!splice(w, first, end, &found[i])) continue;
        w->work += m->events;
        const struct sequence_cost cost = sequence_evaluate(m, &w->trial, w->limit);
        if (cost.excess > 0 || cost.time >= w->cost.time * (1 - 1e-12)) continue;
        const struct sequence before = w->sequence;
        w->sequence = w->trial;
        w->trial = before;
        w->cost = cost;
        find_events(w);
        return true;
    }
    return false;
}

struct sequence improve_windows(const struct step_model *m, size_t limit, const struct sequence *sequence,
                                struct region *region)
{
    region_auto *own = region_create();
    struct windows w = {.model = m, .limit = limit, .room = sequence->length + 4 * m->events};
    bool improved = false, again = true;
    NEW(own, w.at, (size_t)m->events);
    NEW(own, w.needed, (size_t)m->nodes);
    NEW(own, w.again, (size_t)m->nodes);
    NEW(own, w.listed, (size_t)m->nodes);
    NEW(own, w.node, STATE_NODES_MAX);
    NEW(region, w.sequence.item, (size_t)w.room);
    NEW(region, w.trial.item, (size_t)w.room);
    memcpy(w.sequence.item, sequence->item, (size_t)sequence->length * sizeof *sequence->item);
    w.sequence.length = sequence->length;
    w.cost = sequence_evaluate(m, &w.sequence, limit);
    if (w.cost.excess > 0) return (struct sequence){0, NULL};
    find_events(&w);
    for (int round = 0; again && w.work < WINDOWS_WORK; round++) {
        again = false;
        for (int to = m->events - round % 2 * WINDOWS_EVENTS / 4; to > m->nodes && w.work < WINDOWS_WORK;
             to -= WINDOWS_EVENTS / 2) {
            const int from = to - WINDOWS_EVENTS > m->nodes ? to - WINDOWS_EVENTS : m->nodes;
            again |= search(&w, from, to);
            work_report("improving windows", w.work, WINDOWS_WORK);
        }
        improved |= again;
    }
    return improved ? w.sequence : (struct sequence){0, NULL};
}
