/* Contract: the file is not trusted; where it does not fit, no cost is changed. */
#include "result/costs_read.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "check/simulate.h"
#include "job/machine.h"
#include "result/record_plan.h"
#include "result/result_read.h"

static const char remedy[] = "expected the result file of a run of this model and batch with two steps or more";

/* Sums of the least times of a node's ops, and how many there are. */
struct passes {
    double first, again, backward[2];
    int agains;
};

struct reading_costs {
    const struct job *job;
    struct result *result;
    struct region *region;
    struct plan_data theirs, ours;
    uint64_t *op_ns; /* by op of theirs */
    struct passes *node;
    double added, copied; /* bytes */
    struct costs *costs;
};

/* ---- is it of this model? ---- */

static const char *text_at(const struct reading_costs *c, const char *group, const char *name)
{
    return h5_read_attribute_text(&c->result->h5, group, name, "", c->region);
}

static enum status check_text(const struct reading_costs *c, int node, const char *what, const char *theirs,
                              const char *ours)
{
    if (!strcmp(theirs, ours)) return ST_OK;
    return fail(ST_SPEC, "costs.file: %s: node %d (%s): %s is '%s' in it and '%s' here; %s", c->result->h5.path, node,
                c->ours.node[node].name, what, theirs, ours, remedy);
}

static enum status check_number(const struct reading_costs *c, const char *what, uint64_t theirs, uint64_t ours)
{
    if (theirs == ours) return ST_OK;
    return fail(ST_SPEC, "costs.file: %s: %s is %" PRIu64 " in it and %" PRIu64 " here; %s", c->result->h5.path, what,
                theirs, ours, remedy);
}

static enum status check_model(const struct reading_costs *c)
{
    TRY(check_number(c, "batch", c->theirs.batch, c->ours.batch));
    TRY(check_number(c, "the number of slices", c->theirs.slices, c->ours.slices));
    TRY(check_number(c, "the number of nodes", (uint64_t)c->theirs.nodes, (uint64_t)c->ours.nodes));
    for (int i = 0; i < c->ours.nodes; i++) {
        const struct plan_data_node *a = &c->theirs.node[i], *b = &c->ours.node[i];
        TRY(check_text(c, i, "the name", a->name, b->name));
        TRY(check_text(c, i, "the layer", a->layer, b->layer));
        TRY(check_text(c, i, "the shape", a->shape, b->shape));
        TRY(check_text(c, i, "the implementation", a->footprint.implementation, b->footprint.implementation));
    }
    return ST_OK;
}

/* ---- times of nodes ---- */

static void count_op(struct reading_costs *c, const struct op *op, double ns)
{
    struct passes *p = &c->node[op->node];
    switch (op->kind) {
    case OP_FORWARD:
        *(op->recompute ? &p->again : &p->first) += ns;
        p->agains += op->recompute;
        return;
    case OP_BACKWARD:
        p->backward[op->parts & PART_PARAMS ? PART_INDEX_PARAMS : PART_INDEX_INPUT] += ns;
        return;
    case OP_COPY:
        c->costs->copy += ns;
        c->copied += (double)op->bytes;
        return;
    case OP_ACCUMULATE:
        c->costs->add += ns;
        c->added += (double)op->bytes;
        return;
    case OP_UPDATE:
    case OP_KINDS:
        c->costs->rest += ns;
        return;
    }
}

/* Numbers of the model and its kernels on which a time depends are equal. */
static bool is_same_kind(const struct plan_data_node *a, const struct plan_data_node *b)
{
    return !strcmp(a->layer, b->layer) && !strcmp(a->shape, b->shape) &&
           !strcmp(a->footprint.implementation, b->footprint.implementation) && a->whole == b->whole &&
           a->forward_flops == b->forward_flops && a->once_flops == b->once_flops &&
           !memcmp(a->backward_flops, b->backward_flops, sizeof a->backward_flops) &&
           !table_difference(record_node_columns, 1, a, b, sizeof *a, &(size_t){0});
}

/* A forward that is run again in as many calls as its first one; both are never without time. */
static struct cost cost_of(const struct reading_costs *c, int node)
{
    const struct passes *p = &c->node[node];
    const struct slicing slicing = graph_slicing(c->job->graph);
    const bool once = c->job->network->binding[node].footprint.once > 0;
    struct cost cost = {fmax(p->first, 1), 0, {p->backward[0], p->backward[1]}};
    if (p->agains) cost.forward = fmax(p->again / p->agains * (double)slicing_calls(&slicing, node), 1);
    if (once && p->first > cost.forward) cost.once = p->first - cost.forward;
    return cost;
}

