/* Runs of small.yaml in the background, which a test reads, stops or kills. */
#pragma once

#include <sys/types.h>

#include "cli.h"

/* Starts a run in the folder, as the leader of a process group; before: a shell command to run first ("trap '' INT"),
 * or
 * "". Its messages go to the file stderr. */
pid_t background_start(const struct cli *cli, const char *before, const char *overrides);

/* Starts a run without end; returns once a step is in its file. */
pid_t background_long_run(const struct cli *cli, const char *before);

/* Its exit code; a program that does not end within a minute is killed. */
int background_end(pid_t pid);

/* Sends a signal, by its name, to the process that trains; after STOP, returns once it has stopped. */
void background_signal(pid_t pid, const char *signal);

/* The first file below results/small whose name ends in tail; false: none yet. */
bool background_result(const struct cli *cli, const char *tail, char path[512]);

/* Steps in the .part. */
long background_steps(const struct cli *cli);

/* Whether its messages so far contain text. */
bool background_said(const struct cli *cli, const char *text);
