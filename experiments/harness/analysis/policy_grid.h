/* Plans of every policy for a network, each policy with every combination of settings that is useful there; nothing
 * runs. */
#pragma once

#include "analysis/json_tree.h"
#include "job/job.h"

/* One plan of a policy. */
struct trial {
    const struct policy *policy;
    const char *settings; /* as set: "segments=5 unit=group"; "" nothing */
    bool own;             /* the spec's policy as the spec sets it */
    bool deferred;        /* not placed yet: with the live peak as its arena, which may turn out to be larger */
    struct policy_settings set;
    struct plan_numbers plan;
    const char *peak_op, *peak_tensors; /* what sets the peak; the largest buffers that are live there */
    struct digest hash;
    double gap; /* percent above the lower bound at this live peak; set by policy_grid_all */
    bool best;  /* no other trial is better in peak or time and as good in the other; set by policy_grid_all */
};

/* Why a policy made no plan at all. */
struct refusal {
    const struct policy *policy;
    const char *why;
};

struct policy_grid {
    struct region *region;
    const struct job *job;
    uint64_t memory; /* every budget is this, in bytes, and plans are placed where policy_grid_least() needs it; 0: many
                        budgets are tried */
    FILE *progress;  /* where a line shows what is being planned; NULL: nowhere */
    double slowdown; /* of a policy with a whole front: its least peak with at most this slowdown; INFINITY: all */
    int trials;
    struct trial *trial;       /* policies in the order of their table */
    int points, left_out;      /* of a front, and those of them that were not planned */
    uint64_t front_ns;         /* that finding the front took */
    const char *approximation; /* of a front (optimum.h); NULL: none */
    int refusals;
    struct refusal *refusal;
};

/* Plans with the spec's policy as it is, with one policy, or with every policy. Before the first call everything but
 * region, job, memory, progress and slowdown is zero. Equal plans of a policy are listed once. */
enum status policy_grid_own(struct policy_grid *grid);
enum status policy_grid_policy(struct policy_grid *grid, const struct policy *policy);
enum status policy_grid_all(struct policy_grid *grid);

/* Whether the policy has a whole front, from one solve. */
bool policy_grid_has_front(const struct policy *policy);

/* Compares by peak, then by time. */
int trial_order(const struct trial *a, const struct trial *b);

/* Of a policy's trials, own: of the spec's as it is, the least peak at most this slowdown; NULL: none. */
const struct trial *policy_grid_least(struct policy_grid *grid, const struct policy *policy, bool own, double slowdown);

/* Settings, bytes, slowdown and the op that sets the peak. */
json_t *trial_json(const struct trial *trial);

/* In text: which of all policies' plans for the job is the smallest, and whether it fits into so many bytes. */
enum { SMALLEST_TEXT = 320 };
enum status policy_grid_smallest(const struct job *job, uint64_t bytes, char text[SMALLEST_TEXT]);

/* largest_batch.c. Of the spec's policy as the spec sets it, then of each policy: the largest batch with which one of
 * its plans takes at most memory bytes and at most a slowdown (INFINITY: any), the numbers of the one with the least
 * peak, and what stops the next batch. notes: texts on what else was found. */
enum status largest_batch_find(const struct job *job, uint64_t memory, double slowdown, struct region *region,
                               json_t *rows, json_t *notes);
