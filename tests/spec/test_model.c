/* Models: the graph that a list of layers becomes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "spec/model.h"
#include "spec/spec.h"
#include "tests/support/spec_text.h"

TestSuite(model, .init = spec_text_begin, .fini = spec_text_end);

static struct graph *build(const char *layers, const char *more, int64_t side, int64_t channels)
{
    char text[4096];
    snprintf(text, sizeof text,
             "rematch: 1\nname: x\nmodel:\n  layers:\n%s\ndata: {name: ones, shape: 1, classes: 7}\nbatch: 2\n"
             "steps: 1\noptimizer: {lr: 0.1}\n%s\n",
             layers, more);
    struct spec *spec = load_well(text, "", false);
    struct graph *graph;
    struct dataset data = {.shape = {3, {side, side, channels}}, .classes = 7};
    cr_assert(model_build(spec, &data, &graph) == ST_OK, "%s", messages());
    spec_destroy(spec);
    return graph;
}

static void check_names(const struct graph *graph, const char *const *names)
{
    int i = 0;
    for (; names[i]; i++)
        cr_assert(i < graph->nodes && !strcmp(graph->node[i].name, names[i]), "node %d is %s, not %s", i,
                  i < graph->nodes ? graph->node[i].name : "none", names[i]);
    cr_expect(graph->nodes == i, "%d nodes", graph->nodes);
}

Test(model, names_of_nodes_and_groups_show_their_place)
{
    struct graph *graph =
        build("    - conv: {name: first, channels: 2, kernel: 1}\n"
              "    - repeat:\n        name: part\n        times: 2\n        layers:\n"
              "          - relu\n"
              "          - repeat: {name: block, times: 2, layers: [{conv: {channels: 2, kernel: 1}}]}\n"
              "          - group: {name: end, layers: [relu, {dropout: {rate: 0.5, name: drop}}]}\n"
              "    - conv: {channels: 2, kernel: 1}\n"
              "    - group: {name: tail, layers: [relu, flatten]}\n"
              "    - linear: {units: classes}",
              "", 4, 1);
    static const char *const nodes[] = {"first",
                                        "part[0].relu1",
                                        "part[0].block[0].conv1",
                                        "part[0].block[1].conv1",
                                        "part[0].relu2",
                                        "part[0].drop",
                                        "part[1].relu1",
                                        "part[1].block[0].conv1",
                                        "part[1].block[1].conv1",
                                        "part[1].relu2",
                                        "part[1].drop",
                                        "conv1",
                                        "relu1",
                                        "flatten1",
                                        "linear1",
                                        "cross_entropy",
                                        NULL};
    check_names(graph, nodes);
    static const struct group groups[] = {
        {"part[0]", 1, 6, -1},         {"part[0].block[0]", 2, 3, 0}, {"part[0].block[1]", 3, 4, 0},
        {"part[0].end", 4, 6, 0},      {"part[1]", 6, 11, -1},        {"part[1].block[0]", 7, 8, 4},
        {"part[1].block[1]", 8, 9, 4}, {"part[1].end", 9, 11, 4},     {"tail", 12, 14, -1}};
    cr_assert(graph->groups == 9);
    for (int i = 0; i < 9; i++) {
        const struct group *got = &graph->group[i];
        cr_expect(!strcmp(got->name, groups[i].name) && got->from == groups[i].from && got->to == groups[i].to &&
                      got->parent == groups[i].parent,
                  "group %s [%d,%d) in %d", got->name, got->from, got->to, got->parent);
    }
    cr_expect(graph->value[graph->nodes - 1].shape.dim[0] == 7);
    graph_destroy(graph);
}

Test(model, a_residual_adds_its_arms)
{
    struct graph *graph =
        build("    - conv: {channels: 4, kernel: 1}\n"
              "    - residual: {name: a, layers: [{conv: {channels: 4, kernel: 3, padding: 1}}, relu]}\n"
              "    - residual:\n        layers: [{conv: {channels: 8, kernel: 1, stride: 2}}]\n"
              "        shortcut: [{max_pool: {kernel: 2}}, {conv: {channels: 8, kernel: 1}}]\n"
              "    - flatten\n    - linear: {units: 7}",
              "relu_save: bits", 4, 1);
    static const char *const nodes[] = {"conv1", "conv2", "relu1",    "add1",    "conv3",         "max_pool1",
                                        "conv4", "add2",  "flatten1", "linear1", "cross_entropy", NULL};
    check_names(graph, nodes);
    cr_expect(graph->node[3].inputs[0] == 3 && graph->node[3].inputs[1] == 1); /* the body first, then the input */
    cr_expect(graph->node[7].inputs[0] == 5 && graph->node[7].inputs[1] == 7);
    cr_expect(graph->value[1].consumers == 2 && graph->value[4].consumers == 2);
    cr_expect(graph->groups == 1 && graph->group[0].from == 1 && graph->group[0].to == 4);
    cr_expect(graph->node[2].relu_save == RELU_BITS);
    graph_destroy(graph);
}

