/* Work in a process of its own: reading some damaged files ends the process that reads them. */
#ifndef REMATCH_RESULT_OWN_PROCESS_H
#define REMATCH_RESULT_OWN_PROCESS_H

#include <stddef.h>

/* Does work(of, result) there; what it leaves in result, so many plain bytes, is kept, as far as it came. Returns 0
 * where it came to its end, else the exit code of the process, 128 + n for signal n, -1: no process can be had. */
int apart(void (*work)(const void *of, void *result), const void *of, void *result, size_t bytes);

#endif
