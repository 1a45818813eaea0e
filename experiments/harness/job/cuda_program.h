/* Programs beside this one that are this one with another backend linked in: rematch-cuda beside rematch. A backend
 * whose libraries take time and memory as soon as they are loaded has one, so that who does not use it does not pay. */
#ifndef REMATCH_JOB_CUDA_PROGRAM_H
#define REMATCH_JOB_CUDA_PROGRAM_H

#include "base/status.h"

/* What the program was called with, for another to be called with; to be said once, at the start. */
void cuda_program_remember(char *const *arguments);

/* Becomes the sibling that has the backend, where this program has not; returns where none was built. ST_MISSING: one
 * was built, and is not beside this program. To be called before anything is printed or written. */
enum status cuda_program_become(const char *backend);

/* Becomes the program itself once more, for libraries to read the environment anew; returns where that fails. */
void cuda_program_restart(void);

#endif