Test(model, a_residuals_join_reads_both_arms)
{
    struct graph *graph = build("    - conv: {channels: 4, kernel: 1}\n"
                                "    - residual:\n        layers: [{conv: {channels: 4, kernel: 1}}]\n"
                                "        join: [{batch_norm_add: {name: sum, activation: relu}}]\n"
                                "    - residual: {from: sum, layers: [relu], join: [batch_norm_add]}\n"
                                "    - residual: {layers: [relu], join: [add]}\n"
                                "    - flatten\n    - linear: {units: 7}",
                                "relu_save: bits", 4, 1);
    static const char *const nodes[] = {"conv1",           "conv2",         "sum",  "relu1",
                                        "batch_norm_add1", "relu2",         "add1", "flatten1",
                                        "linear1",         "cross_entropy", NULL};
    check_names(graph, nodes);
    const struct node *sum = &graph->node[2], *next = &graph->node[4];
    cr_expect(sum->inputs[0] == 2 && sum->inputs[1] == 1 && next->inputs[0] == 4 && next->inputs[1] == 3);
    cr_expect(sum->activation == ACTIVATION_RELU && next->activation == ACTIVATION_NONE);
    cr_expect(sum->parameters == 2 && sum->states == 2 && sum->relu_save == RELU_BITS);
    graph_destroy(graph);
}

/* Frozen weights and two products beside them, trained in a group that is not; a factor of 1 needs no node. */
Test(model, lora_adds_two_products)
{
    struct graph *graph =
        build("    - flatten\n    - group:\n        name: part\n        trainable: false\n        layers:\n"
              "          - linear: {name: up, units: 6, init: ones, slices: 1, lora: {rank: 4, alpha: 10}}\n"
              "    - relu: {from: part}\n    - linear: {units: classes, bias: false, lora: {rank: 2, alpha: 2}}",
              "", 4, 1);
    static const char *const nodes[] = {
        "flatten1", "up",      "up.lora_a",      "up.lora_scale",  "up.lora_b",    "up.lora",
        "relu1",    "linear1", "linear1.lora_a", "linear1.lora_b", "linear1.lora", "cross_entropy",
        NULL};
    check_names(graph, nodes);
    static const int inputs[][2] = {{0}, {1}, {1}, {3}, {4}, {2, 5}, {6}, {7}, {7}, {9}, {8, 10}};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        for (int k = 0; k < graph->node[i].layer->inputs; k++)
            cr_expect(graph->node[i].inputs[k] == inputs[i][k], "%s reads %d", nodes[i], graph->node[i].inputs[k]);
    static const struct {
        const char *name;
        int64_t dim[2];
        enum init init;
        bool trained;
    } parameters[] = {{"up.weight", {6, 16}, INIT_ONES, false},
                      {"up.bias", {6}, INIT_ZEROS, false},
                      {"up.lora_a.weight", {4, 16}, INIT_NORMAL, true},
                      {"up.lora_b.weight", {6, 4}, INIT_ZEROS, true},
                      {"linear1.weight", {7, 6}, INIT_GLOROT_UNIFORM, false},
                      {"linear1.lora_a.weight", {2, 6}, INIT_NORMAL, true},
                      {"linear1.lora_b.weight", {7, 2}, INIT_ZEROS, true}};
    cr_assert(graph->parameters == sizeof parameters / sizeof *parameters);
    for (int i = 0; i < graph->parameters; i++) {
        const struct parameter *p = &graph->parameter[i];
        cr_expect(!strcmp(p->name, parameters[i].name) && (p->trained >= 0) == parameters[i].trained, "%s", p->name);
        cr_expect(
            !memcmp(p->definition.shape.dim, parameters[i].dim, (size_t)p->definition.shape.rank * sizeof(int64_t)),
            "%s", p->name);
        cr_expect(p->definition.init == parameters[i].init, "%s", p->name);
    }
    cr_expect(node_real(&graph->node[3], "by") == 2.5 && graph->node[4].keep_whole && !graph->node[9].keep_whole);
    graph_destroy(graph);
}

/* Two graphs of the same nodes, whose names may differ. */
static void check_same(struct graph *a, struct graph *b)
{
    cr_assert(a->nodes == b->nodes, "%d and %d nodes", a->nodes, b->nodes);
    for (int i = 0; i < a->nodes; i++) {
        const char *one = graph_node_key(a, i, a->region), *other = graph_node_key(b, i, b->region);
        cr_expect(!strcmp(one, other), "node %d: %s, not %s", i, one, other);
        for (int k = 0; k < a->node[i].layer->inputs; k++)
            cr_expect(a->node[i].inputs[k] == b->node[i].inputs[k], "node %d reads %d, not %d", i, a->node[i].inputs[k],
                      b->node[i].inputs[k]);
    }
    graph_destroy(a), graph_destroy(b);
}

#define POOL "max_pool: {kernel: 3, stride: 1, padding: 1}"
#define END  "    - flatten\n    - linear: {units: 7}"

