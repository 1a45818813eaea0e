/* The plan as data. Nothing is computed here: every member is copied. */
#include <string.h>

#include "backend/traced.h"
#include "plan/plan.h"

static void describe_node(const struct network *network, int i, struct region *region, struct plan_data_node *to)
{
    const struct graph *graph = network->graph;
    const struct node *node = &graph->node[i];
    const struct value *value = &graph->value[node->output];
    const struct cost *cost = &network->cost[i];
    const struct slicing slicing = graph_slicing(graph);
    const struct flops flops = network->backend ? node->flops : (struct flops){0}; /* where times stand for them */
    char shape[96];
    *to = (struct plan_data_node){
        .name = node->name,
        .layer = node->layer->name,
        .group = node->group >= 0 ? graph->group[node->group].name : "",
        .shape = region_text(region, "%s", shape_print(&value->shape, shape)),
        .elements = (size_t)shape_elements(&value->shape),
        .draws = (size_t)node->draws,
        .output_bytes = value->bytes,
        .gradient_bytes = value->gradient_bytes,
        .tied = node->tied,
        .whole = slicing_whole(&slicing, i),
        .wants_gradient = value->wants_gradient,
        .footprint = network->binding[i].footprint,
        .forward_flops = flops.forward,
        .once_flops = flops.once,
        .backward_flops = {flops.backward_params, flops.backward_input},
        .forward_time = cost->forward,
        .once_time = cost->once,
        .backward_time = {cost->backward[0], cost->backward[1]},
    };
    if (!to->footprint.implementation) to->footprint.implementation = "";
    const int inputs = network->traced ? 0 : node->layer->inputs;
    for (int k = 0; k < NODE_INPUTS_MAX; k++) to->inputs[k] = k < inputs ? node->inputs[k] : -1;
}

static void describe_parameter(const struct parameter *p, struct region *region, struct plan_data_parameter *to)
{
    char shape[96];
    *to = (struct plan_data_parameter){p->name, region_text(region, "%s", shape_print(&p->definition.shape, shape)),
                                       p->node, (size_t)p->elements, p->trained < 0};
}

static void claim(const struct plan *plan, struct plan_data *a)
{
    const size_t count[COUNTS] = {
        [COUNT_STATIC] = plan_static(plan),
        [COUNT_ARENA] = plan->arena_bytes,
        [COUNT_PEAK] = plan_peak(plan),
        [COUNT_LIVE_PEAK] = plan->live_peak,
        [COUNT_SAMPLED_FORWARD] = plan_sampled_forward(plan),
        [COUNT_SAMPLED_GRADIENTS] = plan_static(plan),
        [COUNT_RECOMPUTATIONS] = (size_t)plan->recomputations,
        [COUNT_DROPPED] = (size_t)plan->lowered.dropped,
    };
    const bool flops = plan->network->backend; /* elsewhere times stand for them */
    const double real[REALS] = {[REAL_FORWARD_FLOPS] = flops ? plan->forward_flops : 0,
                                [REAL_BACKWARD_FLOPS] = flops ? plan->backward_flops : 0,
                                [REAL_RECOMPUTE_FLOPS] = flops ? plan->recompute_flops : 0,
                                [REAL_TIME] = plan->time,
                                [REAL_SLOWDOWN] = plan->slowdown};
    memcpy(a->count, count, sizeof count);
    memcpy(a->real, real, sizeof real);
    memcpy(a->memory, plan->static_bytes, sizeof plan->static_bytes);
    memcpy(a->memory + STATICS, plan->peak_by_category, sizeof plan->peak_by_category);
}

static void add_read(struct region *region, struct plan_data *data, struct plan_data_read read)
{
    region_grow(region, &data->read, data->reads, sizeof *data->read);
    data->read[data->reads++] = read;
}

static void add_use(struct region *region, struct plan_data *data, struct plan_data_use use)
{
    region_grow(region, &data->use, data->uses, sizeof *data->use);
    data->use[data->uses++] = use;
}

