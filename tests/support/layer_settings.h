/* Settings of layers as tests write them: {.kernel = 3, .stride = 1}, whatever the layer. */
#pragma once

#include "model/graph.h"

enum { SAVE_PROBABILITIES, SAVE_NOTHING };

/* By how much inputs that are in [-1, 1) are multiplied for this layer: so that both ends of a function are reached. */
float range_of(const struct layer *layer);

/* The second of two inputs: the first, or what a layer gives to it that has a number a channel; LONGER: a sequence of
 * the width other, of a token more. */
enum second { SECOND_ALIKE, SECOND_VECTOR, SECOND_PIXEL, SECOND_LONGER };

/* For groups: 0, as many as channels. */
enum { GROUPS_OF_ONE = -1 };

/* The keys of all layers. What is left out is 0; groups and dilation 0 stand for 1. Three are no keys: second; other,
 * the width of the second of two inputs, 0: that of the first; and of_image: what reads the batch reads an image's. */
struct settings {
    int64_t channels, units, kernel, stride, padding;
    int activation, init;
    bool bias;
    double rate, epsilon, slope, by, label_smoothing, smooth;
    int64_t token, tokens, heads, kv_heads;
    int save;
    int64_t vocabulary, positions, segments;
    int64_t other;
    enum second second;
    bool of_image;
    double momentum;
    int variance, statistics;
    bool affine, count_padding, ceil_mode, causal, rope;
    int64_t groups, dilation, factor, height, output_padding, top, bottom, left, right, chunks;
    struct setting_list class_weights;
};

#define WEIGHTS(...)                                                                                                   \
    {                                                                                                                  \
        sizeof((double[]){__VA_ARGS__}) / sizeof(double),                                                              \
        {                                                                                                              \
            .reals = (const double[]) { __VA_ARGS__ }                                                                  \
        }                                                                                                              \
    }

/* Whether the backend has no kernel for a layer with these settings, and says so. */
bool backend_refuses(const char *backend, const struct settings *settings);

/* The layer's own struct with these values; NULL: its presets, and small numbers for keys without one. Valid until the
 * next call. */
const void *settings_of(const struct layer *layer, const struct settings *settings);

/* A value that a layer reads from the batch: of the batch's shape, but so wide. Fails the test on any error. */
int value_of_width(struct graph *graph, int64_t width);

/* The batch behind a sequence of that shape, as a layer reads it that reads the batch: sentences, or an image with a
 * pixel a token; and the sequence, in a graph of such a batch, of so many words. Fails the test on any error. */
struct shape batch_shape(const struct shape *sequence, bool image);
int sequence_of_batch(struct graph *graph, const struct shape *sequence, int64_t words);

/* The second input that the settings ask for; first where they ask for none. */
int second_input(struct graph *graph, const struct settings *settings, int first);
