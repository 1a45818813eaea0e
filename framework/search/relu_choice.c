#include "search/relu_choice.h"

static int end_of(int from, int to) { return to - from > 64 ? from + 64 : to; }

uint64_t relu_choice_open(const struct network *network, int from, int to)
{
    uint64_t open = 0;
    for (int i = from; i < end_of(from, to); i++) open |= (uint64_t)network_relu_open(network, i) << (i - from);
    return open;
}

uint64_t relu_choice_kept(const struct network *network, int from, int to)
{
    uint64_t kept = 0;
    for (int i = from; i < end_of(from, to); i++)
        kept |= (uint64_t)(network->binding[i].footprint.saved > 0) << (i - from);
    return kept & relu_choice_open(network, from, to);
}

void relu_choice_set(struct network *network, int from, int to, uint64_t signs)
{
    uint64_t open = relu_choice_open(network, from, to);
    for (int i = from; i < end_of(from, to); i++)
        if (open >> (i - from) & 1) footprint_keep_sign_bits(&network->binding[i].footprint, signs >> (i - from) & 1);
}
