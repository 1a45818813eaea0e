/* Random abstract chains, and the networks of chains. */
#ifndef REMATCH_TESTS_SUPPORT_RANDOM_CHAINS_H
#define REMATCH_TESTS_SUPPORT_RANDOM_CHAINS_H

#include "backend/abstract_chain.h"
#include "planned_networks.h"

/* Fills stage[0, stages): times and bytes are each below that of limits, saved tensors and scratch are often 0, and
 * where limits is split, each stage is with chance one half. */
void chain_draw(struct source *source, const struct abstract_stage *limits, int stages, struct abstract_stage *stage);

/* abstract_create(), which must succeed. */
struct network *chain_network(const struct abstract_stage *stage, int stages);

#endif
