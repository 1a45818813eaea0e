/* Memory that holds names instead of numbers: each buffer of a plan holds the name of what was last written to it. That
 * live ones lie apart is checked when one is born. */
#ifndef REMATCH_CHECK_SYMBOLIC_MEMORY_H
#define REMATCH_CHECK_SYMBOLIC_MEMORY_H

#include "base/region.h"
#include "check/plan_claims.h"

struct cell {
    bool alive;
    int writer;       /* op */
    uint64_t content; /* 0: undefined */
};

struct machine {
    const struct plan_data *data;
    struct region *region;
    const struct op *op;                       /* the one that runs */
    int at;                                    /* its number */
    struct cell *cell;                         /* one a buffer */
    int *alive, alives;                        /* buffers */
    int *born, *dies, *next_born, *next_dying; /* op -> first buffer, buffer -> next one; -1: none */
    unsigned *parts, *done;                    /* node -> parts of its backward that there are, that have run */
    uint64_t *gradient;                        /* value -> its whole gradient */
    int *forwards, *value_at, *saved_at;       /* node -> forwards so far, ops that wrote its value and saved tensors */
    bool *value_read, *saved_read;             /* op -> is what it wrote read later? */
    int first_forwards, due;                   /* due: no node above it has a backward that is still to run */
    bool forwarded;                            /* the ops so far were all first forwards, and this one is not */
    size_t live, live_by[CATEGORIES];
    struct outcome outcome;
};

/* ST_DIFFERS with the op that runs. */
enum status machine_wrong(const struct machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define MUST(condition, ...)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) return machine_wrong(m, __VA_ARGS__);                                                        \
    } while (0)

/* "conv1.y": of a buffer, kept with the machine. */
const char *machine_buffer(const struct machine *m, int id);

/* The operand is there where it has bytes: alive and of the right size, none where it has not; holds the content; is
 * given it. */
enum status machine_look(const struct machine *m, int id, size_t bytes, const char *what);
enum status machine_reads(const struct machine *m, int id, size_t bytes, uint64_t content, const char *what);
enum status machine_writes(struct machine *m, int id, size_t bytes, uint64_t content, const char *what);

/* The buffer, where nothing is in it yet, is called after what is about to be written there. */
bool machine_called(const struct machine *m, int id, enum category category, int node);

/* An output that is no other operand, but for an input whose place it may take (shared: how often that input is one).
 */
enum status machine_apart(const struct machine *m, int id, int partner, int shared, const char *what);

/* A buffer that begins at the op that runs, apart from all that are alive; and one that ends there. */
enum status machine_bear(struct machine *m, int id);
enum status machine_bury(struct machine *m, int id);

#endif
