#include "search/optimum.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/work.h"
#include "search/limits.h"

/* Up to CHAIN_FEW alternatives every visit is solved at once. Up to CHAIN_MANY some visits are solved first, whose
 * front is a ceiling, and then every visit, for up to CHAIN_STEPS comparisons; of a whole front, which the ceiling
 * bounds less, up to CHAIN_WHOLE, unless stages are equal, whose fronts are short. Beyond, the front of some visits is
 * what there is: their passes end before one of some CHAIN_CUTS stages, or CHAIN_NEAR to where they begin, and a front
 * has up to CHAIN_POINTS points. A sketch is of every visit, unless there are too many, with fronts of
 * CHAIN_SKETCH_POINTS. */

static void look_build(struct option_search *search, const struct visit_option *option)
{
    envelope_add(&search->envelope, &option->cost);
}

static void look_take(struct option_search *search, const struct visit_option *option)
{
    double time;
    if (!alternative_at(&option->cost, search->peak, &time) || time != search->time) return;
    search->found = *option;
    search->taken = true;
}

/* Numbers the stretches that are solved: those that end where a pass may, or before stages whose backward comes early.
 * Returns how many there are, and one. */
static int number(const struct optimum *o, struct solution *solution)
{
    const int count = o->stages.count;
    int blocks = 1;
    NEW(solution->region, solution->block, (size_t)count * (size_t)count);
    for (int first = 0; first < count; first++)
        for (int last = count - 1, early = false; last >= first; last--) {
            const bool solved = last + 1 == count || visit_may_end(solution, first, last + 1) || early;
            const int shift = *stages_shift(&o->stages, first, last);
            int *block = &solution->block[(size_t)(first - shift) * (size_t)count + (size_t)(last - shift)];
            if (solved && !*block) *block = blocks++;
            early = solved && last + 1 < count && !visit_needs(o, last, last, 0);
        }
    return blocks;
}

/* Time that the stages from first on take with peak bytes, recomputations alone, at least. Points above the ceiling may
 * be missing. In a schedule with so many bytes, the ops of these stages are a visit of them with the value before them
 * besides. */
static double least_recomputation(const struct optimum *o, int first, size_t peak, const struct front *ceiling)
{
    const int count = o->stages.count;
    const double once = o->forward[count] - o->forward[first];
    const struct front *solved = visit_cell(o, &(struct visit){first, count - 1, false, 0});
    peak = peak < SIZE_MAX / 2 ? peak + o->stages.stage[first].input : SIZE_MAX;
    const int i = front_at(ceiling, peak), j = front_at(solved, peak);
    if (i < 0) return 0;
    double least = ceiling->point[i].time;
    if (j >= 0 && solved->point[j].time - once < least) least = solved->point[j].time - once;
    return least > 0 ? least : 0;
}

/* The ceiling less what the stages from first on add to it: of visits that end before first. */
static struct front ceiling_before(const struct optimum *o, int first, const struct front *ceiling,
                                   struct region *region)
{
    struct front before = {ceiling->count, NULL};
    double most = -INFINITY;
    NEW(region, before.point, (size_t)before.count);
    for (int i = ceiling->count - 1; i >= 0; i--) {
        const size_t end = i + 1 < ceiling->count ? ceiling->point[i + 1].peak - 1 : o->most;
        const double time = ceiling->point[i].time - least_recomputation(o, first, end, ceiling);
        if (time > most) most = time;
        before.point[i] = (struct point){ceiling->point[i].peak, most};
    }
    return before;
}

/* Solves the visits of a stretch. */
static void build_stretch(struct optimum *o, int first, int last, struct option_search *search)
{
    for (int outlives = o->stages.stage[first].outlives; outlives >= 0; outlives--)
        for (int tail = 1; tail >= 0; tail--) {
            const struct visit v = {first, last, outlives, tail}; /* TWICE reads the tails of 0 */
            search->envelope.above = visit_is_first(o, &v) ? o->forward[last + 1] - o->forward[first] : 0;
            visit_options(o, &v, search);
            envelope_take(&search->envelope, o->solution->region, visit_cell(o, &v));
        }
}

static void solution_destroy(struct solution *solution)
{
    if (solution) region_destroy(solution->region);
}

/* Solves the network; cut, ceiling: as in struct solution and struct envelope; points: of a front at most. NULL: that
 * takes more than steps comparisons. */
