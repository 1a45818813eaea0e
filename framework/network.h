/* A graph bound to a backend: every node's kernel prepared, every footprint known. What planning and executing share.
 */
#ifndef REMATCH_NETWORK_H
#define REMATCH_NETWORK_H

#include "backend.h"

struct binding {
    const struct kernel *kernel;
    void *state;
    struct footprint footprint;
};

struct network {
    struct graph *graph;
    struct backend *backend;
    struct binding *binding; /* one a node */
    size_t granularity;      /* a buffer's bytes are a multiple of it: ALIGNMENT; 1 in an abstract chain */
};

/* bytes as a buffer of this network occupies them. */
static inline size_t network_round(const struct network *network, size_t bytes)
{
    return (bytes + network->granularity - 1) / network->granularity * network->granularity;
}

/* Arranges layouts and prepares every node; graph and backend stay the caller's. Errors: ST_SPEC naming layer and
 * backend for a missing row, and whatever prepare() says. */
enum status network_prepare(struct graph *graph, struct backend *backend, struct network **network);
void network_destroy(struct network *network);

/* What node's backward reads (enum reads), over the parts it will run; and those parts (enum part, 0: no backward). */
unsigned network_reads(const struct network *network, int node);
unsigned network_parts(const struct network *network, int node);

#endif
