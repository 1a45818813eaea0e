/* The run id: two runs with the same id must give the same bits. */
#pragma once

#include "job/job.h"

enum { RUN_ID_TEXT = 17 };

/* What it is computed from; "" for what a run does not have. */
struct run_id_parts {
    const char *resolved; /* spec */
    const char *program, *data, *libraries, *libc, *isa, *plan, *costs, *weights, *device;
    uint64_t threads;
};

/* The parts of a job, planned or not; reads the file of initial values for its digest. region holds the texts. */
enum status run_id_of_job(const struct job *job, struct region *region, struct run_id_parts *parts);

/* 16 hexadecimal digits: the first of the XXH3-128 of the resolved spec (without the keys that cannot change a bit:
 * name, title, expect, published, sweep, results, costs, plan, state_every) and of the other parts. */
void run_id_print(const struct run_id_parts *parts, struct region *region, char id[RUN_ID_TEXT]);

/* The id of a job. */
enum status run_id_compute(const struct job *job, char id[RUN_ID_TEXT]);

/* Digest of the program file, which depends on sources, compiler and flags. */
enum status program_digest(char text[33]);
