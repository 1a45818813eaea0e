/* Costs from the result file of a run: what they become, what they predict, and files that do not fit. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "result/costs_read.h"
#include "tests/support/altered_files.h"
#include "tests/support/made_runs.h"
#include "tests/support/policy_text.h"

enum { REST = 4301, COPY = 2, ADD = 3, FIRST = 101, AGAIN = 1, PARAMS = 10000, INPUT = 1000000 };

/* Decimal places count ops. */
static uint64_t by_place(const struct op *op)
{
    switch (op->kind) {
    case OP_FORWARD:
        return op->recompute ? AGAIN : FIRST;
    case OP_BACKWARD:
        return PARAMS * (uint64_t)(op->parts & PART_PARAMS) + INPUT * (uint64_t)(op->parts >> PART_INDEX_INPUT & 1);
    case OP_COPY:
        return COPY * op->bytes;
    case OP_ACCUMULATE:
        return ADD * op->bytes;
    case OP_UPDATE:
    case OP_KINDS:
        break;
    }
    return 0;
}

/* Writes a run of the fake's plan whose ops took so long at least. */
static void write_run(struct fake *f, uint64_t (*ns)(const struct op *), char path[1024])
{
    struct record *record;
    struct run_summary summary = {.high_water = 1ull << 30, .start_rss = 1 << 20, .wall_ns = 5, .setup_ns = 4};
    const struct plan *plan = f->job.plan;
    struct best_case least = {.ops = plan->lowered.ops, .rest_ns = REST, .known = true};
    NEW(f->job.graph->region, least.op_ns, (size_t)least.ops);
    for (int i = 0; i < least.ops; i++) least.op_ns[i] = ns(&plan->lowered.op[i]);
    cr_assert(record_create(&f->job, "variant", &record) == ST_OK, "%s", status_message());
    snprintf(path, 1024, "%s", record_path(record));
    for (uint32_t i = 0; i < 2; i++) {
        struct step_record step = fake_step(f, i);
        fake_seal(f, &step);
        cr_assert(record_step(record, &step) == ST_OK);
    }
    cr_assert(record_finish(record, "completed", &summary, &least) == ST_OK, "%s", status_message());
}

static enum status read_into(struct fake *f, const char *path)
{
    f->spec.costs_file = path;
    return costs_read(&f->job);
}

static struct plan *plan_of(const struct fake *f, const char *policy, const char *settings)
{
    static const struct plan_options options = {.lower = {.drop_dead = true}, .state_per_parameter = 1};
    return policy_text_plan(f->job.network, policy, settings, &options);
}

/* Bytes of all ops of a kind. */
static double bytes_of(const struct plan *plan, enum op_kind kind)
{
    double bytes = 0;
    for (int i = 0; i < plan->lowered.ops; i++)
        if (plan->lowered.op[i].kind == kind) bytes += (double)plan->lowered.op[i].bytes;
    return bytes;
}

Test(costs, a_prediction_is_the_sum_of_its_parts)
{
    char folder[256], path[1024];
    folder_make(folder);
    for (const struct net *net = nets; net->name; net++) {
        struct fake run, f;
        double time = 0;
        fake_open(&run, net, folder);
        fake_plan(&run, "store_all", "", true);
        write_run(&run, by_place, path);
        fake_open(&f, net, folder);
        cr_assert(read_into(&f, path) == ST_OK, "%s: %s", net->name, status_message());
        for (int i = 0; i < f.job.graph->nodes; i++) {
            const unsigned parts = network_parts(f.job.network, i);
            time += FIRST + PARAMS * ((parts & PART_PARAMS) != 0) + INPUT * ((parts & PART_INPUT) != 0);
        }
        struct plan *stored = plan_of(&f, "store_all", ""),
                    *segments = plan_of(&f, "segments", "segments=2 keep_last=false keep_saved=false");
        cr_expect(stored->time == time && stored->slowdown == 1, "%s: %.0f, not %.0f", net->name, stored->time, time);
        const double moved = COPY * bytes_of(stored, OP_COPY) + ADD * bytes_of(stored, OP_ACCUMULATE);
        const double predicted = costs_predict(f.job.costs, stored), expected = time + REST + moved;
        cr_expect(fabs(predicted - expected) < 1e-3, "%s: %.3f, not %.3f", net->name, predicted, expected);
        cr_expect(segments->recomputations > 0 && segments->time == time + FIRST * segments->recomputations, "%s: %.0f",
                  net->name, segments->time);
        plan_destroy(stored);
        plan_destroy(segments);
        fake_close(&run);
        fake_close(&f);
    }
    folder_remove(folder);
}

static bool recomputes(const struct plan *plan, int node)
{
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind == OP_FORWARD && op->recompute && op->node == node) return true;
    }
    return false;
}

