/* What the policies make of a network: each with every setting that makes sense for it there, planned and not run. */
#ifndef REMATCH_ANALYSIS_POLICY_GRID_H
#define REMATCH_ANALYSIS_POLICY_GRID_H

#include "job/job.h"

/* One plan that a policy makes. */
struct trial {
    const struct policy *policy;
    const char *settings;          /* what was set: "segments=5 unit=group"; "" nothing */
    bool own;                      /* the spec's policy as the spec sets it */
    size_t live_peak, arena, peak; /* bytes; peak: static and arena */
    double time, slowdown;
    const char *peak_op, *peak_tensors; /* what sets the peak; the largest that are alive there */
    struct digest hash;
    double gap; /* percent above the lower bound at this live peak; set by policy_grid_judge */
    bool best;  /* no other trial is better in peak or time and as good in the other; set by policy_grid_judge */
};

/* Why a policy made no plan at all. */
struct refusal {
    const struct policy *policy;
    const char *why;
};

struct policy_grid {
    struct region *region;
    const struct job *job;
    uint64_t memory; /* every budget is this, in bytes; 0: many are tried */
    FILE *watch;     /* is told what is tried; NULL: nobody is */
    double slowdown; /* of a policy with a whole front: its least peak with at most this slowdown; INFINITY: all */
    int trials, room;
    struct trial *trial;  /* policies in the order of their table */
    int points, left_out; /* of a front, and those of them that were not tried */
    int refusals;
    struct refusal *refusal;
};

/* Tries the spec's policy as it is, one policy, or every policy; zeroed but for region, job, memory, watch and slowdown
 * before the first. A plan that a policy makes twice is listed once. */
enum status policy_grid_own(struct policy_grid *tries);
enum status policy_grid_policy(struct policy_grid *tries, const struct policy *policy);
enum status policy_grid_all(struct policy_grid *tries);

/* Finds each trial's gap, and which are best. */
enum status policy_grid_judge(struct policy_grid *tries);

/* Forgets the trials and refusals, not the memory they take. */
void policy_grid_forget(struct policy_grid *tries);

/* In text: which of all policies' plans for the job is the smallest, and whether it fits into so many bytes. */
enum { SMALLEST_TEXT = 320 };
enum status policy_grid_smallest(const struct job *job, uint64_t bytes, char text[SMALLEST_TEXT]);

#endif
