/* Long work, counted, for a program that shows its progress. */
#pragma once

/* Called by searches every so often: what is being done, and the share of it that is done, 0 to 1, by what is counted;
 * one search may follow another. NULL, as at first: nothing is called. Results do not depend on it. */
extern void (*work_watch)(const char *what, double share);

static inline void work_report(const char *what, double done, double all)
{
    if (work_watch) work_watch(what, done < all ? done / all : 1);
}
