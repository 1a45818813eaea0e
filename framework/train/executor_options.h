/* How an executor runs a plan. */
#pragma once

#include "train/fault.h"

enum memory_mode {
    MEMORY_PLANNED, /* the arena, at planned offsets */
    MEMORY_DYNAMIC, /* every buffer allocated before its first op and released after its last; at every op the allocator
                       must count the bytes of the plan */
    MEMORY_POISON,  /* PLANNED, and every buffer is filled with signalling NaNs after its last op */
};

struct executor_options {
    enum memory_mode memory;
    enum rng_mode rng;
    bool commit_every; /* recomputations move the running state too: wrong, in order to be caught */
    uint64_t seed;
    bool check_recompute; /* compare the digest of each recomputed value with its first forward's */
    struct fault fault;
};
