/* The largest batch that fits, for one policy after the other. An arena is nearly proportional to the batch, so each
 * plan says about how many samples the memory has room for; where that is no help, the batch is doubled until it does
 * not fit, and its range divided. A peak grows with the batch but for the little that placement and the choice of
 * kernels add, so two batches above the one found are planned, too; where one of them fits, the search goes on from
 * there.
 *
 * Plans of `optimal` take seconds. A schedule is one of any batch, so that of least memory, of one batch's front, says
 * by placing it alone about how far `optimal` gets: it plans there, and as a rule at one batch more. */
#include "analysis/policy_grid.h"

#include <math.h>

#include "base/units.h"
#include "policies/rivals.h"
#include "search/bounds.h"
#include "search/engines.h"
#include "spec/graph_build.h"
#include "spec/model.h"
#include "spec/spec_settings.h"

enum {
    BATCH_STEP = 8,
    PROBES = 2,
    ELEMENTS_LOG2 = 44,
    GUESSES = 24,
    GUESS_SHARE = 32,
    LEAST_SHARE = 1024,
    KNOWN_PLANS = 16
};

static const char too_slow[] = "every plan is slower than that";

/* The largest batch with which some setting of a policy fits. */
struct batch_row {
    const struct policy *policy;
    bool own;        /* the spec's policy as the spec sets it */
    int64_t fits;    /* 0: none does */
    int64_t fails;   /* the least batch above it that does not; 0: none was tried */
    struct trial at; /* of the least peak among the settings, at batch fits */
    size_t next;     /* the least peak at batch fails; 0: see why */
    const char *why; /* why batch fails has no plan, or none that is fast enough; NULL: its peak alone is too high */
    int64_t odd;     /* a batch that does not fit although fits, which is larger, does; 0: none was found */
    int64_t start;   /* the first one to plan */
    double guess;    /* by its last plan's least arena: the samples that the memory has room for; 0: unknown */
    int guesses;     /* that were planned */
    struct schedule known; /* of the front of batch start, the one of least memory that is fast enough; may be empty */
};

struct batch_search {
    const struct job *job;
    struct policy_grid grid;
    int rows;
    struct batch_row *row; /* the spec's own first */
    int64_t unit;          /* samples that batches are multiples of, counted in them until the end: the slices */
    int64_t most;          /* the largest batch that can be planned */
    int64_t best;          /* the largest that fits so far, of all rows */
};

/* The job with another batch: graph and network its own, everything else shared. */
static enum status prepare(const struct job *job, int64_t batch, struct job *sized)
{
    const int64_t own = job->spec->batch;
    *sized = *job;
    sized->graph = NULL;
    sized->network = NULL;
    if (job->spec->graph) {
        int at;
        TRY(graph_build_network(job->spec->graph, batch, &at, &sized->network));
        sized->graph = sized->network->graph;
        return ST_OK;
    }
    job->spec->batch = batch;
    enum status status = model_build(job->spec, job->dataset, &sized->graph);
    job->spec->batch = own;
    return status == ST_OK ? network_prepare(sized->graph, job->backend, &sized->network) : status;
}

/* Whether the row's plans have the memory as their budget: they fill it, whatever their batch. */
static bool fills(const struct batch_row *row) { return !row->own && row->policy->fills; }

/* The multiple of the largest power of two in [from, to]: kernels need less scratch for round batches. */
static int64_t roundest(int64_t from, int64_t to)
{
    int64_t step = 1;
    while (to / (2 * step) * (2 * step) >= from) step *= 2;
    return to / step * step;
}

/* The next batch to plan for a row; 0: its largest batch is found. */
static int64_t next_batch(struct batch_row *row, int64_t most)
{
    const int64_t low = row->fits + 1, high = row->fails ? row->fails - 1 : most;
    if (low > high) return 0;
    if (!row->fits && !row->fails && !row->known.steps) return row->start < most ? row->start : most;
    if (row->guess > 0 && row->guesses++ < GUESSES) {
        /* a guess by the least that is needed is the better one, and its plans take longer */
        const double at = fmin(fmax(row->guess, (double)low), (double)high);
        const double off = row->known.steps ? ldexp(1, row->guesses) / 8 - 1
                           : fills(row)     ? ldexp(at / LEAST_SHARE, row->guesses)
                                            : at / GUESS_SHARE;
        if (!(off > 0)) return (int64_t)at;
        return roundest((int64_t)ceil(fmax((double)low, at - off)), (int64_t)fmin((double)high, at + off));
    }
    if (row->fails) return roundest(low, high);
    return row->fits > most / 2 ? most : 2 * row->fits;
}

/* Guesses the largest batch by a plan. */
static void guess(const struct policy_grid *g, struct batch_row *row, const struct plan_numbers *plan, int64_t batch)
{
    const double room = (double)g->memory - (double)plan->static_bytes;
    row->guess = room > 0 && plan->arena ? (double)batch * room / (double)plan->arena : 0;
}

