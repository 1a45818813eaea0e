/* The search over dropped outputs, on chains in which dropping one output alone saves nothing. */
#include <criterion/criterion.h>

#include "search/drops.h"
#include "tests/support/random_chains.h"

enum { PAIRS = 12, BYTES = 10 };

/* Pairs of nodes of which no backward reads the first's output: dropping the second's alone keeps that in its place. */
static struct network *pairs(void)
{
    struct abstract_node node[2 * PAIRS];
    for (int i = 0; i < 2 * PAIRS; i++)
        node[i] = (struct abstract_node){.stage = {.forward = 1, .backward = 2, .output = BYTES, .gradient = 1},
                                         .inputs = 1,
                                         .input = {i},
                                         .reads = i % 2 ? READS_Y : 0};
    return graph_network(node, 2 * PAIRS);
}

Test(drops, outputs_that_no_backward_reads_do_not_stop_it)
{
    struct network *network = pairs();
    struct region *region = region_create();
    const struct lower_options options = {.drop_dead = true};
    const struct step_model model = step_model_create(network, &options, region);
    for (int kept = PAIRS - 1; kept >= PAIRS / 2; kept--) {
        const size_t limit = (size_t)kept * BYTES + BYTES + 2; /* of outputs, one more as it is computed, gradients */
        struct sequence sequence = drops_search(&model, limit, region);
        cr_assert(sequence.length, "nothing found for %d outputs", kept);
        const struct sequence_cost cost = sequence_evaluate(&model, &sequence, limit);
        const double least = model.floor + 2 * (PAIRS - kept - 1); /* a dropped output takes both nodes again */
        cr_expect(cost.peak <= limit && cost.time <= least + 4, "%d outputs: time %g, expected about %g", kept,
                  cost.time, least);
    }
    region_destroy(region);
    abstract_destroy(network);
}
