#include "variants.h"

#include <stdlib.h>
#include <string.h>

enum status variants_unpack(uint64_t replay, int nodes, struct region *region, bool **marks)
{
    TRY(NEW(region, *marks, (size_t)nodes));
    for (int i = 0; i < nodes && i < 64; i++) (*marks)[i] = replay >> i & 1;
    return ST_OK;
}

/* How a probe's word goes after everything ran forward once and the sink went backward. */
enum probe {
    PROBE_THROUGH, /* the variant's replays and backwards */
    PROBE_LAST,    /* a new forward from the cut value, then those */
    PROBE_PASS,    /* the cut value is made again too */
    PROBE_TAIL     /* the cut value is made again, then the backwards of what was saved */
};

static enum status probe(const struct excerpt *excerpt, enum probe kind, uint64_t replay, struct region *region,
                         struct profile *profile)
{
    struct word word = word_empty(region);
    const int end = excerpt->nodes + 1, all = excerpt->network.graph->nodes;
    bool *marks;
    TRY(variants_unpack(replay, excerpt->nodes, region, &marks));
    TRY(word_append(&word, STEP_FORWARD, 0, all));
    TRY(word_append(&word, STEP_BACKWARD, end, all));
    if (kind == PROBE_PASS || kind == PROBE_TAIL) TRY(word_append(&word, STEP_FORWARD, 0, 1));
    if (kind == PROBE_LAST || kind == PROBE_PASS) TRY(word_append(&word, STEP_FORWARD, 1, end));
    TRY(excerpt_backward(&excerpt->network, 1, end, marks, &word));
    TRY(word_append(&word, STEP_BACKWARD, 0, 1));
    return excerpt_profile(excerpt, &word, region, profile);
}

enum status variants_last_nodes(const struct network *network, const struct range *nodes, uint64_t replay,
                                enum rng_mode rng, struct region *region, bool **marks)
{
    struct excerpt excerpt;
    struct profile profile;
    TRY(excerpt_cut(network, nodes->from, nodes->to, true, false, rng, region, &excerpt));
    TRY(probe(&excerpt, PROBE_LAST, replay, region, &profile));
    TRY(NEW(region, *marks, (size_t)(nodes->to - nodes->from)));
    for (int i = profile.turn + 1; i < profile.lowered.ops; i++) {
        const struct op *op = &profile.lowered.op[i];
        if (op->kind != OP_FORWARD || op->node < 1) continue;
        if (op->node <= 64 && replay >> (op->node - 1) & 1) {
            replay &= ~(UINT64_C(1) << (op->node - 1)); /* the variant's own replay; another one is the forward's */
        } else {
            (*marks)[op->node - 1] = true;
        }
    }
    return ST_OK;
}

/* Each replay makes something that a later replay or a backward of the run reads. */
static bool useful(const struct excerpt *excerpt, uint64_t replay)
{
    const struct graph *graph = excerpt->network.graph;
    uint64_t read = 0; /* nodes whose y somebody reads */
    for (int i = 1; i <= excerpt->nodes; i++) {
        unsigned reads = network_reads(&excerpt->network, i);
        if (reads & READS_Y) read |= UINT64_C(1) << (i - 1);
        for (int k = 0; k < graph->node[i].layer->inputs; k++)
            if (reads & READS_X && graph->node[i].inputs[k] > 1) read |= UINT64_C(1) << (graph->node[i].inputs[k] - 2);
    }
    for (int i = excerpt->nodes; i >= 1; i--) {
        if (!(replay >> (i - 1) & 1)) continue;
        bool saves = network_reads(&excerpt->network, i) & READS_SAVED && excerpt->network.binding[i].footprint.saved;
        if (!saves && !(read >> (i - 1) & 1)) return false;
        for (int k = 0; k < graph->node[i].layer->inputs; k++)
            if (graph->node[i].inputs[k] > 1) read |= UINT64_C(1) << (graph->node[i].inputs[k] - 2);
    }
    return true;
}

static bool dominates(const struct variant *a, const struct variant *b)
{
    return a->forward <= b->forward && a->again <= b->again && a->keep <= b->keep && a->backward <= b->backward &&
           a->time <= b->time && a->outlives <= b->outlives && a->reads_input >= b->reads_input;
}

/* Adds a variant to a list with room for it, unless one is as good; takes out those that it beats. */
static void add(struct variants *list, const struct variant *variant)
{
    for (int i = 0; i < list->count; i++)
        if (dominates(&list->variant[i], variant)) return;
    int kept = 0;
    for (int i = 0; i < list->count; i++)
        if (!dominates(variant, &list->variant[i])) list->variant[kept++] = list->variant[i];
    list->variant[kept++] = *variant;
    list->count = kept;
}

