/* A backend: memory, kernels, and the few operations on whole blocks that training needs besides layers. Chosen by name
 * at run time; one folder of kernels/ each. */
#pragma once

#include "backend/allocation_count.h"
#include "backend/parameter_update.h"
#include "model/graph.h"
#include "numerics/digest.h"

enum layout_choice { LAYOUT_AUTO, LAYOUT_CHANNELS_LAST, LAYOUT_CHANNELS_FIRST };
enum conv_algorithm { CONV_AUTO, CONV_DIRECT, CONV_WINOGRAD };
enum precision { PRECISION_FP32, PRECISION_TF32 }; /* of products' and convolutions' operands; sums are fp32 */

struct backend_options {
    int64_t threads;    /* 0: one a core */
    int layout;         /* enum layout_choice, for images */
    int precision;      /* enum precision */
    bool graph;         /* a device records a step once and queues the recording; a host ignores it */
    int conv_algorithm; /* enum conv_algorithm */
    uint64_t
        scratch_limit; /* bytes a convolution may use within an op; a device walks the batch in chunks to keep it */
};

/* Classes by which the time of a step is counted, by kernels and ops. */
enum clock_class {
    CLOCK_CONV,
    CLOCK_LINEAR,
    CLOCK_POOL,
    CLOCK_NORM,
    CLOCK_ATTENTION,
    CLOCK_ACTIVATION,
    CLOCK_REORDER,
    CLOCK_OTHER,
    CLOCK_CLASSES
};

/* Names as printed, by enum clock_class. */
extern const char *const clock_names[CLOCK_CLASSES];

/* Phases of a step, which may alternate. UNDEFINE: of a host only; on a device it counts as RECOMPUTE. */
enum phase { PHASE_FORWARD, PHASE_RECOMPUTE, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_DIGEST, PHASE_UNDEFINE, PHASES };

/* The inputs that change from step to step. A device's kernels read them in its memory, since a recorded step is queued
 * with the arguments of its recording. */
struct step_moment {
    uint32_t step;
    uint64_t position; /* of the sequential stream (rng stash, unsafe) at the start of the step */
    int64_t counted;   /* labels of the batch that are a class */
    double divisor;    /* what the loss of the batch is divided by */
    struct optimizer_numbers
        numbers[2]; /* of parameters with one dimension, and with more; their scale is before clipping */
};

/* The results of a step. */
struct step_outcome {
    float loss[2];
    double squares;                    /* of all gradients together */
    int32_t not_finite;                /* the last parameter whose gradient is not finite, -1: none */
    float auxiliary[AUXILIARY_MAX][2]; /* of each such loss; loss[0] has their sum, too */
};

/* Begins the libraries of a backend whose bits this repository defines, the same on every machine; the number behind it
 * is another one after each change of a bit. */
#define DEFINED_KERNELS "own kernels, definition "

struct backend {
    const struct backend_kind *kind;
    struct backend_options options;    /* threads resolved */
    struct allocation_count allocated; /* buffers of allocate that are not released */
    uint64_t clock_ns[CLOCK_CLASSES];
    uint64_t phase_ns[PHASES];     /* of the last step, after wait */
    struct step_moment moment;     /* of the next step; set by the caller */
    struct step_outcome outcome;   /* of the last step, after wait */
    const struct step_moment *now; /* both in the backend's memory, for the step's body and kernels */
    struct step_outcome *outcome_now;
    const char *isa;          /* e.g. "avx512" */
    const char *libraries;    /* e.g. "cuDNN 9.1.0", or DEFINED_KERNELS and a number */
    const char *convolutions; /* the algorithms that the libraries have here; NULL: not said */
    const char *device;       /* e.g. "NVIDIA H200, driver 580.159, 139.7 GiB"; NULL: the host */
    void *vendor;             /* engine, stream, handles */
    int op;                   /* of the step, whose work is queued; -1: of none */
    uint64_t *op_ns;  /* of the step that is queued: where a device's wait writes each op's time; NULL: nowhere */
    enum phase phase; /* a host's: the current phase and its start */
    uint64_t phase_start;
    uint64_t lap_start; /* a host's: of the work that is counted to a class next */
};

