/* The network of a traced step (traced.h). */
#pragma once

#include "backend/network.h"

/* The network, without a backend; the step must outlive it; it is freed by abstract_destroy(). ST_SPEC: a name is
 * taken, or the sums exceed 2^58 bytes or ABSTRACT_TIME_MAX; *at is the node at fault. */
enum status traced_step_create(const struct traced_step *step, int *at, struct network **network);