/* The same for a row whose plans fill the memory, by the least that the policy needs. */
static void guess_by_least(struct policy_grid *g, struct batch_row *row, int64_t batch)
{
    const struct policy_settings settings = policy_defaults(row->policy, g->region);
    plan_auto *plan = NULL;
    if (!isinf(g->slowdown) || job_plan(g->job, row->policy, &settings, NULL, &plan) != ST_OK) return;
    const struct plan_numbers numbers = plan_numbers(plan);
    guess(g, row, &numbers, batch);
}

/* Updates a row by the trials at batch. */
static void judge(struct policy_grid *g, struct batch_row *row, int64_t batch)
{
    const struct trial *least = policy_grid_least(g, row->policy, row->own, g->slowdown);
    if (least && (!fills(row) || row->known.steps)) guess(g, row, &least->plan, batch);
    if (fills(row) && !row->known.steps && !row->fits && !row->fails) guess_by_least(g, row, batch);
    if (least && least->plan.peak <= g->memory) {
        row->at = *least;
        row->fits = batch;
        return;
    }
    row->fails = batch;
    row->next = least ? least->plan.peak : 0;
    row->why = least ? NULL : g->refusals ? g->refusal[0].why : too_slow;
}

#define sized_auto struct job __attribute__((cleanup(release))) /* to be prepared */
static void release(struct job *sized)
{
    network_destroy(sized->network);
    graph_destroy(sized->graph);
}

/* Sets the known schedule, by a sketch of the front of batch start. */
static void know(struct batch_search *s, struct batch_row *row)
{
    sized_auto sized;
    if (prepare(s->job, row->start * s->unit, &sized) != ST_OK) return;
    const struct plan_options options = job_plan_options(&sized);
    struct pool *pool = rivals_pool(sized.network, &options, NULL);
    const double noise = 1e-9, slowest = bounds_find(sized.network, 1).floor * s->grid.slowdown * (1 + noise);
    const struct member *const *origin;
    engines_in_time(pool, slowest);
    const struct front front = pool_front(pool, pool->region, &origin);
    const int point = front_in_time(&front, slowest);
    row->known = schedule_empty(s->grid.region);
    if (point < front.count) pool_schedule(pool, origin[point], &row->known);
    pool_destroy(pool);
}

/* The numbers of the known schedule's plan at a batch; peak SIZE_MAX: it cannot be prepared. */
static struct plan_numbers plan_known(const struct batch_search *s, const struct batch_row *row, int64_t batch)
{
    sized_auto sized;
    if (prepare(s->job, batch * s->unit, &sized) != ST_OK)
        return (struct plan_numbers){.peak = SIZE_MAX, .arena = SIZE_MAX};
    const struct plan_options options = job_plan_options(&sized);
    plan_auto *plan = plan_build(sized.network, &row->known, &options);
    return plan_numbers(plan);
}

/* Guesses the largest batch at which the known schedule fits. */
static void guess_by_known(struct batch_search *s, struct batch_row *row)
{
    int64_t low = 0, high = s->most + 1, at = row->start;
    for (int i = 0; i < KNOWN_PLANS && low + 1 < high; i++) {
        const struct plan_numbers numbers = plan_known(s, row, at);
        *(numbers.peak <= s->grid.memory ? &low : &high) = at;
        guess(&s->grid, row, &numbers, at);
        at = (int64_t)fmin(row->guess, (double)high);
        if (at <= low || at >= high) at = low + (high - low) / 2;
    }
    row->guess = (double)low;
}

/* Plans batch for a row. What cannot be prepared does not fit. */
static enum status plan_row(struct batch_search *s, int64_t batch, struct batch_row *row)
{
    struct policy_grid *g = &s->grid;
    sized_auto sized;
    enum status status = prepare(s->job, batch * s->unit, &sized);
    g->job = &sized;
    g->trials = g->refusals = 0;
    if (status == ST_OK) {
        status = row->own ? policy_grid_own(g) : policy_grid_policy(g, row->policy);
        if (status == ST_OK) judge(g, row, batch);
    } else {
        row->fails = batch;
        row->why = region_text(g->region, "%s", status_message());
        status = ST_OK;
    }
    g->job = s->job;
    return status;
}

static enum status settle(struct batch_search *s, struct batch_row *row)
{
    for (int64_t batch; (batch = next_batch(row, s->most));) TRY(plan_row(s, batch, row));
    return ST_OK;
}

/* Where a batch larger than the one found fits after all, the search goes on from there. */
static enum status probe(struct batch_search *s, struct batch_row *row)
{
    const int64_t above[PROBES] = {row->fits + 2, (row->fits / BATCH_STEP + 1) * BATCH_STEP};
    for (int i = 0; i < PROBES && row->fits && row->fails; i++) {
        const struct batch_row before = *row;
        if (above[i] <= row->fails || above[i] > s->most) continue;
        if (row->known.steps && plan_known(s, row, above[i]).peak > s->grid.memory) continue;
        TRY(plan_row(s, above[i], row));
        if (row->fits == before.fits) {
            *row = before;
            continue;
        }
        row->odd = before.fails;
        row->fails = 0;
        return settle(s, row);
    }
    return ST_OK;
}

