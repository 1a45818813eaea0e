/* Compares two result files bit by bit, and finds what their equality proves. */
#ifndef REMATCH_ANALYSIS_COMPARE_H
#define REMATCH_ANALYSIS_COMPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "result/provenance.h"

/* One of the two files. name: "baseline" and "variant" where the files are one of each, else "A", "B". */
struct compared {
    char name[16], path[512], policy[32];
    int64_t steps;
    uint64_t peak, live_peak, high_water; /* bytes; high_water 0: the run has not ended */
    double median_ns, least_ns, most_ns;  /* of the steps after the first; 0: there are none */
    double best_case_ns;                  /* timing_best_case(); 0: not known */
};

/* The deterministic columns of a step, in the order in which a difference is looked for. */
enum step_column {
    COLUMN_LOSS,
    COLUMN_GRADIENTS,
    COLUMN_PARAMETERS,
    COLUMN_STATE,
    COLUMN_METRIC,
    COLUMN_RATE,
    COLUMN_NORM,
    COLUMN_ZERO,
    STEP_COLUMNS
};

/* Plurals; keys in JSON are these with _ for blanks, and _equal. */
extern const char *const step_column_names[STEP_COLUMNS];

enum verdict { VERDICT_EQUAL, VERDICT_DIFFERS, VERDICT_NOT_CAUGHT, VERDICT_UNPROVEN, VERDICTS };

/* Reasons for which equal bits are no proof; from NOTE_CONTROL on, notes beside the verdict. */
enum remark {
    REASON_COPY,
    REASON_LOSS,
    REASON_ZERO_STEP,
    REASON_ZERO_TENSORS,
    REASON_NO_RECOMPUTATION,
    REASON_STATUS,
    REASON_STEPS,
    REASON_GAPS,
    REASON_SHORT,
    REASON_EVALUATIONS,
    REASON_FAULT,
    NOTE_CONTROL,
    NOTE_NO_DIGESTS,
    NOTE_OTHER_DATA,
    NOTE_ONES,
    REMARKS
};
const char *remark_name(enum remark remark); /* in JSON */

enum { REMARK_TEXT = 320, FAULT_TEXT = 96, ASIDE_TEXT = 400, ASIDES = ENVIRONMENT_ROWS + 16 };

/* A difference of program, machine, data or spec between the files. */
struct aside {
    char name[32], a[ASIDE_TEXT], b[ASIDE_TEXT];
};

struct comparison {
    struct compared a, b;
    bool equal;                 /* in every bit of every common step, evaluation and kept tensor */
    int64_t steps;              /* common to both */
    int64_t same[STEP_COLUMNS]; /* steps at which the column is the same */
    bool has_state;             /* the optimiser keeps any */
    int64_t evaluations, same_evaluations, tensors, same_tensors; /* common to both; tensors of /state */
    bool differs;
    int64_t first_step;     /* -1 where none */
    char first_tensor[192]; /* order within a step: as enum step_column, gradients as backwards make them */
    int64_t loss_ulp;       /* at the first differing step */
    char not_finite[16];    /* the side that ended there, because a loss or gradient was not finite; "": none */
    char fault[FAULT_TEXT]; /* a deliberate error within the steps compared; "": none */
    char remark[REMARKS][REMARK_TEXT]; /* "": it does not apply */
    int asides;
    struct aside aside[ASIDES];
    double peak_ratio, live_ratio, time_ratio; /* b : a; NaN where there is nothing to divide; time: of the medians */
    double best_case_ratio;
    bool side_by_side; /* measured in one invocation */
};

/* Two files while they are compared. */
struct pair {
    struct result *a, *b;
    struct region *region; /* of a */
    struct comparison *c;
    const struct yaml_tree *spec[2]; /* as resolved; NULL: cannot be read */
};

/* ST_OK also where they differ; ST_SPEC: not result files, or not of the same experiment (different parameters or no
 * common step); ST_FAILED: unreadable. */
enum status compare_files(const char *a, const char *b, struct comparison *comparison);

/* The verdict, and the exit code that it is: ST_OK, ST_DIFFERS or ST_UNPROVEN. */
enum verdict comparison_verdict(const struct comparison *comparison);
enum status comparison_status(const struct comparison *comparison);

/* Whether any reason except one applies. */
bool comparison_doubted(const struct comparison *comparison, enum remark but);

/* compare_proof.c: sets the fault, remarks and asides of a comparison that is otherwise complete. */
enum status comparison_judge(struct pair *pair);

/* report/compare_print.c: figures of both, differences and notes; then, as the last lines, the verdict. expected: the
 * spec's expectations were met. */
void comparison_print_figures(const struct comparison *comparison, FILE *out);
void comparison_print_verdict(const struct comparison *comparison, bool expected, FILE *out);
void comparison_json(const struct comparison *comparison, FILE *out);

#endif
