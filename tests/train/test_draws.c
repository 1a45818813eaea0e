/* Where random numbers come from, as kernels see it: in the sequential stream each random node continues where the one
 * before it ended, and an evaluation draws nothing and leaves the position; and every pass, of whatever slice, draws
 * the numbers of its samples, node and step. */
#include "policies/policy.h"
#include "tests/support/sliced_schedules.h"
#include "tests/support/small_training.h"
#include "tests/support/token_batches.h"
#include "tests/support/watched_network.h"
#include "train/executor.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct {
    uint64_t next; /* place in the stream */
    bool evaluating;
    int seen;
} stream;

static void look(const struct network *network, int i, const struct kernel_args *args, unsigned parts)
{
    const struct node *node = &network->graph->node[i];
    if (parts) return;
    cr_assert(args->evaluate == stream.evaluating, "%s", node->name);
    if (stream.evaluating || !node->draws) return;
    cr_assert(args->draw.mode == RNG_STASH && args->draw.position == stream.next, "%s: %llu, expected %llu", node->name,
              (unsigned long long)args->draw.position, (unsigned long long)stream.next);
    stream.next += (uint64_t)(node->draws * network->graph->batch);
    stream.seen++;
}

static struct plan *stored_plan(const struct network *network, bool evaluate)
{
    struct region *region = region_create();
    struct schedule schedule = schedule_empty(region);
    const struct plan_options options = {.lower = {.drop_dead = true, .rng = RNG_STASH, .evaluate = evaluate}};
    schedule_append(&schedule, STEP_FORWARD, 0, network->graph->nodes);
    if (!evaluate) schedule_append(&schedule, STEP_BACKWARD, 0, network->graph->nodes);
    struct plan *plan = plan_build(network, &schedule, &options);
    region_destroy(region);
    return plan;
}

static void check(const struct net *net)
{
    struct bound_net b = net_bind(net, RELU_OUTPUT);
    struct executor *exec;
    float loss[2];
    watch(b.network, look);
    stream.next = 0;
    struct plan *training = stored_plan(b.network, false), *evaluation = stored_plan(b.network, true);
    cr_assert(executor_create(training, &(struct executor_options){.rng = RNG_STASH}, &exec) == ST_OK, "%s",
              status_message());
    if (sentences_fit(&net->input)) sentences_make(executor_batch(exec), net->batch, net->input.dim[1], 20, 1);
    for (uint32_t step = 0; step < 4; step++) {
        stream.evaluating = step == 2;
        cr_assert((stream.evaluating ? executor_run_plan(exec, evaluation, step, loss)
                                     : executor_step(exec, step, loss)) == ST_OK);
    }
    executor_destroy(exec);
    plan_destroy(training), plan_destroy(evaluation);
    net_release(&b);
}

Test(draws, nodes_continue_the_stream)
{
    stream.seen = 0;
    for (const struct net *net = nets; net->name; net++) check(net);
    cr_assert(stream.seen > 30, "%d", stream.seen);
}

/* ---- every pass ---- */

enum { SEED = 3 };

/* place: by node, of its numbers in the part of the stream that a step has. */
static struct {
    const struct plan *plan;
    int next; /* op */
    uint32_t step;
    uint64_t start; /* of the step, in the stream */
    uint64_t place[64];
    int passes, of_slices, recomputed;
} drawn;

/* Passes come in the order of the plan's forwards and backwards. */
static const struct op *op_of_pass(int node)
{
    const struct op *op = drawn.plan->lowered.op;
    while (op[drawn.next].kind != OP_FORWARD && op[drawn.next].kind != OP_BACKWARD) drawn.next++;
    cr_assert(op[drawn.next].node == node);
    return &op[drawn.next++];
}

