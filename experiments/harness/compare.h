/* Two result files, bit by bit. */
#ifndef REMATCH_COMPARE_H
#define REMATCH_COMPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "status.h"

struct comparison {
    bool equal, degenerate; /* degenerate: a loss is 0 or all gradients are: equality proves nothing */
    int64_t steps;
    int64_t losses_equal, gradients_equal, parameters_equal, state_equal; /* steps at which they are */
    bool differs;
    int64_t first_step;                        /* -1 where none */
    char first_tensor[128];                    /* order: loss, gradients in backward's order, parameters, state */
    int64_t loss_ulp;                          /* at the first differing step */
    double peak_ratio, live_ratio, time_ratio; /* b : a */
    bool side_by_side;                         /* measured in one invocation */
};

/* ST_OK also where they differ; ST_SPEC: not result files, or not of the same experiment (different parameters or no
 * common step); ST_FAILED: unreadable. */
enum status compare_files(const char *a, const char *b, struct comparison *comparison);

void comparison_print(const struct comparison *comparison, FILE *out);
void comparison_json(const struct comparison *comparison, FILE *out);

#endif
