/* Lower bounds of memory and time for every schedule, persistent or not, on the same network with the same kernels.
 * They bound how far a plan is from the optimum. Of a network in slices they are those of one slice alone, times of it
 * times the slices, or those beside ops of the whole batch, where what is kept may be divided: whichever is higher. */
#pragma once

#include "backend/network.h"

struct bounds {
    size_t budget;   /* live bytes that the times below are for */
    size_t memory;   /* live bytes: of the largest op, with what it reads and writes and with waiting gradients */
    int memory_node; /* the node of that op */
    double floor;    /* time: every forward and backward once */
    double knapsack; /* time: of one event, what later ones read and is not kept is recomputed (knapsack_bound.h) */
    /* Time: of a chain of the cheapest stage with values of the smallest size, by Griewank and Walther, "Algorithm 799:
     * revolve", 2000, with as many slots as fit beside any one backward, its gradients, saved tensors and scratch; and
     * for each stage whose saved tensors do not fit there another forward. The floor where the network is no plain
     * chain. */
    double binomial;
    double closure; /* time: of one event as well, where what is recomputed needs its inputs (closure_bound.h) */
    double best;    /* the largest */
    bool of_slice;  /* they are those of one slice alone */
};

/* With at most budget live bytes. Takes time proportional to n^2 for n nodes, up to fixed numbers of items, of branches
 * and of edges of flow networks. */
struct bounds bounds_find(const struct network *network, size_t budget);

/* A time as a multiple of the floor, as in struct plan; 1 where the floor is 0. */
double bounds_slowdown(const struct bounds *bounds, double time);

/* How much slower a time is than the bound, in percent: 0 is proven optimal. */
double bounds_gap(const struct bounds *bounds, double time);

/* Least number of advances that reverse steps steps with slots checkpoints (the first state takes one of them). */
double bounds_advances(int64_t steps, int64_t slots);
