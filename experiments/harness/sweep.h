/* A sweep while it runs: its points, the index of their results, and points that run side by side. */
#pragma once

#include "experiment.h"

/* A point and its outcome. */
struct point {
    const char **value;  /* one per axis */
    const char *outcome; /* "equal", "DIFFERS", "refused" (before any point ran), "failed", "stopped", "not run" */
    const char *reason;  /* why it was refused, failed or stopped; else NULL */
    int code;
    bool own, ran;  /* this process is to run it; by now, its run or its refusal is decided */
    bool elsewhere; /* another process runs it, and writes its row of the index */
    const char *id[SIDES];
    struct plans plans;     /* of when it was planned, for its run */
    uint64_t need, threads; /* bytes of the side that needs more; threads of its variant */
    json_t *row;            /* its numbers, by the columns of the CSV; null: not measured */
};

struct sweep {
    struct region *region;
    const struct request *request;
    struct spec *spec;
    const char *folder, *program; /* of its results; digest of the program */
    const char *key;              /* of its index */
    int points;
    struct point *point;
    uint64_t memory; /* bytes left before the first run; of the device, if there is one */
    bool device;
    json_t *rows;   /* of all points, as in the index */
    int finished;   /* points whose files were there */
    uint64_t noted; /* time of the last line about planning, ns */
};

/* A point without a result. */
void sweep_give_up(struct sweep *sweep, int point, const char *outcome, int code, const char *reason);

/* sweep_index.c: the index RESULTS/NAME/sweep.csv, and sweep.json with the same rows, which processes that run other
 * points of the same sweep by the same program write too: takes their rows, and puts in those of this process. */
enum status sweep_index_update(struct sweep *sweep);
void sweep_index_print(const void *sweep, FILE *out); /* as in sweep.json */

/* sweep_jobs.c: runs the points that are not decided, request->jobs at a time, each by the program itself with --point.
 * Returns 128 + n after signal n, else 0. */
int sweep_jobs_run(struct sweep *sweep);

/* Prints the command that runs each point. */
void sweep_jobs_print(const struct sweep *sweep, FILE *out);
