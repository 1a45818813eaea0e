/* One process a run, so that peaks, contexts and crashes stay apart: the program starts itself with an internal
 * sub-command and hears of the run through a pipe. */
#ifndef REMATCH_RUN_CHILD_H
#define REMATCH_RUN_CHILD_H

#include "run/training.h"

struct child {
    const char *spec; /* path */
    int overrides;
    const char *const *override; /* key=value */
    bool baseline, quiet;
    bool passing;         /* what it leaves is removed afterwards: nothing is said of where it is */
    int64_t steps;        /* at most so many; 0: as many as the spec says */
    const char *resolved; /* the spec as it was planned, which it must still be; NULL: it was not planned */
};

/* Gives this invocation a name, once, that all its runs carry: their times were measured side by side. */
void child_name_invocation(void);

/* Runs it and waits. A signal to stop is passed on: the run then ends after its step; a second one ends it at once.
 * *code is what the program should exit with: 0, the run's own code, or 128 + signal; its message is already out. */
enum status child_run(const struct child *child, struct run_report *report, int *code);

/* The internal sub-command: what the child does with the arguments that child_run gave it; returns its exit code. */
int child_main(int count, const char *const *arguments);

/* Its name. */
extern const char child_command[];

#endif
