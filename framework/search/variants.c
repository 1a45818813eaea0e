#include "search/variants.h"

#include <stdlib.h>
#include <string.h>

#include "search/limits.h"

/* A node of a run in a set; those behind the 64th are in none. */
static uint64_t bit(int node) { return node < 64 ? UINT64_C(1) << node : 0; }

bool *variants_unpack(uint64_t recompute, int nodes, struct region *region)
{
    bool *marks;
    NEW(region, marks, (size_t)nodes);
    for (int i = 0; i < nodes; i++) marks[i] = recompute & bit(i);
    return marks;
}

static struct node_run run_of(const struct stages *stages, const struct node_range *nodes, bool sink, bool outlives)
{
    return (struct node_run){&stages->model, nodes->from, nodes->to, sink, outlives};
}

static struct stage_profile profile_of(const struct node_run *run, enum probe probe, uint64_t recompute)
{
    region_auto *region = region_create();
    return stage_profile_find(run, probe, variants_unpack(recompute, run->to - run->from, region), NULL);
}

bool *variants_last_nodes(const struct stages *stages, const struct node_range *nodes, uint64_t recompute,
                          struct region *region)
{
    const int count = nodes->to - nodes->from;
    const struct node_run run = run_of(stages, nodes, true, false);
    bool *marks;
    NEW(region, marks, (size_t)count);
    (void)stage_profile_find(&run, PROBE_LAST, variants_unpack(recompute, count, region), marks);
    return marks;
}

/* Whether the backward of one of nodes [from, to) reads the node's value. */
static bool reads_value(const struct network *network, int from, int to, int node)
{
    for (int i = from; i < to; i++)
        for (struct reading r = reading_of(network, i, network_reads(network, i)); reading_next(&r);)
            if (r.node == node && !r.saved) return true;
    return false;
}

/* Whether a later recomputation or a backward of the run reads each recomputation. */
static bool useful(const struct node_run *run, uint64_t recompute)
{
    const struct network *network = run->model->network;
    uint64_t read = 0; /* nodes whose value or saved tensors are read */
    for (int i = run->from; i < run->to; i++)
        for (struct reading r = reading_of(network, i, network_reads(network, i)); reading_next(&r);)
            if (r.node >= run->from) read |= bit(r.node - run->from);
    for (int i = run->to - 1; i >= run->from; i--) {
        const struct node *node = &network->graph->node[i];
        if (!(recompute & bit(i - run->from))) continue;
        if (!(read & bit(i - run->from)) || !run->model->again[i]) return false;
        for (int k = 0; k < node->layer->inputs; k++)
            if (node->inputs[k] > run->from) read |= bit(node->inputs[k] - 1 - run->from);
    }
    return true;
}

static bool dominates(const struct variant *a, const struct variant *b)
{
    return a->forward <= b->forward && a->again <= b->again && a->keep <= b->keep && a->backward <= b->backward &&
           a->time <= b->time && a->outlives <= b->outlives && a->reads_input >= b->reads_input;
}

/* The variants of a run, by whether more stages follow in the visit; region: their memory until they are settled. */
struct lists {
    struct region *region;
    struct variants through, last;
};

/* Adds a variant unless one dominates it; removes those that it dominates. */
static void add(struct variants *list, const struct variant *variant, struct region *region)
{
    for (int i = 0; i < list->count; i++)
        if (dominates(&list->variant[i], variant)) return;
    int kept = 0;
    for (int i = 0; i < list->count; i++)
        if (!dominates(variant, &list->variant[i])) list->variant[kept++] = list->variant[i];
    list->count = kept;
    region_grow(region, &list->variant, list->count, sizeof *list->variant);
    list->variant[list->count++] = *variant;
}

/* Copies the list into region. */
static void settle(struct variants *list, struct region *region)
{
    struct variant *copy;
    NEW(region, copy, (size_t)list->count + 1);
    if (list->count) memcpy(copy, list->variant, (size_t)list->count * sizeof *copy);
    list->variant = copy;
}

/* Adds the variants of a set of recomputations, with and without stages that follow in the visit. */
static void examine(const struct node_run *run, uint64_t recompute, struct lists *lists)
{
    const bool reads_y = reads_value(run->model->network, run->from, run->to, run->to - 1);
    for (enum probe probe = PROBE_THROUGH; probe <= (run->sink ? PROBE_LAST : PROBE_THROUGH); probe++) {
        const struct stage_profile p = profile_of(run, probe, recompute);
        struct variant v = {.recompute = recompute,
                            .backward = p.backward,
                            .time = p.recompute_time + (run->sink ? 0 : p.forward_time),
                            .reads_input = p.reads_input};
        if (probe == PROBE_THROUGH) {
            v.forward = p.forward;
            v.again = p.again;
            v.keep = p.keep;
            v.outlives = reads_y && !(recompute & bit(run->to - 1 - run->from));
        }
        add(probe == PROBE_THROUGH && run->sink ? &lists->through : &lists->last, &v, lists->region);
    }
}

