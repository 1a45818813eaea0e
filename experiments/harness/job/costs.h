/* Measured times that planning uses instead of flops: those of a run's result file (result/costs_read.h). */
#pragma once

#include "plan/plan.h"

struct costs {
    const char *path, *run_id; /* of the result file */
    const char *where;    /* "Intel Xeon, avx512, 2 threads, own kernels, definition 2": where it ran, and with what */
    bool here;            /* it is the same here */
    double rest;          /* ns of a step besides forwards, backwards, copies and additions */
    double add, copy;     /* ns a byte of gradient */
    struct digest digest; /* costs_digest() */
};

/* Of the times of all nodes and the rest of a step. */
struct digest costs_digest(const struct cost *cost, int nodes, double rest, double add, double copy);

/* A whole step of the plan, in ns: its passes, copying and adding gradients, and the rest. */
double costs_predict(const struct costs *costs, const struct plan *plan);

/* By how many percent a prediction misses a measured time of that name: "1.7 % less than measured"; "" without a
 * measured time. Returns text (at least 64 bytes). */
char *costs_miss(double predicted, double measured, const char *called, char *text);
