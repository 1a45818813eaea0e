/* `rematch report`: result and plan files as one page, as figures for papers, and as a trace. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

struct report_request {
    int files;
    const char *const *file;
    const char *page, *figures, *trace; /* a file, a folder, a file; NULL: not asked for */
    bool pareto;                        /* the plans of all policies, however large the network */
};

/* Reads every file before anything is written. ST_SPEC, ST_FAILED: a file is no result file, is damaged, or cannot be
 * written, or the page or trace would replace another kind of file; ST_MISSING: figures need a program that is not
 * installed. out: what was written. */
enum status report_make(const struct report_request *request, FILE *out);
