/* Eviction under a limit: which storage is evicted, that lowering finds what was simulated, and that budgets are kept.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policies/policy.h"
#include "search/budget.h"
#include "search/dtr_simulation.h"
#include "search/optimum.h"
#include "tests/support/exhaustive_search.h"
#include "tests/support/policy_text.h"
#include "tests/support/random_chains.h"
#include "tests/support/simulated.h"
#include "tests/support/small_networks.h"
#include "tests/support/thinning.h"

static const struct plan_options usual = {.lower = {.drop_dead = true}};

/* Time 20. Nodes 2, 3 and 4 were evicted in this order, then 3 was recomputed: 2 and 4 are not resident.
 *
 *   node                  0       1       3       5       6       7
 *   cost, bytes, stale  12,2,20  2,2,16  2,6,10  1,4,9   12,7,8  1,3,1
 *   run with it           -      2: 1  2,4: 10  4: 9      -       -
 *   score                .300    .094*   .200    .278    .214    .333 */
static const struct abstract_stage evicting[] = {
    {.forward = 12, .output = 2}, {.forward = 2, .output = 2}, {.forward = 1, .output = 5},
    {.forward = 2, .output = 6},  {.forward = 9, .output = 5}, {.forward = 1, .output = 4},
    {.forward = 12, .output = 7}, {.forward = 1, .output = 3}, {.forward = 1, .output = 1}};
static const double touched[] = {0, 4, 5, 6, 7, 11, 12, 19};

static void appear(struct dtr_residency *r, int node, double time)
{
    r->clock = time;
    dtr_residency_appear(r, storage_of(r, node, STORAGE_Y));
}

Test(evict, the_least_score_is_evicted)
{
    struct network *network = chain_network(evicting, sizeof evicting / sizeof *evicting);
    const struct step_model model = step_model_create(network, &usual.lower, network->graph->region);
    struct dtr_residency *r = dtr_residency_create(&model, network->graph->region);
    for (int n = 0; n < 8; n++) {
        r->forward = n + 1;
        appear(r, n, touched[n]);
    }
    for (int n = 2; n <= 4; n++) dtr_residency_leave(r, storage_of(r, n, STORAGE_Y));
    appear(r, 3, 10);
    r->clock = 20;
    dtr_residency_evict(r);
    for (int n = 0; n < 8; n++) cr_expect(storage_of(r, n, STORAGE_Y)->resident == (n != 1 && n != 2 && n != 4));
    abstract_destroy(network);
}

/* The definition of the cost, from what is resident and read now: node and all that must run to compute its inputs
 * and, for a value, all that will run again and needs it. */
static void mark_above(const struct dtr_residency *r, int node, bool *runs)
{
    runs[node] = true;
    for (int k = 0; k < r->model->network->graph->node[node].layer->inputs; k++) {
        const struct storage *x = storage_of_input(r, &r->model->network->graph->node[node], k);
        if (x && !x->resident) mark_above(r, r->model->network->graph->node[node].inputs[k] - 1, runs);
    }
}

static bool mark_below(const struct dtr_residency *r, int node, bool *runs)
{
    bool any = false;
    for (int n = node + 1; n < r->forward && n < r->backward; n++) {
        const struct storage *y = storage_of(r, n, STORAGE_Y), *saved = storage_of(r, n, STORAGE_SAVED);
        const struct node *reader = &r->model->network->graph->node[n];
        bool reads = false;
        for (int k = 0; k < reader->layer->inputs; k++) reads |= reader->inputs[k] == node + 1;
        if (!reads) continue;
        const bool needed = !y->resident && mark_below(r, n, runs);
        const bool again = needed || (!y->resident && y->uses > 0) || (!saved->resident && saved->uses > 0);
        runs[n] |= again;
        any |= again;
    }
    return any;
}

static double score_of(const struct dtr_residency *r, int storage)
{
    bool runs[SKETCH_NODES_MAX] = {false};
    const struct storage *s = &r->storage[storage];
    const double stale = r->clock - s->time;
    double cost = 0;
    mark_above(r, storage / STORAGES, runs);
    if (storage % STORAGES == STORAGE_Y && r->score != DTR_MSPS) mark_below(r, storage / STORAGES, runs);
    for (int n = 0; n < r->model->network->graph->nodes; n++) cost += runs[n] ? r->model->network->cost[n].forward : 0;
    if (r->score == DTR_MSPS) return cost / (double)s->bytes;
    return stale > 0 ? cost / ((double)s->bytes * stale) : INFINITY;
}

