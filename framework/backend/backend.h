/* A place where kernels run: its memory, its kernels, and the few whole-block operations that training needs besides
 * layers. Chosen by name at run time; compiled by folder. */
#ifndef REMATCH_BACKEND_BACKEND_H
#define REMATCH_BACKEND_BACKEND_H

#include "backend/allocation_count.h"
#include "backend/parameter_update.h"
#include "model/graph.h"
#include "numerics/digest.h"

enum layout_choice { LAYOUT_AUTO, LAYOUT_CHANNELS_LAST, LAYOUT_BLOCKED, LAYOUT_CHANNELS_FIRST };
enum conv_algorithm { CONV_AUTO, CONV_DIRECT, CONV_WINOGRAD };
enum precision { PRECISION_FP32, PRECISION_TF32 }; /* of products' and convolutions' operands; sums are fp32 */

struct backend_options {
    int64_t threads;        /* 0: one a core */
    int layout;             /* enum layout_choice, for images */
    int precision;          /* enum precision */
    bool graph;             /* a device records a step once and queues it again; a host has no such thing */
    int conv_algorithm;     /* enum conv_algorithm */
    uint64_t scratch_limit; /* bytes a convolution may use within an op; the batch is walked in chunks to keep it */
};

/* Where the time of a step goes inside kernels; filled by kernels and ops, read by bench and result files. */
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

/* What a step does, one after the other or in turn. UNDEFINE is of a host alone: on a device it counts as REPLAY. */
enum phase { PHASE_FORWARD, PHASE_RECOMPUTE, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_DIGEST, PHASE_UNDEFINE, PHASES };

/* What differs from step to step. Kernels of a device read it there, since a step that is queued again is queued with
 * the arguments it had. */
struct step_moment {
    uint32_t step;
    uint64_t position; /* of the sequential stream (rng stash, unsafe) at the start of the step */
    struct optimizer_numbers
        numbers[2]; /* of vectors, and of what has more dimensions; their scale is before clipping */
};

/* What a step leaves behind. */
struct step_outcome {
    float loss[2];
    double squares;     /* of all gradients together */
    int32_t not_finite; /* the last parameter whose gradient is not finite, -1: none */
};

struct backend {
    const struct backend_kind *kind;
    struct backend_options options; /* threads resolved */
    struct allocation_count ledger; /* of what allocate handed out */
    uint64_t clock_ns[CLOCK_CLASSES];
    uint64_t phase_ns[PHASES];        /* of the last step, after wait */
    struct step_moment moment;        /* of the next step; the caller's to set */
    struct step_outcome outcome;      /* of the last step, after wait */
    const struct step_moment *now;    /* the moment, and the outcome, in the backend's memory */
    struct step_outcome *outcome_now; /* of which step's body and kernels may know */
    const char *isa;                  /* e.g. "avx512_core" */
    const char *libraries;            /* e.g. "oneDNN 2.6.3 (omp)" */
    const char *device;               /* e.g. "NVIDIA H200, driver 580.159, 139.7 GiB"; NULL: the host */
    size_t packing;   /* most bytes that a library allocates by itself within an op, which no plan places; 0: none */
    void *vendor;     /* engine, stream, handles */
    enum phase phase; /* a host's: what is being done, and since when */
    uint64_t phase_start;
};

/* What only a device has: memory that is not the host's, filled while it works. */
struct device_kind {
    /* Bytes of the device's memory that all processes use, and that may still be reserved. */
    size_t (*used)(struct backend *backend);
    size_t (*available)(struct backend *backend);
    /* Of the host's memory, from which send may copy while the host goes on; NULL: there is none. */
    void *(*stage)(struct backend *backend, size_t bytes);
    void (*unstage)(struct backend *backend, void *staged);
    /* Starts a copy from staged memory, beside the queue, and may be called again after wait. */
    void (*send)(struct backend *backend, void *to, const void *staged, size_t bytes);
    /* Queues, after what was sent: from, the batch in logical order, to where and how value 0 lies. */
    void (*arrive)(struct backend *backend, const struct graph *graph, void *to, const void *from);
    /* Queues: what was sent has been taken, and its place is free. */
    void (*taken)(struct backend *backend);
};

/* A backend's memory is the host's, and its work is done when a function returns; or, where kind->device is set, it is
 * a device's, and only wait, upload, download, digest and squares return when what was queued before is done. */
struct backend_kind {
    const char *name;
    /* Bits 1u << enum layout_choice, 1u << enum precision: the supported values of these options. */
    unsigned layouts, precisions;
    const struct device_kind *device; /* NULL: the host's memory */
    const struct update_kind *update;
    enum status (*open)(struct backend *backend); /* options given; fills now, outcome_now, isa, libraries, vendor */
    void (*close)(struct backend *backend);
    /* The kernel of a node's layer with its settings, NULL where there is none. */
    const struct kernel *(*kernel)(const struct node *node);
    /* Chooses every value's layout and sets its bytes; a pure rule of shapes, options and ISA. */
    enum status (*arrange)(struct backend *backend, struct graph *graph);
    /* A block of bytes, touched and zeroed; ST_FAILED when it cannot be had. */
    enum status (*reserve)(struct backend *backend, size_t bytes, void **block);
    void (*unreserve)(struct backend *backend, void *block, size_t bytes);
    /* A buffer in the queue's order, for memory: dynamic, put down in the ledger; NULL: there is none. */
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
    /* What follows is done for this. */
    void (*phase)(struct backend *backend, enum phase phase);
    /* A step at the backend's moment: body does it, or queues it. same: body would queue what it queued when it was
     * last called for self with same, so that a device may queue a recording of that and not call it. */
    enum status (*step)(struct backend *backend, bool same, enum status (*body)(void *self), void *self);
    /* Until what was queued is done; then outcome and phase_ns are there. ST_FAILED: the device failed. */
    enum status (*wait)(struct backend *backend);
};

/* The kinds built in, ended by NULL. */
extern const struct backend_kind *const backend_table[];

/* NULL: none that was built is called so. */
const struct backend_kind *backend_find(const char *name);

/* ST_SPEC: no such name; ST_MISSING: not built, no device, or a host that runs another number of threads than asked
 * for; the message says what is missing. */
enum status backend_open(const char *name, const struct backend_options *options, struct backend **backend);
void backend_close(struct backend *backend);

/* Monotonic clock. */
uint64_t clock_now_ns(void);

#endif
