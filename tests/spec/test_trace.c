/* Traced steps: random operators, whose plans are compared with a step that is followed operator by operator, with the
 * program's checker, and with a search of all schedules. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "policies/rivals.h"
#include "search/dtr_simulation.h"
#include "search/engines.h"
#include "search/step_model.h"
#include "spec/graph_file.h"
#include "tests/support/random_chains.h"
#include "tests/support/simulated.h"
#include "tests/support/spec_text.h"

TestSuite(trace, .init = spec_text_begin, .fini = spec_text_end);

enum { FORWARDS_MAX = 8, BACKWARDS_MAX = 12, OUTPUTS = 2, READS_MAX = 24, TENSORS_MAX = 48 };
enum kind { KIND_VALUE, KIND_SAVED, KIND_KEPT, KIND_GRADIENT };

struct tensor {
    enum kind kind;
    int bytes, writer,
        last; /* operators, the backward ones after those of the forward; last: that reads it, -1: none */
};

struct step_operator {
    int time, scratch, reads, read[READS_MAX], writes, write[OUTPUTS];
    bool in_place, random;
};

/* Operators in the order in which they run. */
struct traced {
    int forwards, operators, tensors;
    struct step_operator op[FORWARDS_MAX + BACKWARDS_MAX];
    struct tensor tensor[TENSORS_MAX];
    bool written; /* gradients that no operator reads live from their write */
};

static void add_read(struct traced *t, int op, int tensor)
{
    struct step_operator *o = &t->op[op];
    for (int k = 0; k < o->reads; k++)
        if (o->read[k] == tensor) return;
    o->read[o->reads++] = tensor;
    if (t->tensor[tensor].last < op) t->tensor[tensor].last = op;
}

static void add_write(struct traced *t, int op, enum kind kind, int bytes)
{
    t->tensor[t->tensors] = (struct tensor){kind, bytes, op, -1};
    t->op[op].write[t->op[op].writes++] = t->tensors++;
}

/* A tensor that was written before; values alone for a forward. */
static int draw_tensor(struct source *source, const struct traced *t, bool forward)
{
    int tensor;
    do tensor = (int)draw_below(source, (uint32_t)t->tensors);
    while (forward && t->tensor[tensor].kind != KIND_VALUE);
    return tensor;
}

/* plain: without what an exact search leaves out: tensors that take the place of others, operators that run once. */
static void draw(struct source *source, int forwards, int backwards, bool plain, struct traced *t)
{
    *t = (struct traced){.forwards = forwards, .operators = forwards + backwards};
    t->written = draw_below(source, 2);
    for (int i = 0; i < t->operators; i++) {
        struct step_operator *op = &t->op[i];
        const bool forward = i < forwards;
        op->time = 1 + (int)draw_below(source, 9);
        op->scratch = draw_below(source, 3) ? 0 : (int)draw_below(source, 6);
        op->random = forward && !plain && !draw_below(source, 5);
        op->in_place = !plain && !draw_below(source, 3);
        if (i && forward) add_read(t, i, t->op[i - 1].write[0]);
        if (i == forwards) add_read(t, i, t->op[i - 1].write[0]);
        if (i > forwards) add_read(t, i, t->op[i - 1].write[0]);
        for (int more = (int)draw_below(source, 4); i && more; more--) add_read(t, i, draw_tensor(source, t, forward));
        add_write(t, i, forward ? KIND_VALUE : KIND_GRADIENT, (int)(1 + draw_below(source, 9)) * (plain ? 1 : 4));
        if (forward && !draw_below(source, 3))
            add_write(t, i, draw_below(source, 3) ? KIND_SAVED : KIND_KEPT, 1 + (int)draw_below(source, 9));
        if (!forward && !draw_below(source, 3)) add_write(t, i, KIND_GRADIENT, 1 + (int)draw_below(source, 9));
    }
    for (int k = 0; k < t->tensors; k++) /* what no operator reads is read by a backward */
        if (t->tensor[k].last < 0 && t->tensor[k].kind != KIND_GRADIENT)
            add_read(t, forwards + (int)draw_below(source, (uint32_t)backwards), k);
    for (int i = 0; i < t->operators; i++) { /* only where there is a tensor whose place can be taken */
        struct step_operator *op = &t->op[i];
        bool fits = false;
        for (int k = 0; k < op->reads; k++)
            fits |= t->tensor[op->read[k]].bytes == t->tensor[op->write[0]].bytes &&
                    (t->tensor[op->read[k]].kind == KIND_GRADIENT) == (i >= forwards);
        op->in_place &= fits;
    }
}

