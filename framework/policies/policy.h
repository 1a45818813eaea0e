/* A policy emits a schedule; liveness derives from it what is saved, freed and recomputed. */
#pragma once

#include <assert.h>

#include "plan/plan.h"
#include "plan/stages.h"

/* What a policy reports about its search. Zeroed: nothing. */
struct policy_notes {
    size_t live_peak; /* as the policy predicts it */
    int tries;        /* schedules placed until one kept the budget */
    double lost;      /* time above that of the fastest schedule whose live peak keeps the budget */
    char found[240];  /* the outcome as text */
};

/* Settings of any policy as opaque bytes: the file of the policy defines their struct, its table of settings describes
 * it. Zeroed: every number 0, every switch off, every text unset. */
enum { POLICY_SETTINGS_MAX = 64 };
struct policy_settings {
    _Alignas(max_align_t) unsigned char bytes[POLICY_SETTINGS_MAX];
};
#define POLICY_SETTINGS_FIT(type) static_assert(sizeof(type) <= POLICY_SETTINGS_MAX, "raise POLICY_SETTINGS_MAX")

/* What a policy makes a schedule for. */
struct policy_input {
    const struct network *network;
    const struct policy_settings *settings;
    const struct plan_options *options; /* of the plan to be built; NULL: drop_dead, RNG_COUNTER */
    struct policy_notes *notes;         /* zeroed; NULL: not needed */
};

struct policy {
    const char *name, *doc;
    const struct setting *keys;
    /* Appends to an empty schedule, whose region is also used for scratch; ST_SPEC where the settings do not fit the
     * network. */
    enum status (*emit)(const struct policy_input *input, struct schedule *schedule);
    bool takes_slices; /* it sees the batch's slices; another policy sees a network whose nodes are all whole */
    bool needs_slices; /* it plans nothing where the batch has none */
    bool fills; /* it looks for the fastest schedule within a budget: struct budget_settings begin its settings */
};

/* The policy's schedule, where it can be planned. */
enum status policy_schedule(const struct policy *policy, const struct policy_input *input, struct schedule *schedule);

/* The plan of that schedule; of a policy that fills a budget, placed by the search for placements. */
enum status policy_plan(const struct policy *policy, const struct policy_input *input, struct plan **plan);

/* Its settings where none is set; texts and lists live in region. */
struct policy_settings policy_defaults(const struct policy *policy, struct region *region);

/* input->options, or the default. */
const struct plan_options *policy_plan_options(const struct policy_input *input);

/* The budget that the settings hold; NULL: the policy has none. */
const char *policy_budget(const struct policy *policy, const struct policy_settings *settings);

/* The group of that name, of the setting groups. ST_SPEC: the model has none. */
enum status policy_group(const struct graph *graph, const char *name, int *group);

/* Settings of policies that recompute segments of units; the struct of such a policy's settings begins with them. */
struct segment_settings {
    int unit; /* enum unit */
    bool keep_last;
    int keep_saved; /* enum keep */
};

/* auto: true, but on networks without kernels, whose times and bytes stand for whole layers, false as published. */
enum keep { KEEP_AUTO, KEEP_TRUE, KEEP_FALSE };
bool policy_keeps_saved(const struct network *network, enum keep keep);

/* Emits one forward of everything, then from the last segment to the first its backward, with a recomputation
 * (stages_recompute) where recompute[s]. */
void policy_segments_emit(const struct network *network, const struct node_range *segment, const bool *recompute,
                          int segments, enum keep keep_saved, struct schedule *schedule);

/* The same for units cut before every unit u > 0 with cut[u]; all segments are recomputed but the last where
 * settings->keep_last. */
void policy_cuts_emit(const struct network *network, const struct node_ranges *units, const bool *cut,
                      const struct segment_settings *settings, struct schedule *schedule);

/* The units divided into segments of floor(units / segments) each, the rest to the last; 0 segments keep everything.
 * ST_SPEC: more segments than units. */
enum status policy_uniform_emit(const struct network *network, const struct node_ranges *units, int64_t segments,
                                const struct segment_settings *settings, struct schedule *schedule);

/* Their rows. */
extern const char *const policy_unit_names[], *const policy_keep_names[];
#define POLICY_SETTING_UNIT                                                                                            \
    {                                                                                                                  \
        "unit", SETTING_CHOICE, offsetof(struct segment_settings, unit), 0, 0, "auto", policy_unit_names,              \
            "what is counted: groups of the model file, found stages, or groups where the model has any"               \
    }
#define POLICY_SETTING_KEEP_SAVED                                                                                      \
    {                                                                                                                  \
        "keep_saved", SETTING_CHOICE, offsetof(struct segment_settings, keep_saved), 0, 0, "auto", policy_keep_names,  \
            "true: a recomputation leaves out nodes whose output is not needed and keeps their small saved tensors; "  \
            "false: it runs all nodes, as published and as torch does; auto: false in graph files"                     \
    }
#define POLICY_SETTING_KEEP_LAST                                                                                       \
    {                                                                                                                  \
        "keep_last", SETTING_BOOL, offsetof(struct segment_settings, keep_last), 0, 0, "true", NULL,                   \
            "the last segment is stored, not recomputed, as torch does"                                                \
    }

/* Checks a budget; the error of one that is not quite a size or a share ("16G", "0.4") suggests what was meant. */
enum status policy_budget_check(const char *text);

/* preset: NULL where a budget must be set. */
#define POLICY_SETTING_BUDGET(settings, preset)                                                                        \
    {                                                                                                                  \
        "budget", SETTING_TEXT, offsetof(settings, budget), 0, 0, preset, NULL,                                        \
            "bytes for everything (6GB), a share of store_all's live peak for the arena (64%), or least",              \
            policy_budget_check                                                                                        \
    }

/* The settings of policies that take a budget and nothing else. */
struct budget_settings {
    const char *budget; /* NULL: least */
};
extern const struct setting policy_budget_keys[];

/* The policy called name, or NULL; and the table, ended by NULL, in the order of policies.def. */
const struct policy *policy_find(const char *name);
extern const struct policy *const policy_table[];