/* Skips of a U-Net by nesting and by names; the layers' channels come first, of a shortcut alone those of its input. */
Test(model, a_concat_joins_its_arms)
{
    struct graph *nested = build("    - conv: {channels: 4, kernel: 1}\n"
                                 "    - concat:\n        layers:\n"
                                 "          - " POOL "\n          - conv: {channels: 8, kernel: 1}\n"
                                 "          - concat: {layers: [{" POOL "}, {conv: {channels: 2, kernel: 1}}]}\n"
                                 "          - relu\n" END,
                                 "", 4, 1);
    struct graph *dense = build("    - conv: {channels: 4, kernel: 1}\n"
                                "    - concat: {shortcut: [{conv: {channels: 2, kernel: 1}}]}\n" END,
                                "", 4, 1);
    struct graph *flat = build("    - conv: {channels: 4, kernel: 1, name: enc1}\n    - " POOL "\n"
                               "    - group: {name: enc2, layers: [{conv: {channels: 8, kernel: 1}}]}\n    - " POOL "\n"
                               "    - conv: {channels: 2, kernel: 1}\n    - concat: {from: enc2}\n    - relu\n"
                               "    - concat: {from: enc1, name: top}\n" END,
                               "", 4, 1);
    static const char *const nodes[] = {"conv1", "max_pool1", "conv2",    "max_pool2", "conv3",         "concat1",
                                        "relu1", "concat2",   "flatten1", "linear1",   "cross_entropy", NULL};
    check_names(nested, nodes);
    const struct node *inner = &nested->node[5], *outer = &nested->node[7];
    cr_expect(inner->inputs[0] == 5 && inner->inputs[1] == 3 && outer->inputs[0] == 7 && outer->inputs[1] == 1);
    cr_expect(nested->value[6].shape.dim[2] == 10 && nested->value[8].shape.dim[2] == 14);
    cr_expect(flat->groups == 2 && flat->group[1].from == 7 && flat->group[1].to == 8);
    cr_expect(dense->node[2].inputs[0] == 1 && dense->node[2].inputs[1] == 2 && dense->value[3].shape.dim[2] == 6);
    graph_destroy(dense);
    check_same(nested, flat);
}

/* A gate of channels from the input itself, and the product of two arms; of a group that is not trained, no layer is,
 * wherever it is nested. */
Test(model, a_multiply_joins_its_arms)
{
    struct graph *graph =
        build("    - group:\n        name: stem\n        trainable: false\n        layers:\n"
              "          - conv: {channels: 4, kernel: 1}\n"
              "          - repeat: {name: turn, times: 2, layers: [{conv: {channels: 4, kernel: 1}}]}\n"
              "    - multiply: {shortcut: [global_avg_pool, {linear: {units: 4}}, sigmoid]}\n"
              "    - multiply: {layers: [{conv: {channels: 4, kernel: 1, trainable: false}}, silu], "
              "shortcut: [{conv: {channels: 4, kernel: 1}}]}\n" END,
              "", 4, 1);
    static const char *const nodes[] = {"conv1",
                                        "stem.turn[0].conv1",
                                        "stem.turn[1].conv1",
                                        "global_avg_pool1",
                                        "linear1",
                                        "sigmoid1",
                                        "multiply1",
                                        "conv2",
                                        "silu1",
                                        "conv3",
                                        "multiply2",
                                        "flatten1",
                                        "linear2",
                                        "cross_entropy",
                                        NULL};
    check_names(graph, nodes);
    static const bool frozen[] = {true, true, true, false, false, false, false, true, false, false};
    for (size_t i = 0; i < sizeof frozen; i++) cr_expect(graph->node[i].frozen == frozen[i], "%s", nodes[i]);
    const struct node *gate = &graph->node[6], *product = &graph->node[10];
    cr_expect(gate->inputs[0] == 3 && gate->inputs[1] == 6 && product->inputs[0] == 9 && product->inputs[1] == 10);
    cr_expect(!graph->value[3].wants_gradient && graph->value[7].wants_gradient && graph->value[9].wants_gradient);
    graph_destroy(graph);
}

/* Queries of the input, keys and values of an earlier layer; a form with its layer's keys reads what it printed. */
Test(model, a_cross_attention_joins_queries_and_keys)
{
    struct graph *graph = build("    - group: {name: image, layers: [tokens]}\n"
                                "    - linear: {name: body, units: 6}\n"
                                "    - cross_attention: {heads: 3, kv_heads: 1, rate: 0.1, save: nothing, from: image, "
                                "name: look, layers: [{linear: {units: 12}}], shortcut: [{linear: {units: 8}}]}\n" END,
                                "", 4, 1);
    static const char *const nodes[] = {"tokens1",  "body",    "linear1",       "linear2", "cross_attention1",
                                        "flatten1", "linear3", "cross_entropy", NULL};
    check_names(graph, nodes);
    const struct node *node = &graph->node[4];
    cr_expect(node->inputs[0] == 3 && node->inputs[1] == 4 && graph->node[3].inputs[0] == 1);
    cr_expect(node_integer(node, "kv_heads") == 1 && node_chooses(node, "save", "nothing"));
    cr_expect(graph->groups == 2 && graph->group[1].from == 2 && graph->group[1].to == 5);
    graph_destroy(graph);
}

