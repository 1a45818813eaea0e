/* Initial values from a file (model.init.file): the tensor or tensors that each parameter and each tensor of running
 * state is loaded from, found by its own name or by Hugging Face's or torchvision's. */
#pragma once

#include "job/safetensors.h"
#include "spec/spec.h"
#include "train/executor.h"

enum { WEIGHT_SOURCES_MAX = 3 };

/* The file's tensors of the rows of one of ours; count 0: it is not in the file. */
struct weight {
    int count;
    const struct safetensor *source[WEIGHT_SOURCES_MAX];
};

struct weights {
    struct safetensors *file;
    const struct graph *graph;
    struct weight *weight;     /* one a parameter, then one a tensor of running state */
    bool *given, *given_state; /* by parameter, and by tensor of running state: it is in the file */
    char sha256[65];           /* of the file; "" before weights_digest() */
    /* Names, in the order of the model and of the file. PyTorch's num_batches_tracked do not count as unused. */
    int initialised, unused;
    const char **initialised_name, **unused_name;
};

/* Opens spec's file and finds every parameter and tensor of running state of the graph in it. ST_MISSING, ST_FAILED: as
 * safetensors_open(); ST_SPEC: it does not fit; the message names tensors that are missing or of another shape or type,
 * and unused ones. */
enum status weights_open(const struct spec *spec, const struct graph *graph, struct weights **weights);
void weights_close(struct weights *weights);

/* Computes the file's SHA-256, once. */
enum status weights_digest(struct weights *weights);

/* Loads what the file has. ST_FAILED: a value cannot be read, is not finite, or is a negative running variance. */
enum status weights_load(const struct weights *weights, struct backend *backend, struct executor *exec);

/* "w.safetensors: 10 of 12 parameters; initialised as usual: ...; not used: ..." */
char *weights_text(const struct weights *weights);
