#include "sliced_schedules.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* By slice: nodes below forward have run forward, nodes from backward on have run backward. */
struct walk {
    struct source *source;
    const struct slicing *slicing;
    struct schedule *schedule;
    int *forward, *backward;
};

static void step(struct walk *w, enum step_kind kind, int from, int to, int slice)
{
    schedule_append_step(w->schedule, (struct step){kind, from, to, slice});
}

/* Nodes [from, to) as far as a slice alone may run them: to the next whole node. */
static int alone(const struct walk *w, int from, int to)
{
    int end = from;
    while (end < to && !slicing_whole(w->slicing, end)) end++;
    return end;
}

static bool equal(const struct walk *w, const int *at)
{
    for (int k = 1; k < w->slicing->slices; k++)
        if (at[k] != at[0]) return false;
    return true;
}

static void set(const struct walk *w, int *at, int node)
{
    for (int k = 0; k < w->slicing->slices; k++) at[k] = node;
}

/* A recomputation of what has run, of a slice or of all. */
static void recompute(struct walk *w)
{
    const int slices = w->slicing->slices, k = (int)draw_below(w->source, (uint32_t)slices);
    const int all = w->forward[slices - 1], reach = w->forward[k];
    if (draw_below(w->source, 2) && all > 0) {
        const int from = (int)draw_below(w->source, (uint32_t)all);
        step(w, STEP_FORWARD, from, from + 1 + (int)draw_below(w->source, (uint32_t)(all - from)), WHOLE_BATCH);
    } else if (reach > 0) {
        const int from = (int)draw_below(w->source, (uint32_t)reach), end = alone(w, from, reach);
        if (end > from) step(w, STEP_FORWARD, from, from + 1 + (int)draw_below(w->source, (uint32_t)(end - from)), k);
    }
}

/* All slices together from where they are; false: they are not at the same node. */
static bool advance_all(struct walk *w)
{
    const int nodes = w->slicing->nodes, at = w->forward[0];
    if (!equal(w, w->forward) || at == nodes) return false;
    const int to = at + 1 + (int)draw_below(w->source, (uint32_t)(nodes - at));
    step(w, STEP_FORWARD, at, to, WHOLE_BATCH);
    set(w, w->forward, to);
    return true;
}

static bool advance(struct walk *w, int k)
{
    const int limit = k ? w->forward[k - 1] : w->slicing->nodes, at = w->forward[k], end = alone(w, at, limit);
    if (end == at) return false;
    w->forward[k] = at + 1 + (int)draw_below(w->source, (uint32_t)(end - at));
    step(w, STEP_FORWARD, at, w->forward[k], k);
    return true;
}

static bool retreat_all(struct walk *w)
{
    const int at = w->backward[0];
    if (!equal(w, w->backward) || at == 0 || w->forward[w->slicing->slices - 1] < w->slicing->nodes) return false;
    w->backward[0] = (int)draw_below(w->source, (uint32_t)at);
    set(w, w->backward, w->backward[0]);
    step(w, STEP_BACKWARD, w->backward[0], at, WHOLE_BATCH);
    return true;
}

static bool retreat(struct walk *w, int k)
{
    int at = w->backward[k], end = at;
    if (w->forward[k] < w->slicing->nodes) return false;
    while (end > 0 && !slicing_whole(w->slicing, end - 1) && (!k || end > w->backward[k - 1])) end--;
    if (end == at) return false;
    w->backward[k] = at - 1 - (int)draw_below(w->source, (uint32_t)(at - end));
    step(w, STEP_BACKWARD, w->backward[k], at, k);
    return true;
}

void sliced_schedule_draw(struct source *source, const struct slicing *slicing, struct schedule *schedule)
{
    struct walk w = {source, slicing, schedule, NULL, NULL};
    const uint32_t slices = (uint32_t)slicing->slices;
    w.forward = calloc(slices, sizeof *w.forward);
    w.backward = calloc(slices, sizeof *w.backward);
    set(&w, w.backward, slicing->nodes);
    while (w.backward[slices - 1] > 0) {
        if (draw_below(source, 3) == 0) recompute(&w);
        const bool together = draw_below(source, 4) == 0, back = draw_below(source, 2);
        const int k = (int)draw_below(source, slices);
        if (together && (back ? retreat_all(&w) : advance_all(&w))) continue;
        if (back ? retreat(&w, k) : advance(&w, k)) continue;
        bool stuck = true; /* whole nodes, which only all slices together can run */
        for (int i = 0; i < (int)slices && stuck; i++) stuck = !advance(&w, i) && !retreat(&w, i);
        if (stuck) cr_assert(advance_all(&w) || retreat_all(&w), "no slice can run");
    }
    free(w.forward);
    free(w.backward);
    cr_assert(schedule_check(schedule, slicing, false) == ST_OK, "%s: %s", status_message(),
              schedule_print(schedule, schedule->region));
}

void sliced_graph(struct graph *graph, int64_t slices, uint32_t whole, struct source *source)
{
    for (int i = 0; i < graph->nodes; i++) {
        struct node *node = &graph->node[i];
        const bool mixes = node->layer->mixes_samples, by_slice = mixes && node_chooses(node, "statistics", "slice");
        node->keep_whole = !by_slice && (mixes || (whole && draw_below(source, whole) == 0));
    }
    cr_assert(graph_slice(graph, slices, false, &(int){0}) == ST_OK, "%s", status_message());
}
