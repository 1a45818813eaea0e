/* How OpenMP threads wait for each other. On a shared machine, a spinning thread may occupy the processor of the thread
 * that it waits for; a sleeping one must be woken, which slows only the smallest networks. So threads sleep at once
 * (experiments/bench/waiting.py measures it). No bit of a result depends on it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WAITING_TEXT = 128 };

/* Sets OMP_WAIT_POLICY for the programs that this one starts: libgomp reads the environment when it is loaded. False:
 * the environment has OMP_WAIT_POLICY or GOMP_SPINCOUNT, and is not changed. */
bool waiting_choose(void);

/* The setting in the environment: "OMP_WAIT_POLICY=passive". */
const char *waiting_text(char text[WAITING_TEXT]);

/* A warning if the median step takes far longer than the best case, else NULL. */
const char *waiting_warning(uint64_t median_ns, uint64_t best_ns, char text[WAITING_TEXT]);
