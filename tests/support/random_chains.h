/* Random abstract chains and graphs, and their networks. */
#pragma once

#include "backend/abstract_graph.h"
#include "planned_networks.h"

/* Limits of a narrow range, so that ties and near misses are common. */
extern const struct abstract_stage narrow_limits;

/* Fills stage[0, stages): times and bytes are each below that of limits, saved tensors and scratch are often 0, and
 * where limits is split, each stage is with chance one half. */
void chain_draw(struct source *source, const struct abstract_stage *limits, int stages, struct abstract_stage *stage);

/* Fills node[0, nodes) with a graph of such stages that abstract_graph_create() accepts: each reads the one before it,
 * some a second value from farther back (a shortcut) or a mask without a backward; what backwards read, in-place
 * outputs and passed gradients are drawn, too. */
void graph_draw(struct source *source, const struct abstract_stage *limits, int nodes, struct abstract_node *node);

/* The graph of a chain: each stage reads the one before it and what it saved. Errors: those of
 * abstract_graph_create(). */
enum status chain_create(const struct abstract_stage *stage, int stages, int *at, struct network **network);

/* chain_create() and abstract_graph_create(), which must succeed. */
struct network *chain_network(const struct abstract_stage *stage, int stages);
struct network *graph_network(const struct abstract_node *node, int nodes);
