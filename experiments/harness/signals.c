#include "signals.h"

#include <stddef.h>
#include <time.h>

sigset_t signals_of_stop(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

void signals_hold(void)
{
    sigset_t set = signals_of_stop();
    sigprocmask(SIG_BLOCK, &set, NULL);
}

int signals_pending(void)
{
    sigset_t set = signals_of_stop();
    int signal = sigtimedwait(&set, NULL, &(struct timespec){0});
    return signal > 0 ? signal : 0;
}