/* What follows an auxiliary head reads what the head read. */
Test(model, an_auxiliary_head_has_a_loss_of_its_own)
{
    struct graph *graph = build(
        "    - conv: {name: stem, channels: 4, kernel: 1}\n"
        "    - auxiliary: {weight: 0.3, layers: [global_avg_pool, {linear: {units: classes}}]}\n"
        "    - conv: {channels: 2, kernel: 1}\n"
        "    - auxiliary: {name: late, weight: 2, from: stem, layers: [flatten, {linear: {units: classes}}]}\n" END,
        "", 4, 1);
    static const char *const nodes[] = {"stem",     "global_avg_pool1", "linear1",       "cross_entropy1",
                                        "conv1",    "flatten1",         "linear2",       "cross_entropy2",
                                        "flatten2", "linear3",          "cross_entropy", NULL};
    check_names(graph, nodes);
    const struct node *node = graph->node;
    cr_expect(node[4].inputs[0] == 1 && node[5].inputs[0] == 1 && node[8].inputs[0] == 5);
    cr_expect(graph->auxiliary == 2 && node[3].auxiliary == 1 && node[7].auxiliary == 2 && !node[10].auxiliary);
    cr_expect(node[3].weight == 0.3 && node[7].weight == 2 && node[10].weight == 1 && node[0].weight == 1);
    cr_expect(graph->groups == 1 && graph->group[0].from == 5 && graph->group[0].to == 8);
    graph_destroy(graph);
}

/* Each layer of a DenseNet reads all before it; names in a repetition are its own. */
Test(model, names_are_looked_up_outwards)
{
    struct graph *graph = build("    - conv: {channels: 1, kernel: 1, name: in}\n"
                                "    - group: {name: g, layers: [{relu: {name: deep}}, {relu: {from: in}}]}\n"
                                "    - residual: {from: deep}\n"
                                "    - repeat:\n        name: block\n        times: 2\n        layers:\n"
                                "          - relu: {name: in}\n"
                                "          - repeat:\n              name: block\n              times: 2\n"
                                "              layers: [{relu: {name: last}}, {residual: {from: in}}]\n"
                                "          - residual: {from: block}\n"
                                "          - residual: {from: deep, layers: [relu], shortcut: [relu]}\n"
                                "    - residual: {from: block}\n"
                                "    - residual: {from: 'block[0].block[1].last'}\n"
                                "    - residual: {from: g, name: end}\n"
                                "    - residual: {from: in, layers: [{dropout: {rate: 0.5, from: end}}, relu]}\n" END,
                                "", 2, 1);
    static const struct {
        const char *node, *first, *second; /* what it reads */
    } reads[] = {{"relu1", "in", NULL},
                 {"add1", "relu1", "deep"},
                 {"block[0].in", "add1", NULL},
                 {"block[0].block[0].add1", "block[0].block[0].last", "block[0].in"},
                 {"block[0].block[1].add1", "block[0].block[1].last", "block[0].in"},
                 {"block[0].add1", "block[0].block[1].add1", "block[0].block[1].add1"},
                 {"block[0].relu2", "deep", NULL},
                 {"block[0].add2", "block[0].relu1", "block[0].relu2"},
                 {"block[1].block[0].add1", "block[1].block[0].last", "block[1].in"},
                 {"add2", "block[1].add2", "block[1].add2"},
                 {"add3", "add2", "block[0].block[1].last"},
                 {"add4", "add3", "relu1"},
                 {"dropout1", "add4", NULL},
                 {"add5", "relu2", "in"}};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        const int at = graph_find_node(graph, reads[i].node), first = graph_find_node(graph, reads[i].first);
        cr_assert(at >= 0 && first >= 0, "%s", reads[i].node);
        const struct node *node = &graph->node[at];
        cr_expect(node->inputs[0] == first + 1, "%s reads %d", reads[i].node, node->inputs[0]);
        if (!reads[i].second) continue;
        cr_expect(node->inputs[1] == graph_find_node(graph, reads[i].second) + 1, "%s reads %d too", reads[i].node,
                  node->inputs[1]);
    }
    graph_destroy(graph);
}

/* It has the layer's name, parameters, group and input; the loss is part of it. */
Test(model, a_loss_in_chunks_is_in_the_last_layer)
{
    struct graph *graph =
        build("    - flatten\n    - linear: {units: 5}\n"
              "    - group: {name: head, trainable: false, layers: [relu, {linear: {name: last, units: "
              "classes, init: ones, bias: false}}]}",
              "loss: {chunks: 2}", 4, 1);
    static const char *const nodes[] = {"flatten1", "linear1", "relu1", "last", NULL};
    check_names(graph, nodes);
    const struct node *last = &graph->node[3];
    cr_expect(!strcmp(last->layer->name, "linear_cross_entropy") && last->frozen && last->group == 0);
    cr_expect(last->inputs[0] == 3 && node_integer(last, "chunks") == 2 && node_integer(last, "units") == 7);
    cr_expect(!strcmp(graph->parameter[last->first_parameter].name, "last.weight") && last->parameters == 1);
    cr_expect(graph->parameter[last->first_parameter].definition.init == INIT_ONES);
    cr_expect(graph_labels(graph) == 1 && graph_classes(graph) == 7);
    graph_destroy(graph);
    graph = build("    - flatten\n    - linear: {units: 7}", "loss: {name: cross_entropy, chunks: 1}", 4, 1);
    static const char *const unnamed[] = {"flatten1", "linear1", NULL};
    check_names(graph, unnamed);
    graph_destroy(graph);
}

