/* The first network is prepared by rule; then, turn by turn, one in which every pass is done in the next of its ways,
 * all of whose nodes are timed together.
 *
 * Contract: passes of one key are timed once and share one choice. The rule's choice is kept where none is faster. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "console/report_error.h"
#include "job/memory_fit.h"
#include "run/bench.h"
#include "spec/spec_load.h"
#include "yaml/yaml_write.h"

struct timed {
    const char *key, *names; /* of its nodes, for people */
    int node;                /* the first of its key */
    enum pass pass;
    int ways;
    struct way way[WAYS_MOST]; /* the rule's first */
    double ns[WAYS_MOST];
};

struct trials {
    struct region *region; /* owns all but the job */
    const struct measure_options *options;
    struct job *job;
    int count, nodes;
    struct timed *timed;
    int *node; /* those that are timed */
    int64_t rounds;
};

static struct timed *find(const struct trials *t, const char *key, enum pass pass)
{
    for (int i = 0; i < t->count; i++)
        if (t->timed[i].pass == pass && !strcmp(t->timed[i].key, key)) return &t->timed[i];
    return NULL;
}

/* *fresh: the node has a pass that no node before it has. */
static enum status collect_node(struct trials *t, int node, bool *fresh)
{
    const struct binding *binding = &t->job->network->binding[node];
    const char *name = t->job->graph->node[node].name, *key = graph_node_key(t->job->graph, node, false, t->region);
    if (!key) return ST_FAILED;
    for (enum pass pass = PASS_FORWARD; pass < PASSES; pass++) {
        struct timed next = {.key = key, .names = name, .node = node, .pass = pass};
        next.ways = binding->kernel->ways(binding->state, pass, next.way);
        struct timed *before = find(t, key, pass);
        if (!next.ways) continue;
        if (before && !(before->names = region_text(t->region, "%s %s", before->names, name))) return ST_FAILED;
        if (before) continue;
        for (int i = 0; i < next.ways; i++) next.ns[i] = INFINITY;
        t->timed[t->count++] = next;
        *fresh = true;
    }
    return ST_OK;
}

static enum status collect(struct trials *t)
{
    const struct network *network = t->job->network;
    const struct backend_kind *kind = network->backend->kind;
    const int nodes = network->graph->nodes;
    if (!(kind->conv_algorithms >> CONV_MEASURED & 1))
        return fail(ST_SPEC,
                    "bench: backend %s chooses convolutions by rule alone; conv.algorithm: measured is not its",
                    kind->name);
    NEW(t->region, t->timed, (size_t)nodes * PASSES);
    NEW(t->region, t->node, (size_t)nodes);
    for (int i = 0; i < nodes; i++) {
        bool fresh = false;
        if (!network->binding[i].kernel->ways) continue;
        TRY(collect_node(t, i, &fresh));
        if (fresh) t->node[t->nodes++] = i;
    }
    return t->count ? ST_OK
                    : fail(ST_SPEC, "bench: the network has no convolution that backend %s could do in several ways",
                           kind->name);
}

/* The time of a pass among those of its node. */
static double time_of(const struct measured *times, enum pass pass)
{
    return pass == PASS_FORWARD ? times->forward
                                : times->backward[pass == PASS_PARAMS ? PART_INDEX_PARAMS : PART_INDEX_INPUT];
}

static enum status time_nodes(struct trials *t, const struct network *network, int turn)
{
    struct measured *times;
    int rounds;
    NEW(t->region, times, (size_t)t->nodes);
    TRY(memory_fit_measuring(network, measure_bytes(network, t->node, t->nodes)));
    TRY(measure_nodes(network, t->node, t->nodes, t->options, times, &rounds));
    for (int i = 0, n = 0; i < t->count; i++) { /* both in the order of nodes */
        struct timed *timed = &t->timed[i];
        while (t->node[n] != timed->node) n++;
        double *least = &timed->ns[turn % timed->ways];
        *least = fmin(*least, time_of(&times[n], timed->pass));
    }
    if (!t->rounds || rounds < t->rounds) t->rounds = rounds;
    return ST_OK;
}

