#include "job/costs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct digest costs_digest(const struct cost *cost, int nodes, double rest, double add, double copy)
{
    const double others[] = {rest, add, copy};
    const size_t bytes = (size_t)nodes * sizeof *cost;
    freed_auto char *all = allocate(bytes + sizeof others, 1);
    memcpy(all, cost, bytes);
    memcpy(all + bytes, others, sizeof others);
    return digest_bytes(all, bytes + sizeof others);
}

double costs_predict(const struct costs *costs, const struct plan *plan)
{
    double time = plan->time + costs->rest;
    for (int i = 0; i < plan->lowered.ops; i++) {
        const struct op *op = &plan->lowered.op[i];
        if (op->kind == OP_COPY) time += costs->copy * (double)op->bytes;
        if (op->kind == OP_ACCUMULATE) time += costs->add * (double)op->bytes;
    }
    return time;
}

char *costs_miss(double predicted, double measured, const char *called, char *text)
{
    const double percent = 100 * (predicted / measured - 1);
    *text = '\0';
    if (isfinite(percent))
        snprintf(text, 64, "%.1f %% %s than %s", fabs(percent), percent < 0 ? "less" : "more", called);
    return text;
}
