/* Graph files given as texts, planned. */
#pragma once

#include <string.h>

#include "run/job_plans.h"
#include "spec/graph_file.h"
#include "spec/spec.h"

struct planned_graph {
    struct spec *spec;
    struct job *job;
};

/* Space-separated overrides as an array, of at most 16; the texts stay in copy. Returns how many. */
int planned_overrides(char *copy, const char **argument);
/* Plans a chain of stages, or all that follows the head where the text begins with a batch. */
enum status planned_graph(const char *chain, const char *overrides, struct planned_graph *planned);
void planned_graph_done(struct planned_graph *planned);

/* Three stages that differ in every key, as in test_abstract_graph.c, which counts their live bytes op by op. */
#define THREE                                                                                                          \
    "  - {forward: 1, backward: 2, output: 10, saved: 3, gradient: 7, forward_scratch: 2, backward_scratch: 5}\n"      \
    "  - {forward: 3, backward: 5, output: 20, saved: 4, gradient: 6, forward_scratch: 1, backward_scratch: 8, "       \
    "split: true}\n"                                                                                                   \
    "  - {forward: 7, backward: 11, output: 30, saved: 5, gradient: 9, backward_scratch: 11}\n"

/* Steps with one state between them and a tape of which two never fit (Griewank and Walther, 2000, whose slots count
 * the first state): tape, state read, state written and slots - 1 stored; each step runs once and once to be taped. */
#define LONG                                                                                                           \
    "  - {repeat: 2100, forward: 1, backward: 2, output: 1000, saved: 0, gradient: 1000, forward_scratch: 10}\n"       \
    "  - {forward: 1, backward: 2, output: 1000, saved: 0, gradient: 0, backward_scratch: 9000000}\n"
#define STEPS(count) "  - {repeat: " #count ", forward: 1, backward: 0, output: 1, saved: 1000, gradient: 0}\n"

#define MASKED                                                                                                         \
    "  - {name: a, forward: 1, backward: 2, output: 10, saved: 3, gradient: 7, reads: saved}\n"                        \
    "  - {name: mask, inputs: batch, forward: 3, once: 0.5, backward: 0, output: 4, saved: 0, gradient: 0, "           \
    "forward_only: true}\n"                                                                                            \
    "  - {name: b, inputs: [a, mask], forward: 5, backward: 7, output: 10, saved: 0, gradient: 7, reads: [y], "        \
    "in_place: true}\n"                                                                                                \
    "  - {name: c, inputs: [b, a], forward: 11, backward: 0, output: 8, saved: 0, gradient: 7, reads: nothing, "       \
    "passes_gradient: true}\n"                                                                                         \
    "  - {name: loss, forward: 13, backward: 17, output: 5, saved: 0, gradient: 2, reads: x}\n"
#define PLAIN "forward: 1, backward: 1, output: 10, saved: 0, gradient: 10, reads: nothing"
#define CONCATENATED                                                                                                   \
    "  - {name: a, " PLAIN "}\n  - {name: b, " PLAIN "}\n  - {name: c, " PLAIN "}\n"                                   \
    "  - {inputs: [a, b, c], forward: 1, backward: 1, output: 30, saved: 0, gradient: 30, reads: nothing}\n"           \
    "  - {forward: 1, backward: 1, output: 1, saved: 0, gradient: 1, reads: x}\n"
