/* The moments of a step for lower bounds: while an event runs, what later events read is kept or will be recomputed,
 * and what is kept fits beside what the event has live itself. */
#pragma once

#include "search/step_model.h"

struct moment {
    int event, done; /* nodes below have had their first forward, the event's own included */
    size_t live;     /* bytes that the event has live, whatever is kept */
    size_t room;     /* that it leaves for what it does not read */
    size_t excess;   /* of all that is read later, above that */
};

struct moments {
    const struct step_model *model;
    int count;
    struct moment *moment; /* of largest excess first; an event that does not fit has none: no schedule does */
    int *y, *saved;        /* by node: the last event that reads its value, and its saved tensors; -1: none */
    bool *free, *read;     /* by node, of a marked moment: its value is live there; its saved tensors are */
};

/* In region. limit: live bytes; whole: of the events of these nodes; NULL: of all. */
struct moments moments_find(const struct step_model *model, const bool *whole, size_t limit, struct region *region);

/* Sets free and read to what the moment's event has live itself, or clears that. An input whose place its output may
 * take is not counted. */
void moment_mark(const struct moments *moments, const struct moment *moment, bool marked);

/* Bytes of the node's value, and of its saved tensors, that later events read and that the marked moment's does not
 * have live; else 0. */
static inline size_t moment_value(const struct moments *m, const struct moment *at, int node)
{
    return m->y[node] > at->event && !m->free[node] ? m->model->value[node] : 0;
}
static inline size_t moment_saved(const struct moments *m, const struct moment *at, int node)
{
    return m->saved[node] > at->event && !m->read[node] ? m->model->saved[node] : 0;
}
