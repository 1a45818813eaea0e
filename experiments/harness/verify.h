/* Is a file what it says? Its plan, by the simulator; its steps, by running its spec again. */
#ifndef REMATCH_VERIFY_H
#define REMATCH_VERIFY_H

#include <stdbool.h>
#include <stdio.h>

/* Judges the plan in a plan or result file and, unless plan_only or there are no steps, runs the resolved spec that it
 * holds again, with that plan, in a process and a temporary folder of its own, and compares every bit. Returns the exit
 * code: 0 right and the same bits; 1 something is not, and out says which op and buffer, or step and tensor; what
 * reading or running returned otherwise, told on stderr. Where bits differ or the run cannot be repeated, out names
 * what is not as it was when the file was written. */
int verify_file(const char *path, bool plan_only, FILE *out);

#endif