static void write_names(const char *key, const int *tensor, int count, FILE *out)
{
    fprintf(out, ", %s: [", key);
    for (int k = 0; k < count; k++) fprintf(out, "%st%d", k ? ", " : "", tensor[k]);
    fputc(']', out);
}

static char *text_of(const struct traced *t)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    fprintf(out, "rematch: 1\nname: step\nplaced: true\ngradients: %s\ntensors:\n", t->written ? "written" : "static");
    for (int k = 0; k < t->tensors; k++)
        fprintf(out, "  - {name: t%d, bytes: %d, kept: %s}\n", k, t->tensor[k].bytes,
                t->tensor[k].kind == KIND_KEPT ? "true" : "false");
    fprintf(out, "operators:\n");
    for (int i = 0; i < t->operators; i++) {
        const struct step_operator *op = &t->op[i];
        fprintf(out, "  - {name: o%d, phase: %s, time: %d, scratch: %d", i, i < t->forwards ? "forward" : "backward",
                op->time, op->scratch);
        if (op->random) fputs(", random: true", out);
        if (op->in_place) fputs(", in_place: true", out);
        write_names("reads", op->read, op->reads, out);
        write_names("writes", op->write, op->writes, out);
        fputs("}\n", out);
    }
    fclose(out);
    return text;
}

static struct network *read_step(const struct traced *t, struct spec **spec)
{
    struct network *network;
    char *text = text_of(t);
    cr_assert(graph_file_load(write_bytes(text, strlen(text)), 0, NULL, spec, &network) == ST_OK, "%s%s", text,
              messages());
    free(text);
    return network;
}

static const struct plan_options options = {.lower = {.drop_dead = true}};

/* ---- the step as it ran ---- */

/* Live bytes while operator i runs, every tensor living from its write to its last read. */
static size_t live_at(const struct traced *t, int i)
{
    size_t live = (size_t)t->op[i].scratch;
    for (int k = 0; k < t->tensors; k++) {
        const struct tensor *x = &t->tensor[k];
        const bool gradient = x->kind == KIND_GRADIENT && x->last < 0;
        const int last = gradient ? t->operators - 1 : x->last;
        if (gradient && !t->written) continue;
        if (x->writer <= i && i <= last) live += (size_t)x->bytes;
    }
    const struct step_operator *op = &t->op[i];
    for (int k = 0; op->in_place && k < op->reads; k++) { /* its first output takes the place of one of these */
        const struct tensor *x = &t->tensor[op->read[k]], *y = &t->tensor[op->write[0]];
        if (x->last != i || x->bytes != y->bytes || (x->kind == KIND_GRADIENT) != (y->kind == KIND_GRADIENT)) continue;
        if (i < t->forwards && x->kind != KIND_VALUE) continue;
        if (y->kind == KIND_GRADIENT && y->last < 0 && !t->written) continue; /* it is no buffer */
        return live - (size_t)x->bytes;
    }
    return live;
}

