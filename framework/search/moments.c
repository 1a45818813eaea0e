#include "search/moments.h"

#include <stdlib.h>

void moment_mark(const struct moments *m, const struct moment *at, bool marked)
{
    const struct step_event *e = &m->model->event[at->event];
    const struct node *node = &m->model->network->graph->node[e->node];
    const bool forward = e->kind == STEP_FORWARD;
    for (struct reading r = step_reading(m->model, e); !forward && reading_next(&r);)
        (r.saved ? m->read : m->free)[r.node] = marked;
    if (forward) m->free[e->node] = marked;
    if (forward && m->model->unsaved[e->node]) m->read[e->node] = marked;
    for (int k = 0; forward && k < node->layer->inputs; k++) {
        const bool over = m->model->over[e->node] && node->inputs[k] == node->inputs[0];
        if (node->inputs[k] && !over) m->free[node->inputs[k] - 1] = marked;
    }
}

/* The last event that reads each value and each node's saved tensors. */
static void list_readers(struct moments *m)
{
    const struct step_model *model = m->model;
    for (int n = 0; n < model->nodes; n++) m->y[n] = m->saved[n] = -1;
    for (int i = 0; i < model->events; i++) {
        const struct step_event *e = &model->event[i];
        const struct node *node = &model->network->graph->node[e->node];
        const bool forward = e->kind == STEP_FORWARD;
        for (struct reading r = step_reading(model, e); !forward && reading_next(&r);)
            (r.saved ? m->saved : m->y)[r.node] = i;
        for (int k = 0; forward && k < node->layer->inputs; k++)
            if (node->inputs[k]) m->y[node->inputs[k] - 1] = i;
    }
}

/* Adds what is marked to what is live, takes it from what is read later, and removes the mark. */
static void count(const struct moments *m, struct moment *at, int n, bool saved, size_t *later)
{
    bool *mark = saved ? m->read : m->free;
    const size_t bytes = (saved ? m->model->saved : m->model->value)[n];
    if (!mark[n]) return;
    mark[n] = false;
    at->live += bytes;
    if ((saved ? m->saved : m->y)[n] > at->event) *later -= bytes;
}

/* later: bytes that this or a later event reads. */
static struct moment weigh(const struct moments *m, int event, size_t later, size_t limit)
{
    const struct step_model *model = m->model;
    const struct step_event *e = &model->event[event];
    struct moment at = {.event = event, .done = event < model->nodes ? event + 1 : model->nodes, .live = e->during};
    moment_mark(m, &at, true);
    if (e->kind == STEP_FORWARD) {
        const struct node *node = &model->network->graph->node[e->node];
        count(m, &at, e->node, false, &later);
        if (m->read[e->node]) at.live -= model->saved[e->node] - model->unsaved[e->node];
        count(m, &at, e->node, true, &later);
        for (int k = 0; k < node->layer->inputs; k++)
            if (node->inputs[k]) count(m, &at, node->inputs[k] - 1, false, &later);
    } else {
        for (struct reading r = step_reading(model, e); reading_next(&r);) count(m, &at, r.node, r.saved, &later);
    }
    if (at.live > limit) return at;
    at.room = limit - at.live;
    at.excess = later > at.room ? later - at.room : 0;
    return at;
}

static int by_excess(const void *x, const void *y)
{
    const struct moment *a = x, *b = y;
    return a->excess != b->excess ? (a->excess < b->excess) - (a->excess > b->excess) : a->event - b->event;
}

struct moments moments_find(const struct step_model *model, const bool *whole, size_t limit, struct region *region)
{
    struct moments m = {.model = model};
    const size_t nodes = (size_t)model->nodes;
    size_t later = 0, *read; /* bytes written so far that are read later; by event, those that none after it reads */
    NEW(region, m.moment, (size_t)model->events);
    NEW(region, m.y, nodes);
    NEW(region, m.saved, nodes);
    NEW(region, m.free, nodes);
    NEW(region, m.read, nodes);
    NEW(region, read, (size_t)model->events);
    list_readers(&m);
    for (int n = 0; n < model->nodes; n++) {
        if (m.y[n] >= 0) read[m.y[n]] += model->value[n];
        if (m.saved[n] >= 0) read[m.saved[n]] += model->saved[n];
    }
    for (int i = 0; i < model->events; i++) {
        if (i < model->nodes && m.y[i] >= 0) later += model->value[i];
        if (i < model->nodes && m.saved[i] >= 0) later += model->saved[i];
        later -= read[i];
        if (!whole || whole[model->event[i].node]) m.moment[m.count++] = weigh(&m, i, later, limit);
    }
    qsort(m.moment, (size_t)m.count, sizeof *m.moment, by_excess);
    return m;
}
