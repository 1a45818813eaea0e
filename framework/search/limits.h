/* What the searches for schedules may take: a row a limit. `make bench-limits` halves and doubles each, and prints
 * what that does to time and to plans. Limits of types, such as the bits of a word, lie where the
 * types are declared. */
#pragma once

enum {
    /* Pool: members that are placed for one answer. */
    POOL_SEARCHED = 12,        /* by the search for placements, which may take a second each */
    POOL_PLACED = 48,          /* quickly, one after the other */
    POOL_PLACED_NODES = 60000, /* times the nodes of the network, with some twenty buffers each */
    POOL_SLICED_POINTS = 64,   /* of a front in slices, whose bytes are known only once they are lowered */

    /* Chain, the programme on stages: time and memory grow with the square of the stages. */
    CHAIN_STAGES = 1 << 14,
    CHAIN_RUN_NODES = 12,         /* of a run of several stages */
    CHAIN_FREE_NODES = 11,        /* of a stage, every subset of which is examined */
    CHAIN_SUBSETS = 1 << 26,      /* subsets times the square of the stage's nodes */
    CHAIN_FEW = 60000,            /* alternatives up to which every visit is solved at once */
    CHAIN_MANY = 20000000,        /* and after some visits, whose front is a ceiling */
    CHAIN_WHOLE = 3000000,        /* the same of a whole front, which the ceiling bounds less */
    CHAIN_STEPS = 300000000,      /* comparisons of envelopes under a ceiling, up to 80 ns each */
    CHAIN_CUTS = 32,              /* stages before which passes end, of more alternatives than these */
    CHAIN_CUT_STAGES = 6,         /* least distance of two of them */
    CHAIN_NEAR = 4,               /* stages of passes that may end anywhere there */
    CHAIN_POINTS = 128,           /* of a front there */
    CHAIN_SKETCH_POINTS = 16,     /* of a front that only shows where to search */
    CHAIN_DISTINCT_SHARE = 20,    /* stages of which one part is equal to others have short fronts */
    CHAIN_NEAR_SHARE = 32,        /* the part of a front below a limit that is solved */
    CHAIN_FIRST_SHARE = 64,       /* and that of least memory */
    CHAIN_FRONT_STAGES = 1 << 12, /* of a network whose whole front is found */

    /* DTR's simulation. */
    DTR_LIMITS = 10,     /* above a limit, and as many below it and just below it */
    DTR_BELOW_SHARE = 4, /* the part below a limit in which they are */
    DTR_NEAR_SHARE = 64, /* the part just below it */
    DTR_NODES = 45000,   /* simulated by all limits above it together */

    /* Drops: outputs that are recomputed once. */
    DROPS_WORK = 30000000, /* nodes of all evaluations, about 10 ns each */
    DROPS_KINDS = 8,       /* whose subsets are all tried */
    DROPS_KINDS_LISTED = 48,
    DROPS_EXACT_NODES = 128, /* up to these each drop is the best of all; else of those that looked best before */

    /* States: beams over sets of live values. */
    STATES_WIDE = 2000,     /* states expanded of each position for a limit, of STATES_WIDE_NODES nodes */
    STATES_NARROW = 600,    /* for one limit of many */
    STATES_LEAST = 200,     /* for least memory, where hardly anything fits */
    STATES_WIDE_NODES = 64, /* with more nodes, the width falls with their third power */
    STATES_DEEP = 2,        /* of each number of recomputations and part of the limit; rises with fewer nodes, too */
    STATES_COMPLETE_NODES = 20,    /* networks that are searched whole as a rule */
    STATES_COMPLETE_WIDTH = 20000, /* of a beam that leaves no state of these out */
    STATES_FRONT_LIMITS = 16,      /* of a whole front */
    STATES_LEAST_RESOLUTION = 500, /* steps of bisections for least memory */
    STATES_FLOOR_SHARE = 8,        /* a limit that is so near the least of the pool is searched with it */

    /* Windows of a schedule that are searched again. */
    WINDOWS_WORK = 300000000, /* events that all windows evaluate, about 10 ns each */
    WINDOWS_WINDOW = 2000000, /* and as many as searching one window takes */
    WINDOWS_STARTS = 3,       /* members that are improved */
    WINDOWS_EVENTS = 20,      /* of a window, of which the next one begins half as many before */
    WINDOWS_AGAIN = 64,       /* nodes that it may recompute */
    WINDOWS_WIDTH = 40,       /* of its beam */
    WINDOWS_RESULTS = 8,      /* of its beam that are evaluated */
    WINDOWS_AHEAD = 48,       /* earlier backwards that bound a state */

    /* Bounds. */
    BOUNDS_KNAPSACK_ITEMS = 300000000, /* scanned by relaxed knapsacks, about 2 ns each */
    BOUNDS_BRANCHES = 20000,           /* of exact knapsacks; after them items may be divided */
    BOUNDS_CLOSURE_EDGES = 4000000,    /* scanned by all flows */
    BOUNDS_CLOSURE_ROUNDS = 50,        /* prices of a byte, of one moment */

    /* Other policies as members. */
    RIVALS_NUMBER = 64,         /* values of a setting that is a number */
    RIVALS_NUMBER_NODES = 1000, /* of networks where these are tried: few slots recompute a node often */

    /* Slices. */
    SLICES_BATCHES = 64,       /* points of a slice's front that are run slice by slice */
    SLICES_PHASES = 6,         /* of the network that micro-batches pass one after the other */
    SLICES_PHASE_CUTS = 24,    /* places where the last of them begins */
    SLICES_STRETCHES = 24,     /* of sliced stages that keep only their input and output */
    SLICES_STRETCH_POINTS = 6, /* of such a stretch's front */
    SLICES_AROUND_POINTS = 12  /* of the front of what is around it */
};

/* Beams of states, which leave out different ones (struct state_effort). A row: the narrowest search that asks the
 * beam, parts of the limit, the estimate, and whether states are told apart by their recomputations, too. */
#define STATES_BEAMS(BEAM)                                                                                             \
    BEAM(LEAST, 1, BACKWARDS, false)                                                                                   \
    BEAM(LEAST, 16, ITEMS, true)                                                                                       \
    BEAM(NARROW, 8, BACKWARDS, false)                                                                                  \
    BEAM(NARROW, 1, ITEMS, false)                                                                                      \
    BEAM(NARROW, 8, ITEMS, false)                                                                                      \
    BEAM(NARROW, 16, ITEMS, false)                                                                                     \
    BEAM(NARROW, 16, INPUTS, false)                                                                                    \
    BEAM(NARROW, 48, INPUTS, false)                                                                                    \
    BEAM(WIDE, 64, ITEMS, true)                                                                                        \
    BEAM(LEAST, 64, BACKWARDS, true)