/* Another operand, or one that is written and not read, is another plan. */
static void check_hash(const struct plan *plan)
{
    const struct lowered *l = &plan->lowered;
    for (int i = 0; i < l->ops; i++) {
        struct op *op = &l->op[i];
        for (int k = 0; k < op->reads + op->writes; k++) {
            op->operand[k]++;
            cr_expect(!digest_equal(ops_digest(l->op, l->ops, l->buffer, l->buffers), plan->hash), "op %d, %d", i, k);
            op->operand[k]--;
        }
        if (!op->reads) continue;
        op->reads--, op->writes++;
        cr_expect(!digest_equal(ops_digest(l->op, l->ops, l->buffer, l->buffers), plan->hash), "op %d", i);
        op->reads++, op->writes--;
    }
    cr_expect(digest_equal(ops_digest(l->op, l->ops, l->buffer, l->buffers), plan->hash));
}

Test(trace, stored_bytes_are_those_of_the_operators_as_they_ran)
{
    struct source source = {.seed = 5};
    int placed = 0, kept = 0;
    for (int round = 0; round < 600; round++) {
        struct traced t;
        struct spec *spec;
        struct network *network;
        draw(&source, 2 + (int)draw_below(&source, FORWARDS_MAX - 1), 1 + (int)draw_below(&source, BACKWARDS_MAX - 1),
             false, &t);
        network = read_step(&t, &spec);
        struct schedule all = schedule_empty(network->graph->region);
        schedule_append(&all, STEP_FORWARD, 0, network->graph->nodes);
        schedule_append(&all, STEP_BACKWARD, 0, network->graph->nodes);
        struct plan *plan = plan_build(network, &all, &options);
        cr_assert(plan->lowered.ops == t.operators, "%d ops", plan->lowered.ops);
        for (int i = 0; i < t.operators; i++) {
            /* several inputs may be as large as the output of a forward, of which the first in the file is tried */
            const size_t live = live_at(&t, i), planned = plan->live[i];
            const bool more =
                i < t.forwards && t.op[i].in_place && planned == live + (size_t)t.tensor[t.op[i].write[0]].bytes;
            cr_assert(planned == live || more, "step %d, operator %d: %zu bytes, %zu\n%s", round, i, planned, live,
                      text_of(&t));
            cr_expect_str_eq(plan_op_name(plan, i), region_text(network->graph->region, "o%d", i));
            placed += t.op[i].in_place;
            for (int k = 0; k < t.op[i].writes; k++) kept += t.tensor[t.op[i].write[k]].kind == KIND_KEPT;
        }
        check_hash(plan);
        plan_destroy(plan);
        abstract_destroy(network);
        spec_destroy(spec);
    }
    cr_expect(placed > 200 && kept > 100, "%d, %d", placed, kept);
}

/* ---- every policy ---- */

static int recomputed, again, unsaved, faults;

/* Bytes of what a forward operator reads, of all that it writes whenever it runs, and of its scratch. */
static size_t least_live(const struct traced *t, const struct step_operator *op)
{
    size_t bytes = (size_t)op->scratch;
    for (int k = 0; k < op->reads; k++) bytes += (size_t)t->tensor[op->read[k]].bytes;
    for (int k = op->in_place ? 1 : 0; k < op->writes; k++)
        if (t->tensor[op->write[k]].kind != KIND_KEPT) bytes += (size_t)t->tensor[op->write[k]].bytes;
    return bytes;
}

static void check_plan(const struct traced *t, const struct network *network, struct plan *plan, const char *what)
{
    struct schedule schedule;
    region_auto *region = region_create();
    cr_assert(simulate_plan(plan) == ST_OK, "%s: %s\n%s", what, status_message(), text_of(t));
    cr_assert(schedule_parse(plan->schedule, region, &schedule) == ST_OK);
    const struct step_model model = step_model_create(network, &options.lower, region);
    struct sequence sequence = sequence_of(&model, &schedule, region);
    const struct sequence_cost cost = sequence_evaluate(&model, &sequence, SIZE_MAX);
    cr_expect(cost.time == plan->time, "%s: %g, %g", what, cost.time, plan->time);
    bool kept = false; /* what is written once lives longer where a recomputation is followed by its reader */
    for (int k = 0; k < t->tensors; k++) kept |= t->tensor[k].kind == KIND_KEPT;
    cr_expect(cost.peak == plan->live_peak || kept, "%s: %zu, %zu\n%s", what, cost.peak, plan->live_peak, text_of(t));
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        const int number = atoi(plan_op_name(plan, i) + 1);
        recomputed += op->recompute;
        again += op->recompute && t->op[number].random;
        if (number >= t->forwards) continue;
        cr_expect(plan->live[i] >= least_live(t, &t->op[number]), "%s, op %d: %zu\n%s", what, i, plan->live[i],
                  text_of(t));
        unsaved += !op->save && t->op[number].writes > 1 && t->tensor[t->op[number].write[1]].kind == KIND_SAVED;
    }
}