Test(model, chunks_that_do_not_fit_are_errors)
{
    static const struct {
        const char *layers, *more, *says;
    } cases[] = {
        {"    - flatten\n    - linear: {units: 7}\n    - relu", "loss: {chunks: 2}",
         "the last layer of the model is a relu"},
        {"    - flatten\n    - residual: {layers: [{linear: {units: 16}}]}", "loss: {chunks: 2}",
         "is a residual; expected a linear"},
        {"    - flatten\n    - linear: {units: 7, lora: {rank: 2, alpha: 2}}", "loss: {chunks: 2}",
         "is a linear with lora;"},
        {"    - flatten\n    - linear: {units: 7, activation: tanh}", "loss: {chunks: 2}",
         "is a linear with an activation;"},
        {"    - flatten\n    - repeat: {name: r, times: 2, layers: [{linear: {units: 7}}]}", "loss: {chunks: 2}",
         "is a repeat;"},
        {"    - flatten\n    - linear: {units: 7}", "loss: {chunks: 3}", "3 chunks of 2 rows; expected at most 2"},
        {"    - flatten\n    - linear: {units: 7}", "loss: {chunks: 2}\nslices: 2",
         "2 chunks of 1 rows; expected at most 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4096];
        snprintf(text, sizeof text,
                 "rematch: 1\nname: x\nmodel:\n  layers:\n%s\ndata: {name: ones, shape: 1, classes: 7}\nbatch: 2\n"
                 "steps: 1\noptimizer: {lr: 0.1}\n%s\n",
                 cases[i].layers, cases[i].more);
        struct spec *spec = load_well(text, "", false);
        struct graph *graph;
        struct dataset data = {.shape = {3, {4, 4, 1}}, .classes = 7};
        cr_expect(spec_place(spec, model_build(spec, &data, &graph)) == ST_SPEC);
        const char *said = messages();
        cr_expect(strstr(said, "loss.chunks: ") && strstr(said, cases[i].says), "%s: %s", cases[i].says, said);
        spec_destroy(spec);
    }
}

Test(model, a_width_is_the_number_of_classes)
{
    static const char *const layers[] = {"linear: {units: classes}", "conv: {channels: classes, kernel: 1}",
                                         "conv_transpose: {channels: classes, kernel: 1}"};
    const struct dataset data = {.shape = {3, {4, 4, 1}}, .classes = 7};
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "rematch: 1\nname: x\nmodel:\n  layers:\n%s    - %s\n"
                 "data: {name: synthetic, shape: [4, 4, 1], classes: 7}\nbatch: 2\nsteps: 1\noptimizer: {lr: 0.1}\n",
                 i == 0 ? "    - flatten\n" : "", layers[i]);
        struct spec *spec = load_well(text, "", false), *again = load_well(spec->resolved, "", false);
        struct graph *graph;
        cr_expect(!strcmp(spec->resolved, again->resolved) && strstr(spec->resolved, ": classes"), "%s", layers[i]);
        cr_assert(model_build(spec, &data, &graph) == ST_OK, "%s", messages());
        cr_expect(shape_width(&graph->value[graph->values - 2].shape) == 7, "%s", layers[i]);
        graph_destroy(graph);
        spec_destroy(spec), spec_destroy(again);
    }
}

static const char tied_spec[] =
    "rematch: 1\nname: x\nmodel:\n  layers:\n"
    "    - group: {name: input, layers: [{embedding: {name: table, vocabulary: 9, positions: 8, segments: 1, units: "
    "4}}]}\n"
    "    - linear: {units: classes, FORM}\n"
    "data: {name: synthetic-text, length: 3, vocabulary_size: 9}\nbatch: 2\nsteps: 1\noptimizer: {lr: 0.1}\n";

/* tied_spec with FORM replaced. */
static struct spec *load_tied(const char *form, const char *overrides)
{
    char text[1024];
    const char *at = strstr(tied_spec, "FORM");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - tied_spec), tied_spec, form, at + strlen("FORM"));
    return load_well(text, overrides, false);
}

Test(model, a_tied_weight_is_one_parameter)
{
    static const char *const expected[] = {"table.word", "table.position", "table.segment", "linear1.bias"};
    static const char *const overrides[] = {"", "loss.chunks=2"};
    struct dataset data = {.shape = {2, {3, 3}}, .classes = 9, .tokens = 9};
    for (int i = 0; i < 2; i++) {
        struct spec *spec = load_tied("tied: table", overrides[i]), *again = load_well(spec->resolved, "", false);
        struct graph *graph;
        cr_expect(!strcmp(spec->resolved, again->resolved) && strstr(spec->resolved, "tied: table"));
        cr_assert(model_build(spec, &data, &graph) == ST_OK, "%s", messages());
        cr_assert(graph->parameters == 4 && graph->trained == 4);
        for (int p = 0; p < 4; p++) cr_expect(!strcmp(graph->parameter[p].name, expected[p]), "%s", expected[p]);
        const struct node *table = &graph->node[0], *last = &graph->node[1];
        cr_expect(table->shared && !last->shared && last->tied == 1 && last->parameters == 1);
        cr_expect(node_parameters(last) == 2 && node_parameter(last, 0) == 0 && node_parameter(last, 1) == 3);
        graph_destroy(graph);
        spec_destroy(spec), spec_destroy(again);
    }
}

