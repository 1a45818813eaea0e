/* Questions about a spec that planning answers: the memory and time of every policy's plans, the largest batch that
 * fits, the least memory at a slowdown, what sets the peak. Nothing runs. */
#pragma once

#include "console/arguments.h"
#include "job/job.h"

/* As in struct command. */
enum {
    QUERY_OPTIONS = 1u << OPTION_PARETO | 1u << OPTION_CSV | 1u << OPTION_MAX_BATCH | 1u << OPTION_MIN_MEMORY |
                    1u << OPTION_EXPLAIN | 1u << OPTION_MEMORY | 1u << OPTION_SLOWDOWN
};

struct plan_query {
    const struct question *question; /* NULL: none was asked */
    bool json, csv;                  /* neither: text */
    uint64_t memory;                 /* bytes; 0: not given */
    double slowdown;                 /* INFINITY: not given */
};

/* Reads the options of the command line. ST_SPEC: they exclude each other, or a value is wrong. */
enum status plan_query_read(const struct arguments *arguments, struct plan_query *query);

/* Answers on out. */
enum status plan_query_answer(const struct plan_query *query, const struct job *job, FILE *out);
