/* A plan as a file: a result file without steps, written by `rematch plan --out` and read by the key `plan:`, which
 * accepts any result file. */
#pragma once

#include "job/job.h"
#include "plan/plan_data.h"

/* Writes the job's plan to path, completely or not at all. ST_SPEC: path exists and is no plan file; ST_FAILED: it
 * cannot be written (a file-size limit becomes an error like a full disk, as in record_create()). */
enum status plan_file_write(const struct job *job, const char *path);

/* Makes the plan of the file at path for the job's network: from its schedule and offsets, after simulate() has checked
 * them, compared member by member with the file's plan. ST_SPEC: it is of another policy, batch or network (the message
 * names the first node and number that differ), altered, or unreadable. */
enum status plan_file_take(const struct job *job, const char *path, struct plan **plan);

/* The comparison that does not depend on kernels: whether data, read from path, has the settings and the model of a
 * prepared job. ST_SPEC: the message names the first difference; region holds what is compared. */
enum status plan_file_of_model(const struct job *job, const char *path, const struct plan_data *data,
                               struct region *region);
