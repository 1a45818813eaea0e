/* What a run depends on besides its spec: program, libraries, machine, data, as its file says. */
#ifndef REMATCH_RESULT_SURROUNDINGS_H
#define REMATCH_RESULT_SURROUNDINGS_H

#include "result/result.h"

enum { SURROUNDINGS = 23 };

/* One that is not the same in two files; b NULL: there is no second file. pin: the digest that leaves no choice for it
 * and is the same in both, so that one of the files is wrong; NULL: there is none. */
struct surrounding {
    const char *name, *a, *b, *pin;
};

/* What differs between two files, the number of threads first; where there is no second (b NULL), all that the first
 * says. Returns how many; texts are region's. */
int surroundings_find(struct result *a, struct result *b, struct region *region,
                      struct surrounding found[SURROUNDINGS]);

#endif
