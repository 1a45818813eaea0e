/* Budgets: kept by every plan, or refused with the smallest that can be kept. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policies/policy.h"
#include "search/budget.h"
#include "search/optimum.h"
#include "tests/support/policy_text.h"
#include "tests/support/random_chains.h"
#include "tests/support/simulated.h"
#include "tests/support/small_networks.h"
#include "tests/support/thinning.h"

static const struct plan_options usual = {.lower = {.drop_dead = true}};

static const struct abstract_stage limits = {.forward = 51,
                                             .backward = 90,
                                             .output = 100000,
                                             .saved = 200000,
                                             .gradient = 100000,
                                             .forward_scratch = 5000,
                                             .backward_scratch = 5000,
                                             .split = true};

/* The plan of a policy within a budget, its other settings at their defaults; NULL where it refuses. */
static struct plan *plan_by(const char *policy, const struct network *network, const char *budget,
                            const struct plan_options *options)
{
    char settings[80];
    snprintf(settings, sizeof settings, "budget=%s", budget);
    return policy_text_try(network, policy, settings, options);
}

static struct plan *plan_of(const struct network *network, const char *budget, const struct plan_options *options)
{
    return plan_by("optimal", network, budget, options);
}

/* The smallest budget that the last refusal named: exact bytes, or a percentage. */
static const char *smallest(void)
{
    static char text[64];
    const char *at = strstr(status_message(), "found kept is ");
    cr_assert(at != NULL, "%s", status_message());
    cr_assert(sscanf(at, "found kept is %*f %*s (%63[0-9] bytes)", text) == 1 ||
              sscanf(at, "found kept is %63[0-9.%]", text) == 1);
    return text;
}

/* Budgets from below the least to all of a chain: kept, or refused with a smaller one that is kept. */
Test(budget, is_kept_by_random_chains)
{
    struct source source = {.seed = 9};
    int kept = 0, refused = 0;
    for (int c = 0; c < 100; c += THINNING) {
        struct abstract_stage stage[20];
        int stages = 1 + c % 20;
        chain_draw(&source, &limits, stages, stage);
        struct network *network = chain_network(stage, stages);
        struct optimum *o = optimum_solve(network, RNG_COUNTER);
        const size_t least_live = o->front.point[0].peak, most = o->front.point[o->front.count - 1].peak;
        optimum_destroy(o);
        for (int k = 0; k < 4; k++) {
            const size_t bytes =
                least_live - least_live / 50 + draw_below(&source, (uint32_t)(most - least_live) + 1000);
            char budget[32];
            snprintf(budget, sizeof budget, "%zu", bytes);
            struct plan *plan = plan_of(network, budget, &usual);
            kept += plan != NULL;
            if (!plan) {
                uint64_t least;
                cr_assert(!text_to_bytes(smallest(), &least) && least > bytes, "%s", status_message());
                refused++;
                continue;
            }
            cr_assert(plan_peak(plan) <= bytes, "%zu with a budget of %zu", plan_peak(plan), bytes);
            plan_destroy(plan);
        }
        abstract_destroy(network);
    }
    printf("budgets: %d kept, %d refused\n", kept, refused);
    cr_assert(kept > refused && kept + refused >= 400 / THINNING);
}

/* The notes of the policy match the front and the plan. */
Test(budget, notes_match_front_and_plan)
{
    struct source source = {.seed = 21};
    int tries = 0;
    for (int c = 0; c < 60; c += THINNING) {
        struct abstract_stage stage[20];
        chain_draw(&source, &limits, 20, stage);
        struct network *network = chain_network(stage, 20);
        struct optimum *o = optimum_solve(network, RNG_COUNTER);
        /* a point's own peak, which its placing may just miss */
        size_t bytes = o->front.point[draw_below(&source, (uint32_t)o->front.count)].peak;
        char text[32];
        struct policy_notes notes = {0};
        struct plan *plan;
        snprintf(text, sizeof text, "budget=%zu", bytes);
        const struct policy_settings settings =
            policy_text_settings(policy_find("optimal"), text, network->graph->region);
        const struct policy_input input = {network, &settings, &usual, &notes};
        if (policy_plan(policy_find("optimal"), &input, &plan) == ST_OK) {
            double fastest = o->front.point[front_at(&o->front, bytes)].time;
            cr_assert(notes.tries >= 1 && notes.live_peak == plan->live_peak);
            cr_assert(plan->time - notes.lost <= fastest * (1 + 1e-12));
            cr_assert(notes.tries > 1 || notes.lost == 0, "%d tries, %g lost", notes.tries, notes.lost);
            tries += notes.tries > 1;
            plan_destroy(plan);
        }
        optimum_destroy(o);
        abstract_destroy(network);
    }
    printf("plans that were placed more than once: %d\n", tries);
}

