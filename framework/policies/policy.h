/* A policy emits a schedule; liveness derives from it what is saved, freed and recomputed. */
#ifndef REMATCH_POLICIES_POLICY_H
#define REMATCH_POLICIES_POLICY_H

#include "plan/plan.h"
#include "plan/stages.h"

/* What a policy may say of its schedule besides. Zeroed: nothing. */
struct policy_notes {
    size_t live_peak; /* that its own accounts promise; the plan says what it is */
    int tries;        /* schedules placed until one kept the budget */
    double lost;      /* time above that of the fastest schedule whose live peak keeps the budget */
    char found[160];  /* what its search came to, for people */
};

/* Everything any policy lets YAML set; a policy's keys say which members are its own. */
struct policy_settings {
    int64_t segments;
    int unit; /* enum unit */
    bool keep_last, keep_saved;
    int by;                          /* sqrt: enum sqrt_by, what the segments are made equal in */
    const char *segment_budget;      /* chen: bytes or "search" */
    int64_t slots;                   /* revolve: checkpoints, 0: by the length */
    struct setting_list kinds;       /* selective: kinds of layers whose outputs are recomputed */
    struct setting_list groups;      /* manual: names of the groups to recompute */
    const char *schedule;            /* manual: path of a schedule file */
    int heuristic;                   /* dtr: index of heuristic_names, dtr_residency.h */
    const char *budget;              /* bytes, a percentage or "least" */
    const struct plan_options *plan; /* not a setting: what the plan will be built with, NULL: the usual */
    struct policy_notes *notes;      /* not a setting: zeroed by who wants to know, NULL: nobody */
};

struct policy {
    const char *name, *doc;
    const struct setting *keys;
    /* Appends to an empty schedule; ST_SPEC where the settings do not fit the network. */
    enum status (*emit)(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct schedule *schedule);
    bool chooses_relus; /* the schedule says of each relu that is open what it keeps */
};

/* The policy's schedule with all relus that are open keeping the same, which it says of them; AUTO: what they keep
 * where nobody says it. Of what the schedule says itself nothing is changed. */
enum status policy_emit(const struct policy *policy, const struct network *network,
                        const struct policy_settings *settings, enum relu_save relus, struct region *region,
                        struct schedule *schedule);

/* The policy's schedule. Where relus are open and the policy does not choose what each keeps, all three of the above
 * are planned: the least live peak is taken, of equals the fastest, and within a budget the fastest, of equals the
 * least live peak; where that is equal too, AUTO before bits before outputs. ST_SPEC: it refuses all three. */
enum status policy_schedule(const struct policy *policy, const struct network *network,
                            const struct policy_settings *settings, struct region *region, struct schedule *schedule);

/* What the simple policies share. Emits one forward of everything, then from the last segment to the first its
 * backward, with a recomputation (stages_recompute) where recompute[s]. */
enum status policy_segments_emit(const struct network *network, const struct node_range *segment, const bool *recompute,
                                 int segments, bool keep_saved, struct schedule *schedule);

/* The same for units cut before every unit u > 0 with cut[u]; all segments are recomputed but the last where
 * settings->keep_last. */
enum status policy_cuts_emit(const struct network *network, const struct node_ranges *units, const bool *cut,
                             const struct policy_settings *settings, struct region *region, struct schedule *schedule);

/* The units divided into segments of floor(units / segments) each, the rest to the last, which is kept where
 * settings->keep_last; 0 segments keep everything. ST_SPEC: more segments than units. */
enum status policy_uniform_emit(const struct network *network, int64_t segments, const struct policy_settings *settings,
                                struct region *region, struct schedule *schedule);

/* settings->plan, or the usual options where it is NULL: what a policy plans with that compares plans. */
const struct plan_options *policy_plan_options(const struct policy_settings *settings);

/* Rows that those policies let YAML set. */
extern const char *const policy_unit_names[];
#define POLICY_SETTING_UNIT                                                                                            \
    {                                                                                                                  \
        "unit", SETTING_CHOICE, offsetof(struct policy_settings, unit), 0, 0, "auto", policy_unit_names,               \
            "what is counted: groups of the model file, found stages, or groups where the model has any"               \
    }
#define POLICY_SETTING_KEEP_SAVED                                                                                      \
    {                                                                                                                  \
        "keep_saved", SETTING_BOOL, offsetof(struct policy_settings, keep_saved), 0, 0, "true", NULL,                  \
            "a recomputation leaves out nodes whose output nobody needs and keeps their small saved tensors; false "   \
            "is torch's "                                                                                              \
            "way"                                                                                                      \
    }
#define POLICY_SETTING_KEEP_LAST                                                                                       \
    {                                                                                                                  \
        "keep_last", SETTING_BOOL, offsetof(struct policy_settings, keep_last), 0, 0, "true", NULL,                    \
            "the last segment is stored, not recomputed, as torch does"                                                \
    }
#define POLICY_SETTING_BUDGET                                                                                          \
    {                                                                                                                  \
        "budget", SETTING_TEXT, offsetof(struct policy_settings, budget), 0, 0, "least", NULL,                         \
            "bytes for everything (6GB), a share of store_all's live peak for the arena (64%), or least", budget_check \
    }

/* The policy called name, or NULL; and the table, ended by NULL, in the order of policies.def. */
const struct policy *policy_find(const char *name);
extern const struct policy *const policy_table[];

#endif
