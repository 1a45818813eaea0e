/* Stop signals: blocked during a run and polled between steps, so that steps are always complete and no handler is
 * needed. */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* SIGINT, SIGTERM, SIGHUP and SIGUSR1, except those that were ignored when the program started, as by nohup and for a
 * shell's background jobs. (sigtimedwait() would receive a blocked signal although it is ignored.) */
sigset_t signals_of_stop(void);

/* Blocks them, and one more (0: none), for this thread and the threads that it creates. Returns what was blocked
 * before.
 */
sigset_t signals_block(int also);

/* Whether one has arrived; it stays pending, and ends the program once it is no longer blocked. */
bool signals_waiting(void);

/* A stop signal that has arrived, 0: none. */
int signals_pending(void);
