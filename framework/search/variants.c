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

/* The rest of a probe's schedule after one forward of everything and the sink's backward. */
enum probe {
    PROBE_THROUGH, /* the variant's recomputations and backwards */
    PROBE_LAST,    /* a new forward from the cut value, then those */
    PROBE_PASS,    /* the same, the cut value recomputed, too */
    PROBE_TAIL     /* the cut value recomputed, then the backwards of what was saved */
};

static struct stage_profile probe(const struct subnetwork *subnetwork, enum probe kind, uint64_t recompute,
                                  struct region *region)
{
    struct schedule schedule = schedule_empty(region);
    const int end = subnetwork->nodes + 1, all = subnetwork->network.graph->nodes;
    const bool *marks = variants_unpack(recompute, subnetwork->nodes, region);
    schedule_append(&schedule, STEP_FORWARD, 0, all);
    schedule_append(&schedule, STEP_BACKWARD, end, all);
    if (kind == PROBE_PASS || kind == PROBE_TAIL) schedule_append(&schedule, STEP_FORWARD, 0, 1);
    if (kind == PROBE_LAST || kind == PROBE_PASS) schedule_append(&schedule, STEP_FORWARD, 1, end);
    subnetwork_backward(&subnetwork->network, 1, end, marks, &schedule);
    schedule_append(&schedule, STEP_BACKWARD, 0, 1);
    return subnetwork_profile(subnetwork, &schedule, region);
}

