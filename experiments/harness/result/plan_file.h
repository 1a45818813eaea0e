/* A plan as a file: a result file with no steps. Written by `rematch plan --out`, taken by the key `plan:`; any result
 * file can be taken likewise. */
#ifndef REMATCH_RESULT_PLAN_FILE_H
#define REMATCH_RESULT_PLAN_FILE_H

#include "job/job.h"
#include "plan/plan_data.h"

/* Writes the job's plan to path, whole or not at all. ST_SPEC: something is there that is no plan file; ST_FAILED: it
 * cannot be written (a file-size limit becomes an error like a full disk, as in record_create()). */
enum status plan_file_write(const struct job *job, const char *path);

/* The plan for the job's network that the file at path holds: its schedule and its offsets, checked by simulate(), and
 * then member by member against what that schedule gives here. ST_SPEC: it is of another policy, batch or network (the
 * message names the first node and figure that differ), altered, or cannot be read. */
enum status plan_file_take(const struct job *job, const char *path, struct plan **plan);

/* The part of it that no kernels decide: the data that was read from path has the settings and the model of a job
 * that was prepared. ST_SPEC: the message names the first that differs; region takes what is compared. */
enum status plan_file_of_model(const struct job *job, const char *path, const struct plan_data *data,
                               struct region *region);

#endif
