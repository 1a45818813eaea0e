/* The nodes of a graph file while it is read. */
#pragma once

#include "backend/abstract_graph.h"
#include "backend/traced_step.h"
#include "yaml/yaml_read.h"

enum { GRAPH_NODES_MAX = 1 << 16 };

struct graph_build {
    struct yaml_reader yaml;
    const struct yaml_tree *list; /* of the file's items */
    const char *mapping;          /* how operators became nodes; NULL: the file has nodes */
    int64_t always;               /* bytes of constants and the batch */
    int64_t batch;                /* of sizes and times; 0: the file does not say */
    bool full;                    /* there were more nodes than can be planned */
    int nodes;
    struct abstract_node *node;
    struct traced_step *step;    /* in place of nodes; NULL: the file has nodes */
    struct names *names;         /* of the nodes; a copy that was renamed is there under both names */
    const struct yaml_tree **at; /* of each node: what made it in the file */
};

/* Appends a node and returns its value; -1: there are too many, which is reported once. */
int graph_build_append(struct graph_build *build, const struct abstract_node *node, const struct yaml_tree *at);

/* Calls the node at index i by a name of its own. */
void graph_build_name(struct graph_build *build, int i, const char *name);

/* The same as graph_build_append() for a node with any number of inputs, at least one. More inputs than a node can have
 * are taken one after the other by nodes before it without time, which write to the whole output in place, as a
 * concatenation does: their backward gives each input its gradient. Where the backward reads the inputs, their sum is
 * kept instead. */
int graph_build_add(struct graph_build *build, const struct abstract_node *node, int inputs, const int *input,
                    const struct yaml_tree *at);

/* The item of tree's list key, where an error about it is shown. */
const struct yaml_tree *graph_build_item(const struct yaml_tree *tree, const char *key, size_t item);

/* The network of the nodes with sizes and times in proportion to batch to, bytes rounded up, but parameters and what is
 * always there; a file without a batch has its own alone. The errors of abstract_graph_create(), whose at is set. */
enum status graph_build_network(const struct graph_build *build, int64_t to, int *at, struct network **network);
