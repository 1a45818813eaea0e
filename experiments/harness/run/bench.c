/* Contract: nodes of one key are timed once and share one row, so that stages that are equal stay equal. */
#include "run/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "console/report_error.h"
#include "job/batches.h"
#include "job/machine.h"
#include "job/memory_fit.h"
#include "spec/spec_load.h"
#include "yaml/yaml_write.h"

struct bench {
    struct region *region; /* owns costs and names, not the specs */
    const struct measure_options *options;
    struct costs costs;
    const char **names;   /* of each row's nodes, for people */
    const char *refined;  /* the file; NULL: nothing was timed before */
    struct costs *before; /* what it says, read for this side */
};

/* ---- nodes ---- */

static int find_key(const struct bench *b, const char *key)
{
    for (int i = 0; i < b->costs.rows; i++)
        if (!strcmp(b->costs.row[i].key, key)) return i;
    return -1;
}

/* Room for more rows. */
static enum status grow(struct bench *b, int more)
{
    struct costs_row *rows;
    const char **names;
    const size_t had = (size_t)b->costs.rows, room = had + (size_t)more;
    NEW(b->region, rows, room);
    NEW(b->region, names, room);
    if (had) memcpy(rows, b->costs.row, had * sizeof *rows), memcpy(names, b->names, had * sizeof *names);
    b->costs.row = rows;
    b->names = names;
    return ST_OK;
}

/* Gives every kind of node that has none a row; nodes[i]: one of the kind of row first + i. */
static enum status add_rows(struct bench *b, const struct network *network, int *nodes, int *count)
{
    const struct graph *graph = network->graph;
    const int had = b->costs.rows;
    TRY(grow(b, graph->nodes));
    struct costs_row *rows = b->costs.row;
    const char **names = b->names;
    for (int i = 0; i < graph->nodes; i++) {
        const char *key = measure_key(network, i, b->region);
        int row = key ? find_key(b, key) : -1;
        if (key && row < 0) {
            nodes[(*count)++] = i;
            row = b->costs.rows++;
            rows[row].key = key;
        }
        if (key && row < had) continue; /* named by the side that it was timed for */
        if (!key || !(names[row] = region_text(b->region, "%s%s%s", names[row] ? names[row] : "", names[row] ? " " : "",
                                               graph->node[i].name)))
            return ST_FAILED;
    }
    return ST_OK;
}

/* ---- what was timed before ---- */

static enum status read_refined(struct bench *b, struct spec *spec, const struct job *job)
{
    if (!b->refined) return ST_OK;
    spec->costs_file = b->refined;
    TRY(costs_read(spec, job->network, b->region, &b->before));
    if (costs_here(b->before, job->backend)) return ST_OK;
    const char *where = costs_where(b->before, b->region);
    return fail(ST_SPEC, "%s: measured on %s; not as here, so it cannot be refined here", b->refined,
                where ? where : "another machine");
}

static void lessen(int64_t *time, int64_t before) { *time = before < *time ? before : *time; }

static void refine_row(const struct bench *b, struct costs_row *row)
{
    const struct costs_row *before = b->before ? costs_find(b->before, row->key) : NULL;
    if (!before) return;
    lessen(&row->forward, before->forward);
    lessen(&row->saving, before->saving);
    lessen(&row->backward_params, before->backward_params);
    lessen(&row->backward_input, before->backward_input);
}

static void refine_step(struct bench *b)
{
    struct costs_step *step = &b->costs.step;
    const struct costs_step *before = b->before ? &b->before->step : step;
    lessen(&step->data, before->data);
    lessen(&step->digest, before->digest);
    lessen(&step->optimizer, before->optimizer);
    lessen(&step->add, before->add);
    lessen(&step->copy, before->copy);
}

/* The nodes of other specs, which were not timed now, stay in the file. */
static enum status keep_others(struct bench *b)
{
    const struct costs *before = b->before;
    if (!before) return ST_OK;
    TRY(grow(b, before->rows));
    for (int i = 0; i < before->rows; i++) {
        if (find_key(b, before->row[i].key) >= 0) continue;
        b->names[b->costs.rows] = "not of this spec";
        b->costs.row[b->costs.rows++] = before->row[i];
    }
    b->costs.rounds += before->rounds;
    if (b->costs.rounds > COSTS_ROUNDS_MOST) b->costs.rounds = COSTS_ROUNDS_MOST;
    return ST_OK;
}

/* ---- timing nodes ---- */

static int64_t whole(double ns) { return (int64_t)(ns + 0.5); }