static int storage_to_evict(const struct dtr_residency *r)
{
    int best = -1;
    for (int i = 0; i < r->forward * STORAGES; i++) {
        const struct storage *s = &r->storage[i];
        if (!s->resident || s->locks || !s->bytes) continue;
        const double least = best < 0 ? INFINITY : score_of(r, best), score = score_of(r, i);
        if (best < 0 || score < least || (score == least && s->order < r->storage[best].order)) best = i;
    }
    return best;
}

/* Something that happens to a storage in a step, and an eviction: returns whether there was one. */
static bool disturb(struct dtr_residency *r, struct source *source)
{
    const int at = (int)draw_below(source, (uint32_t)(r->forward * STORAGES));
    struct storage *s = &r->storage[at];
    r->clock += draw_below(source, 5);
    if (!s->resident)
        draw_below(source, 2) ? dtr_residency_appear(r, s) : dtr_residency_expect(r, s);
    else if (s->locks)
        dtr_residency_read(r, s);
    else if (s->uses)
        dtr_residency_lock(r, s);
    else
        dtr_residency_leave(r, s);
    if (!draw_below(source, 40) && r->backward > 1) dtr_residency_close(r, r->backward - 1);
    const int due = storage_to_evict(r);
    if (due < 0 || draw_below(source, 2)) return false;
    dtr_residency_evict(r);
    cr_assert(!r->storage[due].resident, "storage %d of node %d stays", due % STORAGES, due / STORAGES);
    return true;
}

/* Whatever happened before, from each state: costs that were kept are those that the definition gives. */
Test(evict, the_least_score_is_evicted_after_any_change)
{
    struct source source = {.seed = 77};
    int evictions = 0;
    for (int c = 0; c < 200; c += THINNING) {
        struct sketch s;
        sketch_random(&s, &source, 3 + c % 30);
        for (int n = 0; n < s.graph->nodes; n++) s.network->cost[n].forward = 1 + draw_below(&source, 9);
        const struct step_model model = step_model_create(s.network, &usual.lower, s.graph->region);
        struct dtr_residency *r = dtr_residency_create(&model, s.graph->region);
        r->score = c % 8 ? DTR_SCORE : DTR_MSPS;
        while (r->forward < s.graph->nodes) {
            const int node = r->forward++;
            dtr_residency_appear(r, storage_of(r, node, STORAGE_Y));
            for (int i = 0; i < 12; i++) evictions += disturb(r, &source);
        }
        for (int i = 0; i < 300; i++) evictions += disturb(r, &source);
        sketch_end(&s);
    }
    cr_assert(evictions > 10000 / THINNING, "%d", evictions);
}

/* Node 1 may write over node 0's value, of 16 KiB, and takes 4 KiB of scratch. Where that value is not read again,
 * it does: 20 KiB. Where its backward reads it, beside a gradient of 16 KiB, it does so only where two
 * values and the scratch are too much, and node 0 runs again. */
static const struct {
    unsigned reads;
    size_t limit, peak;
    const char *schedule;
} in_place[] = {{0, SIZE_MAX, 20480, "F[0,4) B[0,4)"},
                {0, 20480, 20480, "F[0,4) B[0,4)"},
                {READS_X, SIZE_MAX, 36864, "F[0,4) B[0,4)"},
                {READS_X, 36863, 32768, "F[0,4) B[2,4) F[0,1) B[0,2)"}};

Test(evict, outputs_overwrite_inputs_as_by_hand)
{
    for (size_t i = 0; i < sizeof in_place / sizeof *in_place; i++) {
        struct sketch s;
        sketch_begin(&s, 1024);
        const struct footprint over = {
            .reads = {0, in_place[i].reads}, .forward_scratch = 4096, .y_over_x = true, .dx_over_dy = true};
        int value = sketch_add(&s, &(struct sketch_node){{0, -1}, 16384, true, false, {.split = true}});
        value = sketch_add(&s, &(struct sketch_node){{value, -1}, 16384, false, false, over});
        value = sketch_add(&s, &(struct sketch_node){{value, -1}, 256, false, false, {.split = true}});
        sketch_finish(&s, value);
        struct schedule schedule = schedule_empty(s.graph->region);
        const struct step_model model = step_model_create(s.network, &usual.lower, s.graph->region);
        const size_t peak = dtr_simulate(&model, DTR_SCORE, in_place[i].limit, &schedule);
        const char *text = schedule_print(&schedule, s.graph->region);
        cr_expect(!strcmp(text, in_place[i].schedule) && peak == in_place[i].peak, "case %zu: %zu, %s", i, peak, text);
        sketch_end(&s);
    }
}

