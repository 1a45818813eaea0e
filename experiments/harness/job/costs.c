/* Contract: the file is not trusted; every error is reported with its place, and nothing is guessed. */
#include "job/costs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/machine.h"
#include "yaml/yaml_read.h"
#include "yaml/yaml_write.h"

enum { VERSION = 1, MIB = 1 << 20, COSTS_ROUNDS_MOST = 1 << 20 };
static const double longest = 1e15; /* ns: eleven days; sums of such times stay exact */

#define HEAD(member) offsetof(struct costs, member)
#define STEP(member) offsetof(struct costs_step, member)
#define ROW(member)  offsetof(struct costs_row, member)

static const struct setting head_keys[] = {
    {"machine", SETTING_TEXT, HEAD(machine), 0, 0, NULL, NULL, "the processor"},
    {"isa", SETTING_TEXT, HEAD(isa), 0, 0, NULL, NULL, "instruction set of the kernels"},
    {"threads", SETTING_INT, HEAD(threads), 1, 4096, NULL, NULL, "of the backend"},
    {"backend", SETTING_TEXT, HEAD(backend), 0, 0, NULL, NULL, "whose kernels were timed"},
    {"libraries", SETTING_TEXT, HEAD(libraries), 0, 0, NULL, NULL, "of the backend, with their versions"},
    {"batch", SETTING_INT, HEAD(batch), 1, 1 << 24, NULL, NULL, "samples a step"},
    {"rounds", SETTING_INT, HEAD(rounds), 1, COSTS_ROUNDS_MOST, NULL, NULL, "how often each pass was timed"},
    {.key = NULL}};

#define NS_FROM(least, key, offset, doc) key, SETTING_INT, offset, least, longest, NULL, NULL, doc
#define NS(key, offset, doc)             NS_FROM(0, key, offset, doc)

static const struct setting step_keys[] = {
    {"key", SETTING_TEXT, STEP(key), 0, 0, NULL, NULL, "what these times depend on"},
    {NS("data", STEP(data), "ns: reading the batch")},
    {NS("digest", STEP(digest), "ns: digests of gradients, parameters and state, and the norm of the gradients")},
    {NS("optimizer", STEP(optimizer), "ns: the update")},
    {NS("add", STEP(add), "ns a MiB: adding two gradients")},
    {NS("copy", STEP(copy), "ns a MiB: copying a gradient")},
    {.key = NULL}};

static const struct setting row_keys[] = {
    {"key", SETTING_TEXT, ROW(key), 0, 0, NULL, NULL, "what these times depend on"},
    {NS_FROM(1, "forward", ROW(forward), "ns: writes no saved tensors")},
    {NS("saving", ROW(saving), "ns: a forward that writes its saved tensors")},
    {NS("backward_params", ROW(backward_params), "ns: of the parameters, or of both where they are one")},
    {NS("backward_input", ROW(backward_input), "ns: of the input")},
    {.key = NULL}};

/* ---- reading ---- */

const struct costs_row *costs_find(const struct costs *costs, const char *key)
{
    for (int i = 0; i < costs->rows; i++)
        if (costs->row[i].key && !strcmp(costs->row[i].key, key)) return &costs->row[i];
    return NULL;
}

static void read_rows(struct yaml_reader *r, const struct yaml_tree *root, struct costs *c)
{
    const struct yaml_tree *list = yaml_tree_get(root, "nodes");
    if (!list || list->kind != YAML_LIST || !list->count) {
        yaml_read_error(r, list ? list : root, NULL, "nodes", "expected a list of the nodes' times");
        return;
    }
    NEW(r->region, c->row, (size_t)list->count);
    for (; c->rows < list->count; c->rows++) {
        struct costs_row *row = &c->row[c->rows];
        const char *path = region_text(r->region, "nodes[%d]", c->rows);
        yaml_read_map(r, list->item[c->rows], path, "a node's times", row_keys, NULL, row);
        if (row->key && costs_find(c, row->key))
            yaml_read_error(r, list->item[c->rows], path, "key", "repeats an earlier key");
    }
}

static void read_root(struct yaml_reader *r, const struct yaml_tree *root, struct costs *c)
{
    static const char *const also[] = {"rematch_costs", "step", "nodes", NULL};
    const struct yaml_tree *step = yaml_tree_get(root, "step");
    const bool other = root->kind == YAML_MAP && !yaml_tree_get(root, "rematch_costs");
    if (!other) yaml_read_map(r, root, NULL, "a file of costs", head_keys, also, c);
    if (root->kind == YAML_MAP) yaml_read_version(r, root, "rematch_costs", VERSION, "a file of costs");
    if (other || root->kind != YAML_MAP) return;
    if (step)
        yaml_read_map(r, step, "step", "a step", step_keys, NULL, &c->step);
    else
        yaml_read_error(r, root, NULL, "step", "missing; expected a map of keys");
    read_rows(r, root, c);
}

/* ---- does it fit this network? ---- */

static const char remedy[] = "make the file with rematch bench --costs SPEC --out FILE";

static enum status find_nodes(const struct costs *c, const struct network *network, struct region *region)
{
    for (int i = 0; i < network->graph->nodes; i++) {
        const char *key = measure_key(network, i, region);
        if (!(c->node[i] = costs_find(c, key)))
            return fail(ST_SPEC, "%s: has no times of node '%s' (%s); %s", c->path, network->graph->node[i].name, key,
                        remedy);
    }
    return ST_OK;
}