static struct solution *solve(struct optimum *o, const bool *cut, struct envelope envelope)
{
    const int count = o->stages.count;
    struct region *region = region_create();
    struct option_search search = {.look = look_build, .envelope = envelope};
    struct solution *solution = region_array(region, 1, sizeof *solution);
    struct front *before = NULL; /* by stage: the ceiling of visits that end before it */
    *solution = (struct solution){.region = region, .cut = cut, .most = envelope.most};
    NEW(region, solution->cell, (size_t)number(o, solution) * FRONTS);
    o->solution = solution;
    if (envelope.ceiling && o->distinct) NEW(region, before, (size_t)count + 1);
    if (before) before[count] = *envelope.ceiling;
    for (int i = 0; i < count * count && search.envelope.steps >= 0; i++) {
        /* rows from the last stage up; else by length, as the first of equal stretches is solved */
        const int row = o->distinct ? count - 1 - i / count : i % count;
        const int first = row, last = o->distinct ? i % count : row + i / count;
        if (last < first || last >= count || !solution->block[(size_t)first * (size_t)count + (size_t)last]) continue;
        if (before) search.envelope.ceiling = &before[last + 1];
        build_stretch(o, first, last, &search);
        work_report("comparing schedules", i + 1, count * count);
        if (before && last + 1 == count) before[first] = ceiling_before(o, first, envelope.ceiling, region);
    }
    const bool complete = search.envelope.steps >= 0;
    envelope_free(&search.envelope);
    if (complete) return solution;
    solution_destroy(solution);
    return o->solution = NULL;
}

static double count_alternatives(const struct optimum *o)
{
    const struct stage *stage = o->stages.stage;
    double all = 0;
    for (int first = 0; first < o->stages.count; first++)
        for (int last = first; last < o->stages.count; last++)
            if (!*stages_shift(&o->stages, first, last))
                all += (double)((stage[first].outlives + 1) * 2) * (last - first + 1);
    return all;
}

/* Leaves stretches apart where few are equal: then they can be solved in an order that has a lower ceiling. */
static void set_distinct(struct optimum *o)
{
    const size_t all = (size_t)o->stages.count * (size_t)o->stages.count;
    size_t shared = 0;
    for (size_t i = 0; i < all; i++) shared += o->stages.shift[i] > 0;
    o->distinct = shared * CHAIN_DISTINCT_SHARE < all;
    if (o->distinct) memset(o->stages.shift, 0, all * sizeof *o->stages.shift);
}

struct optimum *optimum_prepare(const struct network *network, enum rng_mode rng)
{
    struct region *region = region_create();
    struct optimum *o = region_array(region, 1, sizeof *o);
    *o = (struct optimum){.region = region, .network = network, .stages = variants_list(network, rng, region)};
    const size_t count = (size_t)o->stages.count;
    set_distinct(o);
    o->alternatives = count_alternatives(o);
    o->few = CHAIN_FEW;
    o->whole = CHAIN_WHOLE;
    o->many = CHAIN_MANY;
    o->steps = CHAIN_STEPS;
    NEW(o->region, o->reads, count * 2);
    NEW(o->region, o->reader, count);
    NEW(o->region, o->once, count + 1);
    NEW(o->region, o->forward, count + 1);
    for (int s = 0; s < o->stages.count; s++) {
        const struct stage *stage = &o->stages.stage[s];
        o->once[s + 1] = o->once[s] + stage->once;
        o->forward[s + 1] = o->forward[s] + stage->time;
    }
    for (int last = o->stages.count - 1; last >= 0; last--) {
        const struct stage *stage = &o->stages.stage[last];
        const struct variants *alone = &visit_run(o, last, last)->last[0];
        o->reads[2 * last] = alone->count && alone->variant[0].reads_input;
        o->reads[2 * last + 1] = stage->tail.reads;
        o->reader[last] = last + 1 == o->stages.count || o->reads[2 * last] ? last : o->reader[last + 1];
    }
    return o;
}

static const struct front *whole_front(const struct optimum *o)
{
    return visit_cell(o, &(struct visit){.last = o->stages.count - 1});
}

/* The front between low and most bytes as the network's. */
static void publish(struct optimum *o)
{
    const struct front *all = whole_front(o);
    double backward = 0;
    for (int i = 0; i < o->network->graph->nodes; i++) backward += network_backward_time(o->network, i);
    const int from = front_at(all, o->low);
    o->front.count = 0;
    NEW(o->solved, o->front.point, (size_t)all->count);
    for (int i = from < 0 ? 0 : from; i < all->count; i++)
        o->front.point[o->front.count++] = (struct point){all->point[i].peak, all->point[i].time + backward};
}