/* The last refusal names the op that sets the least peak, and first the largest of what lives then. */
static void check_named(const struct plan *least)
{
    char op[128], set[256];
    const struct buffer *buffer = least->lowered.buffer;
    int largest = -1;
    for (int i = 0; i < least->lowered.buffers; i++)
        if (buffer[i].birth <= least->peak_op && least->peak_op <= buffer[i].death &&
            (largest < 0 || buffer[i].bytes > buffer[largest].bytes))
            largest = i;
    char name[128];
    snprintf(set, sizeof set, "; it is set by %s with %s (", plan_op_text(least, least->peak_op, op),
             plan_buffer_text(least, largest, name));
    cr_assert(strstr(status_message(), set), "'%s' is not in %s", set, status_message());
}

/* Bytes bound everything, static bytes too; percentages the arena; and what a refusal names can be kept. */
Test(budget, is_kept_by_networks)
{
    static const struct plan_options options = {.lower = {.drop_dead = true}, .state_per_parameter = 2};
    for (const struct net *net = nets; net->name; net++)
        for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_BITS; relu++) {
            struct bound_net b = net_bind(net, relu);
            uint64_t bytes;
            char named[64], text[64];
            size_t baseline = budget_baseline(b.network, &options);
            struct plan *least = plan_of(b.network, "least", &options), *plan;
            cr_assert(least != NULL);
            cr_assert(!plan_of(b.network, "1", &options));
            check_named(least);
            strcpy(named, smallest());
            cr_assert(!text_to_bytes(named, &bytes) && bytes == plan_peak(least), "%s", named);
            snprintf(text, sizeof text, "%llu", (unsigned long long)bytes - 1);
            cr_assert(!plan_of(b.network, text, &options));
            cr_assert((plan = plan_of(b.network, named, &options)) != NULL, "%s", status_message());
            cr_assert(plan_peak(plan) <= bytes);
            plan_destroy(plan);
            cr_assert(!plan_of(b.network, "0.5%", &options));
            strcpy(named, smallest());
            cr_assert((plan = plan_of(b.network, named, &options)) != NULL, "%s: %s", named, status_message());
            cr_assert((double)plan->arena_bytes <= atof(named) / 100 * (double)baseline);
            plan_destroy(plan);
            snprintf(text, sizeof text, "%.2f%%", atof(named) - 0.01); /* the least, to two decimals */
            cr_assert(!plan_of(b.network, text, &options), "%s is refused with %s", text, named);
            cr_assert((plan = plan_of(b.network, "100%", &options)) != NULL, "%s", status_message());
            cr_assert(!plan->recomputations && plan->arena_bytes <= baseline);
            plan_destroy(plan);
            plan_destroy(least);
            net_release(&b);
        }
}

/* A budget, or the smallest that is named where it is refused, is kept, by a plan that is right. */
static void check_kept(const struct network *network, const char *budget, size_t baseline)
{
    struct plan *plan = plan_of(network, budget, &usual);
    if (!plan) plan = plan_of(network, budget = smallest(), &usual);
    cr_assert(plan && simulate_plan(plan) == ST_OK, "%s: %s", budget, status_message());
    cr_assert((double)plan->arena_bytes <= atof(budget) / 100 * (double)baseline, "%s", budget);
    plan_destroy(plan);
}

/* Convolutions take other scratch with each algorithm and limit. */
Test(budget, is_kept_with_every_convolution_algorithm)
{
    static const char *const budgets[] = {"20%", "50%", "80%"};
    static const struct backend_options ways[] = {
        {.threads = 2, .scratch_limit = 1 << 20},
        {.threads = 2, .scratch_limit = 1 << 20, .conv_algorithm = CONV_WINOGRAD},
        {.threads = 2, .scratch_limit = 1 << 16, .conv_algorithm = CONV_DIRECT}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int n = 0; n < 3; n++) { /* those of images */
            struct bound_net b = net_bind_to("cpu", &ways[w], &nets[n], RELU_BITS);
            size_t baseline = budget_baseline(b.network, &usual);
            for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) check_kept(b.network, budgets[i], baseline);
            net_release(&b);
        }
}