static enum status check_owner(const struct costs *c, const struct spec *spec, const struct network *network,
                               struct region *region)
{
    if (c->batch != spec->batch)
        return fail(ST_SPEC, "%s: batch: measured with %" PRId64 " samples, the spec has %" PRId64 "; %s", c->path,
                    c->batch, spec->batch, remedy);
    TRY(find_nodes(c, network, region));
    const char *key = costs_step_key(spec, network, region);
    if (strcmp(key, c->step.key) != 0)
        return fail(ST_SPEC, "%s: step: measured with %s, the spec has %s; %s", c->path, c->step.key, key, remedy);
    return ST_OK;
}

static void set_costs(const struct costs *c, struct network *network)
{
    for (int i = 0; i < network->graph->nodes; i++) {
        const struct costs_row *row = c->node[i];
        const bool once = network->binding[i].footprint.once > 0;
        network->cost[i] = (struct cost){(double)row->forward,
                                         once ? (double)(row->saving - row->forward) : 0,
                                         {(double)row->backward_params, (double)row->backward_input}};
    }
}

enum status costs_read(const struct spec *spec, struct network *network, struct region *region, struct costs **costs)
{
    struct yaml_reader r = {region, errors_create(region), NULL};
    struct source *source;
    struct costs *c;
    NEW(region, c, 1);
    NEW(region, c->node, (size_t)network->graph->nodes);
    if (source_read(spec->costs_file, region, &source) != ST_OK)
        return fail(ST_SPEC, "costs.file: %s; %s", status_message(), remedy);
    const struct yaml_tree *root = yaml_tree_parse(source, 0, region, r.errors);
    if (root) read_root(&r, root, c);
    TRY(errors_report(r.errors, stderr));
    c->path = spec->costs_file;
    c->text = source->text;
    c->digest = digest_bytes(source->text, strlen(source->text));
    TRY(check_owner(c, spec, network, region));
    set_costs(c, network);
    *costs = c;
    return ST_OK;
}

/* ---- where it was measured ---- */

void costs_describe(struct costs *costs, const struct backend *backend, struct region *region)
{
    char cpu[256];
    costs->machine = region_text(region, "%s", machine_cpu(cpu));
    costs->isa = region_text(region, "%s", backend->isa ? backend->isa : "any");
    costs->backend = region_text(region, "%s", backend->kind->name);
    costs->libraries = region_text(region, "%s", backend->libraries ? backend->libraries : "none");
    costs->threads = backend->options.threads;
}

bool costs_here(const struct costs *costs, const struct backend *backend)
{
    region_auto *region = region_create();
    struct costs here;
    costs_describe(&here, backend, region);
    return !strcmp(costs_where(costs, region), costs_where(&here, region));
}

const char *costs_where(const struct costs *costs, struct region *region)
{
    return region_text(region, "%s, %s, %s, %" PRId64 " threads, %s", costs->machine, costs->isa, costs->backend,
                       costs->threads, costs->libraries);
}

char *costs_step_key(const struct spec *spec, const struct network *network, struct region *region)
{
    const struct graph *graph = network->graph;
    int64_t elements = 0;
    char shape[96];
    for (int i = 0; i < graph->parameters; i++) elements += graph->parameter[i].elements;
    return region_text(region, "%s %s; %d parameters of %" PRId64 " elements; %s, state %d", spec->data->name,
                       shape_print(&graph->value[0].shape, shape), graph->parameters, elements, spec->optimizer->name,
                       spec->optimizer->state(&spec->optimizer_settings));
}

/* ---- writing ---- */

const char costs_begin[] = "# times in ns, the least of all rounds; add and copy: of a MiB\n";

void costs_write(const void *of, FILE *out)
{
    const struct costs *costs = of;
    region_auto *region = region_create();
    fprintf(out, "%srematch_costs: %d\n", costs_begin, VERSION);
    yaml_write_settings(head_keys, costs, "", "\n", region, out);
    fprintf(out, "\nstep: {");
    yaml_write_settings(step_keys, &costs->step, "", ", ", region, out);
    fprintf(out, "}\nnodes:\n");
    for (int i = 0; i < costs->rows; i++) {
        fprintf(out, "  # %s\n  - {", costs->row[i].names);
        yaml_write_settings(row_keys, &costs->row[i], "", ", ", region, out);
        fprintf(out, "}\n");
    }
}

/* ---- predicting ---- */

double costs_predict(const struct costs *costs, const struct plan *plan)
{
    const struct costs_step *step = &costs->step;
    double time = plan->time + (double)(step->data + step->digest + step->optimizer);
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        const struct costs_row *row = costs->node[op->node];
        /* of what is also written once, the plan's time has the difference, at first forwards: it is not of saving */
        const bool saving = op->save && plan->network->binding[op->node].footprint.once == 0;
        if (op->kind == OP_FORWARD && saving) time += (double)(row->saving - row->forward);
        if (op->kind == OP_COPY) time += (double)step->copy * ((double)op->bytes / MIB);
        if (op->kind == OP_ACCUMULATE) time += (double)step->add * ((double)op->bytes / MIB);
    }
    return time;
}

char *costs_miss(double predicted, double measured, const char *called, char *text)
{
    const double percent = 100 * (predicted / measured - 1);
    *text = '\0';
    if (isfinite(percent))
        snprintf(text, 64, "%.1f %% %s than %s", fabs(percent), percent < 0 ? "less" : "more", called);
    return text;
}
