/* One layer's kernel, of any backend, with inputs and outputs in the backend's layout and copies in logical order: for
 * tests of two backends against each other. */
#pragma once

#include "backend/network.h"
#include "device_mirror.h"
#include "layer_settings.h"

struct subject_case {
    const char *layer;
    struct shape x;
    struct settings settings;
    int64_t batch;
    bool relu_bits, first; /* first: x is the batch itself, in logical order and without a gradient */
    int layout, algorithm; /* of the backend's options */
    uint64_t scratch_limit;
    int precision; /* of a device's options */
};

/* Of a case: bytes of scratch, a shape, settings. */
#define KIB(n) ((uint64_t)(n) << 10)
#define IMAGE(h, w, c)                                                                                                 \
    {                                                                                                                  \
        3, { h, w, c }                                                                                                 \
    }
#define CONV(c, k, s, p, a)                                                                                            \
    {                                                                                                                  \
        .channels = c, .kernel = k, .stride = s, .padding = p, .activation = a, .bias = true                           \
    }

/* A tensor of a batch in the kernel's layout, guarded on both sides; data: its start. */
struct block {
    unsigned char *memory, *data;
    size_t bytes;
};

struct subject {
    const struct subject_case *c;
    struct backend *backend;
    struct graph *graph;
    const struct node *node;
    const struct kernel *kernel;
    void *state;
    struct footprint footprint;
    unsigned parts;
    struct draw draw; /* mode COUNTER; mask: of another mode, made by that one */
    struct block x[NODE_INPUTS_MAX], dx[NODE_INPUTS_MAX], y, dy, saved, scratch[3];
    struct block parameter[NODE_PARAMETERS_MAX], gradient[NODE_PARAMETERS_MAX];
    struct block running[NODE_STATES_MAX], once; /* running: full of ones at first */
    struct block mask;
    bool evaluate;
    struct mirror mirror;
};

/* Prepares the kernel; all memory is filled with NaNs. Fails the test on any error. */
void subject_open(struct subject *subject, const char *backend, const struct subject_case *c);
/* Fails the test where a guard was written over. */
void subject_close(struct subject *subject);

/* Copies between a value's layout and logical order. */
void subject_put(const struct subject *subject, int value, const float *logical, void *data);
void subject_get(const struct subject *subject, int value, const void *data, float *logical);
int64_t subject_elements(const struct subject *subject, int value); /* of the batch, logical */

/* Of a training step's first forward, or of an evaluation. */
struct kernel_args subject_args(const struct subject *subject);
/* Runs a pass with scratch full of NaNs. parts: enum part, or'ed. */
void subject_forward(struct subject *subject, struct kernel_args *args);
void subject_backward(struct subject *subject, struct kernel_args *args, unsigned parts);

/* Fills bytes with the pattern of a signalling NaN. */
void spoil(void *data, size_t bytes);
