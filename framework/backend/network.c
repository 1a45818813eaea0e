#include "backend/network.h"

#include "model/slicing.h"

#include <stdlib.h>
#include <string.h>

static bool sliced(const struct network *network, int node) { return network->slice && !network->graph->whole[node]; }

const struct graph *network_call(const struct network *network, int node)
{
    return sliced(network, node) ? network->slice : network->graph;
}

size_t network_partial_bytes(const struct network *network, int node)
{
    const struct node *n = &network->graph->node[node];
    size_t bytes = 0;
    const bool adds = network->binding[node].footprint.adds;
    for (int k = 0; sliced(network, node) && node_trains(n) && !adds && k < node_parameters(n); k++)
        bytes += parameter_static_bytes(&network->graph->parameter[node_parameter(n, k)]);
    return bytes;
}

/* From a call's requirements to the node's: saved tensors of all slices, each in a buffer of its own, and room for a
 * slice's gradients of the parameters beside the scratch of the pass that computes them. */
static void gather_slices(const struct network *network, int node, struct footprint *f)
{
    const size_t slices = (size_t)network->graph->slices, partial = network_partial_bytes(network, node);
    f->saved = slices * round_up(f->saved);
    f->signs = slices * round_up(f->signs);
    f->once = slices * round_up(f->once);
    f->backward_scratch[PART_INDEX_PARAMS] += partial;
    if (!f->split) f->backward_scratch[PART_INDEX_INPUT] += partial;
}

/* A node whose gradient is handed on to a node that is whole is whole too: it is read there as one buffer. */
static bool follows_whole(const struct network *network, const struct node *node)
{
    if (!network->binding[node->index].footprint.passes_gradient) return false;
    for (int k = 0; k < node->layer->inputs; k++)
        if (node->inputs[k] > 0 && network->graph->whole[node->inputs[k] - 1]) return true;
    return false;
}

static size_t divisor(size_t a, size_t b) { return b ? divisor(b, a % b) : a; }

/* Parts are whole rows, and whole pieces of a digest, so that the whole gradient's digest can be made of theirs. */
static void fuse_update(struct network *network, const struct node *node)
{
    const struct graph *graph = network->graph;
    const struct parameter *parameter = &graph->parameter[node->first_parameter];
    struct footprint *f = &network->binding[node->index].footprint;
    for (int k = 0; k < node->parameters; k++) f->gradients += parameter_static_bytes(&parameter[k]);
    if (!f->by_rows || !graph->update_part || sliced(network, node->index) ||
        parameter_bytes(parameter) <= graph->update_part)
        return;
    const size_t rows = (size_t)parameter->definition.shape.dim[0], row = parameter_bytes(parameter) / rows;
    const size_t unit = DIGEST_PIECE / divisor(row, DIGEST_PIECE), units = graph->update_part / row / unit;
    const size_t part = (units ? units : 1) * unit;
    if (part >= rows) return;
    f->part_elements = part * row / sizeof(float);
    f->gradients += part * row - parameter_static_bytes(parameter);
    f->split = false;
}

/* Without PARAMS, INPUT runs alone: it multiplies dy by a fused activation's derivative, and where the kernel is not
 * split, it reads what that reads. */
static void freeze(struct footprint *f)
{
    f->reads[PART_INDEX_INPUT] |= f->reads[PART_INDEX_PARAMS] & (f->split ? READS_Y | READS_SAVED : ~0U);
    f->reads[PART_INDEX_PARAMS] = 0;
    if (!f->split && f->backward_scratch[PART_INDEX_INPUT] < f->backward_scratch[PART_INDEX_PARAMS])
        f->backward_scratch[PART_INDEX_INPUT] = f->backward_scratch[PART_INDEX_PARAMS];
    f->backward_scratch[PART_INDEX_PARAMS] = 0;
    f->split = false;
}

