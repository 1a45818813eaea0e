/* Digests against their definition, step by step, and against being fooled. */
#include "numerics/digest.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = {1,
                               16,
                               4095,
                               DIGEST_PIECE - 1,
                               DIGEST_PIECE,
                               DIGEST_PIECE + 1,
                               10 * DIGEST_PIECE,
                               40 * DIGEST_PIECE + 123,
                               2049 * (size_t)DIGEST_PIECE + 4};
enum { SIZES = sizeof sizes / sizeof *sizes };

static uint8_t *data_of(size_t bytes)
{
    uint8_t *data = malloc(bytes + 1);
    cr_assert(data);
    uint32_t x = 1;
    for (size_t i = 0; i < bytes + 1; i++) x = x * 1664525 + 1013904223, data[i] = (uint8_t)(x >> 24);
    return data;
}

/* 16 bytes, the most significant first: XXH3's canonical form. */
static void put_canonical(struct digest digest, uint8_t out[16])
{
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(digest.high >> (56 - 8 * i)), out[8 + i] = (uint8_t)(digest.low >> (56 - 8 * i));
}

/* All digests of the pieces beside one another, then theirs. */
static struct digest by_definition(const uint8_t *data, size_t bytes)
{
    size_t pieces = (bytes + DIGEST_PIECE - 1) / DIGEST_PIECE;
    uint8_t *canonical = malloc(pieces * 16 + 1);
    cr_assert(canonical);
    for (size_t i = 0; i < pieces; i++) {
        size_t left = bytes - i * DIGEST_PIECE;
        put_canonical(digest_bytes(data + i * DIGEST_PIECE, left < DIGEST_PIECE ? left : DIGEST_PIECE),
                      canonical + 16 * i);
    }
    struct digest digest = digest_bytes(canonical, pieces * 16);
    free(canonical);
    return digest;
}

Test(hash, tensor_digests_are_their_definition_on_any_threads)
{
    for (int s = 0; s < SIZES; s++) {
        uint8_t *data = data_of(sizes[s]);
        struct digest expected = by_definition(data, sizes[s]);
        for (int threads = 0; threads < 4; threads++)
            cr_assert(digest_equal(digest_tensor(data, sizes[s], threads), expected), "%zu bytes, %d threads", sizes[s],
                      threads);
        free(data);
    }
    cr_assert(digest_equal(digest_tensor(NULL, 0, 2), digest_bytes("", 0)));
}

/* XXH3-128 of nothing, without a seed: published by its author. */
Test(hash, the_empty_digest_is_known)
{
    char text[33];
    cr_assert(!strcmp(digest_print(digest_bytes("", 0), text), "99aa06d3014798d86001c324468d497f"), "%s", text);
}

Test(hash, one_bit_changes_a_digest)
{
    size_t bytes = 3 * DIGEST_PIECE + 77;
    uint8_t *data = data_of(bytes);
    struct digest whole = digest_tensor(data, bytes, 2);
    cr_assert(!digest_equal(whole, digest_tensor(data, bytes - 1, 2)));
    for (size_t i = 0; i < bytes; i += 4099) {
        data[i] ^= 1;
        cr_assert(!digest_equal(whole, digest_tensor(data, bytes, 2)));
        data[i] ^= 1;
    }
    cr_assert(digest_equal(whole, digest_tensor(data, bytes, 1)));
    free(data);
}

Test(hash, equality_looks_at_both_halves)
{
    cr_assert(digest_equal((struct digest){1, 2}, (struct digest){1, 2}));
    cr_assert(!digest_equal((struct digest){1, 2}, (struct digest){1, 3}));
    cr_assert(!digest_equal((struct digest){1, 2}, (struct digest){3, 2}));
}
