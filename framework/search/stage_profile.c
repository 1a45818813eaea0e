#include "search/stage_profile.h"

#include <string.h>

/* The sweep over a run, from its last op to its first. */
struct run_sweep {
    const struct node_run *run;
    struct sweep sweep;
    struct stage_profile profile;
};

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* The most live bytes since the last call, without masks of the nodes before the run. */
static size_t take_peak(struct run_sweep *s)
{
    const size_t live = s->sweep.cost.peak, others = s->run->model->masks[s->run->from];
    s->sweep.cost.peak = 0;
    return live > others ? live - others : 0;
}

/* Whether a forward of the run reads the cut value before it. */
static bool reads_cut(const struct node_run *run, int node)
{
    const struct node *n = &run->model->network->graph->node[node];
    bool any = false;
    for (int k = 0; k < n->layer->inputs; k++) any |= n->inputs[k] && n->inputs[k] == run->from;
    return any;
}

static void recompute_node(struct run_sweep *s, int node, int event)
{
    s->profile.reads_input |= reads_cut(s->run, node);
    sweep_recomputation(&s->sweep, node, event);
}

static void backward_node(struct run_sweep *s, int node)
{
    const struct step_model *m = s->run->model;
    const int end = node ? m->backward[node - 1] : m->events;
    for (int e = end - 1; e >= m->backward[node]; e--) {
        for (struct reading r = step_reading(m, &m->event[e]); reading_next(&r);)
            s->profile.reads_input |= r.node + 1 == s->run->from;
        sweep_event(&s->sweep, e);
    }
}

/* The backwards of the run, and their recomputations. */
static void sweep_backwards(struct run_sweep *s, const bool *recompute)
{
    region_auto *region = region_create();
    const struct step_model *m = s->run->model;
    struct schedule schedule = schedule_empty(region);
    stage_backward(m->network, s->run->from, s->run->to, recompute, &schedule);
    int next = s->run->from; /* whose backward comes after the step */
    for (size_t i = schedule.steps; i-- > 0;) {
        const struct step *step = &schedule.step[i];
        for (int n = step->from; step->kind == STEP_BACKWARD && n < step->to; n++) backward_node(s, next = n);
        for (int n = step->to - 1; step->kind == STEP_FORWARD && n >= step->from; n--)
            if (sweep_is_due(&s->sweep, n)) recompute_node(s, n, m->backward[next]);
    }
}

/* What comes before the backwards, from the new forward to the sink's backward. */
static void sweep_again(struct run_sweep *s, enum probe probe, bool *forward)
{
    const struct step_model *m = s->run->model;
    const int from = s->run->from, to = s->run->to, event = m->backward[to - 1];
    for (int n = to - 1; n >= from && (probe == PROBE_LAST || probe == PROBE_PASS); n--) {
        const bool due = sweep_is_due(&s->sweep, n);
        if (forward) forward[n - from] = due;
        if (due) recompute_node(s, n, event);
    }
    if (from && (probe == PROBE_PASS || probe == PROBE_TAIL) && m->needed[from - 1] & NEEDED_Y) {
        m->needed[from - 1] = 0;
        s->sweep.held -= m->value[from - 1];
    }
}

/* The first forwards. What they write once exists from each one on. */
static void sweep_forwards(struct run_sweep *s)
{
    const struct step_model *m = s->run->model;
    const int from = s->run->from, to = s->run->to;
    struct stage_profile *p = &s->profile;
    size_t born = p->once;
    for (int n = to - 1; n >= from; n--) {
        if (!network_has_forward(m->network, n)) continue;
        sweep_event(&s->sweep, n);
        const size_t live = take_peak(s);
        p->forward = larger(p->forward, live);
        p->again = larger(p->again, live + p->once - born);
        born -= m->once[n];
        p->reads_input |= !s->run->sink && reads_cut(s->run, n);
    }
    const size_t cut = from ? m->value[from - 1] : 0;
    p->forward = larger(p->forward, cut);
    p->again = larger(p->again, cut + p->once);
}

struct stage_profile stage_profile_find(const struct node_run *run, enum probe probe, const bool *recompute,
                                        bool *forward)
{
    const struct step_model *m = run->model;
    struct run_sweep s = {.run = run, .sweep = {.model = m, .limit = SIZE_MAX}};
    struct stage_profile *p = &s.profile;
    for (int n = run->from; n < run->to; n++) {
        p->once += m->once[n];
        if (network_has_forward(m->network, n)) p->forward_time += network_first_time(m->network, n);
    }
    if (run->from && run->outlives) sweep_need(&s.sweep, run->from - 1, NEEDED_Y);
    if (run->from) s.sweep.cost.peak = s.sweep.held + m->event[m->backward[run->from - 1]].before;
    sweep_backwards(&s, recompute);
    sweep_again(&s, probe, forward);
    p->backward = take_peak(&s);
    p->recompute_time = s.sweep.cost.time;
    const unsigned output = m->needed[run->to - 1];
    p->keep = s.sweep.held - (output & NEEDED_Y ? m->value[run->to - 1] : 0) + m->masks[run->to] - m->masks[run->from];
    if (run->sink) sweep_need(&s.sweep, run->to - 1, NEEDED_Y);
    sweep_forwards(&s);
    if (!run->sink) {
        p->backward = larger(p->backward, p->forward);
        p->forward = p->again = p->keep = 0;
    }
    if (run->from) m->needed[run->from - 1] = 0;
    for (int n = run->from; n < run->to; n++) m->needed[n] = 0;
    return s.profile;
}

/* Marks in now[] those nodes marked in due[] that must be recomputed before node's backward. */
static bool find_due(const struct network *network, int from, int to, int node, const bool *due, bool *now)
{
    const struct graph *graph = network->graph;
    bool any = false;
    for (struct reading r = reading_of(network, node, network_reads(network, node)); reading_next(&r);)
        if (r.node >= from && r.node < to && due[r.node - from]) now[r.node - from] = any = true;
    for (int i = to - 1; any && i >= from; i--) /* and what they are made from */
        for (int k = 0; now[i - from] && k < graph->node[i].layer->inputs; k++) {
            int producer = graph->node[i].inputs[k] - 1;
            if (producer >= from && due[producer - from]) now[producer - from] = true;
        }
    return any;
}

void stage_backward(const struct network *network, int from, int to, const bool *recompute, struct schedule *schedule)
{
    bool *due, *now;
    NEW(schedule->region, due, (size_t)(to - from));
    NEW(schedule->region, now, (size_t)(to - from));
    memcpy(due, recompute, (size_t)(to - from) * sizeof *due);
    for (int node = to - 1; node >= from; node--) {
        if (find_due(network, from, to, node, due, now))
            for (int i = from; i < to; i++) {
                if (!now[i - from]) continue;
                schedule_append(schedule, STEP_FORWARD, i, i + 1);
                due[i - from] = now[i - from] = false;
            }
        schedule_append(schedule, STEP_BACKWARD, node, node + 1);
    }
}
