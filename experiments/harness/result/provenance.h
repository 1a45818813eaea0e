/* /provenance of a result file: what a run depends on besides its spec. Source, compiler, libraries, machine, data. */
#pragma once

#include "job/job.h"
#include "result/result_read.h"

void provenance_write(struct h5 *h5, const struct job *job);

/* A fact of /provenance: program, libraries, machine and, where the backend has one, device. */
struct provenance_text {
    const char *group, *name, *text;
};
enum { PROVENANCE_TEXTS = 19 };

/* Those that are known; without a backend (NULL) its libraries, ISA and device are not. Returns how many. */
int provenance_system(const struct backend *backend, struct region *region, struct provenance_text *text);

enum { ENVIRONMENT_ROWS = 23 };

/* One that differs between two files; b NULL: there is no second file. pin: a digest that determines it and is equal in
 * both, so that one of the files is wrong; or NULL. */
struct environment_difference {
    const char *name, *a, *b, *pin;
};

/* All that differ between two files, the number of threads first; without a second file (b NULL), all of the first.
 * Returns how many; region holds the texts. */
int environment_differences(struct result *a, struct result *b, struct region *region,
                            struct environment_difference found[ENVIRONMENT_ROWS]);
