/* One layer on one backend, with memory for all operands of its kernel: the basis of tests of kernels. Every buffer has
 * exactly its bytes, so a sanitizer notices the first byte too many. */
#pragma once

#include "backend/network.h"
#include "device_mirror.h"
#include "layer_settings.h"

struct single {
    struct backend *backend;
    struct graph *graph; /* the layer is its last node */
    struct network *network;
    const struct node *node;
    const struct kernel *kernel;
    void *state;
    struct footprint footprint;
    int64_t batch;
    size_t x_bytes[NODE_INPUTS_MAX], y_bytes; /* of the batch, in the backend's layout */
    bool text[NODE_INPUTS_MAX];               /* the input is a batch of text: it has no gradient */
    float *x[NODE_INPUTS_MAX], *dx[NODE_INPUTS_MAX], *y, *dy;
    void *saved, *once, *scratch;
    int parameters;
    size_t parameter_bytes[NODE_PARAMETERS_MAX];
    float *parameter[NODE_PARAMETERS_MAX], *gradient[NODE_PARAMETERS_MAX];
    size_t running_bytes[NODE_STATES_MAX];
    float *running[NODE_STATES_MAX];
    int32_t *labels;
    double *divisor;  /* of these labels; where a test has others, it calls single_divide() */
    struct draw draw; /* counter, a fixed seed */
    bool evaluate;
    struct mirror mirror;
};

/* Builds it; the test fails where that fails. settings NULL: as settings_of() has them. input is that of the first
 * input: of a layer that reads the batch besides, it is the output of an embedding. */
void single_open(struct single *single, const char *backend, const char *layer, const struct settings *settings,
                 const struct shape *input, int64_t batch, enum relu_save relu_save);
void single_close(struct single *single);

/* Inputs and parameters uniform in [-1, 1), running state in [1, 2), sentences where the input is text, labels uniform;
 * another seed, other numbers. */
void single_fill(struct single *single, uint32_t seed);

/* Sets the divisor to that of the labels. */
void single_divide(struct single *single);

/* bytes / 4 numbers uniform in [-1, 1), stream number which of seed. */
void single_random(float *x, size_t bytes, uint32_t seed, uint32_t which);

/* All arguments, for both directions, of a training step's first forward or of an evaluation. */
struct kernel_args single_args(const struct single *single);

/* Forward that saves. */
void single_forward(struct single *single);

/* A pass with these arguments; fails the test on an error. */
void single_pass_forward(struct single *single, const struct kernel_args *args);
void single_pass_backward(struct single *single, const struct kernel_args *args, unsigned parts);

/* Backward, all parts in one call; the gradient is copied where the kernel passes it on. */
void single_backward(struct single *single);