/* The checker refuses an operand in another buffer, and one that is left out, before it comes to the plan's hash. */
static void check_faults(struct source *source, struct plan *plan)
{
    struct lowered *l = &plan->lowered;
    struct op *op = &l->op[draw_below(source, (uint32_t)l->ops)];
    if (!op->reads || l->buffers < 2) return;
    int *operand = &op->operand[draw_below(source, (uint32_t)op->reads)];
    const int before = *operand;
    *operand = (before + 1 + (int)draw_below(source, (uint32_t)l->buffers - 1)) % l->buffers;
    cr_expect(simulate_plan(plan) == ST_DIFFERS && !strstr(status_message(), "hash"), "%s", status_message());
    *operand = before;
    op->reads--;
    cr_expect(simulate_plan(plan) == ST_DIFFERS && !strstr(status_message(), "hash"), "%s", status_message());
    op->reads++;
    faults += 2;
}

Test(trace, plans_of_all_policies_keep_the_rules_of_the_operators, .timeout = 300)
{
    struct source source = {.seed = 8};
    int plans = 0;
    for (int round = 0; round < 120; round++) {
        struct traced t;
        struct spec *spec;
        draw(&source, 2 + (int)draw_below(&source, FORWARDS_MAX - 1), 1 + (int)draw_below(&source, BACKWARDS_MAX - 1),
             false, &t);
        struct network *network = read_step(&t, &spec);
        region_auto *region = region_create();
        for (const struct policy *const *policy = policy_table; *policy; policy++) {
            struct plan *plan;
            bool required = false;
            for (const struct setting *f = (*policy)->keys; f && f->key; f++) required |= !f->preset;
            if (required || (*policy)->needs_slices) continue;
            const struct policy_settings settings = policy_defaults(*policy, region);
            if (policy_plan(*policy, &(struct policy_input){network, &settings, &options}, &plan) != ST_OK) continue;
            check_plan(&t, network, plan, (*policy)->name);
            check_faults(&source, plan);
            plan_destroy(plan);
            plans++;
        }
        abstract_destroy(network);
        spec_destroy(spec);
    }
    cr_expect(plans > 600 && recomputed > 1000 && again == 0 && unsaved > 100 && faults > 600,
              "%d plans, %d recomputations, %d of random operators, %d do not save, %d faults", plans, recomputed,
              again, unsaved, faults);
}

/* ---- all schedules ---- */

/* What is live of the forward: two bits an operator, its value and its saved tensors. */
typedef unsigned live_set;
enum { SETS = 1 << (2 * 5) };

static live_set bit_of(const struct traced *t, int tensor)
{
    const enum kind kind = t->tensor[tensor].kind;
    return kind > KIND_SAVED ? 0 : 1u << (2 * t->tensor[tensor].writer + (int)kind);
}

static size_t bytes_of(const struct traced *t, live_set live)
{
    size_t bytes = 0;
    for (int k = 0; k < t->tensors; k++)
        if (bit_of(t, k) & live) bytes += (size_t)t->tensor[k].bytes;
    return bytes;
}

/* Bytes that no schedule changes while operator i runs, or (between) before it: tensors of backwards, and what is kept.
 */