static enum status prepare_node(struct network *network, struct node *node)
{
    struct backend *backend = network->backend;
    struct binding *b = &network->binding[node->index];
    const struct graph *graph = network_call(network, node->index);
    b->kernel = backend->kind->kernel(node);
    if (!b->kernel)
        return fail(ST_SPEC, "layer '%s': backend '%s' has no kernel for %s", node->name, backend->kind->name,
                    node->layer->name);
    if (!b->kernel->deterministic)
        return fail(ST_SPEC, "layer '%s': the kernel of backend '%s' for %s is not deterministic: runs would differ",
                    node->name, backend->kind->name, node->layer->name);
    if (node->tied && graph->fused_update)
        return fail(ST_SPEC,
                    "update: fused updates a weight behind the backward of one layer, but layer '%s' shares its; "
                    "expected separate",
                    node->name);
    if ((node->tied || node->shared) && !b->kernel->adds)
        return fail(ST_SPEC, "layer '%s': backend '%s' cannot share its weight with another layer", node->name,
                    backend->kind->name);
    enum status status = b->kernel->prepare(backend, graph, node, &b->footprint, &b->state);
    if (status != ST_OK) return fail(status, "layer '%s': %s", node->name, status_message());
    const bool reference = b->kernel == &node->layer->reference;
    if (!b->footprint.implementation)
        b->footprint.implementation = reference && !node->layer->loss ? "ref" : backend->kind->name;
    if (node->frozen) freeze(&b->footprint);
    if (network->graph->fused_update && node_trains(node)) fuse_update(network, node);
    if (graph == network->graph) return ST_OK;
    if (follows_whole(network, node)) {
        if (b->kernel->release) b->kernel->release(b->state);
        *b = (struct binding){.kernel = NULL};
        network->graph->whole[node->index] = true;
        return prepare_node(network, node);
    }
    gather_slices(network, node->index, &b->footprint);
    return ST_OK;
}

/* More than any machine has, and sums of such numbers stay far below 2^64. */
static const size_t BYTES_MAX = (size_t)1 << 58;

static enum status check_bytes(const struct network *network)
{
    const struct graph *graph = network->graph;
    size_t sum = graph->value[0].bytes;
    for (int i = 0; i < graph->nodes; i++) {
        const struct node *node = &graph->node[i];
        const struct value *y = &graph->value[node->output];
        const struct footprint *f = &network->binding[i].footprint;
        size_t parameters = 0;
        for (int p = 0; p < node->parameters; p++)
            parameters += (size_t)graph->parameter[node->first_parameter + p].elements * sizeof(float);
        const size_t bytes[] = {y->bytes,
                                y->gradient_bytes,
                                parameters,
                                f->saved,
                                f->signs,
                                f->forward_scratch,
                                f->backward_scratch[0],
                                f->backward_scratch[1]};
        for (size_t k = 0; k < sizeof bytes / sizeof *bytes; k++) {
            if (sum > BYTES_MAX || bytes[k] > BYTES_MAX - sum)
                return fail(ST_SPEC,
                            "layer '%s': with it outputs, gradients, parameters, saved tensors and scratch add up "
                            "to more than 2^58 bytes",
                            node->name);
            sum += bytes[k];
        }
    }
    return ST_OK;
}

static enum status prepare_nodes(struct network *network)
{
    for (int i = 0; i < network->graph->nodes; i++) {
        struct node *node = &network->graph->node[i];
        const struct flops *flops = &node->flops;
        network->cost[i] = (struct cost){flops->forward, flops->once, {flops->backward_params, flops->backward_input}};
        TRY(prepare_node(network, node));
    }
    return check_bytes(network);
}

void network_settle_relus(struct network *network)
{
    for (int i = 0; i < network->graph->nodes; i++)
        footprint_keep_sign_bits(&network->binding[i].footprint, network->graph->node[i].relu_save == RELU_BITS);
}

