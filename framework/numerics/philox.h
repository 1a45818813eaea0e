/* Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), for C and CUDA.
 *
 * Contract: a pure function of key and counter, so a draw depends neither on time nor place nor on the number of
 * threads. */
#pragma once

#include "numerics/everywhere.h"

struct philox {
    uint32_t word[4];
};

/* Four random words for a 64-bit key and a 128-bit counter. */
EVERYWHERE struct philox philox4x32(uint32_t key0, uint32_t key1, struct philox counter)
{
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * counter.word[0];
        uint64_t b = (uint64_t)0xCD9E8D57u * counter.word[2];
        struct philox next = {{(uint32_t)(b >> 32) ^ counter.word[1] ^ key0, (uint32_t)b,
                               (uint32_t)(a >> 32) ^ counter.word[3] ^ key1, (uint32_t)a}};
        counter = next;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}
