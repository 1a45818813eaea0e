/* Files of costs: reading, writing, errors, and the plans and predictions that follow from their numbers. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/made_runs.h"
#include "tests/support/policy_text.h"
#include "tests/support/spec_text.h"

TestSuite(costs, .init = spec_text_begin, .fini = spec_text_end);

enum { ROOM = 1 << 18 };

/* The text of a file with invented costs, one row per kind of node. */
static const char *invent(const struct fake *f, void (*set)(const struct node *, struct costs_row *), char text[ROOM])
{
    const struct network *network = f->job.network;
    const int nodes = network->graph->nodes;
    struct region *r = region_create();
    struct costs c = {.machine = "a: machine", .isa = "any", .backend = "ref", .libraries = "none", .threads = 2};
    c.batch = f->spec.batch;
    c.rounds = 3;
    c.step = (struct costs_step){costs_step_key(&f->spec, network, r), 1, 300, 4000, 1 << 20, 2 << 20};
    NEW(r, c.row, (size_t)nodes);
    for (int i = 0; i < nodes; i++) {
        const char *key = measure_key(network, i, r);
        bool there = false;
        for (int j = 0; j < c.rows; j++) there |= !strcmp(c.row[j].key, key);
        if (there) continue;
        c.row[c.rows].key = key;
        c.row[c.rows].names = network->graph->node[i].name;
        set(&network->graph->node[i], &c.row[c.rows++]);
    }
    FILE *out = fmemopen(text, ROOM, "w");
    cr_assert(out);
    costs_write(&c, out);
    cr_assert(!fclose(out));
    region_destroy(r);
    return text;
}

/* Reads the text into the fake's network. */
static enum status read_text(struct fake *f, const char *text, struct costs **costs)
{
    f->spec.costs = COSTS_MEASURED;
    f->spec.costs_file = write_bytes(text, strlen(text));
    return costs_read(&f->spec, f->job.network, f->job.graph->region, costs);
}

static void open_fake(struct fake *f, const struct net *net)
{
    fake_open(f, net, ".");
    f->spec.data = dataset_table[0];
}

static void by_index(const struct node *node, struct costs_row *row)
{
    *row = (struct costs_row){row->key,        row->names,         7 * node->index + 1, 8 * node->index + 3,
                              9 * node->index, INT64_C(1000000000)};
}

Test(costs, a_written_file_reads_back_equal)
{
    static char text[ROOM], again[ROOM];
    for (const struct net *net = nets; net->name; net++) {
        struct fake f;
        struct costs *c;
        open_fake(&f, net);
        cr_assert(read_text(&f, invent(&f, by_index, text), &c) == ST_OK, "%s%s", status_message(), messages());
        cr_expect(!strcmp(c->machine, "a: machine") && c->threads == 2 && c->rounds == 3 && c->batch == net->batch);
        cr_expect(c->step.data == 1 && c->step.digest == 300 && c->step.optimizer == 4000);
        cr_expect(c->step.add == 1 << 20 && c->step.copy == 2 << 20);
        for (int i = 0; i < f.job.graph->nodes; i++) {
            const struct cost *cost = &f.job.network->cost[i];
            int first = 0; /* the costs of a kind come from its first node */
            while (c->node[first] != c->node[i]) first++;
            cr_expect(cost->forward == 7 * first + 1 && c->node[i]->saving == 8 * first + 3, "node %d", i);
            cr_expect(cost->backward[0] == 9 * first && cost->backward[1] == 1e9);
        }
        for (int i = 0, row = 0; i < f.job.graph->nodes; i++)
            if (c->node[i] == &c->row[row]) c->row[row++].names = f.job.graph->node[i].name;
        FILE *out = fmemopen(again, sizeof again, "w");
        costs_write(c, out);
        cr_assert(!fclose(out));
        cr_expect(!strcmp(text, again), "%s\nbecame\n%s", text, again);
        cr_expect(digest_equal(c->digest, digest_bytes(text, strlen(text))));
        fake_close(&f);
    }
}