Test(costs, a_recomputation_takes_what_one_took)
{
    char folder[256], path[1024];
    int again = 0, first = 0, once = 0;
    folder_make(folder);
    for (const struct net *net = nets; net->name; net++) {
        struct fake run, f;
        fake_open(&run, net, folder);
        fake_plan(&run, "segments", "segments=1 keep_last=false keep_saved=false", true);
        write_run(&run, by_place, path);
        fake_open(&f, net, folder);
        cr_assert(read_into(&f, path) == ST_OK, "%s: %s", net->name, status_message());
        for (int i = 0; i < f.job.graph->nodes; i++) {
            const struct cost *cost = &f.job.network->cost[i];
            if (!recomputes(run.job.plan, i)) {
                first += cost->forward == FIRST;
                continue; /* unless another one of its kind is recomputed */
            }
            again++;
            cr_expect(cost->forward == AGAIN, "%s, node %d: %g", net->name, i, cost->forward);
            once += cost->once == FIRST - AGAIN;
            cr_expect(cost->once == (f.job.network->binding[i].footprint.once ? FIRST - AGAIN : 0));
        }
        fake_close(&run);
        fake_close(&f);
    }
    cr_expect(again > 0 && first > 0 && once > 0, "%d again, %d first, %d once", again, first, once);
    folder_remove(folder);
}

static uint64_t by_node(const struct op *op) { return 1000 + 10 * (uint64_t)op->node; }

/* Equal stages must stay equal, or the programme on stages would have to solve each of them. */
Test(costs, nodes_of_one_kind_take_the_least)
{
    char folder[256], path[1024];
    struct fake run, f;
    int equal = 0;
    folder_make(folder);
    fake_open(&run, &nets[2], folder);
    fake_plan(&run, "store_all", "", true);
    write_run(&run, by_node, path);
    fake_open(&f, &nets[2], folder);
    cr_assert(read_into(&f, path) == ST_OK, "%s", status_message());
    const struct graph *graph = f.job.graph;
    for (int i = 0; i < graph->nodes; i++) {
        int least = i;
        for (int j = i - 1; j >= 0; j--) {
            const struct node *a = &graph->node[i], *b = &graph->node[j];
            if (a->layer == b->layer && a->flops.forward == b->flops.forward && a->activation == b->activation &&
                a->parameters == b->parameters && graph->value[a->output].bytes == graph->value[b->output].bytes &&
                graph->value[a->inputs[0]].bytes == graph->value[b->inputs[0]].bytes)
                least = j;
        }
        equal += least < i;
        cr_expect(f.job.network->cost[i].forward == 1000 + 10 * least, "node %d: %g, of %d", i,
                  f.job.network->cost[i].forward, least);
    }
    cr_expect(equal > 0);
    fake_close(&run);
    fake_close(&f);
    folder_remove(folder);
}

/* ---- files that do not fit ---- */

static void expect_refused(struct fake *f, const char *path, const char *says)
{
    const struct cost before = f->job.network->cost[0];
    const enum status status = read_into(f, path);
    cr_expect(status == ST_SPEC && strstr(status_message(), says), "%d: '%s' is not in\n%s", (int)status, says,
              status_message());
    cr_expect(!memcmp(&before, &f->job.network->cost[0], sizeof before) && !f->job.costs, "half a file was taken");
}

static void alter_to_99(const char *path) { alter_number(path, "/plan", "batch", 99); }

static void tear(const char *path) { alter_length(path, 0.3); }

static void untime(const char *path) { alter_away(path, "/summary/op_least_ns"); }

static const struct {
    void (*change)(const char *path);
    const char *says;
} wrong[] = {
    {alter_to_99, "batch is 99 in it and 3 here; expected the result file of a run of this model and batch"},
    {untime, "its run timed no op; expected the result file of a run of this model and batch with two steps or more"},
    {tear, "costs.file: "},
};

Test(costs, a_file_that_does_not_fit_is_refused)
{
    char folder[256], path[1024];
    struct fake run, f;
    folder_make(folder);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fake_open(&run, &nets[0], folder);
        write_run(&run, by_place, path);
        fake_close(&run);
        fake_open(&f, &nets[0], folder);
        wrong[i].change(path);
        expect_refused(&f, path, wrong[i].says);
        fake_close(&f);
        cr_assert(unlink(path) == 0);
    }
    fake_open(&run, &nets[1], folder);
    write_run(&run, by_place, path);
    fake_close(&run);
    fake_open(&f, &nets[0], folder);
    expect_refused(&f, path, " in it and ");
    expect_refused(&f, "nowhere/run.h5", "costs.file: nowhere/run.h5: cannot read: No such file or directory");
    expect_refused(&f, folder, "costs.file: ");
    fake_close(&f);
    fake_open(&run, &nets[0], folder);
    fake_write(&run, "variant", 2, NULL, path); /* without times of ops */
    fake_close(&run);
    fake_open(&f, &nets[0], folder);
    expect_refused(&f, path, "its run timed no op");
    fake_close(&f);
    folder_remove(folder);
}