/* Picks the nodes whose subsets are tried: all but the forced ones, or those that free most bytes for their time. */
static int choose_free(const struct node_run *run, uint64_t forced, int *free_nodes)
{
    const struct step_model *m = run->model;
    const int nodes = run->to - run->from;
    uint64_t chosen = forced;
    int count = 0, most = CHAIN_FREE_NODES;
    while (most && (double)nodes * nodes > (double)(CHAIN_SUBSETS >> most)) most--;
    for (; count < most; count++) {
        int best = -1;
        double best_worth = -1;
        for (int i = 0; i < nodes && i < 64; i++) {
            const int n = run->from + i;
            if (chosen >> i & 1 || !network_has_forward(m->network, n)) continue;
            const double worth = (double)(m->value[n] + m->saved[n]) / (m->time[n] + 1);
            if (worth > best_worth) best = i, best_worth = worth;
        }
        if (best < 0) break;
        chosen |= UINT64_C(1) << best;
        free_nodes[count] = best;
    }
    return count;
}

static void list_subsets(const struct node_run *run, uint64_t forced, struct lists *lists)
{
    int free_nodes[CHAIN_FREE_NODES], frees = choose_free(run, forced, free_nodes);
    for (uint64_t set = 0; set < UINT64_C(1) << frees; set++) {
        uint64_t recompute = forced;
        for (int i = 0; i < frees; i++) recompute |= (set >> i & 1) << free_nodes[i];
        if (useful(run, recompute)) examine(run, recompute, lists);
    }
}

static struct run *list_run(const struct stages *stages, int first, int count, struct region *region)
{
    const struct stage *s = &stages->stage[first];
    const struct node_range nodes = {s->nodes.from, stages->stage[first + count - 1].nodes.to};
    uint64_t forced = 0;
    struct run *run;
    NEW(region, run, 1);
    for (int i = 0; i + 1 < count; i++) forced |= bit(stages->stage[first + i].nodes.to - 1 - nodes.from);
    for (int outlives = 0; outlives <= (int)s->outlives; outlives++) {
        region_auto *own = region_create();
        const struct node_run listed = run_of(stages, &nodes, nodes.to < stages->model.nodes, outlives);
        struct lists lists = {.region = own};
        list_subsets(&listed, forced, &lists);
        settle(&lists.through, region);
        settle(&lists.last, region);
        run->through[outlives] = lists.through;
        run->last[outlives] = lists.last;
    }
    return run;
}

/* Measures a pass of a stage that saves. */
static void measure_tail(const struct node_run *run, struct tail *tail)
{
    const struct stage_profile p = profile_of(run, PROBE_TAIL, 0);
    tail->backward[run->outlives] = p.backward;
    if (run->outlives) return;
    tail->forward = p.forward;
    tail->again = p.again;
    tail->keep = p.keep;
    tail->reads = p.reads_input;
    tail->outlives = reads_value(run->model->network, run->from, run->to, run->to - 1);
}

static void measure_stage(const struct stages *stages, struct stage *stage)
{
    for (int outlives = 0; outlives < 2; outlives++) {
        const struct node_run run = run_of(stages, &stage->nodes, true, outlives);
        const struct stage_profile p = profile_of(&run, outlives ? PROBE_LAST : PROBE_PASS, 0);
        *(outlives ? &stage->held : &stage->passed) = p.forward;
        *(outlives ? &stage->held_again : &stage->passed_again) = p.again;
        stage->once = p.once;
        stage->time = p.forward_time;
        measure_tail(&run, &stage->tail);
    }
}

/* Of live bytes, those that are no masks of the nodes before a stage. */
static size_t own_bytes(const struct stages *stages, const struct stage *stage, size_t bytes)
{
    const size_t others = stages->model.masks[stage->nodes.from];
    return bytes > others ? bytes - others : 0;
}

static bool same_event(const struct stages *stages, const struct stage *a, int i, const struct stage *b, int j)
{
    const struct step_event *x = &stages->model.event[i], *y = &stages->model.event[j];
    const int shift = b->nodes.from - a->nodes.from;
    struct reading r = step_reading(&stages->model, x), q = step_reading(&stages->model, y);
    if (y->node != x->node + shift || y->kind != x->kind || y->half != x->half) return false;
    if (own_bytes(stages, a, x->during) != own_bytes(stages, b, y->during)) return false;
    if (own_bytes(stages, a, x->after) != own_bytes(stages, b, y->after)) return false;
    if (own_bytes(stages, a, x->before) != own_bytes(stages, b, y->before)) return false;
    if (x->kind == STEP_FORWARD) return true;
    while (reading_next(&r))
        if (!reading_next(&q) || q.node != r.node + shift || q.saved != r.saved) return false;
    return !reading_next(&q);
}