static int stages_a_cut(const struct optimum *o)
{
    const int stages = 1 + (o->stages.count - 1) / CHAIN_CUTS;
    return stages < CHAIN_CUT_STAGES ? CHAIN_CUT_STAGES : stages;
}

/* Of each so many stages in a row the one that reads the fewest bytes. */
static const bool *choose_cuts(const struct optimum *o, struct region *region)
{
    const int count = o->stages.count, each = stages_a_cut(o);
    bool *cut;
    NEW(region, cut, (size_t)count);
    for (int from = 1; from < count; from += each) {
        int best = from;
        for (int at = from; at < from + each && at < count; at++)
            if (o->stages.stage[at].input < o->stages.stage[best].input) best = at;
        cut[best] = true;
    }
    return cut;
}

/* What no point of use is above: the time of the front found, less what is not part of a visit; below low bytes that at
 * low. noise: of sums of the same times in another order; the least number above 0 where nothing takes time. */
static struct front ceiling_of(const struct optimum *o, struct region *region)
{
    const double noise = 1e-9;
    const struct front *all = whole_front(o);
    struct front ceiling = {0, NULL};
    const int at = front_at(all, o->low);
    NEW(region, ceiling.point, (size_t)all->count);
    for (int i = at < 0 ? 0 : at; i < all->count; i++) {
        ceiling.point[ceiling.count] = all->point[i];
        if (i == at) ceiling.point[ceiling.count].peak = 0;
        ceiling.point[ceiling.count++].time = all->point[i].time * (1 + noise) + DBL_MIN - o->forward[o->stages.count];
    }
    return ceiling;
}

static struct solution *solve_few(struct optimum *o)
{
    return solve(o, choose_cuts(o, o->solved),
                 (struct envelope){.most = o->most, .points = CHAIN_POINTS, .steps = INT64_MAX});
}

static struct solution *solve_sketch(struct optimum *o)
{
    return solve(o, NULL, (struct envelope){.most = o->most, .points = CHAIN_SKETCH_POINTS, .steps = INT64_MAX});
}

/* Some visits; every visit, as a sketch, where no schedule of those keeps the limit. */
static struct solution *solve_roughly(struct optimum *o)
{
    struct solution *few = solve_few(o);
    if (whole_front(o)->count || o->alternatives > o->many) return few;
    solution_destroy(few);
    return solve_sketch(o);
}

static void begin(struct optimum *o, size_t low, size_t most)
{
    region_destroy(o->solved);
    solution_destroy(o->solution);
    o->solution = NULL;
    o->solved = region_create();
    o->low = low;
    o->most = most;
}

void optimum_sketch(struct optimum *o, size_t most)
{
    if (o->alternatives <= o->few) {
        optimum_within(o, most);
        return;
    }
    begin(o, 0, most);
    o->exact = false;
    o->solution = o->alternatives > o->many ? solve_few(o) : solve_sketch(o);
    publish(o);
}

bool optimum_none_within(struct optimum *o, size_t most)
{
    if (o->alternatives <= o->few || o->alternatives > o->many) return false;
    begin(o, 0, most);
    o->exact = false;
    o->solution = solve_roughly(o);
    publish(o);
    return !o->front.count;
}

void optimum_between(struct optimum *o, size_t low, size_t most)
{
    struct solution *rough = NULL;
    struct front ceiling = {0, NULL};
    begin(o, low, most);
    if (o->alternatives > o->few) {
        rough = solve_roughly(o);
        ceiling = ceiling_of(o, o->solved);
    }
    o->exact = o->alternatives <= (most == SIZE_MAX && o->distinct ? o->whole : o->many) &&
               solve(o, NULL, (struct envelope){.most = most, .ceiling = &ceiling, .steps = o->steps});
    if (o->exact)
        solution_destroy(rough);
    else
        o->solution = rough ? rough : solve_few(o);
    publish(o);
}

const char *optimum_approximation(const struct optimum *o, struct region *region)
{
    if (o->exact) return NULL;
    if (!o->solution->cut)
        return region_text(region, "an approximation: fronts have up to %d points", CHAIN_SKETCH_POINTS);
    return region_text(
        region,
        "an approximation: checkpoints lie before one of %d stages or up to %d stages on, and fronts have "
        "up to %d points",
        stages_a_cut(o), CHAIN_NEAR, CHAIN_POINTS);
}