/* Bytes that live longer where their nodes are recomputed: what first forwards write once and no backward reads. */
static size_t unread_bytes(const struct network *network, const struct plan_options *options)
{
    struct region *region = region_create();
    const struct schedule all = schedule_store_all(network->graph->nodes, region);
    const struct lowered l = lower(network, &all, &options->lower, region);
    size_t bytes = 0;
    for (int i = 0; i < l.ops; i++)
        if (l.op[i].once >= 0 && l.buffer[l.op[i].once].death == i && l.op[i].kind == OP_FORWARD)
            bytes += l.buffer[l.op[i].once].bytes;
    region_destroy(region);
    return bytes;
}

/* Limits from none to where there is no schedule any more: returns how many there were with one. */
static int check_limits(const struct network *network, enum rng_mode rng, const char *what)
{
    const struct plan_options options = {.lower = {.drop_dead = true, .rng = rng}};
    struct region *region = region_create();
    const struct step_model model = step_model_create(network, &options.lower, region);
    const size_t unread = unread_bytes(network, &options);
    int count = 0;
    for (size_t limit = SIZE_MAX, all = 0; count < 20; limit = limit == SIZE_MAX ? all : limit - all / 16) {
        struct schedule schedule = schedule_empty(region);
        const size_t peak = dtr_simulate(&model, DTR_SCORE, limit, &schedule);
        cr_assert(peak || limit < SIZE_MAX, "%s", what);
        if (!peak) break;
        struct plan *plan = plan_build(network, &schedule, &options);
        if (limit == SIZE_MAX) {
            all = peak;
            cr_assert(!plan->recomputations && plan->live_peak == peak, "%s: %zu of %zu bytes", what, plan->live_peak,
                      peak);
        }
        cr_assert(peak <= limit && plan->live_peak <= peak + unread, "%s: limit %zu, simulated %zu, live %zu: %s", what,
                  limit, peak, plan->live_peak, plan->schedule);
        cr_assert(!plan->lowered.dropped, "%s: a dead recomputation: %s", what, plan->schedule);
        cr_assert(simulate_plan(plan) == ST_OK, "%s: %s: %s", what, status_message(), plan->schedule);
        plan_destroy(plan);
        count++;
    }
    region_destroy(region);
    return count;
}

/* Lowering never finds more than was simulated, but for masks; without evictions, the same to the byte. */
Test(evict, simulated_peak_bounds_the_lowered_one)
{
    struct source source = {.seed = 20};
    int tried = 0;
    for (int c = 0; c < 240; c += THINNING) {
        struct sketch sketch;
        sketch_random(&sketch, &source, 2 + c % 13);
        tried += check_limits(sketch.network, c % 3 ? RNG_COUNTER : RNG_MASK, "network");
        sketch_end(&sketch);
        struct abstract_stage stage[30];
        chain_draw(&source, &narrow_limits, 1 + c % 30, stage);
        struct network *network = chain_network(stage, 1 + c % 30);
        tried += check_limits(network, RNG_COUNTER, "chain");
        abstract_destroy(network);
    }
    for (const struct net *net = nets; net->name; net++)
        for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_BITS; relu++) {
            struct bound_net b = net_bind(net, relu);
            for (enum rng_mode rng = RNG_COUNTER; rng <= RNG_MASK; rng++)
                tried += check_limits(b.network, rng, net->name);
            net_release(&b);
        }
    cr_assert(tried > 1500 / THINNING, "%d", tried);
}

