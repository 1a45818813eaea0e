/* The fastest schedule that was found and can be placed within a budget. The schedules come from the programme on
 * stages, which is optimal in its class (search/optimum.h), from searches outside that class (search/engines.h), and
 * from the other policies (rivals.h). */
#include <string.h>

#include "policies/rivals.h"

struct optimal_settings {
    struct budget_settings budget;
    struct setting_list without;
};
POLICY_SETTINGS_FIT(struct optimal_settings);

/* engine_names, as texts list them. */
#define ENGINES_TEXT "chain, dtr, msps, drops, states, windows, policies, slices"

static enum status read_engines(const struct setting_list *names, bool *without)
{
    for (size_t i = 0; i < names->count; i++) {
        int at = 0;
        while (engine_names[at] && strcmp(engine_names[at], names->texts[i]) != 0) at++;
        if (!engine_names[at])
            return fail(ST_SPEC, "policy.without: '%s' is not known; expected some of " ENGINES_TEXT, names->texts[i]);
        without[at] = true;
    }
    return ST_OK;
}

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct optimal_settings *settings = (const void *)input->settings;
    bool without[ENGINES] = {false};
    TRY(read_engines(&settings->without, without));
    return rivals_emit(input, "optimal", settings->budget.budget, without, schedule);
}

static const struct setting keys[] = {POLICY_SETTING_BUDGET(struct optimal_settings, "least"),
                                      {"without", SETTING_TEXTS, offsetof(struct optimal_settings, without), 0, ENGINES,
                                       "", NULL, "searches that are left out, to see what each wins: " ENGINES_TEXT},
                                      {.key = NULL}};

const struct policy policy_optimal = {
    .name = "optimal",
    .doc = "the fastest schedule found within a budget: of all persistent ones, and of searches beyond",
    .keys = keys,
    .emit = emit,
    .takes_slices = true,
    .fills = true};
