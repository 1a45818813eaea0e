/* `rematch bench --costs`: a file of times measured on the spec's own nodes, which planning reads instead of flops. */
#pragma once

#include <jansson.h>

#include "train/node_timing.h"

/* Prepares the spec and its baseline, times every kind of node of both and what a step does besides, and writes the
 * file of costs (costs.h) to out, whole or not at all; NULL: to stdout, unless figures takes them. The spec's own costs
 * are not read. figures: if not NULL, the same as a tree. */
enum status bench_costs(const char *spec, int overrides, const char *const *override,
                        const struct measure_options *options, const char *out, json_t **figures);
