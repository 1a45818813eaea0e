#include "hash.h"

#include <inttypes.h>
#include <stdio.h>

#define XXH_STATIC_LINKING_ONLY /* for a state on the stack: nothing is allocated */
#include <xxhash.h>

enum { PIECES_AT_ONCE = 2048, PIECES_WORTH_A_THREAD = 8 };

struct digest digest_bytes(const void *data, size_t bytes)
{
    XXH128_hash_t hash = XXH3_128bits(data, bytes);
    return (struct digest){hash.low64, hash.high64};
}

struct digest digest_tensor(const void *data, size_t bytes, int threads)
{
    const size_t pieces = bytes / DIGEST_PIECE + (bytes % DIGEST_PIECE != 0);
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (size_t done = 0; done < pieces; done += PIECES_AT_ONCE) {
        XXH128_canonical_t canonical[PIECES_AT_ONCE];
        const size_t count = pieces - done < PIECES_AT_ONCE ? pieces - done : PIECES_AT_ONCE;
#pragma omp parallel for schedule(dynamic, PIECES_WORTH_A_THREAD)                                                      \
    num_threads(threads > 1 ? threads : 1) if (count >= PIECES_WORTH_A_THREAD)
        for (size_t i = 0; i < count; i++) {
            const size_t from = (done + i) * DIGEST_PIECE, left = bytes - from;
            const size_t length = left < DIGEST_PIECE ? left : DIGEST_PIECE;
            XXH128_canonicalFromHash(&canonical[i], XXH3_128bits((const char *)data + from, length));
        }
        XXH3_128bits_update(&state, canonical, count * sizeof *canonical);
    }
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    return (struct digest){hash.low64, hash.high64};
}

bool digest_equal(struct digest a, struct digest b) { return a.low == b.low && a.high == b.high; }

char *digest_print(struct digest digest, char text[33])
{
    snprintf(text, 33, "%016" PRIx64 "%016" PRIx64, digest.high, digest.low);
    return text;
}
