/* XXH3-128 without a seed (Collet, "xxHash fast digest algorithm", 0.2.0, section "XXH3 algorithm") of more than
 * XXH3_SHORT bytes, for C and CUDA, in parts that lanes of a device can share.
 *
 * The input is read in stripes of 8 words, word i by lane i, 16 stripes a block. Over the stripes of a block, lane i
 * sums the product of its word with a key, and the plain word of lane i ^ 1; after each block the sum is scrambled. The
 * sums are of integers modulo 2^64, so they may be added in any order. In the end one more stripe, the last 64 bytes,
 * and all lanes are folded into two words.
 *
 * Contract: the bits of libxxhash's XXH3_128bits() (tests/numerics/test_xxh3.c). Machines are little-endian. */
#pragma once

#include "numerics/everywhere.h"

enum { XXH3_SHORT = 240, XXH3_LANES = 8, XXH3_STRIPE = 64, XXH3_STRIPES = 16 };

/* Offsets in the secret of the keys for the last stripe and for the two folds. */
enum { XXH3_SECRET_LAST = 121, XXH3_SECRET_LOW = 11, XXH3_SECRET_HIGH = 117 };

#define XXH3_PRIME32_1 0x9e3779b1u
#define XXH3_PRIME32_2 0x85ebca77u
#define XXH3_PRIME32_3 0xc2b2ae3du
#define XXH3_PRIME64_1 0x9e3779b185ebca87u
#define XXH3_PRIME64_2 0xc2b2ae3d27d4eb4fu
#define XXH3_PRIME64_3 0x165667b19e3779f9u
#define XXH3_PRIME64_4 0x85ebca77c2b2ae63u
#define XXH3_PRIME64_5 0x27d4eb2f165667c5u

struct xxh3 {
    uint64_t low, high;
};

/* The 8 bytes of the default secret from offset, at most 184, on. */
EVERYWHERE uint64_t xxh3_secret(int offset)
{
    static const uint64_t word[] = {0xbe4ba423396cfeb8u, 0x1cad21f72c81017cu, 0xdb979083e96dd4deu, 0x1f67b3b7a4a44072u,
                                    0x78e5c0cc4ee679cbu, 0x2172ffcc7dd05a82u, 0x8e2443f7744608b8u, 0x4c263a81e69035e0u,
                                    0xcb00c391bb52283cu, 0xa32e531b8b65d088u, 0x4ef90da297486471u, 0xd8acdea946ef1938u,
                                    0x3f349ce33f76faa8u, 0x1d4f0bc7c7bbdcf9u, 0x3159b4cd4be0518au, 0x647378d9c97e9fc8u,
                                    0xc3ebd33483acc5eau, 0xeb6313faffa081c5u, 0x49daf0b751dd0d17u, 0x9e68d429265516d3u,
                                    0xfca1477d58be162bu, 0xce31d07ad1b8f88fu, 0x280416958f3acb45u, 0x7e404bbbcafbd7afu};
    const int shift = 8 * (offset % 8);
    const uint64_t low = word[offset / 8];
    return shift == 0 ? low : low >> shift | word[offset / 8 + 1] << (64 - shift);
}

/* Numbers from unaligned input. */
EVERYWHERE uint32_t xxh3_half(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
EVERYWHERE uint64_t xxh3_word(const uint8_t *at) { return xxh3_half(at) | (uint64_t)xxh3_half(at + 4) << 32; }

/* The product of two words. */
EVERYWHERE struct xxh3 xxh3_multiply(uint64_t a, uint64_t b)
{
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = (a0 * b0 >> 32) + (uint32_t)(a1 * b0) + a0 * b1;
    struct xxh3 product = {a * b, (a1 * b0 >> 32) + (middle >> 32) + a1 * b1};
    return product;
}

EVERYWHERE uint64_t xxh3_fold(uint64_t a, uint64_t b)
{
    const struct xxh3 product = xxh3_multiply(a, b);
    return product.low ^ product.high;
}

EVERYWHERE uint64_t xxh3_avalanche(uint64_t x)
{
    x = (x ^ x >> 37) * 0x165667919e3779f9u;
    return x ^ x >> 32;
}

/* The initial sum of a lane. */
EVERYWHERE uint64_t xxh3_start(int lane)
{
    static const uint64_t start[XXH3_LANES] = {XXH3_PRIME32_3, XXH3_PRIME64_1, XXH3_PRIME64_2, XXH3_PRIME64_3,
                                               XXH3_PRIME64_4, XXH3_PRIME32_2, XXH3_PRIME64_5, XXH3_PRIME32_1};
    return start[lane];
}

/* The key of a lane's word in a stripe of a block; with stripe XXH3_STRIPES, the key of the block's end. */
EVERYWHERE uint64_t xxh3_key(int stripe, int lane) { return xxh3_secret(8 * (stripe + lane)); }

/* The term that a word adds to its lane, besides the plain word for the neighbouring lane. */
EVERYWHERE uint64_t xxh3_product(uint64_t word, uint64_t key)
{
    return (uint64_t)(uint32_t)(word ^ key) * ((word ^ key) >> 32);
}

/* A lane after a block. */
EVERYWHERE uint64_t xxh3_scramble(uint64_t sum, uint64_t key) { return (sum ^ sum >> 47 ^ key) * XXH3_PRIME32_1; }

/* Two lanes, of which the first is even, folded with the secret from XXH3_SECRET_LOW or _HIGH on. */
EVERYWHERE uint64_t xxh3_fold_lanes(uint64_t even, uint64_t odd, int lane, int secret)
{
    return xxh3_fold(even ^ xxh3_secret(secret + 8 * lane), odd ^ xxh3_secret(secret + 8 * lane + 8));
}

/* From the sums of the folds of all lanes. */
EVERYWHERE struct xxh3 xxh3_finish(uint64_t low, uint64_t high, uint64_t bytes)
{
    struct xxh3 hash = {xxh3_avalanche(low + bytes * XXH3_PRIME64_1), xxh3_avalanche(high + ~(bytes * XXH3_PRIME64_2))};
    return hash;
}
