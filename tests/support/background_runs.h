/* Runs of small.yaml that go on while a test looks at them, stops them, kills them. */
#ifndef REMATCH_TESTS_SUPPORT_BACKGROUND_RUNS_H
#define REMATCH_TESTS_SUPPORT_BACKGROUND_RUNS_H

#include <sys/types.h>

#include "cli.h"

/* Starts one in the folder, as the leader of a group of its own; before: what the shell does first ("trap '' INT"), or
 * "". What it says goes to the file stderr. */
pid_t background_start(const struct cli *cli, const char *before, const char *overrides);

/* One that goes on for ever; returns once a step of it is in its file. */
pid_t background_long_run(const struct cli *cli, const char *before);

/* Its exit code; a program that does not end within a minute is killed. */
int background_end(pid_t pid);

/* Sends a signal, by its name, to the process that does the training; a stopped one has stopped on return. */
void background_signal(pid_t pid, const char *signal);

/* The first file below results/small whose name ends in tail; false: none yet. */
bool background_result(const struct cli *cli, const char *tail, char path[512]);

/* Steps in its .part. */
long background_steps(const struct cli *cli);

/* What it has said so far on stderr contains text. */
bool background_said(const struct cli *cli, const char *text);

#endif