/* Copies the list to just as much memory in region. */
static enum status settle(struct variants *list, struct region *region)
{
    struct variant *copy;
    TRY(NEW(region, copy, (size_t)list->count + 1));
    if (list->count) memcpy(copy, list->variant, (size_t)list->count * sizeof *copy);
    list->variant = copy;
    return ST_OK;
}

static enum status look_at(const struct excerpt *excerpt, uint64_t replay, struct variants *through,
                           struct variants *last)
{
    struct region *scratch = region_create();
    if (!scratch) return fail(ST_FAILED, "out of memory for planning");
    struct profile p;
    bool reads_y = network_reads(&excerpt->network, excerpt->nodes) & READS_Y;
    enum status status = probe(excerpt, PROBE_THROUGH, replay, scratch, &p);
    if (status == ST_OK) {
        struct variant v = {.replay = replay,
                            .forward = p.forward,
                            .again = p.again,
                            .keep = p.keep,
                            .backward = p.backward,
                            .time = p.replay_time + (excerpt->sink ? 0 : p.forward_time),
                            .outlives = reads_y && !(replay >> (excerpt->nodes - 1) & 1),
                            .reads_input = p.reads_input};
        add(excerpt->sink ? through : last, &v);
    }
    if (status == ST_OK && excerpt->sink) {
        status = probe(excerpt, PROBE_LAST, replay, scratch, &p);
        struct variant v = {
            .replay = replay, .backward = p.backward, .time = p.replay_time, .reads_input = p.reads_input};
        if (status == ST_OK) add(last, &v);
    }
    region_destroy(scratch);
    return status;
}

/* Picks the nodes whose subsets are tried: all but the forced ones, or those that free most bytes for their time. */
static int choose_free(const struct excerpt *excerpt, uint64_t forced, int *free_nodes)
{
    const struct graph *graph = excerpt->network.graph;
    uint64_t chosen = forced;
    int count = 0;
    for (; count < FREE_NODES_MAX; count++) {
        int best = -1;
        double best_worth = -1;
        for (int i = 0; i < excerpt->nodes && i < 64; i++) {
            if (chosen >> i & 1) continue;
            double bytes = (double)(graph->value[i + 2].bytes + excerpt->network.binding[i + 1].footprint.saved);
            double worth = bytes / (excerpt->network.cost[i + 1].forward + 1);
            if (worth > best_worth) best = i, best_worth = worth;
        }
        if (best < 0) break;
        chosen |= UINT64_C(1) << best;
        free_nodes[count] = best;
    }
    return count;
}

static enum status list_run(const struct network *network, const struct stages *stages, int first, int count,
                            struct region *region, struct run *run)
{
    const struct stage *s = &stages->stage[first];
    const int from = s->nodes.from, to = stages->stage[first + count - 1].nodes.to;
    uint64_t forced = 0;
    for (int i = 0; i + 1 < count; i++) forced |= UINT64_C(1) << (stages->stage[first + i].nodes.to - 1 - from);
    for (int outlives = 0; outlives <= (int)s->outlives; outlives++) {
        struct excerpt excerpt;
        int free_nodes[FREE_NODES_MAX];
        TRY(excerpt_cut(network, from, to, to < network->graph->nodes, outlives, stages->rng, region, &excerpt));
        int frees = choose_free(&excerpt, forced, free_nodes);
        struct variant room[2][1 << FREE_NODES_MAX];
        struct variants through = {0, room[0]}, last = {0, room[1]};
        for (uint64_t set = 0; set < UINT64_C(1) << frees; set++) {
            uint64_t replay = forced;
            for (int i = 0; i < frees; i++) replay |= (set >> i & 1) << free_nodes[i];
            if (useful(&excerpt, replay)) TRY(look_at(&excerpt, replay, &through, &last));
        }
        TRY(settle(&through, region));
        TRY(settle(&last, region));
        run->through[outlives] = through;
        run->last[outlives] = last;
    }
    return ST_OK;
}

static enum status measure_stage(const struct network *network, enum rng_mode rng, struct stage *stage)
{
    struct region *scratch = region_create();
    if (!scratch) return fail(ST_FAILED, "out of memory for planning");
    struct excerpt excerpt;
    struct profile p = {.forward_time = 0};
    enum status status = ST_OK;
    for (int outlives = 0; outlives < 2 && status == ST_OK; outlives++) {
        status = excerpt_cut(network, stage->nodes.from, stage->nodes.to, true, outlives, rng, scratch, &excerpt);
        if (status != ST_OK) break;
        status = probe(&excerpt, outlives ? PROBE_LAST : PROBE_PASS, 0, scratch, &p);
        *(outlives ? &stage->held : &stage->passed) = p.forward;
        *(outlives ? &stage->held_again : &stage->passed_again) = p.again;
        stage->once = p.once;
        stage->time = p.forward_time;
        if (status == ST_OK) status = probe(&excerpt, PROBE_TAIL, 0, scratch, &p);
        if (!outlives) {
            stage->tail = p.forward;
            stage->tail_again = p.again;
            stage->tail_keep = p.keep;
            stage->tail_reads = p.reads_input;
            stage->tail_outlives = network_reads(&excerpt.network, excerpt.nodes) & READS_Y;
        }
        stage->tail_backward[outlives] = p.backward;
    }
    region_destroy(scratch);
    return status;
}

