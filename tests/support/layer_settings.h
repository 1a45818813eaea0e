/* Settings of layers as tests write them: {.kernel = 3, .stride = 1}, whatever the layer. */
#ifndef REMATCH_TESTS_SUPPORT_LAYER_SETTINGS_H
#define REMATCH_TESTS_SUPPORT_LAYER_SETTINGS_H

#include "model/layer.h"

enum { SAVE_PROBABILITIES, SAVE_NOTHING };

/* The keys of all layers. What is left out is 0. */
struct settings {
    int64_t channels, units, kernel, stride, padding;
    int activation, init;
    bool bias;
    double rate, epsilon;
    int64_t token, heads;
    int save;
    int64_t vocabulary, positions, segments;
};

/* The layer's own struct with these values; NULL: its presets, and small numbers for keys without one. Valid until the
 * next call. */
const void *settings_of(const struct layer *layer, const struct settings *settings);

#endif
