/* Wisdom: ways to do passes that were chosen elsewhere, by timing them once, and are kept, so that runs choose alike.
 */
#ifndef REMATCH_BACKEND_WISDOM_H
#define REMATCH_BACKEND_WISDOM_H

#include "model/graph.h"

/* The way to do a pass of every node of one key (graph_node_key(), whatever its activation). */
struct wisdom_row {
    const char *key;
    int pass; /* enum pass */
    struct way way;
    const char *place; /* where it was read, for messages: "FILE:LINE" */
};

struct wisdom {
    const char *path, *remedy; /* for messages: where it is from, and how it is made anew */
    int rows;
    const struct wisdom_row *row;
};

/* As the keys of files, by enum pass, NULL-terminated. */
extern const char *const pass_names[PASSES + 1];

/* NULL: it is not there. */
const struct wisdom_row *wisdom_find(const struct wisdom *wisdom, const char *key, enum pass pass);

#endif
