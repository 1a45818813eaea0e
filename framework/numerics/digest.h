/* Digests. The digest of a tensor is the XXH3-128 of the XXH3-128s of its 64 KiB pieces, so that any number of threads,
 * or a device, can compute it. It is evidence of equality, not protection against forgery. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_PIECE = 64 * 1024, DIGEST_PIECES_AT_ONCE = 2048 };

struct digest {
    uint64_t low, high;
};

/* XXH3-128 of bytes bytes. */
struct digest digest_bytes(const void *data, size_t bytes);

/* The tensor digest defined above, on threads threads. */
struct digest digest_tensor(const void *data, size_t bytes, int threads);

/* The same from the digests of its pieces: pieces() writes those of count pieces from the first-th on to digest; it is
 * called in ascending order, for at most DIGEST_PIECES_AT_ONCE pieces. */
struct digest digest_pieces(size_t bytes, void (*pieces)(void *self, size_t first, size_t count, struct digest *digest),
                            void *self);

/* The same in steps: digests of the pieces of data, the last of which alone may be shorter; then of all pieces of the
 * tensor. */
void digest_measure(const void *data, size_t bytes, int threads, struct digest *piece);
struct digest digest_join(size_t bytes, const struct digest *piece);

bool digest_equal(struct digest a, struct digest b);

/* Writes 32 hexadecimal digits and a zero to text and returns it. */
char *digest_print(struct digest digest, char text[33]);

/* The same in room of its own, which lasts as long as the block around it. */
#define DIGEST_TEXT(digest) digest_print((digest), (char[33]){""})
