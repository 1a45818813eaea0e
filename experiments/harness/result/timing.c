#include "result/timing.h"

#include <stdlib.h>
#include <string.h>

#include "base/region.h"

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

struct timing timing_of(const uint64_t *ns, size_t count)
{
    if (count < 2) return (struct timing){0};
    const size_t steps = count - 1, low = (steps - 1) / 2, high = steps / 2;
    freed_auto uint64_t *sorted = allocate(steps, sizeof *sorted);
    memcpy(sorted, ns + 1, steps * sizeof *sorted);
    qsort(sorted, steps, sizeof *sorted, ascending);
    return (struct timing){
        .steps = steps,
        .median_ns = ((double)sorted[low] + (double)sorted[high]) / 2,
        .least_ns = (double)sorted[0],
        .most_ns = (double)sorted[steps - 1],
    };
}

void timing_add(struct best_case *least, const uint64_t *op_ns, uint64_t step_ns)
{
    uint64_t sum = 0;
    for (int i = 0; i < least->ops; i++) {
        sum += op_ns[i];
        if (!least->known || op_ns[i] < least->op_ns[i]) least->op_ns[i] = op_ns[i];
    }
    const uint64_t rest = sum < step_ns ? step_ns - sum : 0; /* a device has another clock */
    if (!least->known || rest < least->rest_ns) least->rest_ns = rest;
    least->known = true;
}

uint64_t timing_best_case(const struct best_case *least)
{
    uint64_t sum = least->rest_ns;
    for (int i = 0; i < least->ops; i++) sum += least->op_ns[i];
    return sum;
}
