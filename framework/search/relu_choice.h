/* Which relus of a stretch of nodes keep sign bits and which keep their outputs, where that is the planner's to choose:
 * a set of the stretch's nodes, bit 0 the first. Nodes behind the 64th stay as the network has them. */
#ifndef REMATCH_SEARCH_RELU_CHOICE_H
#define REMATCH_SEARCH_RELU_CHOICE_H

#include "backend/network.h"

/* Nodes [from, to) of a network that may keep either; and those of them that keep signs as the network is. */
uint64_t relu_choice_open(const struct network *network, int from, int to);
uint64_t relu_choice_kept(const struct network *network, int from, int to);

/* Makes the open nodes of [from, to) keep signs or outputs. */
void relu_choice_set(struct network *network, int from, int to, uint64_t signs);

#endif
