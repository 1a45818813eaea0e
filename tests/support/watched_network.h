/* A network with a watcher: a function of the test that gets a pass's arguments before it runs. */
#pragma once

#include "backend/network.h"

/* Called before a pass; parts: of the backward, 0: the forward. */
typedef void watcher(const struct network *network, int node, const struct kernel_args *args, unsigned parts);

/* One network a process, of up to 64 nodes each with a state of its own. */
void watch(struct network *network, watcher *look);