Test(model, weights_that_cannot_be_tied_are_errors)
{
    static const struct {
        const char *form, *overrides, *says;
    } cases[] = {
        {"tied: tabel", "", "tied: nothing before it is called 'tabel' (did you mean 'table'?)"},
        {"name: last, tied: last", "", "tied: 'last' is not complete here"},
        {"tied: table, trainable: false", "", "one of 'table' and this layer is trained, the other is not"},
        {"tied: table, lora: {rank: 2, alpha: 2}", "", "one of 'table' and this layer is trained"},
        {"tied: table}\n    - linear: {units: 5, tied: table", "", "its weight is 5x9; expected 9x4, as table.word is"},
        {"name: a}\n    - relu: {name: b}\n    - linear: {units: 9, tied: b", "",
         "'b' is a relu; expected an embedding"}};
    struct dataset data = {.shape = {2, {3, 3}}, .classes = 9, .tokens = 9};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spec *spec = load_tied(cases[i].form, cases[i].overrides);
        struct graph *graph;
        cr_expect(model_build(spec, &data, &graph) == ST_SPEC);
        const char *said = messages();
        cr_expect(strstr(said, cases[i].says), "%s: %s", cases[i].says, said);
        spec_destroy(spec);
    }
}

/* The resolved text has the keys, and is the same model. */
Test(model, skips_are_printed)
{
    static const char skips[] =
        "rematch: 1\nname: x\nmodel:\n  parameters: {n: 2, what: relu}\n  layers:\n"
        "    - repeat: {name: a, times: $n, layers: [$what]}\n"
        "    - concat: {from: 'a[0]', name: b, layers: [{dropout: {rate: 0.5, name: c, from: a}}]}\n"
        "    - concat: {from: c}\n    - residual: {layers: [relu], shortcut: [relu], from: b}\n"
        "    - residual: {layers: [relu], join: [{batch_norm_add: {name: sum, affine: false}}]}\n"
        "    - concat: {layers: [relu]}\n    - concat: {shortcut: [relu]}\n    - flatten\n    - linear: {units: 3}\n"
        "data: {name: synthetic, shape: [4, 4, 1], classes: 3}\nbatch: 8\nsteps: 2\noptimizer: {lr: 0.1}\n";
    static const char *const lines[] = {
        "        times: 2\n",
        "        name: b\n        from: \"a[0]\"\n        layers:\n",
        "- dropout: {rate: 0.5, name: c, from: a}\n",
        "    - concat:\n        from: c\n    - residual:\n        from: b\n",
        "        shortcut:\n",
        ("        join:\n          - batch_norm_add: {epsilon: 1e-05, momentum: 0.1, "
         "variance: unbiased, statistics: batch, affine: false, activation: none, name: sum}\n"),
        "    - concat:\n        \n        shortcut:\n          - relu:",
        NULL};
    struct spec *spec = load_well(skips, "", false), *again = load_well(spec->resolved, "", false);
    for (int i = 0; lines[i]; i++)
        cr_expect(strstr(spec->resolved, lines[i]), "%s is not in\n%s", lines[i], spec->resolved);
    cr_expect(!strcmp(spec->resolved, again->resolved), "%s\nbecame\n%s", spec->resolved, again->resolved);
    spec_destroy(spec), spec_destroy(again);
}

Test(model, init_and_relu_save_apply_to_layers)
{
    struct graph *graph = build("    - conv: {channels: 4, kernel: 1, activation: relu}\n"
                                "    - conv: {channels: 4, kernel: 1, init: zeros}\n"
                                "    - flatten\n    - linear: {units: 7}\n  init: he_normal",
                                "", 4, 1);
    cr_expect(node_integer(&graph->node[0], "init") == INIT_HE_NORMAL &&
              node_integer(&graph->node[1], "init") == INIT_ZEROS);
    cr_expect(node_integer(&graph->node[3], "init") == INIT_HE_NORMAL && graph->node[0].relu_save == RELU_OUTPUT);
    graph_destroy(graph);
}

/* Relus before max pools (windows of one element and overlapping ones too), average pools, pools with a second consumer
 * of their input, pools with a relu of their own, one after a batch norm, which keeps nothing for its relu, and a pool
 * without a layer before it. */
