#include "sequence.h"

#include <inttypes.h>

enum status sequence_shape(struct dataset *dataset)
{
    int64_t length = dataset->settings.max_length;
    if (length < SEQUENCE_LEAST || length > SEQUENCE_MAX)
        return fail(ST_SPEC, "data.max_length is %" PRId64 "; expected: %d to %d", length, SEQUENCE_LEAST,
                    SEQUENCE_MAX);
    dataset->shape = (struct shape){2, {3, length}};
    return ST_OK;
}

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