/* One change to a valid file of small_cnn, and its error: with its place on stderr, or as the message. */
static const struct {
    const char *from, *to, *says;
} wrong[] = {
    {"rematch_costs: 1", "rematch_costs: 2", ":2:16: error: rematch_costs: '2' is out of range"},
    {"rematch_costs: 1\n", "", ": error: rematch_costs: missing"},
    {"isa: any\n", "", ": error: isa: missing"},
    {"rounds: 3", "rounds: 0", ":9:9: error: rounds: '0'"},
    {"threads: 2", "threads: two", ":5:10: error: threads: 'two' is not an integer"},
    {"forward: 1,", "forward: -1,", ": error: nodes[0].forward: '-1'"},
    {"forward: 1,", "forward: .nan,", ": error: nodes[0].forward: '.nan' is not an integer"},
    {"forward: 1,", "forward: 1.5,", ": error: nodes[0].forward: '1.5' is not an integer"},
    {"forward: 1,", "forward: 1e400,", ": error: nodes[0].forward: '1e400'"},
    {"forward: 1,", "forward: 99999999999999999999,", ": error: nodes[0].forward: '99999999999999999999'"},
    {"forward: 1,", "forward: 2000000000000000,", ": error: nodes[0].forward: '2000000000000000'"},
    {"forward: 1,", "", ": error: nodes[0].forward: missing"},
    {"forward: 1,", "forwards: 1, forward: 1,", ": error: nodes[0].forwards: a node's times has no such key"},
    {"data: 1,", "data: -5,", ": error: step.data: '-5'"},
    {"data: 1,", "", ": error: step.data: missing"},
    {"step: {", "stop: {", ": error: step: missing"},
    {"nodes:", "nodes: []\nothers:", ": error: nodes: expected a list"},
    {"# times", "[", ": error: not YAML"},
    {"batch: 3", "batch: 4",
     "batch: measured with 4 samples, the spec has 3; make the file with rematch bench --costs"},
    {"sgd, state 1", "sgd, state 0", "state 0, the spec has"},
    {"channels 8, kernel 3", "channels 9, kernel 3", "has no times of node 'conv1' (conv channels 8"},
    {"12x12x8 layout 0", "12x12x8 layout 7", "has no times of node 'conv1'"},
    {"; ref\", forward: 1,", "; jit\", forward: 1,", "make the file with rematch bench --costs SPEC --out FILE"},
};

static const char *change(const char *text, const char *from, const char *to, char changed[ROOM])
{
    const char *at = strstr(text, from);
    cr_assert(at, "'%s' is not in\n%s", from, text);
    snprintf(changed, ROOM, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return changed;
}

Test(costs, errors_are_reported_with_their_place)
{
    static char text[ROOM], changed[ROOM];
    struct fake f;
    struct costs *c;
    open_fake(&f, &nets[0]);
    invent(&f, by_index, text);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct cost before = f.job.network->cost[0];
        enum status status = read_text(&f, change(text, wrong[i].from, wrong[i].to, changed), &c);
        const char *said = messages();
        cr_expect(status == ST_SPEC, "%s: accepted", wrong[i].to);
        cr_expect(strstr(said, wrong[i].says) || strstr(status_message(), wrong[i].says), "%s: '%s' is not in\n%s\n%s",
                  wrong[i].to, wrong[i].says, said, status_message());
        cr_expect(strstr(said, f.spec.costs_file) || strstr(status_message(), f.spec.costs_file));
        cr_expect(!memcmp(&before, &f.job.network->cost[0], sizeof before), "%s: half a file was taken", wrong[i].to);
    }
    const char *row = strstr(text, "  - {");
    strcpy(changed, text);
    strncat(changed, row, strcspn(row, "\n"));
    cr_expect(read_text(&f, changed, &c) == ST_SPEC && strstr(messages(), "key: repeats an earlier key"));
    f.spec.costs_file = "nowhere/costs.yaml";
    cr_expect(costs_read(&f.spec, f.job.network, f.job.graph->region, &c) == ST_SPEC);
    cr_expect(strstr(status_message(), "nowhere/costs.yaml: No such file or directory; make the file with"), "%s",
              status_message());
    fake_close(&f);
}

/* ---- plans and predictions ---- */

static struct plan *plan_of(const struct fake *f, const char *policy, const char *settings)
{
    static const struct plan_options options = {.lower = {.drop_dead = true}, .state_per_parameter = 1};
    return policy_text_plan(f->job.network, policy, settings, &options);
}

/* Decimal places count ops: a forward costs 1, saving 100 more, a backward of parameters 10^4, of an input 10^6. */
static void by_place(const struct node *node, struct costs_row *row)
{
    (void)node;
    *row = (struct costs_row){row->key, row->names, 1, 101, 10000, 1000000};
}

/* Bytes of gradients added when everything is stored: one for each reader of a value but the first. */
static double added_bytes(const struct graph *graph)
{
    double bytes = 0;
    for (int v = 0; v < graph->values; v++)
        if (graph->value[v].consumers > 1)
            bytes += (double)graph->value[v].gradient_bytes * (graph->value[v].consumers - 1);
    return bytes;
}

