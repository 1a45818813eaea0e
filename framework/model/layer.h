/* Layers (definitions) and kernels (implementations).
 *
 * A definition consists of the settings, the output shape, the parameters and the arithmetic, and has a reference
 * kernel in plain C. A backend replaces reference kernels by kernels of its own. Kernels are pure functions of their
 * arguments: no allocation, no hidden state, no random numbers of their own. Gradients are assigned. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/setting.h"
#include "base/status.h"
#include "numerics/rng.h"
#include "numerics/shape.h"

enum { NODE_INPUTS_MAX = 2, NODE_PARAMETERS_MAX = 3, NODE_STATES_MAX = 2 };
enum activation { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_TANH };

/* A parameter, or a tensor of running state, as its layer defines it; sizes and digests are in this logical order. */
struct parameter_definition {
    const char *name; /* "weight", "bias" */
    struct shape shape;
    enum init init;
    int64_t fan_in, fan_out;
};

/* Floating-point operations of one sample, a multiply-add counted as two. */
struct flops {
    double forward, backward_params, backward_input;
    double once; /* that a first forward does besides: statistics of the batch */
};

/* Which half of a backward: the gradient of the parameters, or that of the inputs. */
enum part { PART_PARAMS = 1, PART_INPUT = 2 };
enum { PART_INDEX_PARAMS = 0, PART_INDEX_INPUT = 1 };

/* The tensors that a part of a backward reads besides dy and the parameters. READS_X: every input; READS_X0: the first
 * alone. */
enum reads { READS_X = 1, READS_Y = 2, READS_SAVED = 4, READS_X0 = 8 };

/* How many of so many inputs are read, from the first on. */
static inline int inputs_read(unsigned reads, int inputs) { return reads & READS_X ? inputs : (reads & READS_X0) != 0; }

/* What a forward operator of a traced step writes. Forward operators read values alone; a recomputation writes the
 * value and, where a later op reads them, the saved tensors; what is written once stays from the first forward on. */
enum held { HELD_VALUE, HELD_SAVED, HELD_ONCE };

/* The requirements of a prepared kernel: all that planning knows of it. */
struct footprint {
    size_t saved;               /* bytes of the saved tensors, 0: none */
    size_t signs;               /* bytes of a relu's sign bits, 0: no relu; see footprint_keep_sign_bits() */
    size_t once;                /* bytes that the first forward of a training step writes, and its recomputations and
                                   its backward read: statistics of the batch; 0: none */
    size_t forward_scratch;     /* bytes needed within a forward */
    size_t backward_scratch[2]; /* by part index; an unsplit kernel uses the larger */
    unsigned reads[2];          /* enum reads, by part index; an unsplit kernel reads the union */
    bool split;                 /* PARAMS and INPUT may be two ops, PARAMS first */
    bool y_over_x;              /* forward may write y over x[0], where the bytes are equal */
    bool dx_over_dy;            /* INPUT may write dx[0] over dy, where the bytes are equal */
    bool writes_dy;             /* the first part that runs multiplies dy in place by a fused activation's derivative,
                                   and the second part reads the result */
    bool passes_gradient;       /* backward is the identity for every input: no op at all, dx is dy */
    bool by_rows;               /* PARAMS can run part by part of the rows of its first parameter's gradient, INPUT
                                   before all of them; INPUT needs no more scratch than PARAMS */
    unsigned adds;              /* bits of parameters, all or 0: a slice's backward adds their gradients to those of the
                                   slices before by itself (kernel_args.adds) */
    size_t gradients;           /* fused update: bytes of its parameters' gradients, or of a part of them, which live
                                   in the arena; 0: they are static */
    size_t part_elements;       /* of the first parameter: those of a part; 0: all at once */
    const char *implementation; /* for plans and result files, e.g. "winograd f4x4 avx512 | jit:avx2 direct chunk 8" */
};

