/* A node's forward writes three tensors at most: NODE.y, NODE.saved and NODE.kept; what backwards write has its name.
 */
#include "base/text.h"
#include "spec/trace.h"
#include "yaml/yaml_write.h"

static const char *const suffix[] = {[HELD_VALUE] = "y", [HELD_SAVED] = "saved", [HELD_ONCE] = "kept"};

static const char *written(const struct network *network, int node, enum held what, struct region *region)
{
    return region_text(region, "%s.%s", network->graph->node[node].name, suffix[what]);
}

/* The name of a tensor that a backward writes, unless it could be that of one above. */
static const char *name_of(const struct traced_tensor *tensor, struct region *region)
{
    for (size_t k = 0; k < sizeof suffix / sizeof *suffix; k++)
        if (text_ends(tensor->name, region_text(region, ".%s", suffix[k])))
            return region_text(region, "%s.d", tensor->name);
    return tensor->name;
}

static void print_tensor(const char *name, int64_t bytes, bool kept, struct region *region, FILE *out)
{
    const struct tensor tensor = {.name = name, .bytes = bytes, .kept = kept};
    yaml_write_settings(trace_tensor_keys, &tensor, "  - {", ", ", region, out);
    fputs("}\n", out);
}

static void print_tensors(const struct network *network, struct region *region, FILE *out)
{
    fputs("tensors:\n", out);
    for (int i = 0; i < network->graph->nodes; i++) {
        const struct footprint *f = &network->binding[i].footprint;
        const int64_t bytes[] = {(int64_t)network->graph->value[i + 1].bytes, (int64_t)f->saved, (int64_t)f->once};
        for (enum held what = HELD_VALUE; !network->binding[i].no_forward && what <= HELD_ONCE; what++)
            if (bytes[what] || what == HELD_VALUE)
                print_tensor(written(network, i, what, region), bytes[what], what == HELD_ONCE, region, out);
    }
    for (int t = 0; t < network->traced->tensors; t++)
        print_tensor(name_of(&network->traced->tensor[t], region), network->traced->tensor[t].bytes, false, region,
                     out);
}

static void print_operator(const struct operation *op, struct region *region, FILE *out)
{
    yaml_write_settings(trace_operator_keys, op, "  - {", ", ", region, out);
    fputs("}\n", out);
}

static void print_forward(const struct network *network, int i, struct region *region, FILE *out)
{
    const struct node *node = &network->graph->node[i];
    const struct footprint *f = &network->binding[i].footprint;
    const char **reads, *writes[3];
    struct operation op = {.name = node->name,
                           .time = network->cost[i].forward,
                           .first = network->cost[i].once,
                           .scratch = (int64_t)f->forward_scratch,
                           .in_place = f->y_over_x,
                           .random = network->binding[i].runs_once};
    NEW(region, reads, (size_t)node->layer->inputs + 1);
    for (int k = 0; k < node->layer->inputs; k++) reads[k] = written(network, node->inputs[k] - 1, HELD_VALUE, region);
    op.read_names = (struct setting_list){.count = (size_t)node->layer->inputs, .texts = reads};
    op.write_names.texts = writes;
    writes[op.write_names.count++] = written(network, i, HELD_VALUE, region);
    if (f->saved) writes[op.write_names.count++] = written(network, i, HELD_SAVED, region);
    if (f->once) writes[op.write_names.count++] = written(network, i, HELD_ONCE, region);
    print_operator(&op, region, out);
}

/* of: the node with a forward whose backward it is, or before whose backward it comes. */
static void print_backward(const struct network *network, int i, const char *of, struct region *region, FILE *out)
{
    const struct traced_backward *b = network->binding[i].traced;
    const struct traced_tensor *tensor = network->traced->tensor;
    const char **reads, **writes;
    struct operation op = {.name = b->name,
                           .of = of,
                           .phase = OPERATOR_BACKWARD,
                           .time = network->cost[i].backward[PART_INDEX_INPUT],
                           .scratch = (int64_t)network->binding[i].footprint.backward_scratch[PART_INDEX_INPUT]};
    for (int k = 0; b->in_place && k < b->inputs; k++) /* another batch may have made them different */
        op.in_place |= tensor[b->input[k]].bytes == tensor[b->output[0]].bytes;
    NEW(region, reads, (size_t)(b->reads + b->inputs) + 1);
    NEW(region, writes, (size_t)b->outputs + 1);
    op.read_names.texts = reads;
    op.write_names.texts = writes;
    for (int k = 0; k < b->reads; k++)
        reads[op.read_names.count++] = written(network, b->read[k].node, b->read[k].what, region);
    for (int k = 0; k < b->inputs; k++) reads[op.read_names.count++] = name_of(&tensor[b->input[k]], region);
    for (int k = 0; k < b->outputs; k++) writes[op.write_names.count++] = name_of(&tensor[b->output[k]], region);
    print_operator(&op, region, out);
}

void trace_print(const struct network *network, struct region *region, FILE *out)
{
    const char *of = NULL;
    bool stays = false;
    for (int t = 0; t < network->traced->tensors; t++)
        stays |= network->traced->tensor[t].stays && network->traced->tensor[t].bytes;
    if (stays) fputs("gradients: written\n", out);
    print_tensors(network, region, out);
    fputs("operators:\n", out);
    for (int i = 0; i < network->graph->nodes; i++)
        if (!network->binding[i].no_forward) print_forward(network, i, region, out);
    for (int i = network->graph->nodes - 1; i >= 0; i--) {
        if (!network->binding[i].no_forward) of = network->graph->node[i].name;
        if (network->binding[i].traced) print_backward(network, i, of, region, out);
    }
}