static bool same_node(const struct step_model *m, int i, int shift)
{
    const struct node *x = &m->network->graph->node[i], *y = &m->network->graph->node[i + shift];
    const int j = i + shift;
    if (x->layer->inputs != y->layer->inputs) return false;
    for (int k = 0; k < x->layer->inputs; k++)
        if (y->inputs[k] != (x->inputs[k] ? x->inputs[k] + shift : 0)) return false;
    return m->value[i] == m->value[j] && m->saved[i] == m->saved[j] && m->scratch[i] == m->scratch[j] &&
           m->unsaved[i] == m->unsaved[j] && m->once[i] == m->once[j] && m->unread[i] == m->unread[j] &&
           m->time[i] == m->time[j] && network_first_time(m->network, i) == network_first_time(m->network, j) &&
           m->over[i] == m->over[j] && m->again[i] == m->again[j] &&
           network_has_forward(m->network, i) == network_has_forward(m->network, j);
}

/* Whether runs of the one stage and of the other are equal in every profile. */
static bool same_stage(const struct stages *stages, const struct stage *a, const struct stage *b)
{
    const struct step_model *m = &stages->model;
    const int nodes = a->nodes.to - a->nodes.from, shift = b->nodes.from - a->nodes.from;
    if (b->nodes.to - b->nodes.from != nodes || a->outlives != b->outlives || a->input != b->input) return false;
    if ((a->nodes.to == m->nodes) != (b->nodes.to == m->nodes) || !a->nodes.from != !b->nodes.from) return false;
    for (int i = a->nodes.from; i < a->nodes.to; i++)
        if (!same_node(m, i, shift) || !same_event(stages, a, i, b, i + shift)) return false;
    const int first = m->backward[a->nodes.to - 1], there = m->backward[b->nodes.to - 1];
    for (int e = 0; first + e < m->events && m->event[first + e].node >= a->nodes.from; e++)
        if (there + e == m->events || !same_event(stages, a, first + e, b, there + e)) return false;
    return true;
}

static void list_stages(const struct network *network, struct region *region, struct stages *stages)
{
    const struct step_model *m = &stages->model;
    const struct node_ranges ranges = stages_find(network->graph, region);
    stages->count = ranges.count;
    NEW(region, stages->stage, (size_t)ranges.count);
    for (int s = 0; s < ranges.count; s++) {
        const struct node_range nodes = ranges.range[s];
        struct stage *stage = &stages->stage[s];
        stage->nodes = nodes;
        stage->input = nodes.from ? m->value[nodes.from - 1] : 0;
        stage->output = m->value[nodes.to - 1];
        stage->gradient = step_gradients(m, nodes.to - 1);
        stage->outlives = s && reads_value(network, ranges.range[s - 1].from, nodes.from, nodes.from - 1);
        stage->again = true;
        for (int n = nodes.from; n < nodes.to; n++) stage->again &= m->again[n];
        stage->class = s;
        for (int other = 0; other < s && stage->class == s; other++)
            if (same_stage(stages, &stages->stage[other], stage)) stage->class = stages->stage[other].class;
        if (stage->class == s) {
            measure_stage(stages, stage);
        } else {
            *stage = stages->stage[stage->class];
            stage->nodes = nodes;
        }
    }
}

/* For each first stage: the stretches that occur earlier, with the distance to their first occurrence. */
static void find_equal(const struct stages *stages)
{
    const struct stage *stage = stages->stage;
    for (int first = 1; first < stages->count; first++)
        for (int before = 0, at = first; before < first && at < stages->count; before++) {
            const int shift = first - before;
            bool same = true;
            for (int i = first; same && i < at; i++) same = stage[i - shift].class == stage[i].class;
            while (same && at < stages->count && stage[at - shift].class == stage[at].class)
                *stages_shift(stages, first, at++) = shift;
        }
}

struct stages variants_list(const struct network *network, enum rng_mode rng, struct region *region)
{
    const struct lower_options options = {.drop_dead = true, .rng = rng};
    struct stages stages = {.reach = CHAIN_RUN_NODES, .model = step_model_create(network, &options, region)};
    list_stages(network, region, &stages);
    NEW(region, stages.shift, (size_t)stages.count * (size_t)stages.count);
    NEW(region, stages.run, (size_t)stages.count * (size_t)stages.reach);
    find_equal(&stages);
    for (int first = 0; first < stages.count; first++)
        for (int count = 1; count <= stages.reach && first + count <= stages.count; count++) {
            const int from = stages.stage[first].nodes.from, to = stages.stage[first + count - 1].nodes.to;
            int nodes = 0;
            for (int i = from; i < to; i++) nodes += network_has_forward(network, i);
            if (count > 1 && nodes > CHAIN_RUN_NODES) break;
            struct run **run = &stages.run[first * stages.reach + count - 1];
            const int shift = *stages_shift(&stages, first, first + count - 1);
            *run = shift ? run[-shift * stages.reach] : list_run(&stages, first, count, region);
        }
    return stages;
}
