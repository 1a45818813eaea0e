/* Two result files, bit by bit. */
#ifndef REMATCH_COMPARE_H
#define REMATCH_COMPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "status.h"

/* What is told of each of the two. */
struct compared {
    char path[512], policy[32];
    int64_t steps;
    uint64_t peak, live_peak, high_water; /* bytes; high_water 0: the run has not ended */
    double median_ns, least_ns, most_ns;  /* of the steps after the first; 0: there are none */
    double undisturbed_ns;                /* timing_undisturbed(); 0: not known */
};

struct comparison {
    struct compared a, b;
    bool equal, degenerate; /* degenerate: a loss is 0 or all gradients are: equality proves nothing */
    int64_t steps;          /* common to both */
    int64_t losses_equal, gradients_equal, parameters_equal, state_equal; /* steps at which they are */
    bool differs;
    int64_t first_step;                        /* -1 where none */
    char first_tensor[128];                    /* order: loss, gradients in backward's order, parameters, state */
    int64_t loss_ulp;                          /* at the first differing step */
    double peak_ratio, live_ratio, time_ratio; /* b : a; NaN where there is nothing to divide; time: of the medians */
    double undisturbed_ratio;
    bool side_by_side; /* measured in one invocation */
};

/* ST_OK also where they differ; ST_SPEC: not result files, or not of the same experiment (different parameters or no
 * common step); ST_FAILED: unreadable. */
enum status compare_files(const char *a, const char *b, struct comparison *comparison);

void comparison_print(const struct comparison *comparison, FILE *out);
void comparison_json(const struct comparison *comparison, FILE *out);

#endif
