#include "run/signals.h"

#include <stddef.h>
#include <time.h>

sigset_t signals_of_stop(void)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    sigset_t set;
    struct sigaction now;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        if (sigaction(stops[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, stops[i]);
    return set;
}

sigset_t signals_block(int also)
{
    sigset_t set = signals_of_stop(), before;
    if (also) sigaddset(&set, also);
    sigprocmask(SIG_BLOCK, &set, &before);
    return before;
}

bool signals_waiting(void)
{
    sigset_t waiting, both, set = signals_of_stop();
    sigpending(&waiting);
    return sigandset(&both, &waiting, &set) == 0 && !sigisemptyset(&both);
}

int signals_pending(void)
{
    sigset_t set = signals_of_stop();
    int signal = sigtimedwait(&set, NULL, &(struct timespec){0});
    return signal > 0 ? signal : 0;
}
