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
    size_t output, saved, gradient, forward_scratch, backward_scratch;
    unsigned reads;
    bool in_place, passes;
} expected[] = {
    {"conv", 10, 0, 12.5, 100, 0, 100, 0, 0, 0, false, false},
    {"sign", 1.25, 2, 0, 8, 0, 8, 0, 0, 0, false, false},
    {"relu", 3, 0, 11, 100, 0, 100, 5, 0, READS_X, true, false},
    {"split", 4, 0, 8 + 9 + 1, 100, 13, 100, 3, 30, READS_SAVED, false, false},
    {"add", 5, 0, 0, 100, 0, 100, 0, 0, 0, false, true},
    {"loss", 6, 0.125, 7, 4, 0, 4, 0, 0, READS_X | READS_Y, false, false},
};

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
        const struct value *y = &graph->value[i + 1];
        const struct cost *cost = &network->cost[i];
        cr_expect_str_eq(graph->node[i].name, expected[i].name);
        cr_expect(cost->forward == expected[i].forward && cost->once == expected[i].once, "%s", expected[i].name);
        cr_expect(cost->backward[0] == expected[i].backward, "%s: %g", expected[i].name, cost->backward[0]);
        cr_expect(y->bytes == expected[i].output && y->gradient_bytes == expected[i].gradient, "%s: %zu, %zu",
                  expected[i].name, y->bytes, y->gradient_bytes);
        cr_expect(f->saved == expected[i].saved && f->reads[0] == expected[i].reads, "%s: %u", expected[i].name,
                  f->reads[0]);
        cr_expect(f->forward_scratch == expected[i].forward_scratch, "%s", expected[i].name);
        cr_expect(f->backward_scratch[0] == expected[i].backward_scratch, "%s: %zu", expected[i].name,
                  f->backward_scratch[0]);
        cr_expect(f->y_over_x == expected[i].in_place && f->passes_gradient == expected[i].passes, "%s",
                  expected[i].name);
    }
    cr_expect(graph->value[0].bytes == 1000 && graph->parameter[0].elements == 6);
    cr_expect_str_eq(spec->graph->mapping,
                     "9 forward operators as 6 nodes, without 1 views and 2 dead ones; 7 backward operators within the "
                     "nodes' backwards");
    abstract_destroy(network);
    spec_destroy(spec);
}
