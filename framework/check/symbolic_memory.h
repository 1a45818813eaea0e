/* Memory of symbols instead of numbers: each buffer of a plan holds the symbol that was last written to it. At a
 * buffer's birth, it is checked against overlaps with the live ones. */
#pragma once

#include "base/region.h"
#include "check/plan_claims.h"

/* A slice's part of a buffer. */
struct cell {
    int writer;       /* op */
    uint64_t content; /* 0: undefined */
};

struct machine {
    const struct plan_data *data;
    struct region *region;
    const struct op *op;                       /* the current one */
    int at;                                    /* its index */
    int slices;                                /* of the batch */
    struct cell *cell;                         /* one a buffer and slice */
    bool *living, *stays;                      /* by buffer; stays: what it holds lives to the step's end */
    int *alive, alives;                        /* buffers */
    int *born, *dies, *next_born, *next_dying; /* op -> first buffer, buffer -> next one; -1: none */
    int *read_from, *use_from;                 /* node -> its first row in data->read, data->use; and one more */
    unsigned *parts, *done;                    /* node -> parts that its backward has; and slice -> that have run */
    uint64_t *gradient;                        /* value -> its complete gradient */
    int *parted, *updated; /* node -> parts of its parameters' gradients that were computed, and updates of
                              its parameters, so far */
    int *forwards, *value_at, *saved_at; /* node and slice -> forwards so far, ops that wrote value, saved tensors */
    bool *value_read, *saved_read;       /* op -> whether its value, its saved tensors are read later */
    int *first_forwards, *due;           /* by slice; due: the backwards of all nodes above it are done */
    bool forwarded;                      /* an op other than a first forward has been reached */
    size_t live, live_by[CATEGORIES];
    struct outcome outcome;
};

/* ST_DIFFERS with the current op and the message. */
enum status machine_wrong(const struct machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define MUST(condition, ...)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) return machine_wrong(m, __VA_ARGS__);                                                        \
    } while (0)

/* "conv1.y": the name of a buffer, in the machine's region. */
const char *machine_buffer(const struct machine *m, int id);

/* The slices that the current op works on: its own, or all; and the calls that compute a node's batch. */
int machine_first(const struct machine *m);
int machine_last(const struct machine *m);
size_t machine_calls(const struct machine *m, int node);

/* The part of a buffer that a slice has. */
struct cell *machine_cell(const struct machine *m, int id, int slice);

/* The bytes of an operand: of the current op's slice, and of a buffer that holds it for the whole batch, 0: there may
 * be none. */
struct operand {
    size_t bytes, all;
};

/* Of a value or a gradient with so many bytes for the batch, which may be part of a larger buffer; of what a node
 * saves, which may not; of scratch, whose bytes are a call's. */
struct operand machine_part(const struct machine *m, size_t bytes);
struct operand machine_share(const struct machine *m, size_t bytes);
struct operand machine_call(size_t bytes);

/* machine_look: an operand with bytes is in a live buffer of its size and slice, one without is in none. machine_reads:
 * and the buffer holds the content. machine_writes: and it holds the content from now on. */
enum status machine_look(const struct machine *m, int id, struct operand extent, const char *what);
enum status machine_reads(const struct machine *m, int id, struct operand extent, uint64_t content, const char *what);
enum status machine_writes(struct machine *m, int id, struct operand extent, uint64_t content, const char *what);

/* A buffer without content has the category and the node of the tensor about to be written there. */
bool machine_called(const struct machine *m, int id, enum category category, int node);

/* An output shares its buffer with no other operand, except an input that it may overwrite (shared: how many operands
 * that input is). */
enum status machine_apart(const struct machine *m, int id, int partner, int shared, const char *what);

/* Lists the buffers that are born and die at every op. */
void machine_list_lifetimes(struct machine *m);

/* A buffer is born at the current op, apart from all live ones; and one dies there. */
enum status machine_bear(struct machine *m, int id);
enum status machine_bury(struct machine *m, int id);
