/* Contract: nodes with the same key are timed once and share a row, so that equal stages have equal times. */
#include "run/bench.h"

#include <math.h>

#include "base/units.h"
#include "console/terminal.h"
#include "console/work_line.h"
#include "job/batches.h"
#include "job/machine.h"
#include "run/job_plans.h"
#include "spec/spec.h"
#include "yaml/yaml_write.h"

struct bench {
    struct region *region; /* owns costs and names, not the specs */
    const struct measure_options *options;
    struct costs costs;
};

/* ---- nodes ---- */

/* Adds a row for every kind of node that has none; nodes[i]: one of the kind of row first + i. */
static void add_rows(struct bench *b, const struct network *network, int *nodes, int *count)
{
    const struct graph *graph = network->graph;
    const int had = b->costs.rows;
    for (int i = 0; i < graph->nodes; i++) {
        const char *key = measure_key(network, i, b->region);
        struct costs_row *known = (struct costs_row *)(uintptr_t)costs_find(&b->costs, key);
        if (!known) {
            region_grow(b->region, &b->costs.row, b->costs.rows, sizeof *b->costs.row);
            b->costs.row[b->costs.rows++] =
                (struct costs_row){.key = key, .names = region_text(b->region, "%s", graph->node[i].name)};
            nodes[(*count)++] = i;
        } else if (known - b->costs.row >= had) { /* a row of the other side keeps the names that it has there */
            known->names = region_text(b->region, "%s %s", known->names, graph->node[i].name);
        }
    }
}

/* ST_FAILED: measuring the nodes would need more memory than is left. */
static enum status check_memory(const struct network *network, size_t bytes)
{
    const struct machine_memory left = memory_left(network->backend);
    if (bytes <= left.bytes) return ST_OK;
    return fail(ST_FAILED, "memory: measuring needs %s for batch %lld, of the %s that %s leaves; nothing was run",
                BYTES_TEXT(bytes), (long long)network->graph->batch, BYTES_TEXT(left.bytes), left.limit);
}

static int64_t whole(double ns) { return (int64_t)(ns + 0.5); }

static enum status time_nodes(struct bench *b, const struct network *network)
{
    const int first = b->costs.rows;
    int *nodes, count = 0, rounds;
    struct measured *times;
    NEW(b->region, nodes, (size_t)network->graph->nodes);
    NEW(b->region, times, (size_t)network->graph->nodes);
    add_rows(b, network, nodes, &count);
    if (!count) return ST_OK; /* every kind of the baseline is one of the variant */
    TRY(check_memory(network, measure_bytes(network, nodes, count)));
    uint64_t start = clock_now_ns();
    work_line_begin();
    const enum status status = measure_nodes(network, nodes, count, b->options, times, &rounds);
    work_line_end();
    TRY(status);
    for (int i = 0; i < count; i++) {
        struct costs_row *row = &b->costs.row[first + i];
        *row = (struct costs_row){row->key,
                                  row->names,
                                  whole(fmax(times[i].forward, 1)),
                                  whole(times[i].saving),
                                  whole(times[i].backward[PART_INDEX_PARAMS]),
                                  whole(times[i].backward[PART_INDEX_INPUT])};
    }
    fprintf(stderr, "%d kinds of nodes, %d rounds, in %s\n", count, rounds, DURATION_TEXT(clock_now_ns() - start));
    if (!b->costs.rounds || rounds < b->costs.rounds) b->costs.rounds = rounds;
    return ST_OK;
}

/* ---- the rest of a step ---- */

static enum status time_data(const struct bench *b, const struct job *job, int64_t *least)
{
    struct batches *batches = batches_create(job);
    freed_auto float *x = allocate(1, job->graph->value[0].bytes);
    freed_auto int32_t *label = allocate((size_t)job->graph->batch, sizeof *label);
    enum status status = ST_OK;
    for (int i = 0; status == ST_OK && i < b->options->rounds_least; i++) {
        uint64_t start = clock_now_ns();
        status = batches_training(batches, i, x, label);
        int64_t took = (int64_t)(clock_now_ns() - start);
        *least = i && *least < took ? *least : took;
    }
    batches_destroy(batches);
    return status;
}

static enum status time_rest(struct bench *b, const struct job *job)
{
    const struct spec *spec = job->spec;
    struct costs_step *step = &b->costs.step;
    struct measured_rest rest;
    TRY(measure_rest(job->network, spec->optimizer, &spec->optimizer_settings, b->options, &rest));
    *step = (struct costs_step){.key = costs_step_key(spec, job->network, b->region),
                                .digest = whole(rest.digest),
                                .optimizer = whole(rest.optimizer),
                                .add = whole(rest.add),
                                .copy = whole(rest.copy)};
    return job->backend->kind->device ? ST_OK : time_data(b, job, &step->data); /* a device computes meanwhile */
}

/* ---- both sides ---- */

static enum status time_side(struct bench *b, struct spec *spec, bool baseline)
{
    job_auto *job = NULL;
    TRY(job_prepare(spec, &job));
    if (!baseline) job_warn(job);
    TRY(time_nodes(b, job->network));
    if (baseline) return ST_OK;
    costs_describe(&b->costs, job->backend, b->region);
    b->costs.batch = spec->batch;
    return time_rest(b, job);
}

/* Under the names of the YAML file. */
static json_t *figures_of(const struct costs *c, const char *out)
{
    const struct costs_step *s = &c->step;
    json_t *nodes = json_array();
    for (const struct costs_row *row = c->row; row < c->row + c->rows; row++)
        json_array_append_new(nodes, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "key", row->key, "names", row->names,
                                               "forward", (json_int_t)row->forward, "saving", (json_int_t)row->saving,
                                               "backward_params", (json_int_t)row->backward_params, "backward_input",
                                               (json_int_t)row->backward_input));
    return json_pack("{s:s?, s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:{s:s, s:I, s:I, s:I, s:I, s:I}, s:o}", "file", out,
                     "machine", c->machine, "isa", c->isa, "threads", (json_int_t)c->threads, "backend", c->backend,
                     "libraries", c->libraries, "batch", (json_int_t)c->batch, "rounds", (json_int_t)c->rounds, "step",
                     "key", s->key, "data", (json_int_t)s->data, "digest", (json_int_t)s->digest, "optimizer",
                     (json_int_t)s->optimizer, "add", (json_int_t)s->add, "copy", (json_int_t)s->copy, "nodes", nodes);
}

enum status bench_costs(const char *spec, int overrides, const char *const *override,
                        const struct measure_options *options, const char *out, json_t **figures)
{
    region_auto *region = region_create();
    struct bench b = {.region = region, .options = options};
    spec_auto *variant = NULL;
    TRY(spec_load(spec, overrides, override, &variant));
    TRY(spec_place(variant, time_side(&b, variant, false)));
    TRY(spec_place(variant, time_side(&b, variant->baseline, true)));
    if (out || !figures) TRY(yaml_write_whole(out, costs_write, &b.costs));
    if (figures) *figures = figures_of(&b.costs, out);
    if (out)
        fprintf(stderr, "costs of %d kinds of nodes in %s; a spec reads them by costs: {name: measured, file: %s}\n",
                b.costs.rows, out, out);
    return ST_OK;
}
