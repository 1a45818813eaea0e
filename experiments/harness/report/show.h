/* One result file, as people and programs read it. */
#ifndef REMATCH_REPORT_SHOW_H
#define REMATCH_REPORT_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "result/result.h"

/* What was run, what was planned and measured, a line a step; a .part shows its committed steps. ST_SPEC: not a result
 * file; ST_FAILED: unreadable. */
enum status show_file(const char *path, bool provenance, FILE *out);

/* The same as one JSON object, provenance included. */
enum status show_json(const char *path, FILE *out);

/* What has attributes worth telling, by its path, and a text and lists of texts below it; ended by a row without path.
 * First what was run, planned and measured, then on what. */
struct show_group {
    const char *path;
    bool provenance;
    const char *text, *lists[3]; /* names; NULL: none, no more */
};
extern const struct show_group show_groups[];

/* Whether the file has the group; and the texts below it that go by name, none where it has none. */
bool show_has(struct result *result, const struct show_group *group);
const char **show_texts(struct result *result, const struct show_group *group, const char *name, size_t *count);

/* Committed evaluations. */
uint64_t show_evaluations(struct result *result);

#endif
