/* What planning says of an abstract chain: the plan of one policy, or what every policy that needs nothing set would
 * make of it, with the front of `optimal`. Peaks are live bytes: a chain never runs, so nothing is placed. */
#ifndef REMATCH_ANALYSIS_CHAIN_PLAN_H
#define REMATCH_ANALYSIS_CHAIN_PLAN_H

#include <stdio.h>

#include "analysis/plan_summary.h"
#include "analysis/policy_grid.h"
#include "search/bounds.h"
#include "search/optimum.h"
#include "spec/chain_file.h"

/* A policy's plan in figures. */
struct chain_choice {
    const char *policy;
    bool front; /* a point of the front of `optimal`: its live peak is the budget to ask for */
    size_t live_peak;
    double time, slowdown;
    int recomputations;
    struct bounds bounds; /* at its live peak */
};

struct chain_plan {
    struct region *region; /* owns what is below, but for what is destroyed by itself */
    const struct chain_file *file;
    struct network *network;
    size_t store_all_live;
    uint64_t planning_ns;
    /* where the file or the command line says which policy */
    struct plan *plan;
    struct bounds bounds, budget_bounds; /* at its live peak; within its budget, budget 0: none is set */
    struct tensor_row *tensor;
    int tensors;
    /* where neither does */
    struct optimum *optimum;
    struct chain_choice *choice;
    int choices;
    struct refusal *refusal; /* of policies that must be told something, or do not fit the chain */
    int refusals;
};

/* ST_SPEC where the policy does not fit the chain. file stays the caller's. */
enum status chain_plan_create(const struct chain_file *file, struct chain_plan **plan);
void chain_plan_destroy(struct chain_plan *plan);

/* chain_print.c: as text, and as one JSON object; ops: every op of the plan too. */
void chain_plan_print(const struct chain_plan *plan, bool ops, FILE *out);
void chain_plan_json(const struct chain_plan *plan, bool ops, FILE *out);

#endif