static bool same_footprint(const struct footprint *a, const struct footprint *b)
{
    return a->saved == b->saved && a->forward_scratch == b->forward_scratch && a->split == b->split &&
           a->backward_scratch[0] == b->backward_scratch[0] && a->backward_scratch[1] == b->backward_scratch[1] &&
           a->reads[0] == b->reads[0] && a->reads[1] == b->reads[1] && a->y_over_x == b->y_over_x &&
           a->dx_over_dy == b->dx_over_dy && a->writes_dy == b->writes_dy && a->passes_gradient == b->passes_gradient;
}

static bool same_value(const struct value *a, const struct value *b)
{
    return a->bytes == b->bytes && a->gradient_bytes == b->gradient_bytes && a->wants_gradient == b->wants_gradient &&
           shape_elements(&a->shape) == shape_elements(&b->shape);
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
        if (x->layer->inputs != y->layer->inputs || x->layer->random != y->layer->random) return false;
        if (!x->parameters != !y->parameters || network->cost[i].forward != network->cost[i + shift].forward)
            return false;
        for (int k = 0; k < x->layer->inputs; k++)
            if (y->inputs[k] != (x->inputs[k] ? x->inputs[k] + shift : 0)) return false;
        if (!same_footprint(&network->binding[i].footprint, &network->binding[i + shift].footprint)) return false;
        if (!same_value(&g->value[i + 1], &g->value[i + 1 + shift])) return false;
    }
    return true;
}

static enum status list_stages(const struct network *network, struct region *region, struct stages *stages)
{
    struct ranges ranges;
    TRY(chain_stages(network->graph, region, &ranges));
    stages->count = ranges.count;
    TRY(NEW(region, stages->stage, (size_t)ranges.count));
    for (int s = 0; s < ranges.count; s++) {
        struct stage *stage = &stages->stage[s];
        stage->nodes = ranges.range[s];
        const struct value *before = &network->graph->value[stage->nodes.from],
                           *after = &network->graph->value[stage->nodes.to];
        stage->input = stage->nodes.from ? network_round(network, before->bytes) : 0;
        stage->output = network_round(network, after->bytes);
        if (s + 1 < ranges.count) stage->gradient = network_round(network, after->gradient_bytes);
        stage->outlives = stage->nodes.from && network_reads(network, stage->nodes.from - 1) & READS_Y;
        for (int i = stage->nodes.from; i < stage->nodes.to; i++) stage->time += network->cost[i].forward;
        stage->class = s;
        for (int other = 0; other < s && stage->class == s; other++)
            if (same_stage(network, &stages->stage[other], stage)) stage->class = stages->stage[other].class;
        if (stage->class == s) {
            TRY(measure_stage(network, stages->rng, stage));
        } else {
            struct range nodes = stage->nodes;
            *stage = stages->stage[stage->class];
            stage->nodes = nodes;
        }
    }
    return ST_OK;
}

/* An earlier run of the same stages, NULL: none. */
static struct run *find_equal(const struct stages *stages, int first, int count)
{
    for (int other = 0; other < first; other++) {
        int same = 0;
        while (same < count && stages->stage[other + same].class == stages->stage[first + same].class) same++;
        if (same == count) return stages->run[other * stages->reach + count - 1];
    }
    return NULL;
}

enum status variants_list(const struct network *network, enum rng_mode rng, struct region *region,
                          struct stages *stages)
{
    *stages = (struct stages){.reach = RUN_NODES_MAX, .rng = rng};
    TRY(list_stages(network, region, stages));
    TRY(NEW(region, stages->run, (size_t)stages->count * (size_t)stages->reach));
    for (int first = 0; first < stages->count; first++)
        for (int count = 1; count <= stages->reach && first + count <= stages->count; count++) {
            int nodes = stages->stage[first + count - 1].nodes.to - stages->stage[first].nodes.from;
            if (count > 1 && nodes > RUN_NODES_MAX) break;
            struct run **run = &stages->run[first * stages->reach + count - 1];
            if ((*run = find_equal(stages, first, count)) != NULL) continue;
            TRY(NEW(region, *run, 1));
            TRY(list_run(network, stages, first, count, region, *run));
        }
    return ST_OK;
}
