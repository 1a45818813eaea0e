/* The pool of policies that fill a budget, and their choice from it: what the engines of search/ find, and the
 * schedules of the other policies. */
#pragma once

#include "policies/policy.h"
#include "search/pool.h"

/* A pool with what depends on no limit: of engines_prepare(), of slices, and the schedules of every policy without a
 * budget, with all values of its switches and choices and numbers up to RIVALS_NUMBER (of a large network with its
 * presets); none of these where every stage is a single node, since the programme on stages is never behind them.
 * without: by enum engine, those left out; NULL: none. */
struct pool *rivals_pool(const struct network *network, const struct plan_options *options, const bool *without);

/* What a policy emits that fills a budget: the fastest schedule of the pool that can be placed within it, for the least
 * budget that of least arena. ST_SPEC: none keeps it; the error names the smallest that one keeps. */
enum status rivals_emit(const struct policy_input *input, const char *policy, const char *budget, const bool *without,
                        struct schedule *schedule);

/* The pool with schedules over the whole range of bytes. */
struct pool *rivals_front(const struct network *network, const struct plan_options *options);
