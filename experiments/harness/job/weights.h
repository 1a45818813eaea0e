/* Initial values from a file (model.init.file): which tensor, or tensors one after the other, each parameter starts
 * from. A tensor is found by the parameter's own name or by those of weight_names.h. */
#ifndef REMATCH_JOB_WEIGHTS_H
#define REMATCH_JOB_WEIGHTS_H

#include "job/safetensors.h"
#include "job/weight_names.h"
#include "spec/spec.h"
#include "train/executor.h"

/* Where a parameter's rows come from; count 0: not from the file. */
struct weight {
    int count;
    const struct safetensor *source[WEIGHT_SOURCES_MAX];
};

struct weights {
    struct safetensors *file;
    const struct graph *graph;
    struct weight *weight; /* one a parameter */
    bool *given;           /* by parameter: it comes from the file */
    char sha256[65];       /* of the file; "" before weights_digest() */
    /* Names, in the order of the model and of the file. */
    int initialised, unused;
    const char **initialised_name, **unused_name;
};

/* Opens spec's file and finds every parameter of the graph in it. ST_MISSING, ST_FAILED: as safetensors_open();
 * ST_SPEC: it does not fit, one message names what is missing, of another shape or type, and what of the file is not
 * used. */
enum status weights_open(const struct spec *spec, const struct graph *graph, struct weights **weights);
void weights_close(struct weights *weights);

/* Reads all of the file for its SHA-256, once. */
enum status weights_digest(struct weights *weights);

/* Puts the values into the parameters. ST_FAILED: they cannot be read, or are not finite. */
enum status weights_load(const struct weights *weights, struct backend *backend, struct executor *exec);

/* "w.safetensors: 10 parameters; initialised as usual: ...; not used: ..." NULL: no memory. */
char *weights_text(const struct weights *weights);

#endif
