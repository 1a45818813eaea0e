/* Ends of the program that a library causes: OpenMP calls exit(1) where no thread can be created, and a
 * library may write to address 0 where it gets no memory. Both become exit code 3, whose message names the limits. */
#pragma once

/* To be called at the start and, before exit code 1 can mean that runs differ, at the end. */
void abrupt_end_watch(void);
void abrupt_end_unwatch(void);
