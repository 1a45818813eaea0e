#include "sequence.h"

void sequence_deliver(const struct dataset *dataset, const int32_t *token, int64_t count, int32_t padding, float *x)
{
    int64_t length = dataset->shape.dim[1];
    float *segment = x + length, *mask = segment + length;
    for (int64_t i = 0; i < length; i++) {
        x[i] = (float)(i < count ? token[i] : padding);
        segment[i] = 0;
        mask[i] = i < count ? 1 : 0;
    }
}
