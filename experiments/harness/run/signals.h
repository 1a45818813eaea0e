/* Being asked to stop: the signals that ask stay blocked in a run and are looked for between steps, so a step is always
 * whole and no handler is needed. */
#ifndef REMATCH_RUN_SIGNALS_H
#define REMATCH_RUN_SIGNALS_H

#include <signal.h>

/* SIGINT, SIGTERM and SIGHUP, but none that was ignored when the program started: nohup and a shell's background jobs
 * rely on that. (A blocked signal is delivered to sigtimedwait() though it is ignored.) */
sigset_t signals_of_stop(void);

/* Blocks them, for this thread and those it makes. */
void signals_hold(void);

/* One that arrived meanwhile, 0: none. */
int signals_pending(void);

#endif