static void look_at_draw(const struct network *network, int i, const struct kernel_args *args, unsigned parts)
{
    const struct graph *graph = network->graph;
    const struct node *node = &graph->node[i];
    const struct op *op = op_of_pass(i);
    const int64_t samples = op->slice < 0 ? graph->batch : graph->batch / graph->slices,
                  first = op->slice < 0 ? 0 : op->slice * samples;
    if (!node->draws || (parts && !(parts & PART_INPUT))) return;
    const struct draw whole = {.mode = args->draw.mode == RNG_STASH ? RNG_STASH : RNG_COUNTER,
                               .seed = SEED,
                               .node = (uint32_t)i,
                               .step = drawn.step,
                               .position = drawn.start + drawn.place[i]};
    const double rate = setting_find(node->layer->keys, "rate") ? node_real(node, "rate") : 0;
    uint8_t *expected = malloc((size_t)node->draws), *found = malloc((size_t)node->draws);
    for (int64_t n = 0; n < samples; n++) {
        rng_keep(&whole, rate, node->draws, first + n, 0, node->draws, expected);
        rng_keep(&args->draw, rate, node->draws, n, 0, node->draws, found);
        cr_assert(!memcmp(expected, found, (size_t)node->draws), "%s, slice %d, sample %lld, %s, mode %d, step %u",
                  node->name, op->slice, (long long)n, parts ? "backward" : "forward", (int)args->draw.mode,
                  drawn.step);
    }
    free(expected);
    free(found);
    drawn.passes++;
    drawn.of_slices += op->slice > 0;
    drawn.recomputed += op->recompute;
}

/* Three steps: what one leaves of the stream is where the next one starts. */
static void draw_plan(const struct bound_net *b, const struct net *net, struct plan *plan, enum rng_mode mode)
{
    struct executor *exec;
    float loss[2];
    uint64_t all = 0;
    for (int i = 0; i < b->graph->nodes; i++) {
        drawn.place[i] = all;
        all += (uint64_t)(b->graph->node[i].draws * b->graph->batch);
    }
    drawn.plan = plan;
    cr_assert(executor_create(plan, &(struct executor_options){.rng = mode, .seed = SEED}, &exec) == ST_OK, "%s",
              status_message());
    if (sentences_fit(&net->input)) sentences_make(executor_batch(exec), net->batch, net->input.dim[1], 20, 1);
    for (drawn.step = 0; drawn.step < 3; drawn.step++) {
        drawn.next = 0;
        drawn.start = drawn.step * all;
        cr_assert(executor_step(exec, drawn.step, loss) == ST_OK, "%s", status_message());
    }
    executor_destroy(exec);
    plan_destroy(plan);
}

/* Schedules with slices in any order and with recomputations. */
static void draw_schedules(const struct net *net, int64_t slices, enum rng_mode mode)
{
    struct source source = {.seed = 5};
    struct graph *graph = net_build(net, RELU_OUTPUT);
    sliced_graph(graph, slices, 4, &source);
    struct bench bench = set_up_graph(net, "ref", graph);
    const struct bound_net b = {bench.backend, bench.graph, bench.network};
    const struct slicing slicing = graph_slicing(graph);
    watch(b.network, look_at_draw);
    for (int i = 0; i < 6; i++) {
        struct schedule schedule = schedule_empty(graph->region);
        sliced_schedule_draw(&source, &slicing, &schedule);
        draw_plan(&b, net, plan_build(b.network, &schedule, &(struct plan_options){.lower = {i % 2, mode}}), mode);
    }
    tear_down(&bench);
}

Test(draws, every_pass_draws_the_numbers_of_its_samples)
{
    static const int chosen[] = {0, 1, 3, 5}; /* the others are larger, not other in this */
    for (size_t n = 0; n < sizeof chosen / sizeof *chosen; n++)
        for (int64_t slices = 1; slices <= 3; slices++)
            for (enum rng_mode mode = RNG_COUNTER; mode <= RNG_MASK; mode++) {
                struct net net = nets[chosen[n]];
                net.batch = 6;
                draw_schedules(&net, slices, mode);
            }
    cr_assert(drawn.passes > 1000 && drawn.of_slices > 300 && drawn.recomputed > 300, "%d, %d, %d", drawn.passes,
              drawn.of_slices, drawn.recomputed);
}
