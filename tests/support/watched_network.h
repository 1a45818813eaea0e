/* A network whose kernels are watched: before each pass of a node a function of the test sees its arguments. */
#ifndef REMATCH_TESTS_SUPPORT_WATCHED_NETWORK_H
#define REMATCH_TESTS_SUPPORT_WATCHED_NETWORK_H

#include "backend/network.h"

/* A pass that is about to run; parts: of the backward, 0: the forward. */
typedef void watcher(const struct network *network, int node, const struct kernel_args *args, unsigned parts);

/* One network a process, of up to 64 nodes each with a state of its own. */
void watch(struct network *network, watcher *look);

#endif
