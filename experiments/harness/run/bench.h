/* `rematch bench`: files of what was timed on the spec's own nodes: costs, which planning reads instead of flops, and
 * wisdom, by which convolutions are chosen instead of by rule. */
#ifndef REMATCH_RUN_BENCH_H
#define REMATCH_RUN_BENCH_H

#include "train/node_timing.h"

/* Prepares the spec and its baseline, times every kind of node of both and what a step does besides, and writes the
 * file of costs (costs.h) to out, whole or not at all; NULL: to stdout. The spec's own costs are not read. Errors
 * are already reported on stderr. */
enum status bench_costs(const char *spec, int overrides, const char *const *override,
                        const struct measure_options *options, const char *out);

/* Prepares the spec, times every way to do every pass of its convolutions, and writes the fastest beside the rule's as
 * a file of wisdom (wisdom_file.h), as above. The spec's own conv.algorithm and conv.wisdom are not read. */
enum status bench_convolutions(const char *spec, int overrides, const char *const *override,
                               const struct measure_options *options, const char *out);

#endif
