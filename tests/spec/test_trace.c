/* Traced steps: a random graph written as the operators of a step is read as the same graph; small steps by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "spec/graph_file.h"
#include "tests/support/random_chains.h"
#include "tests/support/spec_text.h"

TestSuite(trace, .init = spec_text_begin, .fini = spec_text_end);

enum { NODES_MAX = 16 };

static const struct abstract_stage limits = {
    .forward = 9, .backward = 9, .output = 2, .saved = 9, .gradient = 2, .forward_scratch = 1, .backward_scratch = 1};

/* A graph that operators can say: sizes tell values apart, gradients are as large as values, backwards are one op. */
static void draw(struct source *source, int nodes, struct abstract_node *node)
{
    graph_draw(source, &limits, nodes, node);
    for (int i = 0; i < nodes; i++) {
        struct abstract_stage *s = &node[i].stage;
        s->output = 100 + 7 * i;
        s->gradient = node[i].forward_only ? 0 : s->output;
        node[i].passes_gradient = node[i].in_place = false;
        node[i].once = 0;
        if (!s->saved) node[i].reads &= ~(unsigned)READS_SAVED;
        if (!(node[i].reads & READS_SAVED)) s->saved = 0;
        if (node[i].inputs == 2 && node[i].input[0] == node[i].input[1]) node[i].inputs = 1;
    }
    node[0].reads &= ~(unsigned)READS_X; /* the batch is a constant */
    node[nodes - 1].reads |= READS_Y;    /* else nothing would tell its backward from that of the node before */
}

static bool wants(const struct abstract_node *node, int value) { return value && !node[value - 1].forward_only; }

static void write_tensors(const struct abstract_node *node, int nodes, FILE *out)
{
    fprintf(out, "rematch: 1\nname: step\nplaced: true\ntensors:\n");
    for (int i = 0; i < nodes; i++) {
        const struct abstract_stage *s = &node[i].stage;
        fprintf(out, "  - {name: y%d, bytes: %d}\n", i, (int)s->output);
        if (s->saved) fprintf(out, "  - {name: s%d, bytes: %d}\n", i, (int)s->saved);
        if (node[i].parameters) fprintf(out, "  - {name: w%d, bytes: 4, constant: true}\n", i);
        if (node[i].parameters) fprintf(out, "  - {name: p%d, bytes: 4}\n", i);
        for (int k = 0; k < node[i].inputs; k++)
            if (!node[i].forward_only && wants(node, node[i].input[k]))
                for (const char *kind = "ga"; *kind; kind++)
                    fprintf(out, "  - {name: %c%d_%d, bytes: %d}\n", *kind, i, k,
                            (int)node[node[i].input[k] - 1].stage.output);
    }
    fprintf(out, "operators:\n");
}

static void write_reads(const struct abstract_node *node, int i, bool inputs, FILE *out)
{
    fprintf(out, "reads: [");
    if (node[i].parameters) fprintf(out, "w%d, ", i);
    for (int k = 0; inputs && k < node[i].inputs; k++)
        if (node[i].input[k]) fprintf(out, "y%d, ", node[i].input[k] - 1);
}

/* The gradient of every value so far is gradient[node]; two of them are added as soon as there are two. */
static void write_backward(const struct abstract_node *node, int i, bool last, char (*gradient)[16], FILE *out)
{
    fprintf(out, "  - {name: b%d, phase: backward, time: %g, ", i, node[i].stage.backward);
    write_reads(node, i, node[i].reads & READS_X, out);
    if (!last) fprintf(out, "%s, ", gradient[i]);
    if (node[i].reads & READS_Y) fprintf(out, "y%d, ", i);
    if (node[i].reads & READS_SAVED && node[i].stage.saved) fprintf(out, "s%d, ", i);
    fprintf(out, "], writes: [");
    if (node[i].parameters) fprintf(out, "p%d, ", i);
    for (int k = 0; k < node[i].inputs; k++)
        if (wants(node, node[i].input[k])) fprintf(out, "g%d_%d, ", i, k);
    fprintf(out, "]}\n");
    for (int k = 0; k < node[i].inputs; k++) {
        if (!wants(node, node[i].input[k])) continue;
        char *sum = gradient[node[i].input[k] - 1];
        const char kind = *sum ? 'a' : 'g';
        if (*sum)
            fprintf(out, "  - {name: add, phase: backward, time: 0, reads: [%s, g%d_%d], writes: [a%d_%d]}\n", sum, i,
                    k, i, k);
        snprintf(sum, sizeof *gradient, "%c%d_%d", kind, i, k);
    }
}

