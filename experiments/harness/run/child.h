/* Each run has a process of its own, so that memory peaks, contexts and crashes stay separate: the program starts
 * itself with an internal sub-command and receives a report in shared memory. */
#pragma once

#include "run/training.h"

struct child {
    const char *spec; /* path */
    int overrides;
    const char *const *override; /* key=value */
    bool baseline, quiet;
    bool resume;    /* goes on from its state file, if there is one */
    bool temporary; /* its result file is removed afterwards: messages do not name it, and it writes no state */
    int64_t steps;  /* at most; 0: as many as the spec has */
    const struct job *planned; /* whose plan it runs, and whose spec must not have changed; NULL: it plans itself */
};

/* Names this invocation in the environment, unless the process that started it did. Runs with the same name were
 * measured side by side. */
void child_name_invocation(void);
const char *child_invocation(void);

/* Runs it and waits. A stop signal is forwarded: the run then ends after its step; a second one ends it at once. *code:
 * the exit code for this program: 0, the run's own, or 128 + signal, whose message is already printed. */
enum status child_run(const struct child *child, struct run_report *report, int *code);

/* The internal sub-command: runs with the arguments that child_run() passed, and returns the exit code. */
int child_main(int count, const char *const *arguments);

extern const char child_command[];
