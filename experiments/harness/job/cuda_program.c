#include "job/cuda_program.h"

#include <errno.h>
#include <stdio.h>
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
    char self[4096], path[sizeof self + 64];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (backend_find(backend) || !remembered || length <= 0) return ST_OK;
    self[length] = 0;
    snprintf(path, sizeof path, "%s-%s", self, backend);
    execv(path, remembered);
    return was_built(backend) ? fail(ST_MISSING, "backend '%s' is in %s: %s", backend, path, strerror(errno)) : ST_OK;
}