/* Of one kind, with the same passes: a frozen node has no gradient of its parameters to time. */
static bool is_alike(const struct reading_costs *c, int a, int b)
{
    return is_same_kind(&c->ours.node[a], &c->ours.node[b]) &&
           network_parts(c->job->network, a) == network_parts(c->job->network, b);
}

static void set_costs(struct reading_costs *c)
{
    struct network *network = c->job->network;
    int *first; /* by node: the first one that is alike */
    NEW(c->region, first, (size_t)c->ours.nodes);
    for (int i = 0; i < c->ours.nodes; i++) {
        const struct cost cost = cost_of(c, i);
        while (first[i] < i && !is_alike(c, first[i], i)) first[i]++;
        struct cost *least = &network->cost[first[i]];
        if (first[i] == i) *least = cost;
        if (cost.forward + cost.once < least->forward + least->once)
            least->forward = cost.forward, least->once = cost.once;
        for (int k = 0; k < 2; k++) least->backward[k] = fmin(least->backward[k], cost.backward[k]);
    }
    for (int i = 0; i < c->ours.nodes; i++) network->cost[i] = network->cost[first[i]];
}

/* ---- where it was measured ---- */

static void find_place(struct reading_costs *c)
{
    const struct backend *backend = c->job->backend;
    char cpu[256];
    uint64_t threads = h5_read_attribute_u64(&c->result->h5, "/provenance/host", "threads", 0);
    const char *isa = text_at(c, "/provenance/host", "isa"), *libraries = text_at(c, "/provenance/libs", "kernels"),
               *theirs = text_at(c, "/provenance/host", "cpu"), *device = "";
    if (h5_exists(&c->result->h5, "/provenance/gpu")) device = text_at(c, "/provenance/gpu", "device");
    c->costs->where = region_text(c->region, "%s%s%s, %s, %" PRIu64 " threads, %s", *device ? device : theirs,
                                  *device ? " of " : "", *device ? theirs : "", isa, threads, libraries);
    c->costs->here = !strcmp(theirs, machine_cpu(cpu)) && !strcmp(isa, backend->isa ? backend->isa : "") &&
                     !strcmp(libraries, backend->libraries ? backend->libraries : "") &&
                     !strcmp(device, backend->device ? backend->device : "") &&
                     threads == (uint64_t)backend->options.threads;
}

/* ---- the file ---- */

static enum status read_times(struct reading_costs *c)
{
    struct h5 *h5 = &c->result->h5;
    static const char path[] = "/summary/op_least_ns";
    TRY(record_plan_read(h5, c->region, &c->theirs));
    if (!h5_exists(h5, path)) return fail(ST_SPEC, "costs.file: %s: its run timed no op; %s", h5->path, remedy);
    TRY(check_number(c, "the number of timed ops", h5_rows(h5, path), (uint64_t)c->theirs.ops));
    NEW(c->region, c->op_ns, (size_t)c->theirs.ops);
    h5_read_rows(h5, path, NUMBER_U64, 1, 0, (uint64_t)c->theirs.ops, c->op_ns);
    c->costs->rest = (double)h5_read_attribute_u64(h5, "/summary", "rest_least_ns", 0);
    return h5_status(h5);
}

static enum status read_file(struct reading_costs *c)
{
    const struct plan_options options = job_plan_options(c->job);
    enum status status = read_times(c);
    if (status != ST_OK) return fail(ST_SPEC, "%s", status_message());
    plan_network_to_data(c->job->network, &options, c->region, &c->ours);
    TRY(check_model(c));
    status = simulate(&c->theirs); /* ops of nodes that exist */
    if (status != ST_OK)
        return fail(ST_SPEC, "costs.file: %s: holds an invalid plan: %s", c->result->h5.path, status_message());
    NEW(c->region, c->node, (size_t)c->ours.nodes);
    for (int i = 0; i < c->theirs.ops; i++) count_op(c, &c->theirs.op[i], (double)c->op_ns[i]);
    if (c->added > 0) c->costs->add /= c->added;
    if (c->copied > 0) c->costs->copy /= c->copied;
    find_place(c);
    return h5_status(&c->result->h5);
}

enum status costs_read(struct job *job)
{
    result_auto *result = NULL;
    struct reading_costs c = {.job = job, .region = job->graph->region};
    if (result_open(job->spec->costs_file, &result) != ST_OK) return fail(ST_SPEC, "costs.file: %s", status_message());
    c.result = result;
    NEW(c.region, c.costs, 1);
    TRY(read_file(&c));
    set_costs(&c);
    c.costs->path = job->spec->costs_file;
    c.costs->run_id = region_text(c.region, "%s", result->run_id);
    c.costs->digest = costs_digest(job->network->cost, c.ours.nodes, c.costs->rest, c.costs->add, c.costs->copy);
    job->costs = c.costs;
    return ST_OK;
}