bool *variants_last_nodes(const struct network *network, const struct node_range *nodes, uint64_t recompute,
                          enum rng_mode rng, struct region *region)
{
    struct subnetwork subnetwork;
    bool *marks;
    subnetwork_cut(network, nodes->from, nodes->to, true, false, rng, region, &subnetwork);
    const struct stage_profile profile = probe(&subnetwork, PROBE_LAST, recompute, region);
    NEW(region, marks, (size_t)(nodes->to - nodes->from));
    for (int i = profile.turn + 1; i < profile.lowered.ops; i++) {
        const struct op *op = &profile.lowered.op[i];
        if (op->kind != OP_FORWARD || op->node < 1) continue;
        if (recompute & bit(op->node - 1)) {
            recompute &= ~bit(op->node - 1); /* the variant's recomputation; another one is the forward's */
        } else {
            marks[op->node - 1] = true;
        }
    }
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
static bool useful(const struct subnetwork *subnetwork, uint64_t recompute)
{
    const struct network *network = &subnetwork->network;
    const struct graph *graph = network->graph;
    uint64_t read = 0; /* nodes whose value or saved tensors are read */
    for (int i = 1; i <= subnetwork->nodes; i++)
        for (struct reading r = reading_of(network, i, network_reads(network, i)); reading_next(&r);)
            if (r.node > 0) read |= bit(r.node - 1);
    for (int i = subnetwork->nodes; i >= 1; i--) {
        if (!(recompute & bit(i - 1))) continue;
        if (!(read & bit(i - 1)) || network->binding[i].runs_once) return false;
        for (int k = 0; k < graph->node[i].layer->inputs; k++)
            if (graph->node[i].inputs[k] > 1) read |= bit(graph->node[i].inputs[k] - 2);
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

static struct variant variant_of(const struct subnetwork *subnetwork, enum probe kind, const struct stage_profile *p)
{
    struct variant v = {.backward = p->backward, .time = p->recompute_time, .reads_input = p->reads_input};
    if (kind == PROBE_LAST) return v;
    v.forward = p->forward;
    v.again = p->again;
    v.keep = p->keep;
    if (!subnetwork->sink) v.time += p->forward_time;
    return v;
}

/* Adds the variants of a set of recomputations, with and without stages that follow in the visit. */
static void examine(struct subnetwork *subnetwork, uint64_t recompute, struct lists *lists)
{
    for (enum probe kind = PROBE_THROUGH; kind <= (subnetwork->sink ? PROBE_LAST : PROBE_THROUGH); kind++) {
        region_auto *scratch = region_create();
        const struct stage_profile p = probe(subnetwork, kind, recompute, scratch);
        struct variant v = variant_of(subnetwork, kind, &p);
        const bool reads_y = reads_value(&subnetwork->network, 1, subnetwork->nodes + 1, subnetwork->nodes);
        const bool through = kind == PROBE_THROUGH && subnetwork->sink;
        v.recompute = recompute;
        v.outlives = kind == PROBE_THROUGH && reads_y && !(recompute & bit(subnetwork->nodes - 1));
        add(through ? &lists->through : &lists->last, &v, lists->region);
    }
}

/* Picks the nodes whose subsets are tried: all but the forced ones, or those that free most bytes for their time. */
static int choose_free(const struct subnetwork *subnetwork, uint64_t forced, int *free_nodes)
{
    const struct graph *graph = subnetwork->network.graph;
    uint64_t chosen = forced;
    int count = 0, most = CHAIN_FREE_NODES;
    while (most && (double)subnetwork->nodes * subnetwork->nodes > (double)(CHAIN_SUBSETS >> most)) most--;
    for (; count < most; count++) {
        int best = -1;
        double best_worth = -1;
        for (int i = 0; i < subnetwork->nodes && i < 64; i++) {
            if (chosen >> i & 1 || !network_has_forward(&subnetwork->network, i + 1)) continue;
            double bytes = (double)(graph->value[i + 2].bytes + subnetwork->network.binding[i + 1].footprint.saved);
            double worth = bytes / (subnetwork->network.cost[i + 1].forward + 1);
            if (worth > best_worth) best = i, best_worth = worth;
        }
        if (best < 0) break;
        chosen |= UINT64_C(1) << best;
        free_nodes[count] = best;
    }
    return count;
}

static void list_subsets(struct subnetwork *subnetwork, uint64_t forced, struct lists *lists)
{
    int free_nodes[CHAIN_FREE_NODES], frees = choose_free(subnetwork, forced, free_nodes);
    for (uint64_t set = 0; set < UINT64_C(1) << frees; set++) {
        uint64_t recompute = forced;
        for (int i = 0; i < frees; i++) recompute |= (set >> i & 1) << free_nodes[i];
        if (useful(subnetwork, recompute)) examine(subnetwork, recompute, lists);
    }
}

static struct run *list_run(const struct network *network, const struct stages *stages, int first, int count,
                            struct region *region)
{
    const struct stage *s = &stages->stage[first];
    const int from = s->nodes.from, to = stages->stage[first + count - 1].nodes.to;
    uint64_t forced = 0;
    struct run *run;
    NEW(region, run, 1);
    for (int i = 0; i + 1 < count; i++) forced |= UINT64_C(1) << (stages->stage[first + i].nodes.to - 1 - from);
    for (int outlives = 0; outlives <= (int)s->outlives; outlives++) {
        struct subnetwork subnetwork;
        struct lists lists = {.region = region_create()};
        subnetwork_cut(network, from, to, to < network->graph->nodes, outlives, stages->rng, lists.region, &subnetwork);
        list_subsets(&subnetwork, forced, &lists);
        settle(&lists.through, region);
        settle(&lists.last, region);
        run->through[outlives] = lists.through;
        run->last[outlives] = lists.last;
        region_destroy(lists.region);
    }
    return run;
}

/* Measures a pass that saves; outlives: the cut value before must outlive the stage. */
static void measure_tail(const struct subnetwork *subnetwork, int outlives, struct region *scratch, struct tail *tail)
{
    const struct stage_profile p = probe(subnetwork, PROBE_TAIL, 0, scratch);
    tail->backward[outlives] = p.backward;
    if (outlives) return;
    tail->forward = p.forward;
    tail->again = p.again;
    tail->keep = p.keep;
    tail->reads = p.reads_input;
    tail->outlives = reads_value(&subnetwork->network, 1, subnetwork->nodes + 1, subnetwork->nodes);
}

static void measure_stage(const struct network *network, enum rng_mode rng, struct stage *stage)
{
    region_auto *scratch = region_create();
    for (int outlives = 0; outlives < 2; outlives++) {
        struct subnetwork subnetwork;
        subnetwork_cut(network, stage->nodes.from, stage->nodes.to, true, outlives, rng, scratch, &subnetwork);
        const struct stage_profile p = probe(&subnetwork, outlives ? PROBE_LAST : PROBE_PASS, 0, scratch);
        *(outlives ? &stage->held : &stage->passed) = p.forward;
        *(outlives ? &stage->held_again : &stage->passed_again) = p.again;
        stage->once = p.once;
        stage->time = p.forward_time;
        measure_tail(&subnetwork, outlives, scratch, &stage->tail);
    }
}

static bool same_footprint(const struct footprint *a, const struct footprint *b)
{
    return a->saved == b->saved && a->signs == b->signs && a->forward_scratch == b->forward_scratch &&
           a->split == b->split && a->backward_scratch[0] == b->backward_scratch[0] &&
           a->backward_scratch[1] == b->backward_scratch[1] && a->reads[0] == b->reads[0] &&
           a->reads[1] == b->reads[1] && a->y_over_x == b->y_over_x && a->dx_over_dy == b->dx_over_dy &&
           a->writes_dy == b->writes_dy && a->passes_gradient == b->passes_gradient && a->gradients == b->gradients;
}

static bool same_value(const struct value *a, const struct value *b)
{
    return a->bytes == b->bytes && a->gradient_bytes == b->gradient_bytes && a->wants_gradient == b->wants_gradient &&
           shape_elements(&a->shape) == shape_elements(&b->shape);
}

static bool same_tensor(const struct traced_tensor *a, const struct traced_tensor *b, int shift)
{
    return a->bytes == b->bytes && a->stays == b->stays && b->writer == a->writer + shift &&
           (a->stays || b->last == a->last + shift);
}

/* Whether the backwards of two nodes are the same operator. */
static bool same_traced(const struct network *network, int node, int shift)
{
    const struct traced_backward *a = network->binding[node].traced, *b = network->binding[node + shift].traced;
    const struct traced_tensor *tensor = network->traced->tensor;
    if (!a || !b) return !a && !b;
    if (a->reads != b->reads || a->inputs != b->inputs || a->outputs != b->outputs || a->in_place != b->in_place)
        return false;
    for (int k = 0; k < a->reads; k++)
        if (b->read[k].node != a->read[k].node + shift || b->read[k].what != a->read[k].what) return false;
    for (int k = 0; k < a->inputs; k++)
        if (!same_tensor(&tensor[a->input[k]], &tensor[b->input[k]], shift)) return false;
    for (int k = 0; k < a->outputs; k++)
        if (!same_tensor(&tensor[a->output[k]], &tensor[b->output[k]], shift)) return false;
    return true;
}

static bool same_stage(const struct network *network, const struct stage *a, const struct stage *b)
{
    const struct graph *g = network->graph;
    const int nodes = a->nodes.to - a->nodes.from, shift = b->nodes.from - a->nodes.from;
    if (b->nodes.to - b->nodes.from != nodes || a->outlives != b->outlives) return false;
    if ((a->nodes.to == g->nodes) != (b->nodes.to == g->nodes) || !a->nodes.from != !b->nodes.from) return false;
    if (!same_value(&g->value[a->nodes.from], &g->value[b->nodes.from])) return false;
    for (int i = a->nodes.from; i < a->nodes.to; i++) {
        const struct node *x = &g->node[i], *y = &g->node[i + shift];
        if (x->layer->inputs != y->layer->inputs || x->draws != y->draws) return false;
        const struct cost *a_cost = &network->cost[i], *b_cost = &network->cost[i + shift];
        if (!x->parameters != !y->parameters) return false;
        if (a_cost->forward != b_cost->forward || a_cost->once != b_cost->once) return false;
        for (int k = 0; k < x->layer->inputs; k++)
            if (y->inputs[k] != (x->inputs[k] ? x->inputs[k] + shift : 0)) return false;
        if (!same_footprint(&network->binding[i].footprint, &network->binding[i + shift].footprint)) return false;
        if (!same_value(&g->value[i + 1], &g->value[i + 1 + shift])) return false;
        if (network->binding[i].runs_once != network->binding[i + shift].runs_once ||
            (network->traced && !same_traced(network, i, shift)))
            return false;
    }
    const size_t *across = network->traced ? network->traced->across : NULL;
    return !across || (across[a->nodes.from] == across[b->nodes.from] && across[a->nodes.to] == across[b->nodes.to]);
}

static void list_stages(const struct network *network, struct region *region, struct stages *stages)
{
    const struct node_ranges ranges = stages_find(network->graph, region);
    stages->count = ranges.count;
    NEW(region, stages->stage, (size_t)ranges.count);
    for (int s = 0; s < ranges.count; s++) {
        struct stage *stage = &stages->stage[s];
        stage->nodes = ranges.range[s];
        const struct value *before = &network->graph->value[stage->nodes.from],
                           *after = &network->graph->value[stage->nodes.to];
        stage->input = stage->nodes.from ? network_round(network, before->bytes) : 0;
        stage->output = network_round(network, after->bytes);
        if (s + 1 < ranges.count) stage->gradient = network_round(network, after->gradient_bytes);
        if (network->traced) stage->gradient = network->traced->across[stage->nodes.to];
        stage->outlives = s && reads_value(network, ranges.range[s - 1].from, stage->nodes.from, stage->nodes.from - 1);
        for (int i = stage->nodes.from; i < stage->nodes.to; i++) stage->time += network_first_time(network, i);
        stage->class = s;
        for (int other = 0; other < s && stage->class == s; other++)
            if (same_stage(network, &stages->stage[other], stage)) stage->class = stages->stage[other].class;
        if (stage->class == s) {
            measure_stage(network, stages->rng, stage);
        } else {
            struct node_range nodes = stage->nodes;
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
    struct stages stages = {.reach = CHAIN_RUN_NODES, .rng = rng};
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
            *run = shift ? run[-shift * stages.reach] : list_run(network, &stages, first, count, region);
        }
    return stages;
}
