/* What no schedule can beat: floors of memory and time that hold for any word whatever, persistent or not, on the same
 * network with the same kernels, and where a plan may say what relus keep, for whatever it says. They certify how far
 * from the best possible a plan can still be. */
#ifndef REMATCH_SEARCH_BOUNDS_H
#define REMATCH_SEARCH_BOUNDS_H

#include "plan/stages.h"

struct bounds {
    size_t budget;   /* live bytes that the times below are for */
    size_t memory;   /* live bytes: the largest op, with what it must read and write */
    int memory_node; /* whose op that is */
    double floor;    /* time: every forward and backward once */
    double
        knapsack; /* time: while a node's backward runs, what later backwards read and is not live must be made again;
                     what is live fits the budget. The best choice of what to keep is a knapsack, one a node */
    double binomial; /* time: of a chain as cheap as this one's cheapest stage with values as small as its smallest, by
                        Griewank and Walther, "Algorithm 799: revolve", 2000; the floor where this is no plain chain */
    double best;     /* the largest of the three */
};

/* With at most budget live bytes. Takes time proportional to the square of the nodes. */
enum status bounds_find(const struct network *network, size_t budget, struct bounds *bounds);

/* A time as a factor of the floor, as struct plan has it; 1 where there is nothing to do. */
double bounds_slowdown(const struct bounds *bounds, double time);

/* How much slower a time is than the bound, in percent: 0 is proven optimal. */
double bounds_gap(const struct bounds *bounds, double time);

/* Least number of advances that reverse steps steps with slots checkpoints (the first state takes one of them). */
double bounds_advances(int64_t steps, int64_t slots);

#endif
