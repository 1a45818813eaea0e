/* Questions about a spec that planning answers: the memory and time of every policy's plans, the largest batch that
 * fits, the least memory at a slowdown, what sets the peak. Nothing runs. */
#ifndef REMATCH_ANALYSIS_PLAN_QUERY_H
#define REMATCH_ANALYSIS_PLAN_QUERY_H

#include "analysis/figures.h"
#include "analysis/policy_grid.h"
#include "console/arguments.h"

enum output_format { OUTPUT_TEXT, OUTPUT_CSV, OUTPUT_JSON };

/* As in struct command. */
enum {
    QUERY_OPTIONS = 1u << OPTION_PARETO | 1u << OPTION_CSV | 1u << OPTION_MAX_BATCH | 1u << OPTION_MIN_MEMORY |
                    1u << OPTION_EXPLAIN | 1u << OPTION_MEMORY | 1u << OPTION_SLOWDOWN
};

struct plan_query {
    const struct question *question; /* NULL: none was asked */
    enum output_format form;
    uint64_t memory; /* bytes; 0: not given */
    double slowdown; /* a slowdown; INFINITY: not given */
};

/* Reads the options of the command line. ST_SPEC: they exclude each other, or a value is wrong. */
enum status plan_query_read(const struct arguments *arguments, struct plan_query *query);

/* Answers on out. */
enum status plan_query_answer(const struct plan_query *query, const struct job *job, FILE *out);

/* The largest batch with which some setting of a policy fits. */
struct batch_row {
    const struct policy *policy;
    bool own;        /* the spec's policy as the spec sets it */
    int64_t fits;    /* 0: none does */
    int64_t fails;   /* the least batch above it that does not; 0: none was tried */
    struct trial at; /* of the least peak among the settings; at batch fits, or 1 where none fits */
    size_t next;     /* the least peak at batch fails; 0: see why */
    const char *why; /* why batch fails has no plan, or none that is fast enough; NULL: its peak alone is too high */
    int64_t odd;     /* a batch that does not fit although fits, which is larger, does; 0: none was found */
};

/* The reason why, where plans would fit but are too slow. */
extern const char batch_slow[];

/* Compares trials by peak, then by time. */
int trial_order(const struct trial *a, const struct trial *b);

struct batches {
    int rows;
    struct batch_row *row; /* the spec's own first */
    int64_t most;          /* the largest batch that can be planned */
};

/* largest_batch.c: largest batches, by doubling and halving, for the spec's policy and every other. */
enum status batches_find(const struct plan_query *query, const struct job *job, struct region *region,
                         struct batches *batches);

struct answer {
    const struct plan_query *query;
    const struct job *job;
    struct policy_grid grid;
    size_t baseline; /* live peak of store_all, relus as written, outputs kept: 100 % of a share */
    struct batches batches;
    json_t *figures; /* as --json has them */
};

/* report/query_print.c: one function a question. */
void print_pareto(const struct answer *answer, FILE *out);
void print_pareto_csv(const struct answer *answer, FILE *out);
void print_max_batch(const struct answer *answer, FILE *out);
void print_min_memory(const struct answer *answer, FILE *out);
void print_explain(const struct answer *answer, FILE *out);

#endif
