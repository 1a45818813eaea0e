#include "spec/graph_build.h"

#include "base/names.h"

int graph_build_append(struct graph_build *build, const struct abstract_node *node, const struct yaml_tree *at)
{
    if (build->nodes == GRAPH_NODES_MAX && !build->full)
        yaml_read_error(&build->yaml, at, NULL, NULL, "more than %d nodes in all", GRAPH_NODES_MAX);
    if (build->nodes == GRAPH_NODES_MAX) build->full = true;
    if (build->full) return -1;
    region_grow(build->yaml.region, &build->node, build->nodes, sizeof *build->node);
    region_grow(build->yaml.region, &build->at, build->nodes, sizeof *build->at);
    build->node[build->nodes] = *node;
    build->at[build->nodes] = at;
    graph_build_name(build, build->nodes, node->stage.name);
    return ++build->nodes;
}

void graph_build_name(struct graph_build *build, int i, const char *name)
{
    build->node[i].stage.name = name;
    if (name) names_add(build->names, name, i);
}

/* The node that takes value x and one more input of a node that has too many. */
static struct abstract_node join(const struct graph_build *build, const struct abstract_node *node, int x, int input,
                                 int number)
{
    struct abstract_node one = {.inputs = 2,
                                .input = {x, input},
                                .in_place = number > 1,
                                .gradient_in_place = true,
                                .passes_gradient = node->passes_gradient,
                                .forward_only = node->forward_only};
    one.stage.name = region_text(build->yaml.region, "%s.join%d", node->stage.name, number);
    one.stage.output = node->stage.output;
    one.stage.gradient = node->stage.gradient;
    if (!(node->reads & READS_X)) return one;
    one.stage.output = 0;
    for (int k = 0; k < 2; k++)
        if (one.input[k] > 0) one.stage.output += build->node[one.input[k] - 1].stage.output;
    return one;
}

int graph_build_add(struct graph_build *build, const struct abstract_node *node, int inputs, const int *input,
                    const struct yaml_tree *at)
{
    struct abstract_node last = *node;
    int x = input[0], next = 1;
    for (; inputs - next >= NODE_INPUTS_MAX && x >= 0; next++) {
        const struct abstract_node one = join(build, node, x, input[next], next);
        x = graph_build_append(build, &one, at);
    }
    last.inputs = inputs - next + 1;
    last.input[0] = x;
    for (int k = 1; k < last.inputs; k++) last.input[k] = input[next + k - 1];
    if (next > 1) last.in_place = last.gradient_in_place = true;
    return graph_build_append(build, &last, at);
}

const struct yaml_tree *graph_build_item(const struct yaml_tree *tree, const char *key, size_t item)
{
    const struct yaml_tree *list = yaml_tree_get(tree, key);
    return list && list->kind == YAML_LIST ? list->item[item] : list ? list : tree;
}

/* More than is allowed where it would be too much to count. */
static void scale_bytes(int64_t *bytes, int64_t batch, int64_t to)
{
    const int64_t most = (INT64_C(1) << 58) + 1, whole = *bytes / batch;
    *bytes = whole > most / to ? most : whole * to + (*bytes % batch * to + batch - 1) / batch;
}

/* The traced step in proportion to another batch. */
static enum status build_step(const struct graph_build *build, int64_t batch, int64_t to, int *at,
                              struct network **network)
{
    struct traced_step *step = build->step;
    if (batch != to) {
        struct region *region = build->yaml.region;
        NEW(region, step, 1);
        *step = *build->step;
        NEW(region, step->node, (size_t)step->nodes);
        NEW(region, step->tensor, (size_t)step->tensors);
        for (int i = 0; i < step->nodes; i++) {
            struct traced_node *n = &step->node[i];
            *n = build->step->node[i];
            int64_t *bytes[] = {&n->output, &n->saved, &n->kept, &n->forward_scratch, &n->backward_scratch};
            double *time[] = {&n->forward, &n->once, &n->backward};
            for (size_t k = 0; k < sizeof bytes / sizeof *bytes; k++) scale_bytes(bytes[k], batch, to);
            for (size_t k = 0; k < sizeof time / sizeof *time; k++) *time[k] *= (double)to / (double)batch;
        }
        for (int i = 0; i < step->tensors; i++) {
            step->tensor[i] = build->step->tensor[i];
            if (!step->tensor[i].stays) scale_bytes(&step->tensor[i].bytes, batch, to);
        }
    }
    return traced_step_create(step, at, network);
}

enum status graph_build_network(const struct graph_build *build, int64_t to, int *at, struct network **network)
{
    region_auto *region = region_create();
    const int64_t batch = build->batch ? build->batch : to;
    struct abstract_node *node;
    if (build->step) return build_step(build, batch, to, at, network);
    NEW(region, node, (size_t)build->nodes + 1);
    for (int i = 0; i < build->nodes; i++) {
        struct abstract_stage *s = &node[i].stage;
        int64_t *bytes[] = {&s->output, &s->saved, &s->gradient, &s->forward_scratch, &s->backward_scratch};
        double *time[] = {&s->forward, &s->backward, &node[i].once};
        node[i] = build->node[i];
        for (size_t k = 0; batch != to && k < sizeof bytes / sizeof *bytes; k++) scale_bytes(bytes[k], batch, to);
        for (size_t k = 0; batch != to && k < sizeof time / sizeof *time; k++) *time[k] *= (double)to / (double)batch;
    }
    TRY(abstract_graph_create(node, build->nodes, at, network));
    (*network)->graph->value[0].bytes = (size_t)build->always;
    return ST_OK;
}
