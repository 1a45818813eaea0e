/* How OpenMP's threads wait for each other. A thread that spins keeps a processor from the thread it waits for, where
 * other processes want the processors too; one that sleeps costs a wake-up, which only the smallest networks notice. So
 * threads sleep at once (experiments/bench/waiting.py measures it). No result's bits depend on it. */
#ifndef REMATCH_JOB_THREAD_WAITING_H
#define REMATCH_JOB_THREAD_WAITING_H

#include <stdbool.h>
#include <stdint.h>

enum { WAITING_TEXT = 128 };

/* Chooses for the programs that this one starts: libgomp reads the environment when it is loaded. False: the
 * environment says OMP_WAIT_POLICY or GOMP_SPINCOUNT, and stays as it is. */
bool waiting_choose(void);

/* What the environment says: "OMP_WAIT_POLICY=passive". */
const char *waiting_text(char text[WAITING_TEXT]);

/* A warning of a median step that takes far longer than its best case (each op at its least); NULL: there is none. */
const char *waiting_warning(uint64_t median_ns, uint64_t best_ns, char text[WAITING_TEXT]);

#endif
