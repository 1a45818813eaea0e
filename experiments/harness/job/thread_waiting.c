#include "job/thread_waiting.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const keys[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"};
static const double far_above = 2;

bool waiting_choose(void) { return !getenv(keys[0]) && !getenv(keys[1]) && setenv(keys[0], "passive", true) == 0; }

const char *waiting_text(char text[WAITING_TEXT])
{
    size_t used = 0;
    snprintf(text, WAITING_TEXT, "libgomp's default");
    for (size_t i = 0; i < sizeof keys / sizeof *keys && used < WAITING_TEXT; i++) {
        const char *value = getenv(keys[i]);
        if (value)
            used += (size_t)snprintf(text + used, WAITING_TEXT - used, "%s%s=%s", used ? " " : "", keys[i], value);
    }
    return text;
}

const char *waiting_warning(uint64_t median_ns, uint64_t best_ns, char text[WAITING_TEXT])
{
    const double factor = best_ns ? (double)median_ns / (double)best_ns : 0;
    if (factor < far_above) return NULL;
    snprintf(text, WAITING_TEXT, "the median step takes %.1f times its best case: other processes use the processors",
             factor);
    return text;
}
