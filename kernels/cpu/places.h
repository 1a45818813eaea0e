/* Where the largest elements of pooling windows are: a byte a channel, the number of the place in its window. */
#pragma once

#include "lanes.h"

typedef uint8_t lane_bytes __attribute__((vector_size(LANES)));

INLINED lane_bits lane_bits_all(int64_t number) { return (lane_bits){0} + (int32_t)number; }

/* Makes v, which is at place, the winner where it is larger than the one before, or the first NaN. */
INLINED void place_compare(lanes v, int64_t place, lanes *most, lane_bits *winner)
{
    const lane_bits larger = ~(v <= *most) & (*most == *most);
    *most = (lanes)(((lane_bits)v & larger) | ((lane_bits)*most & ~larger));
    *winner = (lane_bits_all(place) & larger) | (*winner & ~larger);
}

INLINED void places_store(uint8_t *to, lane_bits winner, int64_t count)
{
    const lane_bytes bytes = __builtin_convertvector(winner, lane_bytes);
    if (count == LANES)
        memcpy(to, &bytes, sizeof bytes);
    else
        memcpy(to, &bytes, (size_t)count);
}

INLINED lane_bits places_load(const uint8_t *from, int64_t count)
{
    lane_bytes bytes = {0};
    if (count == LANES)
        memcpy(&bytes, from, sizeof bytes);
    else
        memcpy(&bytes, from, (size_t)count);
    return __builtin_convertvector(bytes, lane_bits);
}
