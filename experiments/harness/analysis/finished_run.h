/* A run that need not be repeated: its completed file is there. */
#pragma once

#include "run/training.h"

/* The report of the completed run of that id and variant ("baseline" or "variant") in folder, as at its end, but of its
 * summary. invocation: of that one alone, NULL: of any. False: there is none; a file that cannot be used is named on
 * stderr. */
bool finished_run(const char *folder, const char *id, const char *variant, const char *invocation,
                  struct run_report *report);
