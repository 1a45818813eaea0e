/* The fastest schedule that a budget allows, over the class of optimum.h: each value that is kept stays until the
 * backward that reads it, nothing is recomputed ahead of its turn, and each stretch of stages keeps what one of the
 * variants examined keeps (variants.h) or is recomputed by a visit of its own. Candidates of any class are the
 * schedules of a search over states, and, where a stage has several nodes, of the other policies. The recurrence, with
 * time as a step function of bytes where the published one has slots: Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova,
 * "Optimal checkpointing for heterogeneous chains: how to train deep neural networks with limited memory", 2019. */
#include "policies/rivals.h"

#include <stdio.h>

static void note_found(const struct optimum *optimum, const struct budgeted *budgeted, struct policy_notes *notes)
{
    const char *approximation = optimum_approximation(optimum, optimum->region);
    const struct candidate_point *candidate = optimum->origin[budgeted->point];
    *notes = (struct policy_notes){
        .live_peak = optimum->front.point[budgeted->point].peak, .tries = budgeted->tries, .lost = budgeted->lost};
    if (candidate)
        snprintf(notes->found, sizeof notes->found, "the schedule of %s, which is better than all of its own class%s",
                 candidate->policy, budgeted->proven ? "; proven the fastest of any class" : "");
    else if (budgeted->proven)
        snprintf(notes->found, sizeof notes->found, "proven the fastest of any class");
    else if (approximation)
        snprintf(notes->found, sizeof notes->found, "%s", approximation);
}

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct budget_settings *settings = (const void *)input->settings;
    const struct plan_options *options = policy_plan_options(input);
    struct budget budget;
    struct budgeted budgeted = {.point = -1};
    const int stages = stages_find(input->network->graph, schedule->region).count;
    if (stages > OPTIMAL_STAGES_MAX)
        return fail(ST_SPEC,
                    "optimal: the network has %d stages; expected at most %d, since its time and memory grow "
                    "with their square: segments, sqrt, chen, revolve and dtr plan more",
                    stages, OPTIMAL_STAGES_MAX);
    TRY(budget_parse(settings->budget ? settings->budget : "least", &budget));
    struct optimum *optimum = rivals_prepare(input->network, options->lower.rng);
    rivals_with_budget(optimum, input);
    enum status status = budget_schedule(optimum, &budget, options, schedule, &budgeted);
    if (status == ST_OK && input->notes) note_found(optimum, &budgeted, input->notes);
    optimum_destroy(optimum);
    return status;
}

const struct policy policy_optimal = {
    .name = "optimal",
    .doc = "the fastest schedule found within a budget: of all persistent ones, and of searches beyond",
    .keys = policy_budget_keys,
    .emit = emit,
    .chooses_relus = true,
    .takes_slices = true};
