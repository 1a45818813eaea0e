/* Integer programmes, solved by COIN-OR's program cbc where it is installed. */
#pragma once

#include <stdbool.h>

#include "base/region.h"

/* Whether PATH has it. */
bool solver_found(void);

struct solver_answer {
    bool optimal, infeasible; /* as the solver reports; both false: it was stopped */
    double bound;             /* of the objective, which no solution undercuts; -INFINITY: unknown */
    char *solution;           /* the solver's file, not trusted; NULL: there is no solution */
};

/* A folder of one's own below TMPDIR for the files of one problem, removed with all that is in it; ST_FAILED. */
enum status solver_folder(struct region *region, char **folder);
void solver_remove(const char *folder);

/* Minimizes folder/model.lp within about so many seconds. A stop signal ends the solver, then
 * the folder is removed and the signal takes its course. ST_MISSING: there is no solver; ST_FAILED: it cannot be run,
 * failed, or left no answer. */
enum status solver_run(const char *folder, double seconds, struct region *region, struct solver_answer *answer);
