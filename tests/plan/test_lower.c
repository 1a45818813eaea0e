/* Lowering: lifetimes against some written by hand; and, by running plans on symbols (simulate.h), against the meaning
 * of a schedule: for every policy on real networks, and for random words on random networks with any footprints. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/planned_networks.h"
#include "tests/support/policy_cases.h"
#include "tests/support/simulated.h"
#include "tests/support/thinning.h"

/* Footprints as real layers have them. */
static const struct footprint dense = {.reads = {READS_X, 0}, .split = true};
static const struct footprint dense_relu = {.reads = {READS_X | READS_Y, 0}, .split = true, .writes_dy = true};
static const struct footprint pool = {.saved = 300, .reads = {0, READS_SAVED}};
static const struct footprint in_place = {.y_over_x = true, .dx_over_dy = true};
static const struct footprint sum = {.y_over_x = true, .passes_gradient = true};

static int node(struct sketch *s, const struct footprint *footprint, int x0, int x1, size_t bytes, bool parameters)
{
    return sketch_add(s, &(struct sketch_node){{x0, x1}, bytes, parameters, footprint == &in_place, *footprint});
}

/* Three dense layers: 0 1 2, loss 3. */
static int chain(struct sketch *s)
{
    int v = node(s, &dense, 0, -1, 1024, true);
    v = node(s, &dense, v, -1, 2048, true);
    return node(s, &dense, v, -1, 512, true);
}

/* 0 dense, 1 pool with indices, 2 dense. */
static int pooled(struct sketch *s)
{
    int v = node(s, &dense, 0, -1, 2048, true);
    v = node(s, &pool, v, -1, 1024, false);
    return node(s, &dense, v, -1, 512, true);
}

/* 0 dense, 1 dropout, 2 dense. */
static int dropped(struct sketch *s)
{
    int v = node(s, &dense, 0, -1, 1024, true);
    v = node(s, &in_place, v, -1, 1024, false);
    return node(s, &dense, v, -1, 512, true);
}

/* 0 dense, then 1 and 2 with relu, both reading 0, and 3 their sum: its gradient goes to both arms, which write on it.
 */
static int arms(struct sketch *s)
{
    int v = node(s, &dense, 0, -1, 1024, true);
    int a = node(s, &dense_relu, v, -1, 1024, true), b = node(s, &dense_relu, v, -1, 1024, true);
    return node(s, &sum, a, b, 1024, false);
}

