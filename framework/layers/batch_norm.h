/* What batch_norm and batch_norm_add share. */
#pragma once

#include "model/reference.h"

struct settings {
    double epsilon, momentum;
    int variance, statistics, activation;
    bool affine;
};

extern const struct setting batch_norm_keys[];
int batch_norm_parameters(const void *settings, const struct shape *input,
                          struct parameter_definition definitions[NODE_PARAMETERS_MAX]);
int batch_norm_states(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_STATES_MAX]);