Test(model, relus_move_behind_pools_that_alone_read_them)
{
    static const char layers[] = "    - max_pool: {name: first, kernel: 2}\n    - conv: {channels: 4, kernel: 1, "
                                 "activation: relu}\n    - max_pool: {kernel: 2}\n"
                                 "    - conv: {channels: 4, kernel: 1, activation: relu}\n    - avg_pool: {kernel: 2}\n"
                                 "    - conv: {channels: 4, kernel: 1}\n    - max_pool: {kernel: 2, stride: 1}\n"
                                 "    - conv: {channels: 4, kernel: 1, activation: relu}\n    - max_pool: {kernel: 1}\n"
                                 "    - conv: {channels: 4, kernel: 1, activation: relu}\n"
                                 "    - residual: {layers: [{max_pool: {kernel: 3, stride: 1, padding: 1}}]}\n"
                                 "    - conv: {channels: 4, kernel: 1, activation: relu}\n    - max_pool: {kernel: 2}\n"
                                 "    - max_pool: {kernel: 2, activation: relu}\n    - max_pool: {kernel: 2}\n"
                                 "    - conv: {channels: 4, kernel: 1, activation: relu}\n"
                                 "    - max_pool: {kernel: 2, stride: 1, padding: 1}\n"
                                 "    - conv: {channels: 4, kernel: 1, activation: relu}\n"
                                 "    - max_pool: {kernel: 2, activation: relu}\n"
                                 "    - batch_norm: {activation: relu}\n    - max_pool: {kernel: 2}\n"
                                 "    - conv: {channels: 4, kernel: 1}\n    - flatten\n    - linear: {units: 7}";
    static const struct {
        const char *node;
        bool relu, after,
            after_with_bits; /* whether the node has a relu: as written; with relu_after_pool; also with sign bits */
    } cases[] = {
        {"conv1", true, false, false},      {"max_pool1", false, true, true},   {"conv2", true, true, true},
        {"conv3", false, false, false},     {"conv4", true, true, true},        {"max_pool3", false, false, false},
        {"max_pool2", false, false, false}, {"conv5", true, true, true},        {"max_pool4", false, false, false},
        {"conv6", true, false, true},       {"max_pool5", false, true, false},  {"max_pool6", true, true, true},
        {"max_pool7", false, false, false}, {"conv7", true, true, true},        {"max_pool8", false, false, false},
        {"conv8", true, true, true},        {"max_pool9", true, true, true},    {"first", false, false, false},
        {"batch_norm1", true, true, true},  {"max_pool10", false, false, false}};
    static const char *const how[] = {"", "relu_after_pool: true", "relu_after_pool: true\nrelu_save: bits"};
    for (int h = 0; h < 3; h++) {
        struct graph *graph = build(layers, how[h], 256, 1);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const struct node *node = &graph->node[graph_find_node(graph, cases[i].node)];
            const bool expected = h == 0 ? cases[i].relu : h == 1 ? cases[i].after : cases[i].after_with_bits;
            cr_expect((node->activation == ACTIVATION_RELU) == expected, "%s, %s", node->name, how[h]);
            cr_expect(node->relu_of_input == (expected && !cases[i].relu), "%s, %s", node->name, how[h]);
        }
        graph_destroy(graph);
    }
}