/* The values of a slice are parts of the batch's. */
static enum status arrange_slice(struct backend *backend, const struct graph *graph, struct graph *slice)
{
    TRY(backend->kind->arrange(backend, slice));
    for (int v = 0; v < graph->values; v++)
        if (slice->value[v].layout != graph->value[v].layout ||
            slice->value[v].bytes * (size_t)graph->slices != graph->value[v].bytes)
            return fail(
                ST_SPEC,
                "slices: the batch cannot be computed in parts: backend '%s' lays value %d of a slice out otherwise",
                backend->kind->name, v);
    return ST_OK;
}

/* Where the backend has a kernel for it. Layouts stay those of the images before the pools. */
static void fuse_pools(struct network *network)
{
    const struct backend *backend = network->backend;
    struct graph *graph = network->graph;
    for (int i = 0; i < graph->nodes; i++) {
        struct node *pool = &graph->node[i];
        if (!graph_pool_fusible(graph, pool)) continue;
        const int before = pool->inputs[0] - 1, v = graph->node[before].output;
        if (sliced(network, before) != sliced(network, i)) continue;
        if (!backend->kind->takes_pool(network->backend, network_call(network, before), &graph->node[before])) continue;
        graph_fuse_pool(graph, pool);
        if (!network->slice) continue;
        network->slice->value[v].shape = graph->value[v].shape;
        network->slice->value[v].bytes = graph->value[v].bytes / (size_t)graph->slices;
    }
}

enum status network_prepare(struct graph *graph, struct backend *backend, struct network **network)
{
    *network = NULL;
    TRY(backend->kind->arrange(backend, graph));
    struct network *n;
    NEW(graph->region, n, 1);
    n->graph = graph;
    n->backend = backend;
    n->granularity = ALIGNMENT * (size_t)graph->slices;
    if (graph->slices > 1) {
        n->slice = graph_of_slice(graph);
        TRY(arrange_slice(backend, graph, n->slice));
    }
    if (graph->pool_in_conv && backend->kind->takes_pool) fuse_pools(n);
    for (int v = 0; v + 1 < graph->values; v++) { /* a loss's own gradient is a constant */
        const bool loss = v > 0 && graph->node[v - 1].layer->loss;
        graph->value[v].gradient_bytes = graph->value[v].wants_gradient && !loss ? graph->value[v].bytes : 0;
    }
    for (int v = 0; n->slice && v < graph->values; v++)
        n->slice->value[v].gradient_bytes = graph->value[v].gradient_bytes / (size_t)graph->slices;
    NEW(graph->region, n->binding, (size_t)graph->nodes);
    NEW(graph->region, n->cost, (size_t)graph->nodes);
    const enum status status = prepare_nodes(n);
    if (status != ST_OK) {
        network_destroy(n);
        return status;
    }
    network_settle_relus(n);
    *network = n;
    return ST_OK;
}

void network_destroy(struct network *network)
{
    if (!network) return;
    for (int i = 0; i < network->graph->nodes; i++) {
        struct binding *b = &network->binding[i];
        if (b->kernel && b->kernel->release && b->state) b->kernel->release(b->state);
        b->state = NULL;
    }
}

struct network *network_copy(const struct network *network, struct region *region)
{
    struct network *copy;
    NEW(region, copy, 1);
    *copy = *network;
    NEW(region, copy->binding, (size_t)network->graph->nodes);
    memcpy(copy->binding, network->binding, (size_t)network->graph->nodes * sizeof *copy->binding);
    return copy;
}

struct network *network_unsliced(const struct network *network, struct region *region)
{
    struct network *view = network_copy(network, region);
    NEW(region, view->graph, 1);
    *view->graph = *network->graph;
    view->graph->slices = 1;
    view->graph->whole = NULL;
    view->slice = NULL;
    return view;
}