void optimum_within(struct optimum *o, size_t most) { optimum_between(o, 0, most); }

struct optimum *optimum_solve(const struct network *network, enum rng_mode rng)
{
    struct optimum *o = optimum_prepare(network, rng);
    optimum_within(o, SIZE_MAX);
    return o;
}

void optimum_destroy(struct optimum *optimum)
{
    if (!optimum) return;
    solution_destroy(optimum->solution);
    region_destroy(optimum->solved);
    region_destroy(optimum->region);
}

struct schedule_writer {
    const struct optimum *optimum;
    struct schedule *schedule;
};

static struct node_range nodes_of(const struct schedule_writer *w, int first, int last)
{
    const struct stage *stage = w->optimum->stages.stage;
    return (struct node_range){stage[first].nodes.from, stage[last].nodes.to};
}

static void write_forward(const struct schedule_writer *w, int first, int last)
{
    const struct node_range nodes = nodes_of(w, first, last);
    schedule_append(w->schedule, STEP_FORWARD, nodes.from, nodes.to);
}

/* The backward of stages [first, last], with the recomputations before it. */
static void write_backward(const struct schedule_writer *w, int first, int last, uint64_t recompute)
{
    const struct node_range nodes = nodes_of(w, first, last);
    const bool *marks = variants_unpack(recompute, nodes.to - nodes.from, w->schedule->region);
    stage_backward(w->optimum->network, nodes.from, nodes.to, marks, w->schedule);
}

/* A run that ends a visit; of a recomputation only the nodes that are needed. */
static void write_last(const struct schedule_writer *w, int first, int last, const struct variant *variant)
{
    const struct node_range nodes = nodes_of(w, first, last);
    if (last + 1 == w->optimum->stages.count) {
        schedule_append(w->schedule, STEP_FORWARD, nodes.from, nodes.to);
    } else {
        const bool *marks = variants_last_nodes(&w->optimum->stages, &nodes, variant->recompute, w->schedule->region);
        for (int i = nodes.from; i < nodes.to; i++)
            if (marks[i - nodes.from]) schedule_append(w->schedule, STEP_FORWARD, i, i + 1);
    }
    write_backward(w, first, last, variant->recompute);
}

/* The schedule of a visit by stages after v; of equal visits only the first was solved. */
static void write_visit(const struct schedule_writer *w, const struct visit *v, int by, size_t peak)
{
    const struct optimum *o = w->optimum;
    const struct front *cell = visit_cell(o, v);
    const struct point *point = &cell->point[front_at(cell, peak)];
    struct option_search search = {.look = look_take, .peak = peak, .time = point->time};
    const int shift = *stages_shift(&o->stages, v->first, v->last);
    const struct visit solved = {v->first - shift, v->last - shift, v->outlives, v->tail};
    visit_options(o, &solved, &search);
    if (!search.taken) { /* with peak bytes a faster one, which the front left out */
        search.peak = peak = point->peak;
        visit_options(o, &solved, &search);
    }
    assert(search.taken);
    const struct visit_option *f = &search.found;
    by += shift;
    const int first = solved.first + by, last = solved.last + by, at = f->at + by;
    switch (f->kind) {
    case RUN:
        write_forward(w, first, at);
        write_visit(w, &f->a, by, peak - f->cost.shift);
        write_backward(w, first, at, f->variant->recompute);
        break;
    case LAST:
        write_last(w, first, last, f->variant);
        break;
    case PASS:
        write_forward(w, first, at - 1);
        write_visit(w, &f->a, by, peak - f->cost.shift);
        write_visit(w, &f->b, by, peak);
        break;
    case TWICE:
        write_forward(w, first, last);
        write_visit(w, &f->a, by, peak);
        break;
    case EARLY:
    case READY:
        if (f->variant)
            write_last(w, last, last, f->variant);
        else
            write_backward(w, last, last, 0);
        if (f->cost.a) write_visit(w, &f->a, by, peak);
        break;
    }
}

void optimum_schedule(const struct optimum *o, int point, struct schedule *schedule)
{
    struct schedule_writer w = {.optimum = o, .schedule = schedule};
    write_visit(&w, &(struct visit){.last = o->stages.count - 1}, 0, o->front.point[point].peak);
}