/* First the rows whose plans do not fill the memory: the others begin at their largest batch. */
static enum status find_rows(struct batch_search *s)
{
    for (int filling = 0; filling < 2; filling++)
        for (int i = 0; i < s->rows; i++) {
            struct batch_row *row = &s->row[i];
            if (fills(row) != filling) continue;
            row->start = filling && s->best ? s->best : s->job->spec->batch / s->unit;
            if (policy_grid_has_front(row->policy) && !row->own) know(s, row);
            if (row->known.steps) guess_by_known(s, row);
            TRY(settle(s, row));
            TRY(probe(s, row));
            if (row->fits > s->best) s->best = row->fits;
        }
    return ST_OK;
}

static int64_t most_batch(const struct job *job)
{
    int64_t most = (int64_t)setting_find(spec_keys, "batch")->max;
    for (int v = 0; v < job->graph->values; v++) {
        const int64_t elements = shape_elements(&job->graph->value[v].shape);
        if (elements > 0 && (INT64_C(1) << ELEMENTS_LOG2) / elements < most)
            most = (INT64_C(1) << ELEMENTS_LOG2) / elements;
    }
    return most;
}

/* ---- numbers ---- */

static json_t *json_of_stop(const struct batch_row *row, uint64_t memory)
{
    const long long fails = row->fails;
    if (!row->fits && row->why) return json_string(row->why);
    if (!row->fails) return json_string("no larger one can be planned");
    if (!row->next) return json_sprintf("batch %lld: %s", fails, row->why == too_slow ? "too slow" : "refused");
    return json_sprintf("batch %lld: %s too much", fails, BYTES_TEXT(row->next - memory));
}

static json_t *json_of_row(const struct batch_row *row, uint64_t memory)
{
    json_t *one = row->fits ? trial_json(&row->at) : json_object();
    PUT_ALL(one, KEY("policy", row->policy->name), KEY("own", json_boolean(row->own)), KEY("largest_batch", row->fits),
            KEY("fails_batch", row->fails ? json_integer(row->fails) : json_null()),
            KEY("fails_peak_bytes", row->next ? json_of_unsigned(row->next) : json_null()),
            KEY("fails_because", row->why), KEY("odd_batch", row->odd ? json_integer(row->odd) : json_null()),
            KEY("stopped_by", json_of_stop(row, memory)));
    return one;
}

static void add_notes(const struct batch_search *s, json_t *notes)
{
    const struct dataset *data = s->job->dataset;
    const struct batch_row *own = &s->row[0];
    if (own->fits)
        json_note(notes, "at batch %lld the spec's peak of %s is set by %s, with\n  %s", (long long)own->fits,
                  BYTES_TEXT(own->at.plan.peak), own->at.peak_op, own->at.peak_tensors);
    for (int i = 0; i < s->rows; i++)
        if (s->row[i].odd)
            json_note(notes, "note: the peak of %s does not always grow with the batch: %lld does not fit, %lld does",
                      s->row[i].policy->name, (long long)s->row[i].odd, (long long)s->row[i].fits);
    if (data && data->kind->sized && own->fits > data->count[SPLIT_TRAIN])
        json_note(notes, "note: data set %s has only %lld training samples", data->kind->name,
                  (long long)data->count[SPLIT_TRAIN]);
    if (s->job->costs)
        json_note(notes, "note: slowdowns are by flops: the measured costs are those of batch %lld",
                  (long long)s->job->spec->batch);
    json_note(notes, "note: the process and its libraries need memory besides");
}

enum status largest_batch_find(const struct job *job, uint64_t memory, double slowdown, struct region *region,
                               json_t *rows, json_t *notes)
{
    struct batch_search s = {
        .job = job,
        .grid = {.region = region, .memory = memory, .progress = stderr, .slowdown = slowdown},
        .unit = job->spec->slices > 1 ? job->spec->slices : 1,
    };
    s.most = most_batch(job) / s.unit;
    if (!job->spec->batch) return fail(ST_SPEC, "plan: --max-batch needs the key batch of the graph file");
    region_grow(region, &s.row, s.rows, sizeof *s.row);
    s.row[s.rows++] = (struct batch_row){.policy = job->spec->policy, .own = true};
    for (const struct policy *const *p = policy_table; *p; p++) {
        if (s.unit == 1 && (*p)->needs_slices) continue;
        region_grow(region, &s.row, s.rows, sizeof *s.row);
        s.row[s.rows++] = (struct batch_row){.policy = *p};
    }
    TRY(find_rows(&s));
    for (int i = 0; i < s.rows; i++) {
        int64_t *const batches[] = {&s.row[i].fits, &s.row[i].fails, &s.row[i].odd};
        for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) *batches[k] *= s.unit;
        ADD(rows, json_of_row(&s.row[i], memory));
    }
    add_notes(&s, notes);
    return ST_OK;
}
