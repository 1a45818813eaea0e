/* In every memory mode a recomputation finds NaNs where it is to write, in a whole buffer or in its slice's part of
 * one, so that what the first forward left there cannot pass for it. Kernels look. */
#include <criterion/criterion.h>

#include "tests/support/sliced_schedules.h"
#include "tests/support/small_training.h"
#include "tests/support/token_batches.h"
#include "tests/support/watched_network.h"

static void expect_nans(const struct node *node, const char *what, const void *block, size_t bytes)
{
    const uint32_t *word = block;
    for (size_t i = 0; block && i < bytes / sizeof *word; i++)
        cr_assert(word[i] == 0x7fa0dead, "%s of %s: word %zu is %08x", what, node->name, i, word[i]);
}

static struct {
    const struct plan *plan;
    int next; /* op */
    int whole, parts, saved;
} recomputed;

static void look(const struct network *network, int index, const struct kernel_args *args, unsigned parts)
{
    const struct graph *graph = network->graph;
    const struct node *node = &graph->node[index];
    const struct op *op = recomputed.plan->lowered.op;
    while (op[recomputed.next].kind != OP_FORWARD && op[recomputed.next].kind != OP_BACKWARD) recomputed.next++;
    op += recomputed.next++;
    cr_assert(op->node == index && op->parts == parts);
    if (!op->recompute) return;
    const size_t calls = op->slice < 0 ? 1 : (size_t)graph->slices;
    const struct buffer *buffer = recomputed.plan->lowered.buffer;
    if (args->y != args->x[0] && args->y != args->x[1] && !node->layer->loss) {
        expect_nans(node, "y", args->y, graph->value[node->output].bytes / calls);
        *(op->y >= 0 && buffer[op->y].slice == op->slice ? &recomputed.whole : &recomputed.parts) += 1;
    }
    if (!op->save || op->saved < 0) return;
    expect_nans(node, "the saved tensors", args->saved, network->binding[index].footprint.saved / calls);
    recomputed.saved++;
}

Test(exec, recomputations_write_over_nans)
{
    struct source source = {.seed = 8};
    for (const struct net *small = nets; small->name; small++)
        for (int64_t slices = 1; slices <= 3; slices++) {
            struct net net = *small;
            struct executor *exec;
            float loss[2];
            net.batch = 6;
            struct graph *graph = net_build(&net, RELU_BITS);
            sliced_graph(graph, slices, 4, &source);
            struct bench bench = set_up_graph(&net, "ref", graph);
            watch(bench.network, look);
            const struct slicing slicing = graph_slicing(graph);
            for (int i = 0; i < 9; i++) {
                struct schedule schedule = schedule_empty(graph->region);
                sliced_schedule_draw(&source, &slicing, &schedule);
                plan_auto *plan = plan_build(bench.network, &schedule, &(struct plan_options){.lower = {i % 2}});
                const struct executor_options options = {.memory = (enum memory_mode)(i % 3)};
                cr_assert(ST_OK == executor_create(plan, &options, &exec));
                if (sentences_fit(&net.input)) sentences_make(executor_batch(exec), net.batch, net.input.dim[1], 20, 1);
                recomputed.plan = plan;
                recomputed.next = 0;
                cr_assert(ST_OK == executor_step(exec, 0, loss));
                executor_destroy(exec);
            }
            tear_down(&bench);
        }
    cr_assert(recomputed.whole > 100 && recomputed.parts > 100 && recomputed.saved > 20, "%d, %d, %d", recomputed.whole,
              recomputed.parts, recomputed.saved);
}