/* The plan of a budget, NULL where it is refused: then *least is the budget that the refusal names. */
static struct plan *plan_of(const struct network *network, uint64_t budget, uint64_t *least)
{
    char text[64], named[64];
    snprintf(text, sizeof text, "budget=%llu", (unsigned long long)budget);
    struct plan *plan = policy_text_try(network, "dtr", text, &usual);
    if (plan) {
        cr_assert(plan_peak(plan) <= budget, "%zu with %s", plan_peak(plan), text);
        return plan;
    }
    const char *at = strstr(status_message(), "found kept is ");
    cr_assert(at && sscanf(at, "found kept is %63[^, ]", named) == 1, "%s", status_message());
    cr_assert(!text_to_bytes(named, least) && *least > budget, "%s", status_message());
    return NULL;
}

/* How often dtr is faster than `optimal` with as many live bytes, since it is not limited to a class. */
struct tally {
    int kept, refused, equal, faster, smaller;
    double gain;
};

static void compare(const struct optimum *o, const struct plan *plan, struct tally *t)
{
    int at = front_at(&o->front, plan->live_peak);
    double time = at >= 0 ? o->front.point[at].time : 0;
    t->kept++;
    t->smaller += at < 0;
    t->equal += time == plan->time;
    t->faster += time > plan->time;
    if (time > plan->time && time / plan->time - 1 > t->gain) t->gain = time / plan->time - 1;
}

/* Ten budgets of a chain, from too little to enough. */
static void try_budgets(const struct abstract_stage *stage, int stages, struct source *source, struct tally *tally)
{
    struct network *network = chain_network(stage, stages);
    struct optimum *o = optimum_solve(network, RNG_COUNTER);
    size_t low = o->front.point[0].peak, high = o->front.point[o->front.count - 1].peak;
    for (int k = 0; k < 10; k++) {
        uint64_t budget = low - low / 50 + draw_below(source, (uint32_t)(high - low) + 10), least;
        if (!budget) continue;
        struct plan *plan = plan_of(network, budget, &least);
        if (!plan) {
            tally->refused++;
            plan = plan_of(network, least, &least);
            cr_assert(plan, "the budget named is refused: %s", status_message());
        }
        compare(o, plan, tally);
        bool short_enough = stages <= EXHAUSTIVE_STAGES_MAX;
        int64_t best = short_enough ? exhaustive_time(stage, stages, (int64_t)plan->live_peak, ANY) : 0;
        cr_assert(best >= 0 && plan->time >= (double)best, "%g, but no schedule takes less than %lld", plan->time,
                  (long long)best);
        plan_destroy(plan);
    }
    optimum_destroy(o);
    abstract_destroy(network);
}

/* Every plan is within its budget and no faster than any schedule can be; a budget that a refusal names is kept. */
Test(evict, random_budgets_are_kept)
{
    struct source source = {.seed = 9};
    struct tally t = {0};
    for (int c = 0; c < 120; c += THINNING) {
        struct abstract_stage stage[20];
        chain_draw(&source, &narrow_limits, 1 + c % 20, stage);
        try_budgets(stage, 1 + c % 20, &source, &t);
    }
    printf("dtr: %d budgets kept, %d refused; `optimal` at the same live peak is as fast as %d of the plans and slower "
           "than %d, by at most %.2f %%; %d need less than it can\n",
           t.kept, t.refused, t.equal, t.faster, 100 * t.gain, t.smaller);
}

/* N equal stages in memory of order sqrt(N) take time of order N (the paper's theorem). */
Test(evict, time_is_linear_in_the_root_of_the_memory)
{
    static const struct abstract_stage unit = {.forward = 1, .backward = 1, .output = 1, .gradient = 1};
    static struct abstract_stage stage[1024];
    for (int stages = 64, root = 8; stages <= 1024; stages *= 4, root *= 2) {
        for (int i = 0; i < stages; i++) stage[i] = unit;
        struct network *network = chain_network(stage, stages);
        struct region *region = region_create();
        const struct step_model model = step_model_create(network, &usual.lower, region);
        struct schedule schedule = schedule_empty(region);
        long forwards = 0;
        cr_assert(dtr_simulate(&model, DTR_SCORE, 2 * (size_t)root, &schedule));
        for (size_t i = 0; i < schedule.steps; i++)
            if (schedule.step[i].kind == STEP_FORWARD) forwards += schedule.step[i].to - schedule.step[i].from;
        printf("%d stages in %d bytes: %ld forwards\n", stages, 2 * root, forwards);
        cr_expect(forwards <= 3 * stages);
        region_destroy(region);
        abstract_destroy(network);
    }
}
