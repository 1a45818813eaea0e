#include "random_chains.h"

#include <criterion/criterion.h>

const struct abstract_stage narrow_limits = {.forward = 12,
                                             .backward = 20,
                                             .output = 40,
                                             .saved = 60,
                                             .gradient = 40,
                                             .forward_scratch = 15,
                                             .backward_scratch = 15,
                                             .split = true};

/* 0 in one of four. */
static uint32_t some_below(struct source *source, int64_t limit)
{
    return draw_below(source, 4) ? draw_below(source, (uint32_t)limit) : 0;
}

void chain_draw(struct source *source, const struct abstract_stage *limits, int stages, struct abstract_stage *stage)
{
    for (int i = 0; i < stages; i++) {
        struct abstract_stage *s = &stage[i];
        *s = (struct abstract_stage){.forward = draw_below(source, (uint32_t)limits->forward)};
        s->backward = draw_below(source, (uint32_t)limits->backward);
        s->output = draw_below(source, (uint32_t)limits->output);
        s->saved = some_below(source, limits->saved);
        s->gradient = draw_below(source, (uint32_t)limits->gradient);
        s->forward_scratch = some_below(source, limits->forward_scratch);
        s->backward_scratch = some_below(source, limits->backward_scratch);
        s->split = limits->split && draw_below(source, 2);
    }
}

/* A gradient that is passed on has the size of those of all inputs. */
static void pass_gradient(struct abstract_node *node, int i)
{
    struct abstract_node *n = &node[i];
    const int x = n->input[0], z = n->input[n->inputs - 1];
    if (!x || !z || node[z - 1].forward_only || node[x - 1].stage.gradient != node[z - 1].stage.gradient) return;
    n->passes_gradient = true;
    n->stage.gradient = node[x - 1].stage.gradient;
}

void graph_draw(struct source *source, const struct abstract_stage *limits, int nodes, struct abstract_node *node)
{
    struct abstract_stage stage;
    for (int i = 0; i < nodes; i++) {
        const int mask = i > 1 && node[i - 1].forward_only ? i : 0, before = mask ? i - 1 : i;
        chain_draw(source, limits, 1, &stage);
        node[i] =
            (struct abstract_node){.stage = stage, .inputs = 1, .input = {before}, .reads = draw_below(source, 8)};
        node[i].in_place = draw_below(source, 2);
        if (draw_below(source, 4) == 0) node[i].once = draw_below(source, (uint32_t)limits->forward);
        if (!mask && i && i + 1 < nodes && draw_below(source, 8) == 0) {
            node[i] = (struct abstract_node){.inputs = 1, .forward_only = true};
            node[i].stage = (struct abstract_stage){.forward = stage.forward, .output = stage.output};
        } else if (mask || (i > 1 && draw_below(source, 3) == 0)) {
            node[i].inputs = 2;
            node[i].input[1] = mask ? mask : 1 + (int)draw_below(source, (uint32_t)i - 1);
        }
        if (!node[i].forward_only && draw_below(source, 3) == 0) pass_gradient(node, i);
    }
}

struct network *graph_network(const struct abstract_node *node, int nodes)
{
    struct network *network;
    int at;
    cr_assert(abstract_graph_create(node, nodes, &at, &network) == ST_OK, "%s", status_message());
    return network;
}

enum status chain_create(const struct abstract_stage *stage, int stages, int *at, struct network **network)
{
    region_auto *region = region_create();
    struct abstract_node *node;
    NEW(region, node, (size_t)stages + 1);
    for (int i = 0; i < stages; i++)
        node[i] = (struct abstract_node){.stage = stage[i], .inputs = 1, .input = {i}, .reads = READS_X | READS_SAVED};
    return abstract_graph_create(node, stages, at, network);
}

struct network *chain_network(const struct abstract_stage *stage, int stages)
{
    struct network *network;
    int at;
    cr_assert(chain_create(stage, stages, &at, &network) == ST_OK, "%s", status_message());
    return network;
}
