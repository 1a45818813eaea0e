/* The nodes of a traced step, by hand. */
#include <criterion/criterion.h>
#include <string.h>

#include "spec/graph_build.h"
#include "spec/graph_file.h"
#include "tests/support/spec_text.h"

TestSuite(trace_nodes, .init = spec_text_begin, .fini = spec_text_end);

/* A step with all that does not map one operator to one node: an operator whose output is not used, a view, an operator
 * with two outputs, a mask that only the backward reads, an output without a reader, an in-place operator, an addition
 * that passes its gradient on, a backward of two operators with a temporary between them, and parameters' gradients. */
static const char whole[] =
    "rematch: 1\nname: whole\ntensors:\n"
    "  - {name: image, bytes: 1000, constant: true}\n  - {name: w, bytes: 24, constant: true}\n"
    "  - {name: sign, bytes: 8}\n  - {name: a, bytes: 100}\n  - {name: flat, alias: a}\n  - {name: metric, bytes: 9}\n "
    " - {name: mean, bytes: 5}\n"
    "  - {name: left, bytes: 60}\n  - {name: right, bytes: 40}\n  - {name: mask, bytes: 13}\n  - {name: spare, bytes: "
    "3}\n"
    "  - {name: sum, bytes: 100}\n  - {name: loss, bytes: 4}\n  - {name: hits, bytes: 8}\n"
    "  - {name: dsum, bytes: 100}\n  - {name: dboth, bytes: 100}\n  - {name: part, bytes: 30}\n"
    "  - {name: da, bytes: 100}\n  - {name: dw, bytes: 24}\n  - {name: r, bytes: 100}\n  - {name: dr, bytes: 100}\n"
    "operators:\n"
    "  - {name: conv, time: 10, reads: [image, w], writes: [a]}\n"
    "  - {name: view, time: 0.25, reads: [a], writes: [flat]}\n"
    "  - {name: metric, time: 2, reads: [a], writes: [metric]}\n"
    "  - {name: sign, time: 1, reads: [a], writes: [sign]}\n"
    "  - {name: relu, time: 3, reads: [flat], writes: [r, mean], in_place: true}\n"
    "  - {name: split, time: 4, reads: [r], writes: [left, right, mask, spare]}\n"
    "  - {name: add, time: 5, reads: [left, right, r], writes: [sum]}\n"
    "  - {name: loss, time: 6, reads: [sum], writes: [loss]}\n"
    "  - {name: accuracy, time: 0.125, reads: [sum], writes: [hits]}\n"
    "  - {name: dloss, phase: backward, time: 7, reads: [sum, loss], writes: [dsum]}\n"
    "  - {name: dsplit1, phase: backward, time: 8, reads: [mask, dsum], writes: [part]}\n"
    "  - {name: dsplit2, phase: backward, time: 9, reads: [part], writes: [dboth], of: split}\n"
    "  - {name: radd, phase: backward, time: 1, reads: [dsum, dboth], writes: [dr]}\n"
    "  - {name: drelu, phase: backward, time: 11, reads: [sign, dr], writes: [da]}\n"
    "  - {name: dconv, phase: backward, time: 12, reads: [image, da], writes: [dw]}\n"
    "  - {name: tail, phase: backward, time: 0.5, reads: [dw]}\n";

static const struct {
    const char *name;
    double forward, once, backward;
    size_t output, saved, forward_scratch;
    bool in_place, no_forward;
    const char *operator; /* the backward: its name, what it reads of forwards, and tensors that it reads and writes */
} expected[] = {
    {"conv", 10, 0, 12.5, 100, 0, 0, false, false, "dconv; reads; da -> dw"},
    {"sign", 1.25, 2, 0 + 11, 8, 0, 0, false, false, "drelu; reads sign.0; dr -> da"},
    {"relu", 3, 0, 0, 100, 0, 5, true, false, ""},
    {"radd", 0, 0, 1, 0, 0, 0, false, true, "radd; reads; dsum dboth -> dr"},
    {"dsplit2", 0, 0, 9, 0, 0, 0, false, true, "dsplit2; reads; part -> dboth"},
    {"split", 4, 0, 8, 100, 13, 3, false, false, "dsplit1; reads split.1; dsum -> part"},
    {"add", 5, 0, 0, 100, 0, 0, false, false, ""},
    {"loss", 6, 0.125, 7, 4, 0, 0, false, false, "dloss; reads add.0 loss.0; -> dsum"},
};

static const char *operator_text(const struct network *network, int node, struct region *region)
{
    const struct traced_backward *b = network->binding[node].traced;
    const struct traced_tensor *tensor = network->traced->tensor;
    if (!b) return "";
    const char *text = region_text(region, "%s; reads", b->name);
    for (int k = 0; k < b->reads; k++)
        text = region_text(region, "%s %s.%d", text, network->graph->node[b->read[k].node].name, (int)b->read[k].what);
    text = region_text(region, "%s;", text);
    for (int k = 0; k < b->inputs; k++) text = region_text(region, "%s %s", text, tensor[b->input[k]].name);
    text = region_text(region, "%s ->", text);
    for (int k = 0; k < b->outputs; k++) text = region_text(region, "%s %s", text, tensor[b->output[k]].name);
    return text;
}

Test(trace_nodes, operators_that_are_not_one_to_one)
{
    enum { NODES = sizeof expected / sizeof *expected };
    struct spec *spec;
    struct network *network;
    cr_assert(graph_file_load(write_bytes(whole, strlen(whole)), 0, NULL, &spec, &network) == ST_OK, "%s", messages());
    const struct graph *graph = network->graph;
    cr_assert(graph->nodes == NODES, "%d nodes", graph->nodes);
    for (int i = 0; i < NODES; i++) {
        const struct footprint *f = &network->binding[i].footprint;
        const struct cost *cost = &network->cost[i];
        const char *name = expected[i].name;
        cr_expect_str_eq(graph->node[i].name, name);
        cr_expect(cost->forward == expected[i].forward && cost->once == expected[i].once, "%s: %g, %g", name,
                  cost->forward, cost->once);
        cr_expect(network_backward_time(network, i) == expected[i].backward, "%s: %g", name,
                  network_backward_time(network, i));
        cr_expect(graph->value[i + 1].bytes == expected[i].output && f->saved == expected[i].saved, "%s: %zu, %zu",
                  name, graph->value[i + 1].bytes, f->saved);
        cr_expect(f->forward_scratch == expected[i].forward_scratch && f->y_over_x == expected[i].in_place, "%s", name);
        cr_expect(network_has_forward(network, i) == !expected[i].no_forward, "%s", name);
        cr_expect_str_eq(operator_text(network, i, graph->region), expected[i].operator);
    }
    cr_expect(graph->value[0].bytes == 1000 + 24 + 24, "%zu bytes", graph->value[0].bytes);
    cr_expect_str_eq(
        spec->graph->mapping,
        "9 forward operators as 6 nodes, without 1 views and 2 dead ones; 7 backward operators as they ran");
    abstract_destroy(network);
    spec_destroy(spec);
}
