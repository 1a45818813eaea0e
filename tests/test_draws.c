/* Where nodes read the sequential stream: each goes on where the random node before it ended, in training steps; an
 * evaluation draws nothing and moves nothing. Seen by kernels that look on. */
#include "exec.h"
#include "nets.h"
#include "policy.h"
#include "sentences.h"

#include <criterion/criterion.h>

static struct {
    struct network *network;
    const struct kernel *own[64]; /* by node */
    uint64_t next;                /* place in the stream */
    bool evaluating;
    int seen;
} watch;

static enum status look_on(void *state, const struct kernel_args *args)
{
    int i = 0;
    while (watch.network->binding[i].state != state) i++;
    const struct node *node = &watch.network->graph->node[i];
    if (watch.evaluating || !node->draws) {
        cr_assert(args->draw.mode == RNG_OFF, "%s", node->name);
    } else {
        cr_assert(args->draw.mode == RNG_STASH && args->draw.position == watch.next, "%s: %llu, expected %llu",
                  node->name, (unsigned long long)args->draw.position, (unsigned long long)watch.next);
        watch.next += (uint64_t)(node->draws * watch.network->graph->batch);
        watch.seen++;
    }
    return watch.own[i]->forward(state, args);
}

static void put_watch(struct network *network, struct kernel *looking)
{
    watch.network = network;
    watch.next = 0;
    for (int i = 0; i < network->graph->nodes; i++) {
        watch.own[i] = network->binding[i].kernel;
        looking[i] = *watch.own[i];
        looking[i].forward = look_on;
        network->binding[i].kernel = &looking[i];
    }
}

static struct plan *plan_of(const struct network *network, bool forward_only)
{
    struct region *region = region_create();
    struct word word = word_empty(region);
    const struct plan_options options = {.lower = {.drop_dead = true, .rng = forward_only ? RNG_OFF : RNG_STASH},
                                         .forward_only = forward_only};
    struct plan *plan;
    cr_assert(word_append(&word, STEP_FORWARD, 0, network->graph->nodes) == ST_OK);
    if (!forward_only) cr_assert(word_append(&word, STEP_BACKWARD, 0, network->graph->nodes) == ST_OK);
    cr_assert(plan_build(network, &word, &options, &plan) == ST_OK, "%s", status_message());
    region_destroy(region);
    return plan;
}

static void check(const struct net *net)
{
    static struct kernel looking[64];
    struct backend *backend;
    struct graph *graph = net_build(net, RELU_OUTPUT);
    struct network *network;
    struct exec *exec;
    float loss[2];
    cr_assert(backend_open("ref", &(struct backend_options){0}, &backend) == ST_OK);
    cr_assert(network_prepare(graph, backend, &network) == ST_OK, "%s", status_message());
    put_watch(network, looking);
    struct plan *training = plan_of(network, false), *evaluation = plan_of(network, true);
    cr_assert(exec_create(training, &(struct exec_options){.rng = RNG_STASH}, &exec) == ST_OK, "%s", status_message());
    if (sentences_fit(&net->input)) sentences_make(exec_batch(exec), net->batch, net->input.dim[1], 20, 1);
    for (uint32_t step = 0; step < 4; step++) {
        watch.evaluating = step == 2;
        cr_assert((watch.evaluating ? exec_run_plan(exec, evaluation, step, loss) : exec_step(exec, step, loss)) ==
                  ST_OK);
    }
    exec_destroy(exec);
    plan_destroy(training), plan_destroy(evaluation);
    network_destroy(network);
    graph_destroy(graph);
    backend_close(backend);
}

Test(draws, follow_each_other_in_the_stream)
{
    watch.seen = 0;
    for (const struct net *net = nets; net->name; net++) check(net);
    cr_assert(watch.seen > 30, "%d", watch.seen);
}