static enum status time_nodes(struct bench *b, const struct network *network)
{
    const int first = b->costs.rows;
    int *nodes, count = 0, rounds;
    struct measured *times;
    NEW(b->region, nodes, (size_t)network->graph->nodes);
    NEW(b->region, times, (size_t)network->graph->nodes);
    TRY(add_rows(b, network, nodes, &count));
    if (!count) return ST_OK; /* the baseline has no kind of its own */
    TRY(memory_fit_measuring(network, measure_bytes(network, nodes, count)));
    uint64_t start = clock_now_ns();
    TRY(measure_nodes(network, nodes, count, b->options, times, &rounds));
    for (int i = 0; i < count; i++) {
        struct costs_row *row = &b->costs.row[first + i];
        *row =
            (struct costs_row){row->key, whole(fmax(times[i].forward, 1)), whole(times[i].saving),
                               whole(times[i].backward[PART_INDEX_PARAMS]), whole(times[i].backward[PART_INDEX_INPUT])};
        refine_row(b, row);
    }
    char took[UNIT_TEXT];
    fprintf(stderr, "%d kinds of nodes, %d rounds, in %s\n", count, rounds,
            duration_text(clock_now_ns() - start, took));
    if (!b->costs.rounds || rounds < b->costs.rounds) b->costs.rounds = rounds;
    return ST_OK;
}

/* ---- the rest of a step ---- */

static enum status time_data(const struct bench *b, const struct job *job, int64_t *least)
{
    const size_t bytes = job->graph->value[0].bytes, labels = (size_t)job->graph->batch * sizeof(int32_t);
    struct batches *batches;
    TRY(batches_create(job, &batches));
    void *block = aligned_alloc(ALIGNMENT, round_up(bytes) + round_up(labels));
    enum status status = block ? ST_OK : fail(ST_FAILED, "out of memory for a batch");
    for (int i = 0; status == ST_OK && i < b->options->rounds_least; i++) {
        uint64_t start = clock_now_ns();
        status = batches_training(batches, i, block, (int32_t *)(void *)((char *)block + round_up(bytes)));
        int64_t took = (int64_t)(clock_now_ns() - start);
        *least = i && *least < took ? *least : took;
    }
    free(block);
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
    if (!step->key) return ST_FAILED;
    return job->backend->kind->device ? ST_OK : time_data(b, job, &step->data); /* a device computes meanwhile */
}

static enum status describe(struct bench *b, const struct job *job)
{
    const struct backend *backend = job->backend;
    char cpu[256];
    struct costs *c = &b->costs;
    c->machine = region_text(b->region, "%s", machine_cpu(cpu));
    c->isa = region_text(b->region, "%s", backend->isa ? backend->isa : "any");
    c->backend = region_text(b->region, "%s", backend->kind->name);
    c->libraries = region_text(b->region, "%s", backend->libraries ? backend->libraries : "none");
    c->threads = backend->options.threads;
    c->batch = job->spec->batch;
    return c->machine && c->isa && c->backend && c->libraries ? ST_OK : ST_FAILED;
}

/* ---- both sides ---- */

static enum status time_side(struct bench *b, struct spec *spec, bool baseline)
{
    struct job *job = NULL;
    TRY(job_prepare(spec, &job));
    if (!baseline) report_warning(job->dataset->notice);
    enum status status = read_refined(b, spec, job);
    if (status == ST_OK) status = time_nodes(b, job->network);
    if (status == ST_OK && !baseline) status = describe(b, job);
    if (status == ST_OK && !baseline) status = time_rest(b, job);
    if (status == ST_OK && !baseline) refine_step(b);
    job_destroy(job);
    return status;
}

static bool write_costs(const void *of, FILE *out)
{
    const struct bench *b = of;
    return costs_write(&b->costs, b->names, out);
}

enum status bench_costs(const char *spec, int overrides, const char *const *override,
                        const struct measure_options *options, const char *refined, const char *out)
{
    struct bench b = {.region = region_create(), .options = options, .refined = refined};
    enum status status = b.region ? ST_OK : report_error(fail(ST_FAILED, "out of memory for measuring"));
    for (int baseline = 0; status == ST_OK && baseline < 2; baseline++) {
        struct spec *one = NULL;
        status = spec_load(spec, overrides, override, baseline, &one);
        if (status == ST_OK) status = report_error(time_side(&b, one, baseline));
        spec_destroy(one);
    }
    if (status == ST_OK) status = report_error(keep_others(&b));
    if (status == ST_OK) status = report_error(yaml_write_whole(out, write_costs, &b));
    if (status == ST_OK && out)
        fprintf(stderr, "costs of %d kinds of nodes in %s; a spec reads them by costs: {name: measured, file: %s}\n",
                b.costs.rows, out, out);
    region_destroy(b.region);
    return status;
}