struct network *network_of_slice(const struct network *network, struct region *region)
{
    struct network *view = network_copy(network, region);
    const size_t slices = (size_t)network->graph->slices;
    NEW(region, view->cost, (size_t)network->graph->nodes);
    for (int i = 0; i < network->graph->nodes; i++) {
        struct footprint *f = &view->binding[i].footprint;
        const struct cost *c = &network->cost[i];
        const double calls = (double)slices;
        f->saved /= slices;
        f->signs /= slices;
        f->once /= slices;
        view->cost[i] =
            (struct cost){c->forward / calls, c->once / calls, {c->backward[0] / calls, c->backward[1] / calls}};
    }
    view->graph = network->slice;
    view->slice = NULL;
    view->granularity = network_unit(network);
    return view;
}

int network_update_parts(const struct network *network, int node)
{
    const size_t part = network->binding[node].footprint.part_elements;
    const struct graph *graph = network->graph;
    return part ? (int)(((size_t)graph->parameter[graph->node[node].first_parameter].elements - 1) / part) + 1 : 0;
}

bool network_fused(const struct network *network)
{
    for (int i = 0; i < network->graph->nodes; i++)
        if (network->binding[i].footprint.gradients) return true;
    return false;
}

unsigned network_parts(const struct network *network, int node)
{
    const struct graph *graph = network->graph;
    if (network->traced) return network->binding[node].traced ? PART_PARAMS | PART_INPUT : 0;
    const struct node *n = &graph->node[node];
    unsigned parts = node_trains(n) ? PART_PARAMS : 0;
    for (int k = 0; k < n->layer->inputs; k++)
        if (graph->value[n->inputs[k]].wants_gradient && !network->binding[node].footprint.passes_gradient)
            parts |= PART_INPUT;
    return parts;
}

unsigned network_reads(const struct network *network, int node)
{
    return footprint_reads(network->binding[node].footprint.reads, network_parts(network, node));
}

bool network_has_forward(const struct network *network, int node) { return !network->binding[node].no_forward; }

struct reading reading_of(const struct network *network, int node, unsigned reads)
{
    return (struct reading){.network = network, .of = node, .reads = reads};
}

static bool next_traced(struct reading *r)
{
    const struct traced_backward *b = r->network->binding[r->of].traced;
    while (b && r->reads && r->next < b->reads) {
        const struct traced_read *o = &b->read[r->next++];
        if (o->what == HELD_ONCE) continue; /* it stays, whatever reads it */
        r->node = o->node;
        r->saved = o->what == HELD_SAVED;
        return true;
    }
    return false;
}

enum { OWN_VALUE, OWN_SAVED, INPUTS }; /* places of what a layer's backward reads */

bool reading_next(struct reading *r)
{
    const struct node *node = &r->network->graph->node[r->of];
    if (r->network->traced) return next_traced(r);
    while (r->next < INPUTS + inputs_read(r->reads, node->layer->inputs)) {
        const int at = r->next++;
        r->node = at < INPUTS ? r->of : node->inputs[at - INPUTS] - 1;
        r->saved = at == OWN_SAVED;
        if (at == OWN_VALUE && !(r->reads & READS_Y)) continue;
        if (at == OWN_SAVED && !(r->reads & READS_SAVED && r->network->binding[r->of].footprint.saved)) continue;
        if (r->node >= 0) return true;
    }
    return false;
}

bool reading_again(const struct reading *r, unsigned later)
{
    const int at = r->next - 1;
    if (at < INPUTS) return later & (at == OWN_VALUE ? READS_Y : READS_SAVED);
    return at - INPUTS < inputs_read(later, r->network->graph->node[r->of].layer->inputs);
}

double network_backward_time(const struct network *network, int node)
{
    const unsigned parts = network_parts(network, node);
    const double *time = network->cost[node].backward;
    return (parts & PART_PARAMS ? time[PART_INDEX_PARAMS] : 0) + (parts & PART_INPUT ? time[PART_INDEX_INPUT] : 0);
}
