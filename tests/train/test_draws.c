/* Positions in the sequential stream: in training steps each random node continues where the one before it ended; an
 * evaluation draws nothing and leaves the position. Kernels record them. */
#include "policies/policy.h"
#include "tests/support/small_networks.h"
#include "tests/support/token_batches.h"
#include "tests/support/watched_network.h"
#include "train/executor.h"

#include <criterion/criterion.h>

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

static struct plan *plan_of(const struct network *network, bool evaluate)
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
    struct plan *training = plan_of(b.network, false), *evaluation = plan_of(b.network, true);
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
