/* One result file as text and as JSON. */
#pragma once

#include "analysis/json_tree.h"
#include "result/result_read.h"
#include "result/table.h"

/* What was run, planned and measured, a line a step; provenance: on what, too. A .part shows its committed steps. json:
 * one object of everything, under the file's own names (results/README.md): attributes and texts by the path of their
 * group, and under "steps", "eval" and "summary" an array a column. ST_SPEC: not a result file; ST_FAILED: unreadable.
 */
enum status show_file(const char *path, bool provenance, bool json, FILE *out);

/* One of its members, by its path, a line a value; NULL: nothing. */
void show_group(const char *path, json_t *group, FILE *out);

/* That object. */
enum status show_json(const char *path, json_t **json);

/* show_csv.c: a table of the file as comma-separated values (RFC 4180) under the file's names: "steps", the committed
 * ones; "ops" of the plan, with their least times where they are known; "tensors", the plan's buffers. A pair is two
 * columns, a digest one of 32 hexadecimal digits. */
enum status show_csv(const char *path, const char *table, FILE *out);

/* A table, of "pieces", "eval" and "summary" too, as an array a column; digests: with columns of pairs. */
enum status show_table(struct result *result, const char *table, bool digests, json_t *to);

/* The part of that object that is of groups, with "path" and "now", the status. Failures are kept: h5_status(). */
json_t *show_groups(struct result *result);