static const struct by_hand {
    int (*build)(struct sketch *);
    const char *schedule;
    bool drop_dead;
    enum rng_mode rng;
    const char *ops, *buffers;
} by_hand[] = {
    /* y1 is read last by the parameters' half of 2, so 2's dx (g1) may have its place; a gradient dies with its half */
    {chain, "F[0,4) B[0,4)", true, RNG_COUNTER, "F0 F1 F2 F3 B3i B2p B2i B1p B1i B0p",
     "y0[0,7] y1[1,5] y2[2,4] y3[3,3] g2[4,6] g1[6,8] g0[8,9]"},
    /* 0 recomputed: its first incarnation dies with its last reader before the recomputation */
    {chain, "F[0,4) B[2,4) F[0,1) B[0,2)", true, RNG_COUNTER, "F0 F1 F2 F3 B3i B2p B2i R0 B1p B1i B0p",
     "y0[0,1] y1[1,5] y2[2,4] y3[3,3] g2[4,6] g1[6,9] y0[7,8] g0[9,10]"},
    /* a whole segment is recomputed; no op reads the last node's y, so its recomputation is dead */
    {chain, "F[0,4) B[2,4) F[0,2) B[0,2)", true, RNG_COUNTER, "F0 F1 F2 F3 B3i B2p B2i R0 B1p B1i B0p",
     "y0[0,1] y1[1,5] y2[2,4] y3[3,3] g2[4,6] g1[6,9] y0[7,8] g0[9,10]"},
    {chain, "F[0,4) B[2,4) F[0,2) B[0,2)", false, RNG_COUNTER, "F0 F1 F2 F3 B3i B2p B2i R0 R1 B1p B1i B0p",
     "y0[0,1] y1[1,5] y2[2,4] y3[3,3] g2[4,6] g1[6,10] y0[7,9] y1[8,8] g0[10,11]"},
    /* recomputations that feed only dead recomputations are dead */
    {chain, "F[0,4) B[2,4) F[0,3) B[0,2)", true, RNG_COUNTER, "F0 F1 F2 F3 B3i B2p B2i R0 B1p B1i B0p",
     "y0[0,1] y1[1,5] y2[2,4] y3[3,3] g2[4,6] g1[6,9] y0[7,8] g0[9,10]"},
    {chain, "F[0,4) B[0,4) F[0,3)", true, RNG_COUNTER, "F0 F1 F2 F3 B3i B2p B2i B1p B1i B0p",
     "y0[0,7] y1[1,5] y2[2,4] y3[3,3] g2[4,6] g1[6,8] g0[8,9]"},
    /* the pool's x dies once pooled: its backward reads indices */
    {pooled, "F[0,4) B[0,4)", true, RNG_COUNTER, "F0 F1s F2 F3 B3i B2p B2i B1i B0p",
     "y0[0,1] y1[1,5] s1[1,7] y2[2,4] y3[3,3] g2[4,6] g1[6,7] g0[7,8]"},
    /* recomputed before its backward: only the recomputation saves */
    {pooled, "F[0,4) B[2,4) F[0,2) B[0,2)", true, RNG_COUNTER, "F0 F1 F2 F3 B3i B2p B2i R0 R1s B1i B0p",
     "y0[0,1] y1[1,5] y2[2,4] y3[3,3] g2[4,6] g1[6,9] y0[7,8] y1[8,8] s1[8,9] g0[9,10]"},
    /* dropout in place, forward and backward: one buffer for both values, one for both gradients */
    {dropped, "F[0,4) B[0,4)", true, RNG_COUNTER, "F0 F1 F2 F3 B3i B2p B2i B1i B0p",
     "y0[0,5] y2[2,4] y3[3,3] g2[4,6] g1[6,8]"},
    /* with a stash that its backward reads */
    {dropped, "F[0,4) B[0,4)", true, RNG_STASH, "F0 F1 F2 F3 B3i B2p B2i B1i B0p",
     "y0[0,5] s1[1,7] y2[2,4] y3[3,3] g2[4,6] g1[6,8]"},
    /* 2 writes on the sum's gradient (g3, its own and 1's as well) while 1 has not read it: a copy (g2); 1, the last,
     * writes on the gradient itself. The two contributions to 0's gradient are added, over the first. */
    {arms, "F[0,5) B[0,5)", true, RNG_COUNTER, "F0 F1 F2 F3 F4 B4i copy2 B2p B2i B1p B1i sum1 B0p",
     "y0[0,9] y1[1,9] y2[2,7] y3[3,5] y4[4,4] g3[5,10] g2[6,8] g0[8,12] g0[10,11]"},
};

static void print_op(const struct op *op, char *to)
{
    static const char *const part[] = {"", "p", "i", "pi"};
    if (op->kind == OP_FORWARD) sprintf(to, "%s%d%s ", op->recompute ? "R" : "F", op->node, op->save ? "s" : "");
    if (op->kind == OP_BACKWARD) sprintf(to, "B%d%s ", op->node, part[op->parts]);
    if (op->kind == OP_COPY) sprintf(to, "copy%d ", op->node);
    if (op->kind == OP_ACCUMULATE) sprintf(to, "sum%d ", op->node);
}

static void expect(const char *what, const char *schedule, char *found, const char *expected)
{
    if (*found) found[strlen(found) - 1] = '\0';
    cr_expect(!expected || !strcmp(found, expected), "%s of %s:\n  %s\nexpected\n  %s", what, schedule, found,
              expected);
}