/* What these parts of a backward read, and the scratch they need. */
static inline unsigned footprint_reads(const unsigned reads[2], unsigned parts)
{
    return (parts & PART_PARAMS ? reads[PART_INDEX_PARAMS] : 0) | (parts & PART_INPUT ? reads[PART_INDEX_INPUT] : 0);
}

static inline size_t footprint_scratch(const size_t backward_scratch[2], unsigned parts)
{
    const size_t params = parts & PART_PARAMS ? backward_scratch[PART_INDEX_PARAMS] : 0;
    const size_t input = parts & PART_INPUT ? backward_scratch[PART_INDEX_INPUT] : 0;
    return params > input ? params : input;
}

/* A relu's derivative depends on the signs of its output. A kernel with a relu says that its backward reads y and,
 * unless it needs y anyway (a pool, which saves other tensors), how many bytes the sign bits take; it can run with
 * either. signs: the sign bits become the saved tensors, read in place of y. No bit of any result depends on it. A
 * footprint without a relu does not change. */
void footprint_keep_sign_bits(struct footprint *footprint, bool signs);

struct kernel_args {
    const void *x[NODE_INPUTS_MAX]; /* forward; backward where READS_X or READS_X0 */
    void *y;                        /* forward: written; backward: read where READS_Y, else NULL */
    void *dx[NODE_INPUTS_MAX];      /* INPUT: written; NULL where that input wants no gradient, never all of them */
    void *dy;
    void *saved;   /* forward: written where save; backward: read where READS_SAVED, else NULL */
    void *once;    /* training: forward: written where first, else read; backward: read */
    void *scratch; /* as many bytes as the footprint says, undefined before and after */
    const float *parameters[NODE_PARAMETERS_MAX];
    float *gradients[NODE_PARAMETERS_MAX];
    unsigned adds;     /* bits of parameters whose gradient is added to what is there, in place of assigned: 1 where
                          kernel.adds, or what footprint.adds says */
    int64_t row, rows; /* by_rows: gradients are those of these rows of the first parameter; rows 0: all of them; the
                          other parameters' come with row 0, and y or saved with the node's first op alone */
    float *states[NODE_STATES_MAX];
    const int32_t *labels; /* a loss: graph_labels() a sample, LABEL_NONE or a class; or floats, where layer.targets */
    const double *divisor; /* a loss: what it is divided by, of the whole batch, of which this may be a slice */
    struct draw draw;
    unsigned parts; /* backward: enum part, or'ed; PARAMS only where the node has parameters, INPUT only where an input
                       wants a gradient */
    bool evaluate;  /* forward: not of a training step: reads the running state, and drops nothing at random */
    bool first;     /* forward of a training step, not a recomputation: writes once */
    bool commit;    /* forward of a training step: moves the running state */
    bool save;      /* forward: write the saved tensors */
};

/* The settings of a loss, a struct of its own file. */
enum { LOSS_SETTINGS_MAX = 32 };
struct loss_settings {
    _Alignas(max_align_t) unsigned char bytes[LOSS_SETTINGS_MAX];
};
#define LOSS_SETTINGS_FIT(type) _Static_assert(sizeof(type) <= LOSS_SETTINGS_MAX, "raise LOSS_SETTINGS_MAX")

/* The label of what has no class: it adds nothing to the loss or the correct predictions. */
enum { LABEL_NONE = -1 };

/* ST_FAILED: a label of so many samples, of which each has so many, is neither LABEL_NONE nor one of the classes. */
enum status labels_expected(const int32_t *labels, int64_t samples, int64_t each, int64_t classes);

/* class_weights of a loss: the weight of a class, 1 where none are given; the sum of those of so many labels; ST_SPEC
 * unless there are none, or one for each class, not all of them 0. */
static inline double class_weight(const struct setting_list *weights, int64_t class)
{
    return weights->count ? weights->reals[class] : 1;
}
double class_weights_sum(const struct setting_list *weights, const int32_t *labels, int64_t count);
enum status class_weights_expected(const struct setting_list *weights, int64_t classes);