static size_t fixed_at(const struct traced *t, int i, bool between)
{
    size_t bytes = 0;
    for (int k = 0; k < t->tensors; k++) {
        const struct tensor *x = &t->tensor[k];
        const bool gradient = x->kind == KIND_GRADIENT && x->last < 0;
        if (x->kind < KIND_KEPT || (gradient && !t->written)) continue;
        if ((between ? x->writer < i : x->writer <= i) && (gradient || i <= x->last)) bytes += (size_t)x->bytes;
    }
    return bytes;
}

static live_set reads_of(const struct traced *t, int i)
{
    live_set reads = 0;
    for (int k = 0; k < t->op[i].reads; k++) reads |= bit_of(t, t->op[i].read[k]);
    return reads;
}

static live_set writes_of(const struct traced *t, int i)
{
    live_set writes = 0;
    for (int k = 0; k < t->op[i].writes; k++) writes |= bit_of(t, t->op[i].write[k]);
    return writes;
}

/* Lowers the time of sets that can be reached at one place by recomputations and by forgetting, until none changes. */
static void settle(const struct traced *t, int at, size_t limit, double *time)
{
    const live_set all = 1u << (2 * t->forwards);
    for (bool changed = true; changed;) {
        changed = false;
        for (live_set live = all; live-- > 0;) {
            if (time[live] == INFINITY) continue;
            for (int b = 0; b < 2 * t->forwards; b++) {
                const live_set less = live & ~(1u << b);
                if (time[less] > time[live]) time[less] = time[live], changed = true;
            }
            for (int f = 0; f < t->forwards && f < at; f++) {
                const live_set writes = writes_of(t, f), reads = reads_of(t, f);
                if ((live & reads) != reads) continue;
                /* it writes all its outputs, also those that live already: from there on they are the same tensor */
                const live_set after = live | writes;
                const size_t bytes = bytes_of(t, after) + fixed_at(t, at, true) + (size_t)t->op[f].scratch;
                const double least = time[live] + t->op[f].time;
                if (bytes <= limit && least < time[after]) time[after] = least, changed = true;
            }
        }
    }
}

/* The least time of any schedule within the limit. */
static double exhaustive(const struct traced *t, size_t limit)
{
    static double now[SETS], next[SETS];
    const live_set all = 1u << (2 * t->forwards);
    for (live_set live = 0; live < all; live++) now[live] = live ? INFINITY : 0;
    for (int i = 0; i < t->operators; i++) {
        const live_set reads = reads_of(t, i), writes = writes_of(t, i);
        settle(t, i, limit, now);
        for (live_set live = 0; live < all; live++) next[live] = INFINITY;
        for (live_set live = 0; live < all; live++) {
            if ((live & reads) != reads || now[live] == INFINITY) continue;
            const size_t bytes = bytes_of(t, live | writes) + fixed_at(t, i, false) + (size_t)t->op[i].scratch;
            if (bytes <= limit) next[live | writes] = fmin(next[live | writes], now[live] + t->op[i].time);
        }
        memcpy(now, next, sizeof now);
    }
    double least = INFINITY;
    for (live_set live = 0; live < all; live++) least = fmin(least, now[live]);
    return least;
}

/* The time of the fastest schedule of at most limit live bytes that the engines find. */
static double found(const struct network *network, size_t limit)
{
    struct pool *pool = rivals_pool(network, &options, NULL);
    double least = INFINITY;
    engines_within(pool, limit);
    for (int i = 0; i < pool->members; i++)
        if (pool->member[i].point.peak <= limit) least = fmin(least, pool->member[i].point.time);
    pool_destroy(pool);
    return least;
}