Test(lower, lifetimes_written_by_hand)
{
    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++) {
        const struct by_hand *t = &by_hand[i];
        struct sketch sketch;
        struct schedule schedule;
        struct plan_options options = {.lower = {t->drop_dead, t->rng}};
        char ops[1024] = "", buffers[1024] = "";
        sketch_begin(&sketch, 1024);
        sketch_finish(&sketch, t->build(&sketch));
        cr_assert(schedule_parse(t->schedule, sketch.graph->region, &schedule) == ST_OK);
        struct plan *plan = plan_build(sketch.network, &schedule, &options);
        for (int k = 0; k < plan->lowered.ops; k++) print_op(&plan->lowered.op[k], ops + strlen(ops));
        for (int k = 0; k < plan->lowered.buffers; k++) {
            const struct buffer *b = &plan->lowered.buffer[k];
            sprintf(buffers + strlen(buffers), "%c%d[%d,%d] ", "ysgt"[b->category], b -> node, b -> birth, b -> death);
        }
        expect("ops", t->schedule, ops, t->ops);
        expect("buffers", t->schedule, buffers, t->buffers);
        cr_expect(simulate_plan(plan) == ST_OK, "%s: %s", t->schedule, status_message());
        plan_destroy(plan);
        sketch_end(&sketch);
    }
}

/* A forward of the schedule: is what it wrote, value or saved tensors, read before it is written again? */
struct turn {
    int node;
    bool first, dead, read;
};

/* Goes through the schedule once, the dead left out, and marks which forwards are read. */
static void mark_read(const struct network *network, const struct schedule *schedule, struct turn *turn,
                      struct turn **newest)
{
    size_t t = 0;
    for (size_t i = 0; i < schedule->steps; i++) {
        const struct step *s = &schedule->step[i];
        for (int k = 0; k < s->to - s->from; k++) {
            bool forward = s->kind == STEP_FORWARD;
            const struct node *n = &network->graph->node[forward ? s->from + k : s->to - 1 - k];
            struct turn *self = forward ? &turn[t++] : newest[n->index];
            unsigned reads = forward ? READS_X : network_reads(network, n->index);
            if (self->dead) continue;
            for (int j = 0; j < n->layer->inputs; j++)
                if ((reads & READS_X || (reads & READS_X0 && j == 0)) && n->inputs[j] > 0)
                    newest[n->inputs[j] - 1]->read = true;
            if (forward) {
                newest[n->index] = self;
            } else if (reads & READS_Y || (reads & READS_SAVED && network->binding[n->index].footprint.saved)) {
                self->read = true;
            }
        }
    }
}

/* The forwards that lowering should leave of a schedule: all but dead recomputations, found by leaving out
 * those that are unread until none is. */
static struct turn *forwards(const struct network *network, const struct schedule *schedule, bool drop_dead,
                             size_t *count)
{
    struct region *region = network->graph->region;
    struct turn *turn = NULL, **newest = NULL;
    int seen = 0;
    *count = 0;
    for (size_t i = 0; i < schedule->steps; i++)
        if (schedule->step[i].kind == STEP_FORWARD) *count += (size_t)(schedule->step[i].to - schedule->step[i].from);
    NEW(region, turn, *count);
    NEW(region, newest, (size_t)network->graph->nodes);
    for (size_t i = 0, t = 0; i < schedule->steps; i++)
        for (int n = schedule->step[i].from; schedule->step[i].kind == STEP_FORWARD && n < schedule->step[i].to;
             n++, t++) {
            turn[t] = (struct turn){.node = n, .first = n == seen};
            seen += n == seen;
        }
    for (bool changed = drop_dead; changed;) {
        changed = false;
        for (size_t t = 0; t < *count; t++) turn[t].read = false;
        mark_read(network, schedule, turn, newest);
        for (size_t t = 0; t < *count; t++)
            if (!turn[t].first && !turn[t].dead && !turn[t].read) changed = turn[t].dead = true;
    }
    return turn;
}

