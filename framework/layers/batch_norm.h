/* The settings of batch_norm and batch_norm_add. */
#ifndef REMATCH_LAYERS_BATCH_NORM_H
#define REMATCH_LAYERS_BATCH_NORM_H

#include "model/reference.h"

struct settings {
    double epsilon, momentum;
    int variance, activation;
    bool affine;
};

extern const struct setting batch_norm_keys[];

#endif
