/* The settings of batch_norm and batch_norm_add. */
#pragma once

#include "model/reference.h"

struct settings {
    double epsilon, momentum;
    int variance, statistics, activation;
    bool affine;
};

extern const struct setting batch_norm_keys[];