/* The plan runs the schedule's forwards, but for dead recomputations. */
static bool same_forwards(const struct plan *plan, const struct schedule *schedule, bool drop_dead)
{
    size_t count, t = 0;
    int dropped = 0;
    struct turn *turn = forwards(plan->network, schedule, drop_dead, &count);
    for (int i = 0; i < plan->lowered.ops; i++) {
        if (plan->lowered.op[i].kind != OP_FORWARD) continue;
        for (; t < count && turn[t].dead; t++) dropped++;
        if (t == count || turn[t++].node != plan->lowered.op[i].node) return false;
    }
    for (; t < count && turn[t].dead; t++) dropped++;
    return t == count && dropped == plan->lowered.dropped;
}

/* Plans the schedule and runs it on symbols. */
static void check(const struct network *network, const struct schedule *schedule, const struct plan_options *options,
                  const char *what)
{
    struct plan *plan = plan_build(network, schedule, options);
    cr_assert(simulate_plan(plan) == ST_OK, "%s, drop_dead %d, rng %d, schedule %s\n  %s", what,
              options->lower.drop_dead, (int)options->lower.rng, plan->schedule, status_message());
    cr_assert(same_forwards(plan, schedule, options->lower.drop_dead), "%s, drop_dead %d: other forwards than %s", what,
              options->lower.drop_dead, plan->schedule);
    plan_destroy(plan);
}

static void check_all_options(const struct network *network, const struct schedule *schedule, const char *what)
{
    for (int drop_dead = 0; drop_dead < 2; drop_dead++)
        for (int rng = RNG_COUNTER; rng <= RNG_UNSAFE; rng++)
            check(network, schedule, &(struct plan_options){.lower = {drop_dead, (enum rng_mode)rng}}, what);
}

Test(lower, every_policy_on_every_network) { schedules_visit(check_all_options); }

/* Any valid schedule: forwards with recomputes among them, then backwards with recomputes among them. */
static void random_word(struct source *s, int nodes, struct schedule *schedule)
{
    uint32_t n = (uint32_t)nodes;
    for (uint32_t forward = 0; forward < n;) {
        uint32_t from = draw_below(s, 3) ? forward : draw_below(s, forward + 1);
        uint32_t to = from + 1 + draw_below(s, n - from);
        schedule_append(schedule, STEP_FORWARD, (int)from, (int)to);
        if (to > forward) forward = to;
    }
    for (uint32_t backward = n; backward > 0;) {
        uint32_t from = draw_below(s, n);
        if (draw_below(s, 2)) {
            schedule_append(schedule, STEP_FORWARD, (int)from, (int)(from + 1 + draw_below(s, n - from)));
        } else {
            from = backward - 1 - draw_below(s, backward > 3 ? 3 : backward);
            schedule_append(schedule, STEP_BACKWARD, (int)from, (int)backward);
            backward = from;
        }
    }
}

Test(lower, random_words_on_random_networks)
{
    for (uint32_t seed = 0; seed < 3000; seed += THINNING) {
        struct source s = {seed, 0};
        struct sketch sketch;
        char what[32];
        sketch_random(&sketch, &s, 1 + (int)draw_below(&s, 12));
        struct schedule schedule = schedule_empty(sketch.graph->region);
        random_word(&s, sketch.graph->nodes, &schedule);
        snprintf(what, sizeof what, "seed %u", seed);
        cr_assert(schedule_check(&schedule, &(struct slicing){sketch.graph->nodes, 1, NULL}, false) == ST_OK, "%s",
                  status_message());
        check_all_options(sketch.network, &schedule, what);

        struct schedule forward = schedule_empty(sketch.graph->region);
        schedule_append(&forward, STEP_FORWARD, 0, sketch.graph->nodes);
        check(sketch.network, &forward, &(struct plan_options){.lower = {true, RNG_COUNTER, true}}, what);
        sketch_end(&sketch);
    }
}
