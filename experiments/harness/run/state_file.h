/* The state of a run between two steps, from which another process goes on with the same bits: RUN.h5.state beside the
 * result file. It holds the parameters, the optimizer's state, running state and the place in the sequential random
 * stream; batches, dropout's masks and learning rates are functions of the step. It can be read by the program that
 * wrote it alone, since the run id that it names depends on the program. */
#pragma once

#include "result/record.h"
#include "result/record_file.h"

/* What it belongs to. path: of the result file. */
struct state_file {
    const char *path, *id;
    const struct job *job;
    struct executor *exec;
};

/* Of the steps done so far, by all processes that worked on the run. */
struct state_numbers {
    uint64_t steps;
    struct run_summary summary; /* as far as it is known then */
    uint64_t rest_ns, known;    /* of the best-case step, whose times of ops follow in the file */
};

/* Whether there is one beside a result file. */
bool state_file_exists(const char *result);

/* Writes a new one beside the old one, which is as it was. ST_FAILED: it cannot be written; the message names path and
 * reason. */
enum status state_file_write(const struct state_file *file, const struct state_numbers *numbers,
                             const struct best_case *least);

/* Replaces the old one by the new one, once that is on the disk. ST_FAILED: as above. */
enum status state_file_place(const struct state_file *file);

/* Fills exec's tensors and numbers. ST_FAILED, with the path in the message: it is damaged, of another run, or not the
 * state that past recorded. */
enum status state_file_read(const struct state_file *file, const struct result *past, struct state_numbers *numbers,
                            struct best_case *least);

/* Removes it, and a new one beside it, where they exist. */
void state_file_remove(const char *result);
