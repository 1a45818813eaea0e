/* Runs a function in a process of its own: some damaged files crash the process that reads them. */
#ifndef REMATCH_RESULT_OWN_PROCESS_H
#define REMATCH_RESULT_OWN_PROCESS_H

#include <stddef.h>

/* Runs work(of, result); result, of that many plain bytes, keeps what work wrote before it ended. Returns 0 where work
 * returned, else the exit code of the process, 128 + n for signal n, -1: no process could be started. */
int apart(void (*work)(const void *of, void *result), const void *of, void *result, size_t bytes);

#endif
