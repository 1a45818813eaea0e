/* A bundle: complete runs as one file for a reviewer, with their specs, expected values and descriptions. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bundle/tarball.h"

struct bundle {
    struct region *region;
    int files, runs;
    bool other; /* another version of the program did a run */
    struct tar_file *file;
    json_t **run; /* by run: its numbers as `rematch show --json` has them; "path" is its name in the bundle */
};

/* Writes the result files, their specs, and what bundle_describe() adds to the archive path. The same runs give the
 * same bytes, wherever they are. ST_SPEC: one is no complete result file, or cannot be called in the bundle what its
 * experiment is called; ST_FAILED: unreadable, or the archive cannot be written. */
enum status bundle_write(int runs, const char *const *run, const char *path, FILE *out);

/* Fills a bundle, of which region is set, with the files of those runs, ordered by name. Frees the numbers. */
enum status bundle_collect(struct bundle *bundle, int runs, const char *const *run);

/* describe.c: adds README.md and ro-crate-metadata.json (RO-Crate 1.1), from the runs and files so far. */
enum status bundle_describe(struct bundle *bundle);

/* Adds a file with that text (which the bundle copies), or with the content of path; a copy of one that is there is
 * left out. ST_SPEC: another run has that name. */
enum status bundle_add(struct bundle *bundle, const char *name, const char *path, const char *text);

/* bundle_verify.c: unpacks a bundle into a temporary folder, checks each file by its digest, verifies each run
 * (analysis/verify.h), makes the files that describe them again, and compares baselines with variants, as they are and
 * as run again. Returns the exit code: 0 all of it holds, 1 something does not, 4 what could be tested here holds; else
 * why the bundle cannot be read, or 128 + the signal that stopped it. */
int bundle_verify(const char *path, bool plan_only, bool json, FILE *out);
