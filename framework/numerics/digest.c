#include "numerics/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Debian's library is built for SSE2; compiled here, the same code uses this machine's vectors and takes half the time.
 * A state on the stack allocates nothing. */
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PIECES_WORTH_A_THREAD = 8 };

struct digest digest_bytes(const void *data, size_t bytes)
{
    XXH128_hash_t hash = XXH3_128bits(data, bytes);
    return (struct digest){hash.low64, hash.high64};
}

struct digest digest_pieces(size_t bytes, void (*pieces)(void *self, size_t first, size_t count, struct digest *digest),
                            void *self)
{
    const size_t all = bytes / DIGEST_PIECE + (bytes % DIGEST_PIECE != 0);
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (size_t done = 0; done < all; done += DIGEST_PIECES_AT_ONCE) {
        struct digest digest[DIGEST_PIECES_AT_ONCE];
        XXH128_canonical_t canonical[DIGEST_PIECES_AT_ONCE];
        const size_t count = all - done < DIGEST_PIECES_AT_ONCE ? all - done : DIGEST_PIECES_AT_ONCE;
        pieces(self, done, count, digest);
        for (size_t i = 0; i < count; i++)
            XXH128_canonicalFromHash(&canonical[i], (XXH128_hash_t){digest[i].low, digest[i].high});
        XXH3_128bits_update(&state, canonical, count * sizeof *canonical);
    }
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    return (struct digest){hash.low64, hash.high64};
}

/* A tensor in the host's memory. */
struct tensor {
    const char *data;
    size_t bytes;
    int threads;
};

static void digest_each(void *self, size_t first, size_t count, struct digest *digest)
{
    const struct tensor t = *(const struct tensor *)self;
#pragma omp parallel for schedule(dynamic, PIECES_WORTH_A_THREAD)                                                      \
    num_threads(t.threads > 1 ? t.threads : 1) if (count >= PIECES_WORTH_A_THREAD)
    for (size_t i = 0; i < count; i++) {
        const size_t from = (first + i) * DIGEST_PIECE, left = t.bytes - from;
        digest[i] = digest_bytes(t.data + from, left < DIGEST_PIECE ? left : DIGEST_PIECE);
    }
}

struct digest digest_tensor(const void *data, size_t bytes, int threads)
{
    return digest_pieces(bytes, digest_each, &(struct tensor){data, bytes, threads});
}

void digest_measure(const void *data, size_t bytes, int threads, struct digest *piece)
{
    digest_each(&(struct tensor){data, bytes, threads}, 0, bytes / DIGEST_PIECE + (bytes % DIGEST_PIECE != 0), piece);
}

static void copy_pieces(void *self, size_t first, size_t count, struct digest *digest)
{
    memcpy(digest, *(const struct digest *const *)self + first, count * sizeof *digest);
}

struct digest digest_join(size_t bytes, const struct digest *piece)
{
    return digest_pieces(bytes, copy_pieces, &piece);
}

bool digest_equal(struct digest a, struct digest b) { return a.low == b.low && a.high == b.high; }

char *digest_print(struct digest digest, char text[33])
{
    snprintf(text, 33, "%016" PRIx64 "%016" PRIx64, digest.high, digest.low);
    return text;
}
