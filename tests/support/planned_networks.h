/* Networks that are only planned, never run: layers without arithmetic whose footprints are set by hand. */
#pragma once

#include "backend/network.h"

enum { SKETCH_NODES_MAX = 64 };

/* Numbers for tests that try many cases: the same for the same seed. */
struct source {
    uint32_t seed, count;
};

/* Uniform in [0, below), below > 0. */
uint32_t draw_below(struct source *source, uint32_t below);

struct sketch {
    struct backend backend;
    struct graph *graph;
    struct network *network; /* after sketch_finish */
    struct footprint footprint[SKETCH_NODES_MAX];
};

/* A node; the value that it writes has bytes bytes (a multiple of 4). */
struct sketch_node {
    int x[NODE_INPUTS_MAX]; /* values; x[1] < 0: one input */
    size_t bytes;
    bool parameters, random;
    struct footprint footprint;
};

/* An empty sketch whose batch is one sample of bytes bytes. */
void sketch_begin(struct sketch *sketch, size_t bytes);

/* Makes it a node with a relu, which may be fused with other work. */
void sketch_make_relu(struct source *source, struct sketch_node *node);

/* Appends a node and returns its value. */
int sketch_add(struct sketch *sketch, const struct sketch_node *node);

/* Appends the loss, which reads value, and prepares the network. */
void sketch_finish(struct sketch *sketch, int value);

void sketch_end(struct sketch *sketch);

/* A random network: up to nodes nodes (and the loss), any footprints that a kernel may have, one or two inputs. */
void sketch_random(struct sketch *sketch, struct source *source, int nodes);