/* The least that dtr can do with is enough for `optimal`, whose candidates dtr's schedules are. */
Test(budget, optimal_keeps_what_dtr_keeps)
{
    for (const struct net *net = nets; net->name; net++)
        for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_BITS; relu++) {
            struct bound_net b = net_bind(net, relu);
            struct plan *least = plan_by("dtr", b.network, "least", &usual), *plan;
            char budget[32];
            cr_assert(least, "%s", status_message());
            snprintf(budget, sizeof budget, "%zu", plan_peak(least));
            cr_assert((plan = plan_of(b.network, budget, &usual)) != NULL, "%s: %s", net->name, status_message());
            cr_assert(plan_peak(plan) <= plan_peak(least) && plan->time <= least->time * (1 + 1e-12), "%s", net->name);
            plan_destroy(plan);
            plan_destroy(least);
            net_release(&b);
        }
}

/* A percentage is of what store_all has live with outputs kept and relus as written, whatever this network's keep and
 * wherever they are taken. */
Test(budget, is_a_share_of_outputs_kept)
{
    static const char *const backends[] = {"ref", "cpu"};
    int less = 0;
    for (int n = 0; n < 6; n++) {
        const struct net *net = n < 4 ? &nets[n / 2] : &pooled_net;
        size_t written = 0, baseline;
        for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_BITS; relu++)
            for (int after = 0; after < 2; after++) {
                struct bound_net b = net_bind_to(backends[n % 2], &(struct backend_options){.threads = 1}, net, relu);
                if (after) {
                    network_destroy(b.network);
                    graph_select_first(b.graph);
                    cr_assert(network_prepare(b.graph, b.backend, &b.network) == ST_OK);
                }
                struct plan *stored = plan_of(b.network, "100%", &usual);
                if (relu == RELU_OUTPUT && !after) written = stored->live_peak;
                less += relu == RELU_OUTPUT && stored->live_peak < written;
                plan_destroy(stored);
                baseline = budget_baseline(b.network, &usual);
                cr_assert(baseline == written, "%s: %zu, not %zu", net->name, baseline, written);
                net_release(&b);
            }
    }
    cr_assert(less > 0, "nothing is gained by taking relus after pools");
}

Test(budget, texts_are_parsed_or_refused)
{
    static const char *const bad[] = {"0", "lots", "", "%", "0%", "-5%", "64x", "nan%", "1e400%", "-1", "5 %", "LEAST"};
    struct budget budget;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert(budget_parse(bad[i], &budget) == ST_SPEC, "%s", bad[i]);
        cr_assert(strstr(status_message(), bad[i]) && strstr(status_message(), "expected"));
    }
    cr_assert(budget_parse("6GB", &budget) == ST_OK && budget.kind == BUDGET_BYTES && budget.bytes == 6000000000);
    cr_assert(budget_parse("64.5%", &budget) == ST_OK && budget.kind == BUDGET_PERCENT && budget.percent == 64.5);
    cr_assert(budget_parse("least", &budget) == ST_OK && budget.kind == BUDGET_LEAST);
}

/* Evaluations go forward only; with as much as they need and with one byte less. */
Test(budget, applies_to_evaluations)
{
    for (const struct net *net = nets; net->name; net++) {
        struct bound_net b = net_bind(net, RELU_BITS);
        char needed[64];
        const struct plan_options options = {.lower = {.drop_dead = true, .evaluate = true}};
        struct schedule schedule = schedule_empty(b.graph->region);
        schedule_append(&schedule, STEP_FORWARD, 0, b.graph->nodes);
        struct plan *plan = plan_build(b.network, &schedule, &options);
        cr_assert(budget_evaluation(plan, plan->arena_bytes) == ST_OK && budget_evaluation(plan, 0) == ST_OK);
        cr_assert(budget_evaluation(plan, plan->arena_bytes - 1) == ST_SPEC);
        check_named(plan);
        snprintf(needed, sizeof needed, "(%zu bytes), and the budget leaves", plan->arena_bytes);
        cr_assert(strstr(status_message(), needed) && strstr(status_message(), "policy.budget"));
        plan_destroy(plan);
        net_release(&b);
    }
}
