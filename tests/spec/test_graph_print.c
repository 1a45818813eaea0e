/* A graph file that the program prints, as a plan's file has it, is the graph file that it read. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "result/record_plan.h"
#include "tests/support/planned_graphs.h"
#include "tests/support/spec_text.h"

TestSuite(graph_print, .init = spec_text_begin, .fini = spec_text_end);

/* The plan's data of a graph file's text. */
static struct plan_data data_of(const char *text, const char *overrides, struct planned_graph *planned,
                                struct region *region)
{
    struct plan_data data;
    struct network *network;
    char copy[256];
    const char *argument[16];
    snprintf(copy, sizeof copy, "%s", overrides);
    *planned = (struct planned_graph){.spec = NULL};
    cr_assert(graph_file_load(write_bytes(text, strlen(text)), planned_overrides(copy, argument), argument,
                              &planned->spec, &network) == ST_OK,
              "%s", messages());
    planned->spec->resolved = graph_file_print(planned->spec, planned->spec->region);
    cr_assert(job_create_abstract(planned->spec, network, &planned->job) == ST_OK, "%s", status_message());
    plan_to_data(planned->job->plan, region, &data);
    return data;
}

/* What a graph file is resolved to is a graph file of the same network, plan and text. */
Test(graph_print, a_printed_graph_is_the_same_graph)
{
    static const char *const graphs[][2] = {
        {"policy: every\nstages:\n" THREE, ""},
        {"title: 'a: title'\nplaced: true\ndrop_dead: false\npolicy: {name: optimal, budget: 90%}\nnodes:\n" STEPS(9),
         ""},
        {"batch: 3\nstatic: 1000\npolicy: sqrt\nnodes:\n"
         "  - {name: a, forward: 3.5, backward: 4, output: 10KiB, saved: 300, gradient: 1000, parameters: 10}\n"
         "  - {name: 'b: [0]', forward: 5, backward: 4, output: 10, saved: 3, gradient: 10, forward_scratch: 7}\n"
         "  - {name: m, inputs: [batch], forward: 1, backward: 0, output: 10, saved: 0, gradient: 0, forward_only: "
         "true}\n"
         "  - {name: c, inputs: ['b: [0]', m], forward: 5, backward: 4, once: 2, output: 10, saved: 3, gradient: 10, "
         "split: true, reads: [x, y, saved]}\n"
         "  - {name: e, forward: 5, backward: 4, output: 50, saved: 0, gradient: 50, reads: y}\n"
         "  - {name: sum, inputs: [c, a, e], forward: 1, backward: 0, output: 10, saved: 0, gradient: 10, "
         "reads: nothing, in_place: true, gradient_in_place: true}\n"
         "  - {forward: 0.1, backward: 1, output: 100, saved: 0, gradient: 100}\n",
         "batch=7"},
        {"policy: every\ntensors: [{name: image, bytes: 5, constant: true}, {name: y, bytes: 7}, {name: z, bytes: 3}, "
         "{name: loss, bytes: 1}, {name: dz, bytes: 3}, {name: dy, bytes: 7}]\noperators:\n"
         "  - {name: one, time: 2, reads: [image], writes: [y]}\n  - {name: two, time: 3, reads: [y], writes: [z]}\n"
         "  - {name: three, time: 1, reads: [z], writes: [loss]}\n"
         "  - {name: d3, phase: backward, time: 4, reads: [z, loss], writes: [dz]}\n"
         "  - {name: d2, phase: backward, time: 5, reads: [dz, y], writes: [dy]}\n",
         ""},
        {"policy: {name: optimal, budget: least}\nbatch: 2\ngradients: written\ntensors: [{name: image, bytes: 5, "
         "constant: true}, {name: a.y, bytes: 7}, {name: m, bytes: 4}, {name: k, bytes: 6, kept: true}, {name: b, "
         "bytes: "
         "7}, {name: d1.y, bytes: 9}, {name: d2, bytes: 3}, {name: d3, bytes: 3}]\noperators:\n"
         "  - {name: mm, time: 2, first: 1, reads: [image], writes: [a.y, m, k], scratch: 10, random: true}\n"
         "  - {name: mm, time: 3, reads: [a.y], writes: [b], in_place: true}\n"
         "  - {name: mm, phase: backward, time: 4, reads: [b, m], writes: [d1.y]}\n"
         "  - {name: sum, phase: backward, time: 4, scratch: 5, reads: [d1.y, k], writes: [d2]}\n"
         "  - {name: sum, phase: backward, time: 1, reads: [d2, a.y], writes: [d3], in_place: true}\n",
         "batch=6"},
    };
    struct region *region = region_create();
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        struct planned_graph first, again;
        const char *text = region_text(region, "rematch: 1\nname: graph\n%s", graphs[i][0]);
        const struct plan_data a = data_of(text, graphs[i][1], &first, region),
                               b = data_of(first.spec->resolved, "", &again, region);
        size_t row;
        cr_expect(!strcmp(first.spec->resolved, again.spec->resolved), "%zu:\n%s\nis not\n%s", i, again.spec->resolved,
                  first.spec->resolved);
        cr_assert(a.nodes == b.nodes && a.ops == b.ops && !strcmp(a.hash, b.hash), "%zu:\n%s", i, first.spec->resolved);
        const struct field *const columns[] = {record_name_columns, record_model_columns, record_node_columns};
        for (int k = 0; k < 3; k++)
            cr_expect(!table_difference(columns[k], (size_t)a.nodes, a.node, b.node, sizeof *a.node, &row),
                      "%zu: row %zu", i, row);
        for (int n = 0; n < a.nodes; n++)
            cr_expect(a.node[n].forward_time == b.node[n].forward_time && a.node[n].once_time == b.node[n].once_time &&
                          a.node[n].backward_time[0] == b.node[n].backward_time[0],
                      "%zu: times of %s", i, a.node[n].name);
        cr_expect(!memcmp(a.count, b.count, sizeof a.count) && a.real[REAL_TIME] == b.real[REAL_TIME], "%zu", i);
        planned_graph_done(&first);
        planned_graph_done(&again);
    }
    region_destroy(region);
}