Test(trace, engines_find_the_fastest_of_all_schedules, .timeout = 300)
{
    struct source source = {.seed = 13};
    int equal = 0, refused = 0;
    for (int round = 0; round < 60; round++) {
        struct traced t;
        struct spec *spec;
        draw(&source, 3 + (int)draw_below(&source, 3), 3 + (int)draw_below(&source, 4), true, &t);
        struct network *network = read_step(&t, &spec);
        size_t most = 0;
        for (int i = 0; i < t.operators; i++) most = live_at(&t, i) > most ? live_at(&t, i) : most;
        for (size_t limit = most; limit + 20 > most && limit > 1; limit--) {
            const double least = exhaustive(&t, limit), time = found(network, limit);
            cr_expect(time == least, "step %d, %zu bytes: %g, expected %g\n%s", round, limit, time, least, text_of(&t));
            *(least == INFINITY ? &refused : &equal) += 1;
        }
        abstract_destroy(network);
        spec_destroy(spec);
    }
    cr_expect(equal > 200 && refused > 20, "%d, %d refused", equal, refused);
}

/* ---- DTR's simulation ---- */

Test(trace, schedules_of_dtr_keep_the_limit_that_they_were_made_for, .timeout = 300)
{
    struct source source = {.seed = 34};
    int kept = 0;
    for (int round = 0; round < 300; round++) {
        struct traced t;
        struct spec *spec;
        draw(&source, 3 + (int)draw_below(&source, FORWARDS_MAX - 2), 2 + (int)draw_below(&source, BACKWARDS_MAX - 2),
             false, &t);
        struct network *network = read_step(&t, &spec);
        region_auto *region = region_create();
        const struct step_model model = step_model_create(network, &options.lower, region);
        struct schedule all = schedule_empty(region);
        const size_t most = dtr_simulate(&model, DTR_SCORE, SIZE_MAX, &all);
        for (size_t limit = most - 1; limit > most / 2; limit -= 1 + most / 32) {
            struct schedule schedule = schedule_empty(region);
            if (!dtr_simulate(&model, DTR_SCORE, limit, &schedule)) continue;
            const struct plan_cost cost = plan_cost(network, &schedule, &options.lower);
            cr_expect(cost.live_peak <= limit, "step %d: %zu bytes of %zu\n%s", round, cost.live_peak, limit,
                      text_of(&t));
            kept++;
        }
        abstract_destroy(network);
        spec_destroy(spec);
    }
    cr_expect(kept > 600, "%d", kept);
}

/* ---- the programme on stages ---- */

Test(trace, points_of_the_programme_are_those_of_their_schedules, .timeout = 300)
{
    struct source source = {.seed = 21};
    int points = 0, stages = 0;
    for (int round = 0; round < 150; round++) {
        struct traced t;
        struct spec *spec;
        draw(&source, 3 + (int)draw_below(&source, FORWARDS_MAX - 2), 2 + (int)draw_below(&source, BACKWARDS_MAX - 2),
             round % 2, &t);
        for (int i = 1; i < t.forwards; i++) { /* forwards are a chain: backwards read what they like */
            t.op[i].reads = 1;
            t.op[i].in_place = false;
        }
        struct network *network = read_step(&t, &spec);
        struct pool *pool = pool_create(network, &options, NULL);
        stages += pool->stages > 1;
        optimum_within(pool->chain, SIZE_MAX);
        pool_add_chain(pool);
        for (int i = 0; i < pool->members; i++) {
            struct schedule schedule = schedule_empty(pool->region);
            pool_schedule(pool, &pool->member[i], &schedule);
            const struct plan_cost cost = plan_cost(network, &schedule, &options.lower);
            cr_expect(cost.live_peak == pool->member[i].point.peak && cost.time == pool->member[i].point.time,
                      "step %d: %zu bytes, time %g; the programme says %zu, %g\n%s", round, cost.live_peak, cost.time,
                      pool->member[i].point.peak, pool->member[i].point.time, text_of(&t));
            points++;
        }
        pool_destroy(pool);
        abstract_destroy(network);
        spec_destroy(spec);
    }
    cr_expect(points > 300 && stages > 100, "%d points, %d steps of several stages", points, stages);
}
