#include "backend/abstract_chain.h"

#include "model/reference.h"

/* One parameter, so that there is a part PARAMS; it has no elements in the end. */
static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    (void)settings;
    definitions[0] = (struct parameter_definition){.name = "weight", .shape = *input, .init = INIT_ZEROS};
    return 1;
}

static const struct layer stage_layer = {.name = "stage", .inputs = 1, .infer = same_infer, .parameters = parameters};
static const struct layer last_layer = {
    .name = "stage", .inputs = 1, .loss = true, .infer = same_infer, .parameters = parameters};

static const double TIME_MAX = 9007199254740992.0; /* 2^53 */
static const int64_t BYTES_MAX = INT64_C(1) << 62; /* a schedule holds nothing twice, so no sum can overflow */

static enum status check(const struct abstract_stage *stage, int stages, int *at)
{
    double time = 0;
    int64_t bytes = 0;
    *at = 0;
    if (stages < 1) return fail(ST_SPEC, "chain: no stage; expected at least one");
    for (int i = 0; i < stages; i++) {
        const struct abstract_stage *s = &stage[i];
        const int64_t size[] = {s->output, s->saved, s->gradient, s->forward_scratch, s->backward_scratch};
        *at = i;
        time += s->forward + s->backward;
        if (!(s->forward >= 0 && s->backward >= 0 && time <= TIME_MAX))
            return fail(ST_SPEC, "chain: stage %d: expected times of at least 0 and at most 2^53 in all", i + 1);
        for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
            if (size[k] < 0 || size[k] > BYTES_MAX - bytes)
                return fail(ST_SPEC, "chain: stage %d: expected sizes of at least 0 and at most 2^62 bytes in all",
                            i + 1);
            bytes += size[k];
        }
    }
    return ST_OK;
}

static enum status add_stages(struct graph *graph, const struct abstract_stage *stage, int stages, int *at)
{
    for (int i = 0, x = 0; i < stages; i++) {
        const struct layer *layer = i + 1 < stages ? &stage_layer : &last_layer;
        const char *name = stage[i].name ? stage[i].name : region_text(graph->region, "stage%d", i + 1);
        *at = i;
        TRY(graph_add(graph, layer, NULL, name, &x, &x));
    }
    TRY(graph_finish(graph));
    for (int p = 0; p < graph->parameters; p++) graph->parameter[p].elements = 0;
    graph->batch = 0; /* no labels either: nothing is static */
    return ST_OK;
}

/* Times stand for flops, too, so that every figure in flops is one in the unit of the times. */
static struct network *bind(struct graph *graph, const struct abstract_stage *stage)
{
    struct network *n;
    NEW(graph->region, n, 1);
    NEW(graph->region, n->binding, (size_t)graph->nodes);
    NEW(graph->region, n->cost, (size_t)graph->nodes);
    n->graph = graph;
    n->granularity = 1;
    for (int i = 0; i < graph->nodes; i++) {
        const struct abstract_stage *s = &stage[i];
        struct value *y = &graph->value[graph->node[i].output];
        y->bytes = (size_t)s->output;
        y->gradient_bytes = (size_t)s->gradient;
        size_t scratch = (size_t)s->backward_scratch;
        n->binding[i].footprint = (struct footprint){.saved = (size_t)s->saved,
                                                     .forward_scratch = (size_t)s->forward_scratch,
                                                     .backward_scratch = {scratch, scratch},
                                                     .reads = {READS_X | READS_SAVED, READS_SAVED},
                                                     .split = s->split,
                                                     .implementation = "abstract"};
        n->cost[i] = (struct cost){s->forward, 0, {s->backward, 0}};
        graph->node[i].flops = (struct flops){s->forward, s->backward, 0};
    }
    return n;
}

enum status abstract_create(const struct abstract_stage *stage, int stages, int *at, struct network **network)
{
    *network = NULL;
    struct graph *graph;
    TRY(check(stage, stages, at));
    TRY(graph_create(&(struct shape){1, {1}}, 1, &graph));
    enum status status = add_stages(graph, stage, stages, at);
    if (status == ST_OK)
        *network = bind(graph, stage);
    else
        graph_destroy(graph);
    return status;
}

void abstract_destroy(struct network *network)
{
    if (network) graph_destroy(network->graph);
}