static void describe_operator(const struct network *network, int i, struct region *region, struct plan_data *data)
{
    const struct node *node = &network->graph->node[i];
    const struct binding *binding = &network->binding[i];
    const struct traced_backward *b = binding->traced;
    data->traced[i] = (struct plan_data_operator){b ? b->name : "", !binding->no_forward, b != NULL, binding->runs_once,
                                                  b && b->in_place};
    for (int k = 0; k < node->layer->inputs; k++)
        add_read(region, data, (struct plan_data_read){i, node->inputs[k] - 1, HELD_VALUE, false});
    for (int k = 0; b && k < b->reads; k++)
        add_read(region, data, (struct plan_data_read){i, b->read[k].node, b->read[k].what, true});
    for (int k = 0; b && k < b->inputs; k++) add_use(region, data, (struct plan_data_use){i, b->input[k], false});
    for (int k = 0; b && k < b->outputs; k++) add_use(region, data, (struct plan_data_use){i, b->output[k], true});
}

static void describe_traced(const struct network *network, struct region *region, struct plan_data *data)
{
    const struct traced_step *step = network->traced;
    data->operators = network->graph->nodes;
    data->tensors = step->tensors;
    NEW(region, data->traced, (size_t)data->operators);
    NEW(region, data->tensor, (size_t)data->tensors);
    for (int i = 0; i < data->operators; i++) describe_operator(network, i, region, data);
    for (int i = 0; i < data->tensors; i++)
        data->tensor[i] =
            (struct plan_data_tensor){step->tensor[i].name, (size_t)step->tensor[i].bytes, step->tensor[i].stays};
}

static void list_operands(struct region *region, struct plan_data *data)
{
    for (int i = 0; i < data->ops; i++)
        for (int k = 0; k < data->op[i].reads + data->op[i].writes; k++) {
            region_grow(region, &data->operand, data->operands, sizeof *data->operand);
            data->operand[data->operands++] =
                (struct plan_data_operand){i, data->op[i].operand[k], k >= data->op[i].reads};
        }
}

void plan_network_to_data(const struct network *network, const struct plan_options *options, struct region *region,
                          struct plan_data *data)
{
    const struct graph *graph = network->graph;
    *data = (struct plan_data){
        .nodes = graph->nodes,
        .parameters = graph->parameters,
        .states = graph->states,
        .batch = (size_t)graph->batch,
        .labels = (size_t)graph_labels(graph),
        .slices = (size_t)graph->slices,
        .batch_bytes = graph->value[0].bytes,
        .device_bytes = plan_device_bytes(network, options),
        .optimizer_copies = (size_t)options->state_per_parameter,
        .granularity = network_unit(network),
        .rng = options->lower.rng,
        .drop_dead = options->lower.drop_dead,
        .evaluate = options->lower.evaluate,
    };
    NEW(region, data->node, (size_t)graph->nodes);
    NEW(region, data->parameter, (size_t)graph->parameters);
    NEW(region, data->state, (size_t)graph->states);
    for (int i = 0; i < graph->nodes; i++) describe_node(network, i, region, &data->node[i]);
    if (network->traced) describe_traced(network, region, data);
    for (int i = 0; i < graph->parameters; i++) describe_parameter(&graph->parameter[i], region, &data->parameter[i]);
    for (int i = 0; i < graph->states; i++) describe_parameter(&graph->state[i], region, &data->state[i]);
}

void plan_to_data(const struct plan *plan, struct region *region, struct plan_data *data)
{
    const struct lowered *l = &plan->lowered;
    char hash[33], peak[128];
    plan_network_to_data(plan->network, &plan->options, region, data);
    data->ops = l->ops;
    data->buffers = l->buffers;
    data->op = l->op;
    data->buffer = l->buffer;
    data->schedule = plan->schedule;
    list_operands(region, data);
    data->live = plan->live;
    data->peak_op = region_text(region, "%s", plan_op_text(plan, plan->peak_op, peak));
    data->hash = region_text(region, "%s", digest_print(plan->hash, hash));
    claim(plan, data);
}