/* Every pass in its turn-th way, or in one again that was there before. */
static enum status take_turn(struct trials *t, int turn)
{
    struct backend *backend = t->job->backend;
    struct network *network;
    struct wisdom_row *rows;
    NEW(t->region, rows, (size_t)t->count);
    for (int i = 0; i < t->count; i++) {
        const struct timed *timed = &t->timed[i];
        rows[i] = (struct wisdom_row){timed->key, (int)timed->pass, timed->way[turn % timed->ways], "here"};
    }
    const struct wisdom wisdom = {"what was just listed", "this should not be", t->count, rows};
    backend->options.conv_algorithm = CONV_MEASURED;
    backend->options.wisdom = &wisdom;
    enum status status = network_prepare(t->job->graph, backend, &network);
    if (status == ST_OK) {
        status = time_nodes(t, network, turn);
        network_destroy(network);
    }
    backend->options.conv_algorithm = CONV_AUTO;
    backend->options.wisdom = NULL;
    return status;
}

static enum status take_turns(struct trials *t)
{
    int turns = 0;
    for (int i = 0; i < t->count; i++) turns = t->timed[i].ways > turns ? t->timed[i].ways : turns;
    for (int turn = 0; turn < turns; turn++) TRY(take_turn(t, turn));
    return ST_OK;
}

/* ---- the file ---- */

static bool write_file(const void *of, FILE *out)
{
    const struct trials *t = of;
    struct wisdom_file file = {.rounds = t->rounds, .lines = t->count};
    const char **names;
    if (NEWLY(t->region, file.line, (size_t)t->count) != ST_OK || NEWLY(t->region, names, (size_t)t->count) != ST_OK)
        return false;
    wisdom_file_describe(t->job->spec, t->job->backend, &file);
    for (int i = 0; i < t->count; i++) {
        const struct timed *timed = &t->timed[i];
        int best = 0;
        for (int w = 1; w < timed->ways; w++)
            if (timed->ns[w] < timed->ns[best]) best = w;
        names[i] = timed->names;
        file.line[i] = (struct wisdom_line){timed->key,    (int)timed->pass,         timed->way[best],
                                            timed->way[0], llround(timed->ns[best]), llround(timed->ns[0])};
    }
    return wisdom_file_write(&file, names, out);
}

static void tell(const struct trials *t, const char *out)
{
    int faster = 0;
    double rule = 0, best = 0;
    char was[UNIT_TEXT], is[UNIT_TEXT];
    for (int i = 0; i < t->count; i++) {
        double least = t->timed[i].ns[0];
        for (int w = 1; w < t->timed[i].ways; w++) least = fmin(least, t->timed[i].ns[w]);
        faster += least < t->timed[i].ns[0];
        rule += t->timed[i].ns[0];
        best += least;
    }
    fprintf(stderr, "%d passes, %lld rounds of each way: %d are faster than the rule's, together %s instead of %s\n",
            t->count, (long long)t->rounds, faster, duration_text((uint64_t)best, is),
            duration_text((uint64_t)rule, was));
    if (out) fprintf(stderr, "wisdom in %s; a spec reads it by conv: {algorithm: measured, wisdom: %s}\n", out, out);
}

/* ---- all of it ---- */

static enum status try_all(struct trials *t, struct spec *spec, const char *out)
{
    spec->backend_options.conv_algorithm = CONV_AUTO;
    TRY(job_prepare(spec, &t->job));
    report_warning(t->job->dataset->notice);
    enum status status = collect(t);
    if (status == ST_OK) status = take_turns(t);
    if (status == ST_OK) status = yaml_write_whole(out, write_file, t);
    if (status == ST_OK) tell(t, out);
    job_destroy(t->job);
    return status;
}

enum status bench_convolutions(const char *spec, int overrides, const char *const *override,
                               const struct measure_options *options, const char *out)
{
    struct trials t = {.region = region_create(), .options = options};
    struct spec *loaded;
    if (!t.region) return report_error(fail(ST_FAILED, "out of memory for measuring"));
    enum status status = spec_load(spec, overrides, override, false, &loaded);
    if (status == ST_OK) {
        status = report_error(try_all(&t, loaded, out));
        spec_destroy(loaded);
    }
    region_destroy(t.region);
    return status;
}
