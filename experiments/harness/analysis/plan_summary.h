/* What a person wants to know of a plan before anything runs: a row a stage, what the peak is made of, whether it fits,
 * and why checkpointing does not help where it does not. Gathered once, printed as text or as JSON. */
#ifndef REMATCH_ANALYSIS_PLAN_SUMMARY_H
#define REMATCH_ANALYSIS_PLAN_SUMMARY_H

#include <stdio.h>

#include "job/job.h"
#include "job/machine.h"

struct stage_row {
    struct node_range range;
    const char *group;                               /* outermost group that holds the whole stage, NULL: none */
    int output;                                      /* value that leaves the stage */
    size_t output_bytes, saved_bytes, scratch_bytes; /* saved: as the plan saves; scratch: the most of any op */
    double forward_flops, backward_flops;
    int nodes, recomputed, recomputations; /* nodes recomputed at least once; recomputations in all */
};

/* A buffer alive at the op that sets the peak. */
struct tensor_row {
    int buffer;
    size_t bytes;
};

/* What a policy with nothing set but its presets would make of the same network. */
struct choice_row {
    const struct policy *policy;
    size_t live_peak, peak; /* peak: static and arena */
    double time, slowdown;
    double gap; /* percent above the lower bound at this live peak */
};

enum { REASONS_MAX = 4 };

struct plan_summary {
    struct region *region; /* owns everything */
    const struct job *job;
    int stages, tensors;
    struct stage_row *stage;
    struct tensor_row *tensor; /* the largest first */
    int choices;
    struct choice_row *choice; /* policies that need nothing set, in the order of their table */
    struct optimum *optimum;   /* has the whole front, of which choice has some points; NULL: it was not asked for */
    size_t store_all_live;     /* live peak where everything is stored, same kernels, same relus */
    int reasons;               /* why checkpointing does not help */
    const char *reason[REASONS_MAX];
    int slow; /* nodes on a library's reference implementation: slow */
    const int *slow_node;
    struct machine_memory machine;
    size_t needed; /* bytes: static and arena */
};

/* Buffers alive at the plan's peak, the largest first. */
enum status plan_tensors(const struct plan *plan, struct region *region, struct tensor_row **tensor, int *tensors);

/* choices: plan what other policies would make of the network, too, and of one without kernels the front of `optimal`;
 * else only store_all. */
enum status plan_summary_create(const struct job *job, bool choices, struct plan_summary **overview);
void plan_summary_destroy(struct plan_summary *overview);

/* "kept", "recomputed", "3 of 5 recomputed", "recomputed, 14 times in all"; returns text (at least 64 bytes). */
char *stage_action(const struct stage_row *stage, char *text);

/* plan_print.c: name, title and what was overridden; the whole table; the figures of one or two plans side by side;
 * every op. */
void spec_print_head(const struct spec *spec, FILE *out);
void plan_summary_print(const struct plan_summary *overview, FILE *out);
void plan_summary_print_pair(const struct plan_summary *baseline, const struct plan_summary *variant, FILE *out);

/* Bytes and flops as people read them. Of a network without kernels they are exact: bytes may be set as a budget, and
 * times, which stand for flops, are in the unit of its file. */
char *plan_bytes_text(const struct network *network, size_t bytes, char *text);
char *plan_flops_text(const struct network *network, double flops, char *text);

/* Parts of it that any plan has: what is alive at the peak; every op. */
void plan_print_peak(const struct plan *plan, const struct tensor_row *tensor, int tensors, FILE *out);
void plan_print_ops(const struct plan *plan, FILE *out);

/* plan_json.c: one object. */
void plan_summary_json(const struct plan_summary *overview, bool ops, FILE *out);

#endif
