/* A place where kernels run: its memory, its kernels, and the few whole-block operations that training needs besides
 * layers. Chosen by name at run time; compiled by folder. */
#ifndef REMATCH_BACKEND_H
#define REMATCH_BACKEND_H

#include "graph.h"
#include "hash.h"

enum layout_choice { LAYOUT_AUTO, LAYOUT_CHANNELS_LAST, LAYOUT_BLOCKED };
enum conv_algorithm { CONV_AUTO, CONV_DIRECT, CONV_WINOGRAD };

struct backend_options {
    int64_t threads;        /* 0: one a core */
    int layout;             /* enum layout_choice, for images */
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

struct optimizer; /* optim.h */

struct backend {
    const struct backend_kind *kind;
    struct backend_options options; /* threads resolved */
    uint64_t clock_ns[CLOCK_CLASSES];
    const char *isa;       /* e.g. "avx512_core" */
    const char *libraries; /* e.g. "oneDNN 2.6.3 (omp)" */
    void *vendor;          /* engine, stream, handles */
};

struct backend_kind {
    const char *name;
    enum status (*open)(struct backend *backend); /* options given; fills isa, libraries, vendor */
    void (*close)(struct backend *backend);
    /* The kernel of a node's layer with its settings, NULL where there is none. */
    const struct kernel *(*kernel)(const struct node *node);
    /* Chooses every value's layout and sets its bytes; a pure rule of shapes, options and ISA. */
    enum status (*arrange)(struct backend *backend, struct graph *graph);
    /* A block of bytes, touched and zeroed; ST_FAILED when it cannot be had. */
    enum status (*reserve)(struct backend *backend, size_t bytes, void **block);
    void (*unreserve)(struct backend *backend, void *block, size_t bytes);
    void (*upload)(struct backend *backend, void *to, const void *from, size_t bytes);
    void (*download)(struct backend *backend, void *to, const void *from, size_t bytes);
    void (*copy)(struct backend *backend, void *to, const void *from, size_t bytes);
    void (*fill)(struct backend *backend, void *to, uint32_t pattern, size_t bytes); /* bytes % 4 == 0 */
    /* out[i] = a[i] + b[i]; out may be a or b. */
    void (*add)(struct backend *backend, float *out, const float *a, const float *b, size_t count);
    /* squares_sum(): not finite where an element is not. */
    double (*squares)(struct backend *backend, const float *x, size_t count);
    struct digest (*digest)(struct backend *backend, const void *data, size_t bytes);
};

/* The kinds built in, ended by NULL. */
extern const struct backend_kind *const backend_table[];

/* ST_SPEC: no such name; ST_MISSING: not built or no device, the message says what is missing. */
enum status backend_open(const char *name, const struct backend_options *options, struct backend **backend);
void backend_close(struct backend *backend);

/* Monotonic clock. */
uint64_t clock_now_ns(void);

#endif
