/* The progress of a run on stderr: step lines, and on a terminal a bar below them. A line wider than the terminal
 * loses, in this order: columns of the bar, the live peak, the time left, the step's time, the loss. */
#pragma once

#include <stdio.h>

#include "result/record.h"

struct progress {
    FILE *out; /* NULL: print nothing */
    bool terminal, colour;
    int64_t steps, done, first; /* first: steps that earlier processes did */
    uint64_t start, last_line;  /* ns */
    bool bar_shown;
};

struct progress progress_begin(FILE *out, int64_t steps);

/* Prints a line for the first steps and the last, else at most one a second. */
void progress_step(struct progress *progress, const struct step_record *step);
void progress_eval(struct progress *progress, const struct eval_record *eval, const char *split);

/* Erases the bar. */
void progress_end(struct progress *progress);
