/* XXH3-128 for devices against the library's, at every length up to three blocks and at all sorts of longer ones. */
#include "numerics/digest.h"
#include "numerics/element_xxh3.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { MOST = 3 * DIGEST_PIECE, BLOCK = XXH3_STRIPE * XXH3_STRIPES };

/* One stripe taken in by all lanes; its first key is at secret. */
static void take(uint64_t sum[XXH3_LANES], const uint8_t *stripe, int secret)
{
    for (int lane = 0; lane < XXH3_LANES; lane++) {
        const uint64_t word = xxh3_word(stripe + 8 * lane);
        sum[lane] += xxh3_product(word, xxh3_secret(secret + 8 * lane));
        sum[lane ^ 1] += word;
    }
}

static struct xxh3 digest_long(const uint8_t *data, size_t bytes)
{
    uint64_t sum[XXH3_LANES], low = 0, high = 0;
    for (int lane = 0; lane < XXH3_LANES; lane++) sum[lane] = xxh3_start(lane);
    for (size_t stripe = 0; stripe < (bytes - 1) / XXH3_STRIPE; stripe++) {
        take(sum, data + stripe * XXH3_STRIPE, 8 * (int)(stripe % XXH3_STRIPES));
        if (stripe % XXH3_STRIPES < XXH3_STRIPES - 1) continue;
        for (int lane = 0; lane < XXH3_LANES; lane++)
            sum[lane] = xxh3_scramble(sum[lane], xxh3_key(XXH3_STRIPES, lane));
    }
    take(sum, data + bytes - XXH3_STRIPE, XXH3_SECRET_LAST);
    for (int lane = 0; lane < XXH3_LANES; lane += 2) {
        low += xxh3_fold_lanes(sum[lane], sum[lane + 1], lane, XXH3_SECRET_LOW);
        high += xxh3_fold_lanes(sum[lane], sum[lane + 1], lane, XXH3_SECRET_HIGH);
    }
    return xxh3_finish(low, high, bytes);
}

Test(xxh3, lengths_hash_as_the_library_hashes_them)
{
    uint8_t *data = malloc(MOST);
    cr_assert(data);
    uint32_t x = 1;
    for (size_t i = 0; i < MOST; i++) x = x * 1664525 + 1013904223, data[i] = (uint8_t)(x >> 24);
    for (size_t bytes = XXH3_SHORT + 1; bytes <= MOST; bytes += bytes < 3 * BLOCK ? 1
                                                                : bytes % 11      ? 1021
                                                                                  : BLOCK - bytes % BLOCK) {
        const uint8_t *from = data + bytes % 7 * (bytes + 7 <= MOST); /* aligned or not */
        const struct digest expected = digest_bytes(from, bytes);
        const struct xxh3 hash = digest_long(from, bytes);
        cr_assert(hash.low == expected.low && hash.high == expected.high, "%zu bytes", bytes);
    }
    free(data);
}