Test(costs, a_prediction_is_the_sum_of_its_parts)
{
    static char text[ROOM];
    for (const struct net *net = nets; net->name; net++) {
        struct fake f;
        struct costs *c;
        int params = 0, inputs = 0, saves = 0, onces = 0;
        open_fake(&f, net);
        const struct graph *graph = f.job.graph;
        for (int i = 0; i < graph->nodes; i++) footprint_keep_sign_bits(&f.job.network->binding[i].footprint, true);
        cr_assert(read_text(&f, invent(&f, by_place, text), &c) == ST_OK, "%s%s", status_message(), messages());
        for (int i = 0; i < graph->nodes; i++) {
            const struct node *node = &graph->node[i];
            params += node->parameters > 0;
            inputs += (network_parts(f.job.network, i) & PART_INPUT) != 0;
            /* what a first forward takes more, whether it saves or not */
            const bool once = f.job.network->binding[i].footprint.once > 0;
            saves += !once && f.job.network->binding[i].footprint.saved > 0;
            onces += once;
        }
        struct plan *stored = plan_of(&f, "store_all", "");
        double nodes = graph->nodes + 100 * onces + 1e4 * params + 1e6 * inputs, rest = 1 + 300 + 4000, copies = 0;
        for (int i = 0; i < stored->lowered.ops; i++)
            if (stored->lowered.op[i].kind == OP_COPY) copies += 2 * (double)stored->lowered.op[i].bytes;
        cr_expect(stored->time == nodes && stored->slowdown == 1, "%s: %.0f", net->name, stored->time);
        double predicted = costs_predict(c, stored),
               expected = nodes + 100 * saves + rest + added_bytes(graph) + copies;
        cr_expect(fabs(predicted - expected) < 1e-3, "%s: %.3f, not %.3f", net->name, predicted, expected);
        struct plan *segments = plan_of(&f, "segments", "segments=2 keep_last=false keep_saved=false");
        cr_expect(segments->recomputations > 0 && segments->time == nodes + segments->recomputations, "%s: %.0f",
                  net->name, segments->time);
        cr_expect(fabs(segments->slowdown - (nodes + segments->recomputations) / nodes) < 1e-12);
        plan_destroy(stored);
        plan_destroy(segments);
        fake_close(&f);
    }
}

static int dear; /* the node that by_price makes expensive */

static void by_price(const struct node *node, struct costs_row *row)
{
    *row = (struct costs_row){row->key, row->names, node->index == dear ? 100000000 : 100, 0, 100, 100};
    row->saving = row->forward;
}

static bool recomputations(const struct plan *plan, int node)
{
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind == OP_FORWARD && op->recompute && op->node == node) return true;
    }
    return false;
}

/* Every node that the optimum recomputes at a uniform price, and that the budget allows to keep, is kept once it is
 * expensive; the new optimum is then faster than the old one at the new prices. */
Test(costs, optimal_keeps_expensive_nodes)
{
    static char text[ROOM];
    struct fake f;
    struct costs *c;
    int recomputed = 0, kept = 0;
    open_fake(&f, &nets[0]);
    dear = -1;
    cr_assert(read_text(&f, invent(&f, by_price, text), &c) == ST_OK, "%s%s", status_message(), messages());
    struct plan *cheap = plan_of(&f, "optimal", "budget=90%");
    for (dear = 0; dear < f.job.graph->nodes; dear++) {
        if (!recomputations(cheap, dear)) continue;
        cr_assert(read_text(&f, invent(&f, by_price, text), &c) == ST_OK, "%s%s", status_message(), messages());
        struct plan *plan = plan_of(&f, "optimal", "budget=90%");
        double old = cheap->time + 99999900.0 * 2; /* its forward and at least one recomputation at the new price */
        recomputed++;
        kept += !recomputations(plan, dear);
        cr_expect(plan->time <= old, "node %d: %.0f, the old plan takes at least %.0f", dear, plan->time, old);
        plan_destroy(plan);
    }
    cr_expect(recomputed > 0 && kept > 0, "%d recomputed, %d of them kept once dear", recomputed, kept);
    plan_destroy(cheap);
    fake_close(&f);
}

Test(costs, a_miss_is_printed_in_percent)
{
    char text[64];
    cr_expect(!strcmp(costs_miss(110, 100, "measured", text), "10.0 % more than measured"), "%s", text);
    cr_expect(!strcmp(costs_miss(95, 100, "the best case", text), "5.0 % less than the best case"), "%s", text);
    cr_expect(!strcmp(costs_miss(95, 0, "measured", text), ""), "%s", text);
    cr_expect(!strcmp(costs_miss(1, (double)NAN, "measured", text), ""), "%s", text);
}
