#include "token_batches.h"

#include "numerics/rng.h"
#include "numerics/token_batch.h"

bool sentences_fit(const struct shape *shape) { return shape->rank == 2 && shape->dim[0] == TOKEN_ROWS; }

void sentences_make(float *x, int64_t batch, int64_t tokens, uint32_t vocabulary, uint32_t seed)
{
    for (int64_t n = 0; n < batch; n++) {
        float *sample = x + n * TOKEN_ROWS * tokens;
        const uint32_t end = rng_words(13, RNG_DATA, 0, (uint32_t)n, 1, seed).word[0] % (uint32_t)tokens;
        for (int64_t t = 0; t < tokens; t++) {
            struct philox words = rng_words(13, RNG_DATA, (uint32_t)t, (uint32_t)n, 0, seed);
            const bool token = t <= end;
            sample[TOKEN_IDS * tokens + t] = token ? (float)(words.word[0] % vocabulary) : 0;
            sample[TOKEN_SEGMENTS * tokens + t] = token ? (float)(words.word[1] % 2) : 0;
            sample[TOKEN_MASK * tokens + t] = token;
        }
    }
}
