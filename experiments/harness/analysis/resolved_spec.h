/* The spec in a result file, to be planned or run again: from memory, with the file's own plan. */
#pragma once

#include "job/job.h"
#include "result/result_read.h"
#include "spec/spec.h"

enum { OVERRIDE_PLAN, OVERRIDE_COSTS, OVERRIDE_RESULTS, OVERRIDES };

/* What loads the same spec in another process, while descriptor is open. */
struct resolved_spec {
    int descriptor; /* of its text; -1: none */
    const char *path, *override[OVERRIDES];
};

/* path: of the file, absolute. Of a graph's plan the spec is that of graph_file_load(). It needs no costs, because it
 * has the plan; the folder of results is to be set. ST_SPEC: the spec is refused, its errors were printed, *spec is
 * NULL. */
enum status resolved_spec_load(struct result *result, const char *path, struct resolved_spec *resolved,
                               struct spec **spec);

/* The job of the loaded spec, or of the graph file that stands in its place, without a plan. ST_SPEC, ST_MISSING or
 * ST_FAILED with the message set. */
enum status resolved_spec_prepare(struct spec *spec, struct job **job);

/* key=value for plan or results, with the value as YAML. */
const char *resolved_spec_set(struct region *region, int override, const char *value);
