#include "signals.h"

#include <stddef.h>
#include <time.h>

sigset_t signals_of_stop(void)
{
    sigset_t set;
    struct sigaction hangup;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP); /* no nohup */
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
