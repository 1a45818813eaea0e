/* One training run in this process: everything between a spec and its result file. */
#ifndef REMATCH_RUN_H
#define REMATCH_RUN_H

#include "spec.h"

/* A spec made ready: data opened, graph built, backend opened, plan made. */
struct job {
    struct spec *spec;
    struct dataset *dataset;
    struct backend *backend;
    struct graph *graph;
    struct network *network;
    struct plan *plan;
    uint64_t planning_ns; /* word, lowering and placement, kernels prepared */
};

/* ST_SPEC, ST_MISSING or ST_FAILED with the message set. */
enum status job_create(struct spec *spec, struct job **job);
void job_destroy(struct job *job);

#endif