static struct network *read_step(const struct abstract_node *node, int nodes, struct spec **spec)
{
    char *text = NULL, gradient[NODES_MAX][16] = {""};
    size_t length;
    struct network *network;
    FILE *out = open_memstream(&text, &length);
    write_tensors(node, nodes, out);
    for (int i = 0; i < nodes; i++) {
        fprintf(out, "  - {name: f%d, time: %g, ", i, node[i].stage.forward);
        write_reads(node, i, true, out);
        fprintf(out, "], writes: [y%d", i);
        if (node[i].stage.saved) fprintf(out, ", s%d", i);
        fprintf(out, "]}\n");
    }
    for (int i = nodes - 1; i >= 0; i--)
        if (!node[i].forward_only) write_backward(node, i, i + 1 == nodes, gradient, out);
    fclose(out);
    cr_assert(graph_file_load(write_bytes(text, length), 0, NULL, spec, &network) == ST_OK, "%s%s", text, messages());
    free(text);
    return network;
}

/* Ops, buffers, addresses and time of the plans of both. */
static void compare(const struct network *a, const struct network *b, int cut, int round)
{
    const int nodes = a->graph->nodes;
    struct schedule schedule = schedule_empty(a->graph->region);
    schedule_append(&schedule, STEP_FORWARD, 0, nodes);
    schedule_append(&schedule, STEP_BACKWARD, cut, nodes);
    schedule_append(&schedule, STEP_FORWARD, 0, cut);
    schedule_append(&schedule, STEP_BACKWARD, 0, cut);
    const struct plan_options options = {.lower = {.drop_dead = true}};
    struct plan *p = plan_build(a, &schedule, &options), *q = plan_build(b, &schedule, &options);
    cr_expect(p->live_peak == q->live_peak && p->time == q->time && plan_static(p) == plan_static(q),
              "step %d, cut %d: %zu and %zu bytes, time %g and %g", round, cut, p->live_peak, q->live_peak, p->time,
              q->time);
    cr_expect(!memcmp(&p->hash, &q->hash, sizeof p->hash), "step %d, cut %d", round, cut);
    plan_destroy(p);
    plan_destroy(q);
}

Test(trace, graphs_are_read_back_from_the_operators_of_their_steps)
{
    struct source source = {.seed = 21};
    int shortcuts = 0, masks = 0;
    for (int round = 0; round < 400; round++) {
        struct abstract_node node[NODES_MAX];
        struct spec *spec;
        const int nodes = 2 + (int)draw_below(&source, NODES_MAX - 1);
        draw(&source, nodes, node);
        for (int i = 0; i < nodes; i++) {
            if (!node[i].forward_only && (!i || draw_below(&source, 2))) node[i].parameters = 4;
            shortcuts += node[i].inputs == 2;
            masks += node[i].forward_only;
        }
        struct network *own = graph_network(node, nodes), *read = read_step(node, nodes, &spec);
        cr_assert(read->graph->nodes == nodes);
        compare(own, read, nodes, round);
        compare(own, read, 1 + (int)draw_below(&source, (uint32_t)nodes), round);
        abstract_destroy(own);
        abstract_destroy(read);
        spec_destroy(spec);
    }
    cr_expect(shortcuts > 400 && masks > 50, "%d, %d", shortcuts, masks);
}
