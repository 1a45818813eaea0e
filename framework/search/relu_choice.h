/* What the open relus of a stretch of nodes keep, sign bits or their outputs, as a set of the stretch's nodes: bit 0 is
 * the first. Nodes after the 64th stay as the network has them. */
#ifndef REMATCH_SEARCH_RELU_CHOICE_H
#define REMATCH_SEARCH_RELU_CHOICE_H

#include "backend/network.h"

/* Open nodes of [from, to); and those of them that keep signs in this network. */
uint64_t relu_choice_open(const struct network *network, int from, int to);
uint64_t relu_choice_kept(const struct network *network, int from, int to);

/* Makes the open nodes of [from, to) keep signs or outputs. */
void relu_choice_set(struct network *network, int from, int to, uint64_t signs);

#endif
