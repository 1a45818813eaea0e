/* rematch-cuda: the same program in the same folder, with another backend linked in. Libraries that take time and
 * memory as soon as they are loaded are linked into such a program only, so that other runs do not pay for them. */
#pragma once

#include "base/status.h"

/* Keeps the program's arguments, for starting the other with them; to be called first in main(). */
void cuda_program_remember(char *const *arguments);

/* Unless this program has the backend, replaces this process by the program that has it; returns if none was built.
 * ST_MISSING: it was built, but is not in this folder. To be called before anything is printed or written. */
enum status cuda_program_become(const char *backend);
