/* XXH3-128 without a seed (Collet, "xxHash fast digest algorithm", 0.2.0, section "XXH3 algorithm"), for C and CUDA:
 * inputs of at most XXH3_SHORT bytes at once, longer ones in parts that lanes of a device can share.
 *
 * A longer input is read in stripes of 8 words, word i by lane i, 16 stripes a block. Over the stripes of a block, lane
 * i sums the product of its word with a key, and the plain word of lane i ^ 1; after each block the sum is scrambled.
 * The sums are of integers modulo 2^64, so they may be added in any order. In the end one more stripe, the last 64
 * bytes, and all lanes are folded into two words.
 *
 * Contract: the bits of libxxhash's XXH3_128bits() (tests/numerics/test_xxh3.c). Machines are little-endian. */
#ifndef REMATCH_NUMERICS_ELEMENT_XXH3_H
#define REMATCH_NUMERICS_ELEMENT_XXH3_H

#include <stdint.h>

#ifdef __CUDACC__
#define ELEMENT_XXH3 __host__ __device__ static inline
#else
#define ELEMENT_XXH3 static inline
#endif

enum { XXH3_SHORT = 240, XXH3_LANES = 8, XXH3_STRIPE = 64, XXH3_STRIPES = 16 };

/* Offsets in the secret of the keys for the last stripe and for the two folds of a longer input. */
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
ELEMENT_XXH3 uint64_t xxh3_secret(int offset)
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
ELEMENT_XXH3 uint32_t xxh3_half(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
ELEMENT_XXH3 uint64_t xxh3_word(const uint8_t *at) { return xxh3_half(at) | (uint64_t)xxh3_half(at + 4) << 32; }

ELEMENT_XXH3 uint64_t xxh3_swap(uint64_t x)
{
    x = (x & 0x00ff00ff00ff00ffu) << 8 | (x >> 8 & 0x00ff00ff00ff00ffu);
    x = (x & 0x0000ffff0000ffffu) << 16 | (x >> 16 & 0x0000ffff0000ffffu);
    return x << 32 | x >> 32;
}

/* The product of two words. */
ELEMENT_XXH3 struct xxh3 xxh3_multiply(uint64_t a, uint64_t b)
{
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = (a0 * b0 >> 32) + (uint32_t)(a1 * b0) + a0 * b1;
    struct xxh3 product = {a * b, (a1 * b0 >> 32) + (middle >> 32) + a1 * b1};
    return product;
}

ELEMENT_XXH3 uint64_t xxh3_fold(uint64_t a, uint64_t b)
{
    const struct xxh3 product = xxh3_multiply(a, b);
    return product.low ^ product.high;
}

ELEMENT_XXH3 uint64_t xxh3_avalanche(uint64_t x)
{
    x = (x ^ x >> 37) * 0x165667919e3779f9u;
    return x ^ x >> 32;
}

/* The avalanche of XXH64. */
ELEMENT_XXH3 uint64_t xxh3_avalanche64(uint64_t x)
{
    x = (x ^ x >> 33) * XXH3_PRIME64_2;
    x = (x ^ x >> 29) * XXH3_PRIME64_3;
    return x ^ x >> 32;
}

/* ---- at most XXH3_SHORT bytes ---- */

ELEMENT_XXH3 struct xxh3 xxh3_short_0(void)
{
    struct xxh3 hash = {xxh3_avalanche64(xxh3_secret(64) ^ xxh3_secret(72)),
                        xxh3_avalanche64(xxh3_secret(80) ^ xxh3_secret(88))};
    return hash;
}

ELEMENT_XXH3 struct xxh3 xxh3_short_3(const uint8_t *at, uint32_t bytes)
{
    const uint32_t low = (uint32_t)at[bytes - 1] | bytes << 8 | (uint32_t)at[0] << 16 | (uint32_t)at[bytes >> 1] << 24;
    const uint32_t swapped = (uint32_t)(xxh3_swap(low) >> 32), high = swapped << 13 | swapped >> 19;
    const uint64_t secret0 = xxh3_secret(0), secret8 = xxh3_secret(8);
    struct xxh3 hash = {xxh3_avalanche64(low ^ (uint32_t)secret0 ^ secret0 >> 32),
                        xxh3_avalanche64(high ^ (uint32_t)secret8 ^ secret8 >> 32)};
    return hash;
}

ELEMENT_XXH3 struct xxh3 xxh3_short_8(const uint8_t *at, uint32_t bytes)
{
    const uint64_t input = xxh3_half(at) | (uint64_t)xxh3_half(at + bytes - 4) << 32;
    struct xxh3 hash = xxh3_multiply(input ^ xxh3_secret(16) ^ xxh3_secret(24), XXH3_PRIME64_1 + (bytes << 2));
    hash.high += hash.low << 1;
    hash.low ^= hash.high >> 3;
    hash.low = (hash.low ^ hash.low >> 35) * 0x9fb21c651e98df25u;
    hash.low ^= hash.low >> 28;
    hash.high = xxh3_avalanche(hash.high);
    return hash;
}

ELEMENT_XXH3 struct xxh3 xxh3_short_16(const uint8_t *at, uint32_t bytes)
{
    const uint64_t first = xxh3_word(at), last = xxh3_word(at + bytes - 8);
    const uint64_t high = last ^ xxh3_secret(48) ^ xxh3_secret(56);
    struct xxh3 hash = xxh3_multiply(first ^ last ^ xxh3_secret(32) ^ xxh3_secret(40), XXH3_PRIME64_1);
    hash.low += (uint64_t)(bytes - 1) << 54;
    hash.high += high + (uint64_t)(uint32_t)high * (XXH3_PRIME32_2 - 1);
    hash.low ^= xxh3_swap(hash.high);
    const struct xxh3 product = xxh3_multiply(hash.low, XXH3_PRIME64_2);
    hash.low = xxh3_avalanche(product.low);
    hash.high = xxh3_avalanche(product.high + hash.high * XXH3_PRIME64_2);
    return hash;
}

/* Takes in 16 bytes at a and 16 at b. */
ELEMENT_XXH3 struct xxh3 xxh3_mix(struct xxh3 hash, const uint8_t *a, const uint8_t *b, int secret)
{
    const uint64_t a0 = xxh3_word(a), a1 = xxh3_word(a + 8), b0 = xxh3_word(b), b1 = xxh3_word(b + 8);
    hash.low = (hash.low + xxh3_fold(a0 ^ xxh3_secret(secret), a1 ^ xxh3_secret(secret + 8))) ^ (b0 + b1);
    hash.high = (hash.high + xxh3_fold(b0 ^ xxh3_secret(secret + 16), b1 ^ xxh3_secret(secret + 24))) ^ (a0 + a1);
    return hash;
}

ELEMENT_XXH3 struct xxh3 xxh3_mixed(struct xxh3 hash, uint32_t bytes)
{
    struct xxh3 result = {
        xxh3_avalanche(hash.low + hash.high),
        0 - xxh3_avalanche(hash.low * XXH3_PRIME64_1 + hash.high * XXH3_PRIME64_4 + bytes * XXH3_PRIME64_2)};
    return result;
}

/* From both ends to the middle. */
ELEMENT_XXH3 struct xxh3 xxh3_short_128(const uint8_t *at, uint32_t bytes)
{
    struct xxh3 hash = {bytes * XXH3_PRIME64_1, 0};
    for (int i = (int)((bytes - 1) / 32); i >= 0; i--)
        hash = xxh3_mix(hash, at + 16 * i, at + bytes - 16 * (i + 1), 32 * i);
    return xxh3_mixed(hash, bytes);
}

ELEMENT_XXH3 struct xxh3 xxh3_short_240(const uint8_t *at, uint32_t bytes)
{
    struct xxh3 hash = {bytes * XXH3_PRIME64_1, 0};
    for (int i = 0; i < (int)(bytes / 32); i++) {
        hash = xxh3_mix(hash, at + 32 * i, at + 32 * i + 16, i < 4 ? 32 * i : 3 + 32 * (i - 4));
        if (i == 3) hash.low = xxh3_avalanche(hash.low), hash.high = xxh3_avalanche(hash.high);
    }
    return xxh3_mixed(xxh3_mix(hash, at + bytes - 16, at + bytes - 32, 103), bytes);
}

/* Of at most XXH3_SHORT bytes. */
ELEMENT_XXH3 struct xxh3 xxh3_short(const uint8_t *at, uint32_t bytes)
{
    if (bytes == 0) return xxh3_short_0();
    if (bytes <= 3) return xxh3_short_3(at, bytes);
    if (bytes <= 8) return xxh3_short_8(at, bytes);
    if (bytes <= 16) return xxh3_short_16(at, bytes);
    return bytes <= 128 ? xxh3_short_128(at, bytes) : xxh3_short_240(at, bytes);
}

/* ---- more bytes, by lanes ---- */

/* The initial sum of a lane. */
ELEMENT_XXH3 uint64_t xxh3_start(int lane)
{
    static const uint64_t start[XXH3_LANES] = {XXH3_PRIME32_3, XXH3_PRIME64_1, XXH3_PRIME64_2, XXH3_PRIME64_3,
                                               XXH3_PRIME64_4, XXH3_PRIME32_2, XXH3_PRIME64_5, XXH3_PRIME32_1};
    return start[lane];
}

/* The key of a lane's word in a stripe of a block; with stripe XXH3_STRIPES, the key of the block's end. */
ELEMENT_XXH3 uint64_t xxh3_key(int stripe, int lane) { return xxh3_secret(8 * (stripe + lane)); }

/* The term that a word adds to its lane, besides the plain word for the neighbouring lane. */
ELEMENT_XXH3 uint64_t xxh3_product(uint64_t word, uint64_t key)
{
    return (uint64_t)(uint32_t)(word ^ key) * ((word ^ key) >> 32);
}

/* A lane after a block. */
ELEMENT_XXH3 uint64_t xxh3_scramble(uint64_t sum, uint64_t key) { return (sum ^ sum >> 47 ^ key) * XXH3_PRIME32_1; }

/* Two lanes, of which the first is even, folded with the secret from XXH3_SECRET_LOW or _HIGH on. */
ELEMENT_XXH3 uint64_t xxh3_fold_lanes(uint64_t even, uint64_t odd, int lane, int secret)
{
    return xxh3_fold(even ^ xxh3_secret(secret + 8 * lane), odd ^ xxh3_secret(secret + 8 * lane + 8));
}

/* From the sums of the folds of all lanes. */
ELEMENT_XXH3 struct xxh3 xxh3_finish(uint64_t low, uint64_t high, uint64_t bytes)
{
    struct xxh3 hash = {xxh3_avalanche(low + bytes * XXH3_PRIME64_1), xxh3_avalanche(high + ~(bytes * XXH3_PRIME64_2))};
    return hash;
}

/* Its canonical form in memory: 16 bytes, the most significant first. */
ELEMENT_XXH3 struct xxh3 xxh3_canonical(struct xxh3 hash)
{
    struct xxh3 canonical = {xxh3_swap(hash.high), xxh3_swap(hash.low)};
    return canonical;
}

#endif