/* Parameters of published nets, counted by their authors or by hand. */
Test(model, parameter_counts_match_the_published_models)
{
    static const struct {
        const char *file;
        int64_t height, width, channels, classes, parameters;
        const char *model; /* an override, or NULL */
    } cases[] = {
        {"experiments/vgg16-recompute.yaml", 224, 224, 3, 1000, 138357544}, /* Keras' VGG16 */
        {"experiments/vgg16-cifar10.yaml", 224, 224, 3, 1000, 138357544},
        /* 3x3x3x32+32 + 3x3x32x64+64 + 2(3x3x64x64+64) + 4096x512+512 + 512x10+10 */
        {"experiments/cifar10-spell.yaml", 32, 32, 3, 10, 896 + 18496 + 2 * 36928 + 2097664 + 5130},
        /* five blocks, the first on 1 channel, the others on 20, and 256x256x20x32+32 + 32x10+10 */
        {"experiments/sample-cnn-recompute.yaml", 256, 256, 1, 10,
         (250 + 10) + 4 * (5000 + 10) + 5 * (10000 + 40 + 20000 + 20) + 41943040 + 32 + 330},
        /* eleven convolutions of 10, 20, 40, 60, 40 five times and 20 twice, and 128x128x20x32+32 + 32x10+10 */
        {"experiments/sample-cnn-page.yaml", 256, 256, 1, 10,
         25 * (10 + 10 * 20 + 20 * 40 + 40 * 60 + 60 * 40 + 4 * 40 * 40 + 40 * 20 + 20 * 20) + 370 + 10485760 + 32 +
             330},
        {"experiments/big-cnn-recompute.yaml", 256, 256, 1, 10,
         (250 + 10) + 20 * (5000 + 10) + 21 * (10000 + 40 + 20000 + 20) + 41943040 + 32 + 330},
        {"experiments/mlp-sequential.yaml", 0, 0, 100, 5, 100 * 50 + 50 + 50 * 20 + 20 + 20 * 5 + 5},
        /* conv 3x3x3x16, 6 of 3x3x16x16, 5 of 3x3x32x32, 5 of 3x3x64x64, those between and two projections; 7 norms of
         * each width; 64x10+10 */
        {"experiments/resnet-cifar10.yaml", 32, 32, 3, 10,
         432 + 6 * 2304 + 5 * 9216 + 5 * 36864 + 4608 + 18432 + 512 + 2048 + 7 * 2 * (16 + 32 + 64) + 650},
        /* Hugging Face's BertModel of bert-base-uncased and of google/bert_uncased_L-2_H-128_A-2, and a classifier */
        {"experiments/bert-recompute.yaml", 3, 128, 0, 3, 109482240 + 768 * 3 + 3},
        {"experiments/bert-tweets.yaml", 3, 64, 0, 3, 4385920 + 128 * 3 + 3},
        /* torchvision's, GoogLeNet without its auxiliary heads */
        {"experiments/plans/published-cnns.yaml", 224, 224, 3, 1000, 6624904, "model.file=../models/googlenet.yaml"},
        {"experiments/plans/published-cnns.yaml", 224, 224, 3, 1000, 3504872, "model.file=../models/mobilenet-v2.yaml"},
        /* 3x3 convolutions from and to these channels, each with a bias and a norm, and 64x2+2 */
        {"experiments/plans/published-cnns.yaml", 416, 608, 3, 2,
         9 * (3 * 64 + 64 * (64 + 128) + 128 * (128 + 256) + 256 * (256 + 512) + 512 * 512 * 3 + 1024 * 512 +
              2 * 512 * 256 + 256 * 128 * 2 + 128 * 64 * 2 + 64 * 64) +
             3 * (64 * 5 + 128 * 4 + 256 * 4 + 512 * 5) + 130,
         "model.file=../models/unet-halved.yaml"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spec *spec;
        struct graph *graph;
        int64_t total = 0;
        struct dataset data = {.shape = {3, {cases[i].height, cases[i].width, cases[i].channels}},
                               .classes = cases[i].classes};
        if (!cases[i].height) data.shape = (struct shape){1, {cases[i].channels}};
        if (!cases[i].channels) data.shape = (struct shape){2, {cases[i].height, cases[i].width}};
        cr_assert(spec_load(cases[i].file, cases[i].model ? 1 : 0, &cases[i].model, &spec) == ST_OK, "%s", messages());
        cr_assert(model_build(spec, &data, &graph) == ST_OK, "%s", messages());
        for (int p = 0; p < graph->parameters; p++) total += graph->parameter[p].elements;
        cr_expect(total == cases[i].parameters, "%s: %lld", cases[i].file, (long long)total);
        graph_destroy(graph);
        spec_destroy(spec);
    }
}

/* Of BERT base, bert-recompute's parameters and in each of 12 blocks 8 (768 + 2304) of two products, which are trained
 * with the head: 0.3 million, as in table 2 of Hu et al. (2021). A tensor takes a multiple of 256 bytes. */
Test(model, lora_of_bert_base_trains_its_products)
{
    enum { PRODUCTS = 12 * 8 * (768 + 2304), POOLER = 768 * 768 + 768, CLASSIFIER = 768 * 3, FLOAT = sizeof(float) };
    static const char *const base = "model=models/bert-lora.yaml";
    const struct dataset data = {.shape = {2, {3, 128}}, .classes = 3};
    struct spec *spec, *whole;
    struct graph *adapted, *plain;
    cr_assert(spec_load("experiments/lora-bert.yaml", 1, &base, &spec) == ST_OK, "%s", messages());
    cr_assert(spec_load("experiments/bert-recompute.yaml", 0, NULL, &whole) == ST_OK, "%s", messages());
    cr_assert(model_build(spec, &data, &adapted) == ST_OK, "%s", messages());
    cr_assert(model_build(whole, &data, &plain) == ST_OK, "%s", messages());
    cr_expect(graph_parameter_bytes(adapted) == graph_parameter_bytes(plain) + PRODUCTS * FLOAT);
    cr_expect(graph_trained_bytes(adapted) == (PRODUCTS + POOLER + CLASSIFIER) * FLOAT + 256);
    graph_destroy(adapted), graph_destroy(plain);
    spec_destroy(spec), spec_destroy(whole);
}

Test(model, checkpoint_sequentials_sample_matches_its_text)
{
    static const struct {
        const char *kind;
        int64_t units;
    } modules[] = {{"linear", 50}, {"relu", 50}, {"linear", 20}, {"relu", 20}, {"linear", 5}, {"relu", 5}};
    enum { MODULES = sizeof modules / sizeof *modules };
    const struct dataset data = {.shape = {1, {100}}, .classes = 5};
    struct spec *spec;
    struct graph *graph;
    cr_assert(spec_load("experiments/mlp-sequential.yaml", 0, NULL, &spec) == ST_OK, "%s", messages());
    cr_assert(model_build(spec, &data, &graph) == ST_OK, "%s", messages());
    cr_expect(spec->batch == 1 && graph->nodes == MODULES + 1 && !strcmp(graph->node[MODULES].layer->name, "sum"));
    for (int i = 0; i < MODULES; i++) {
        const struct shape *shape = &graph->value[graph->node[i].output].shape;
        cr_expect(!strcmp(graph->node[i].layer->name, modules[i].kind) && shape_elements(shape) == modules[i].units,
                  "%d: %s of %lld", i, graph->node[i].layer->name, (long long)shape_elements(shape));
    }
    graph_destroy(graph);
    spec_destroy(spec);
}
