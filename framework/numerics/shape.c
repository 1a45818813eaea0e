#include "numerics/shape.h"

#include <inttypes.h>
#include <stdio.h>

int64_t shape_elements(const struct shape *shape)
{
    const int64_t most = INT64_C(1) << 46;
    int64_t product = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] <= 0 || shape->dim[i] > most / product) return -1;
        product *= shape->dim[i];
    }
    return product;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

char *shape_print(const struct shape *shape, char *text)
{
    char *end = text;
    *end = '\0';
    for (int i = 0; i < shape->rank; i++) end += sprintf(end, "%s%" PRId64, i ? "x" : "", shape->dim[i]);
    return text;
}
