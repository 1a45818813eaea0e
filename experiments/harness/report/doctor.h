/* `rematch doctor`: what this machine has for building and running, what is missing, and the command that mends it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* Prints one row a thing. Returns the exit code: ST_OK, or ST_MISSING where one is missing that building and testing
 * here or running the default backend needs, or where a data set's files are damaged. Backends other than the default
 * and data sets that are not here are listed, but not needed. json: one object. */
int doctor(bool json, FILE *out);

/* The internal sub-command that doctor() starts: opens a backend, and prints one line about it. A library that cannot
 * be loaded, or crashes, ends only this process. */
extern const char doctor_command[];
enum status doctor_backend(const char *name);
