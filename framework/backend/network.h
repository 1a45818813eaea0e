/* A graph bound to a backend, with every node's kernel prepared and its footprint known. Shared by planning and
 * execution. */
#pragma once

#include "backend/backend.h"
#include "backend/traced.h"

struct binding {
    const struct kernel *kernel;
    void *state;
    struct footprint footprint;
    const struct traced_backward *traced; /* of a traced step: the operator that is its backward; NULL: none */
    bool runs_once;                       /* a recomputation is left out, and what the forward wrote is kept */
    bool no_forward;                      /* the node has a backward alone */
};

/* The time of a node's passes, in a unit that all nodes of a network share: flops, or measured time. An unsplit
 * backward takes the sum of its parts. */
struct cost {
    double forward;     /* a recomputation */
    double once;        /* what the first forward of a step takes besides */
    double backward[2]; /* by part index */
};

struct network {
    struct graph *graph;
    struct graph *slice; /* as the kernels of sliced nodes see it; NULL: the batch is not divided */
    struct backend *backend;
    struct binding *binding; /* one a node; of a sliced node, the kernel computes a slice, and the footprint has the
                                saved tensors of all slices and the scratch of one call */
    struct cost *cost;       /* one a node; network_prepare() sets flops */
    const struct traced_step *traced; /* what was traced elsewhere; NULL: backwards are those of layers */
    size_t granularity; /* bytes of a node's values and saved tensors count as a multiple of it: ALIGNMENT for each
                           slice, which may have a buffer of its own; 1 in an abstract graph */
};

/* bytes as a buffer of this network occupies them. */
static inline size_t network_round(const struct network *network, size_t bytes)
{
    return (bytes + network->granularity - 1) / network->granularity * network->granularity;
}

/* What a buffer's bytes are a multiple of. */
static inline size_t network_unit(const struct network *network)
{
    return network->granularity / (size_t)network->graph->slices;
}

/* bytes as one buffer occupies them: of a slice, or of the whole batch. */
static inline size_t network_buffer_bytes(const struct network *network, size_t bytes)
{
    const size_t unit = network_unit(network);
    return (bytes + unit - 1) / unit * unit;
}

/* The graph that a call of the node's kernel computes: of a slice, or of the whole batch. */
const struct graph *network_call(const struct network *network, int node);

/* What the gradients of a sliced node's parameters take for one slice, before they are added; else 0. */
size_t network_partial_bytes(const struct network *network, int node);

/* Bytes besides its scratch that a forward which does not save its saved tensors has live: a traced operator writes
 * all its results, of which some are dead at once. */
static inline size_t network_unsaved(const struct network *network, int node)
{
    return network->traced ? network->binding[node].footprint.saved : 0;
}

/* Of a node's first forward. */
static inline double network_first_time(const struct network *network, int node)
{
    return network->cost[node].forward + network->cost[node].once;
}

/* Arranges layouts, fuses pools if the graph says so, and prepares every node; the caller keeps graph and backend.
 * Errors: ST_SPEC naming layer and backend for a kernel that is missing or not deterministic, naming the layer where
 * all nodes together need more than 2^58 bytes, and the errors of prepare(). */
enum status network_prepare(struct graph *graph, struct backend *backend, struct network **network);
void network_destroy(struct network *network);

/* The same network with footprints of its own, in region, so that what relus save can be changed there. Not to be
 * destroyed. */
struct network *network_copy(const struct network *network, struct region *region);

/* The network as planning that knows no slices sees it: every node computes the whole batch at once. Its schedules are
 * schedules of the network, where they need no more memory. And as a slice sees it that runs alone: one of the sliced
 * network's slices is its batch. In region, with the footprints of the network; not to be destroyed. */
struct network *network_unsliced(const struct network *network, struct region *region);
struct network *network_of_slice(const struct network *network, struct region *region);

/* Updates the footprints to relu_save, where a node's changed since the network was prepared. */
void network_settle_relus(struct network *network);

/* Parts of a fused update of node's parameters, 0: none, or all at once. Whether updates are fused. */
int network_update_parts(const struct network *network, int node);
bool network_fused(const struct network *network);

/* What node's backward reads (enum reads), over the parts that run; and those parts (enum part, 0: no backward). */
unsigned network_reads(const struct network *network, int node);
unsigned network_parts(const struct network *network, int node);

/* What a backward reads of the forward, in turn: `for (r = reading_of(...); reading_next(&r);)` sets r.node and r.saved
 * to a node whose value, or whose saved tensors, it reads. reads: enum reads, of its parts that are asked about. A
 * value may come twice, the batch does not come. */
struct reading {
    const struct network *network;
    int of, next;
    unsigned reads;
    int node;
    bool saved;
};
struct reading reading_of(const struct network *network, int node, unsigned reads);
bool reading_next(struct reading *reading);

/* Whether parts that read `later` (enum reads) read it, too. */
bool reading_again(const struct reading *reading, unsigned later);

/* Whether the node has a forward: in a traced step, some have a backward alone. */
bool network_has_forward(const struct network *network, int node);

/* Time of node's backward, over the parts that run. */
double network_backward_time(const struct network *network, int node);
