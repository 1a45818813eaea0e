#include "job/cuda_program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "build.h"

static char *const *remembered;

void cuda_program_remember(char *const *arguments) { remembered = arguments; }

static bool was_built(const char *backend)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", backend);
    return strstr(" " BUILD_BACKENDS " ", word) != NULL;
}

void cuda_program_restart(void) { execv("/proc/self/exe", remembered); }

enum status cuda_program_become(const char *backend)
{
    char self[PATH_MAX], path[sizeof self + 64];
    if (backend_find(backend) || !remembered || !realpath("/proc/self/exe", self)) return ST_OK;
    snprintf(path, sizeof path, "%s-%s", self, backend);
    execv(path, remembered);
    return was_built(backend) ? fail(ST_MISSING, "backend '%s' is in %s: %s", backend, path, strerror(errno)) : ST_OK;
}