/* Operations of a device only, whose memory is not the host's and is filled while it computes. */
struct device_kind {
    /* Bytes of the device's memory that all processes use, and that may still be reserved. */
    size_t (*used)(struct backend *backend);
    size_t (*available)(struct backend *backend);
    /* Staging memory of the host, from which send may copy while the host continues; NULL: out of memory. */
    void *(*stage)(struct backend *backend, size_t bytes);
    void (*unstage)(struct backend *backend, void *staged);
    /* Starts a copy from staged memory, in parallel to the queue; may be called again after wait. */
    void (*send)(struct backend *backend, void *to, const void *staged, size_t bytes);
    /* Queues, after the copy that was sent: from, the batch in logical order, to value 0, in its layout. */
    void (*arrive)(struct backend *backend, const struct graph *graph, void *to, const void *from);
    /* Queues: the sent batch was taken, and its memory may be overwritten. */
    void (*taken)(struct backend *backend);
};

/* Without kind->device, a backend's memory is the host's, and its work is done when a function returns. With it, the
 * memory is a device's, and only wait, upload, download, digest and squares return after the work queued before. */
struct backend_kind {
    const char *name;
    /* Bits 1u << enum layout_choice, 1u << enum precision: the supported values of these options. */
    unsigned layouts, precisions;
    const struct device_kind *device; /* NULL: the host's memory */
    const struct update_kind *update;
    enum status (*open)(struct backend *backend); /* options given; fills now, outcome_now, isa, libraries, vendor */
    void (*close)(struct backend *backend);
    /* The kernel of a node's layer, NULL: there is none. */
    const struct kernel *(*kernel)(const struct node *node);
    /* Chooses every value's layout and sets its bytes; a pure rule of shapes, options and ISA. */
    enum status (*arrange)(struct backend *backend, struct graph *graph);
    /* Whether the kernel of a node of an arranged graph can compute a 2x2 max pool of stride 2 of its output, too; a
     * pure rule like arrange's. NULL: of none. */
    bool (*takes_pool)(struct backend *backend, const struct graph *graph, const struct node *node);
    /* A block of bytes, touched and zeroed; ST_FAILED: out of memory. */
    enum status (*reserve)(struct backend *backend, size_t bytes, void **block);
    void (*unreserve)(struct backend *backend, void *block, size_t bytes);
    /* A buffer in the queue's order, for memory: dynamic, counted in allocated; NULL: out of memory. */
    void *(*allocate)(struct backend *backend, size_t bytes);
    void (*release)(struct backend *backend, void *buffer);
    void (*upload)(struct backend *backend, void *to, const void *from, size_t bytes);
    void (*download)(struct backend *backend, void *to, const void *from, size_t bytes);
    void (*copy)(struct backend *backend, void *to, const void *from, size_t bytes);
    void (*fill)(struct backend *backend, void *to, uint32_t pattern, size_t bytes); /* bytes % 4 == 0 */
    /* out[i] = a[i] + b[i]; out may be a or b. */
    void (*add)(struct backend *backend, float *out, const float *a, const float *b, size_t count);
    /* *to = the moment's position + offset. */
    void (*position)(struct backend *backend, uint64_t *to, uint64_t offset);
    /* rng_mask_fill(). */
    void (*mask)(struct backend *backend, const struct draw *draw, double rate, int64_t elements, int64_t batch);
    /* sum_of_squares(): not finite where an element is not. */
    double (*squares)(struct backend *backend, const float *x, size_t count);
    struct digest (*digest)(struct backend *backend, const void *data, size_t bytes);
    /* The work that follows belongs to phase. */
    void (*phase)(struct backend *backend, enum phase phase);
    /* A step at the backend's moment: body runs it, or queues it. same: body would queue the same work as in its last
     * call for self with same, so that a device may queue a recording of it instead of calling it. */
    enum status (*step)(struct backend *backend, bool same, enum status (*body)(void *self), void *self);
    /* Waits for the queued work; then outcome and phase_ns are set. ST_FAILED: the device failed. */
    enum status (*wait)(struct backend *backend);
};

/* The kinds built in, ended by NULL. */
extern const struct backend_kind *const backend_table[];

/* NULL: no backend of this name was built. */
const struct backend_kind *backend_find(const char *name);

/* ST_SPEC: no such name; ST_MISSING: not built, no device, or a host that runs fewer threads than requested; the
 * message says what is missing. */
enum status backend_open(const char *name, const struct backend_options *options, struct backend **backend);
void backend_close(struct backend *backend);

/* Monotonic clock. */
uint64_t clock_now_ns(void);