/* Whether a node of that rate drops anything. */
static inline bool kernel_drops(const struct kernel_args *args, double rate) { return rate > 0 && !args->evaluate; }

/* What an elementwise layer's backward reads: x or y, or dy where it reads neither. */
static inline const float *kernel_at(unsigned reads, const struct kernel_args *args)
{
    return reads & READS_X ? args->x[0] : reads & READS_Y ? args->y : args->dy;
}

struct backend;
struct graph;
struct node;

/* One implementation of a layer. All pointers but prepare and forward may be NULL. */
struct kernel {
    bool deterministic; /* equal arguments give equal bits; other kernels are refused */
    /* Chooses the implementation for this node and sets its footprint; *state is passed to forward and backward. */
    enum status (*prepare)(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state);
    enum status (*forward)(void *state, const struct kernel_args *args);
    enum status (*backward)(void *state, const struct kernel_args *args);
    void (*release)(void *state);
    bool adds; /* backward takes kernel_args.adds 1, so that the first parameter may be another node's too */
};

struct reference;

struct layer {
    const char *name;   /* as in YAML */
    const char *doc;    /* one line */
    const char *family; /* a name that policies may use for several layers ("pool", "norm"), NULL: none */
    int inputs;
    bool reads_batch;   /* its last input is value 0, unless a model file names another for its only one */
    bool mixes_samples; /* a sample's output depends on the other samples of the batch, or of its slice where the
                           setting statistics, which such a layer has, is slice */
    bool loss;          /* ends the graph: reads labels, writes {loss, correct predictions} */
    bool predicts;      /* a loss: the mean over the labels, and predictions that can be counted */
    bool binary;        /* a loss that predicts: one channel stands for two classes, the logit of label 1 */
    bool targets;       /* a loss: labels are floats, one for each element of its input */
    /* A loss: what so many samples of that shape are divided by; NULL: how many labels are a class. */
    double (*divisor)(const void *settings, const struct shape *x, int64_t samples, const int32_t *labels);
    bool in_backward;            /* a loss that is computed with its gradient: a training step's forward writes {0, 0},
                                    and the backward, which READS_Y, overwrites it. An evaluation's forward writes y */
    const struct layer *chunked; /* a loss: this stands for it and the linear layer before it where its setting chunks
                                    is set; NULL: it has no such setting */
    const struct setting *keys;  /* what YAML may set: members of the layer's own struct; NULL: nothing */
    size_t settings_size;        /* of that struct; other code copies it without knowing its members */
    /* Whether each output is the largest of several inputs, so that a relu may run before the layer or after it. NULL:
     * no. */
    bool (*selects)(const void *settings);
    /* Changes *output, the first input's shape, to the output's (a loss: {2}); NULL: it is that. On bad input shapes or
     * settings ST_SPEC with a message that says what was expected, without naming the node. */
    enum status (*infer)(const void *settings, const struct shape *inputs, struct shape *output);
    /* Fills definitions and returns their number; NULL: none. */
    int (*parameters)(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX]);
    /* The same for running state: tensors that a training step moves and an evaluation reads. */
    int (*states)(const void *settings, const struct shape *input,
                  struct parameter_definition definitions[NODE_STATES_MAX]);
    struct flops element_flops; /* of an element of the input, where flops is NULL */
    struct flops (*flops)(const void *settings, const struct shape *inputs, const struct shape *output);
    /* Random numbers that a forward draws for a sample, 0: none, -1: too many to count; NULL: none, whatever the
     * settings. */
    int64_t (*draws)(const void *settings, const struct shape *inputs);
    struct kernel reference;
    /* The reference kernel's footprint as far as it does not depend on settings and shapes; measure() completes it for
     * reference_prepare(), NULL: it is complete. */
    struct footprint footprint;
    void (*measure)(const struct reference *reference, struct footprint *footprint);
};

/* The definition with this name, or NULL; and the table, ended by NULL, in the order of layers.def. */
const struct layer *layer_find(const char *name);
extern const struct layer *const layer_table[];
