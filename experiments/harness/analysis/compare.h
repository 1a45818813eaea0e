/* Compares two result files bit by bit, and finds what their equality proves. */
#pragma once

#include "analysis/json_tree.h"
#include "result/result_read.h"

/* The deterministic columns of a step, in the order in which a difference is looked for. */
enum step_column {
    COLUMN_LOSS,
    COLUMN_GRADIENTS,
    COLUMN_PARAMETERS,
    COLUMN_STATE,
    COLUMN_RUNNING,
    COLUMN_METRIC,
    COLUMN_RATE,
    COLUMN_NORM,
    COLUMN_ZERO,
    STEP_COLUMNS
};

/* A plural; keys in JSON are these with _ for blanks, and _equal. */
const char *step_column_name(enum step_column column);

enum verdict { VERDICT_EQUAL, VERDICT_DIFFERS, VERDICT_NOT_CAUGHT, VERDICT_UNPROVEN, VERDICTS };

enum { FAULT_TEXT = 96 };

struct comparison {
    const char *name[2];        /* "baseline" and "variant" where the files are one of each, else "A", "B" */
    int64_t steps;              /* common to both */
    int64_t same[STEP_COLUMNS]; /* steps at which the column is the same */
    bool present[STEP_COLUMNS]; /* false: the optimiser keeps no state, or the network no running state */
    int64_t evaluations, same_evaluations, tensors, same_tensors; /* common to both; tensors of /state */
    bool differs;           /* in some bit of a common step, evaluation or kept tensor */
    int64_t first_step;     /* -1 where none */
    char first_tensor[192]; /* order within a step: as enum step_column, gradients as backwards make them */
    int64_t loss_ulp;       /* at the first differing step */
    const char *not_finite; /* the side that ended there, because a loss or gradient was not finite; NULL: none */
    char fault[FAULT_TEXT]; /* a deliberate error within the steps compared; "": none */
    const char *claim;      /* what stands for a plan in a file of another program; NULL: both have plans */
    double peak_ratio, live_ratio, time_ratio; /* b : a; NaN where there is nothing to divide; time: of the medians */
    double best_case_ratio;
    bool side_by_side; /* measured in one invocation */
    bool disturbed;    /* a side waited for processors: analysis/time_doubts.h */
    /* Under the keys of --json: "reasons" for which equal bits are no proof, and "notes" beside the verdict, {name,
     * text}; "claim", text or null; "unlike", differences of program, machine, data or spec, {name, a, b}; "a" and "b",
     * numbers of each file.
     */
    json_t *json;
};

/* Two files while they are compared. */
struct pair {
    struct result *a, *b;
    struct comparison *c;
    uint64_t evaluations[2];
    const struct yaml_tree *spec[2]; /* as resolved; NULL: cannot be read */
};

/* ST_OK also where they differ; ST_SPEC: not result files, or not of the same experiment (different parameters or no
 * common step); ST_FAILED: unreadable. The numbers of a comparison are to be freed, whatever the status. */
enum status compare_files(const char *a, const char *b, struct comparison *comparison);

/* The verdict, and the exit code that it is: ST_OK, ST_DIFFERS or ST_UNPROVEN. */
enum verdict comparison_verdict(const struct comparison *comparison);
enum status comparison_status(const struct comparison *comparison);

/* The text of a reason; NULL: it does not apply. */
const char *comparison_reason(const struct comparison *comparison, const char *name);

/* proof_reasons.c: sets the fault, reasons, notes and differences of a comparison that is otherwise complete. */
enum status comparison_judge(struct pair *pair);

/* report/experiment_print.c: numbers of both, differences and notes; then, as the last lines, the verdict. expected:
 * the spec's expectations were met. And all of them as one tree, as `rematch compare --json` has them. */
void comparison_print_numbers(const struct comparison *comparison, FILE *out);
void comparison_print_verdict(const struct comparison *comparison, bool expected, FILE *out);
json_t *comparison_json(const struct comparison *comparison);
