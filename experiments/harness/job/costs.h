/* Measured costs: a file that `rematch bench --costs` writes and planning reads. Strict YAML, like specs:
 *
 *     rematch_costs: 1
 *     machine, isa, threads, backend, libraries: where and with what it was measured
 *     batch, rounds: samples a step; how often each pass was timed, the least time counts
 *     step: {key, data, digest, optimizer, add, copy}      what a step does besides; add, copy: of a MiB
 *     nodes: [{key, forward, saving, backward_params, backward_input}]     nodes of one key share one row
 *
 * Times are whole ns. A key (node_timing.h) contains everything that a time depends on, so that a file is valid for
 * every network whose keys it has, whatever the policy. */
#pragma once

#include <stdio.h>

#include "plan/plan.h"
#include "spec/spec.h"
#include "train/node_timing.h"

struct costs_row {
    const char *key, *names; /* names: of its nodes, written as a comment; NULL where it was read */
    int64_t forward, saving, backward_params, backward_input; /* ns */
};

/* Times of a step besides its nodes: ns, add and copy in ns per MiB of gradient. */
struct costs_step {
    const char *key;
    int64_t data, digest, optimizer, add, copy;
};

struct costs {
    const char *path, *text;                         /* of the file */
    struct digest digest;                            /* XXH3-128 of its text */
    const char *machine, *isa, *backend, *libraries; /* as in the file */
    int64_t threads, batch, rounds;
    struct costs_step step;
    int rows;
    struct costs_row *row;
    const struct costs_row **node; /* one a node of the network it was read for */
};

/* Reads spec's file and sets network's costs; region holds everything. ST_SPEC: the file has errors, which are reported
 * with their places; or it lacks a node, the message names the first and how to make the file. */
enum status costs_read(const struct spec *spec, struct network *network, struct region *region, struct costs **costs);

/* The row of this key, or NULL. */
const struct costs_row *costs_find(const struct costs *costs, const char *key);

/* Sets machine, isa, backend, libraries and threads to those of this process; region holds the texts. */
void costs_describe(struct costs *costs, const struct backend *backend, struct region *region);

/* Whether they were measured with this processor, backend, libraries, ISA and number of threads. */
bool costs_here(const struct costs *costs, const struct backend *backend);

/* "Intel Xeon, avx512_core, cpu, 2 threads, oneDNN 2.6.3": where, and with what. */
const char *costs_where(const struct costs *costs, struct region *region);

/* How such a file begins. */
extern const char costs_begin[];

/* The file's text of costs, a struct costs, in canonical form, for yaml_write_whole(). */
void costs_write(const void *costs, FILE *out);

/* Everything that the times of a step's other work depend on. */
char *costs_step_key(const struct spec *spec, const struct network *network, struct region *region);

/* A whole step of the plan, in ns: plan->time, writing saved tensors, copying and adding gradients, and the rest. */
double costs_predict(const struct costs *costs, const struct plan *plan);

/* By how many percent a prediction misses a measured time of that name: "1.7 % less than measured"; "" without a
 * measured time. Returns text (at least 64 bytes). */
char *costs_miss(double predicted, double measured, const char *called, char *text);
