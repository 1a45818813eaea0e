/* The ops of a traced step, whose operands are lists. */
#pragma once

#include "check/operands.h"

/* What the forward reads, and what its output may be written over. */
enum status traced_forward_reads(struct machine *m);
int traced_over(const struct machine *m);

/* All that a backward reads and writes but its scratch. */
enum status traced_backward(struct machine *m);

/* The first node from node on that has a forward. */
int traced_next(const struct plan_data *data, int node);
