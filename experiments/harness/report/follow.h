/* Steps of a run that another process does, printed as they are committed. */
#pragma once

#include <stdio.h>

#include "base/status.h"

struct spec;

/* Prints the steps of a result file, and goes on until its run has ended. path: as it is named now or will be named
 * when it is complete. A terminal gets at most one line a second and a bar, anything else every step. ST_FAILED: the
 * run did not complete, and the message says how it ended; or the file cannot be read. */
enum status follow_file(const char *path, FILE *out);

/* The same for every run of the spec's experiment that is going on, one after the other, until none has begun within
 * ten seconds. ST_SPEC: none is going on. */
enum status follow_experiment(const struct spec *spec, FILE *out);
