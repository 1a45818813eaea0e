#include "analysis/resolved_spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "spec/graph_build.h"
#include "spec/graph_file.h"
#include "spec/spec_settings.h"

const char *resolved_spec_set(struct region *region, int override, const char *value)
{
    const char *key = override == OVERRIDE_PLAN ? "plan" : "results";
    struct spec spec = {.plan = value, .results = value};
    const char *text = setting_print(setting_find(spec_keys, key), &spec, region);
    return text ? region_text(region, "%s=%s", key, text) : NULL;
}

/* The graph's spec, with the plan of the file at plan. */
static enum status load_graph(const char *path, const char *plan, struct spec **spec)
{
    struct network *network;
    TRY(graph_file_load(path, 0, NULL, spec, &network));
    (*spec)->plan = region_text((*spec)->region, "%s", plan);
    (*spec)->resolved = graph_file_print(*spec, (*spec)->region);
    abstract_destroy(network);
    if ((*spec)->policy) return ST_OK;
    spec_destroy(*spec);
    *spec = NULL;
    return fail(ST_SPEC, "%s: /spec/resolved has no policy", plan);
}

enum status resolved_spec_load(struct result *r, const char *path, struct resolved_spec *resolved, struct spec **spec)
{
    const char *text = h5_read_text(&r->h5, "/spec/resolved", r->region);
    const char *shown = region_text(r->region, "%s: /spec/resolved", r->h5.path);
    *spec = NULL;
    resolved->descriptor = -1;
    TRY(h5_status(&r->h5));
    resolved->descriptor = memfd_create("resolved.yaml", MFD_CLOEXEC);
    if (resolved->descriptor < 0 || dprintf(resolved->descriptor, "%s", text) < 0)
        return fail(ST_FAILED, "%s: no memory for it: %s", shown, strerror(errno));
    resolved->path = region_text(r->region, "/proc/%ld/fd/%d", (long)getpid(), resolved->descriptor);
    resolved->override[OVERRIDE_PLAN] = resolved_spec_set(r->region, OVERRIDE_PLAN, path);
    resolved->override[OVERRIDE_COSTS] = "costs=flops";
    if (!strcmp(h5_read_attribute_text(&r->h5, "/plan", "costs", "", r->region), GRAPH_COSTS))
        return load_graph(resolved->path, path, spec);
    return spec_load_as(resolved->path, shown, OVERRIDE_RESULTS, resolved->override, spec);
}

enum status resolved_spec_prepare(struct spec *spec, struct job **job)
{
    struct network *network;
    int at;
    *job = NULL;
    if (!spec->graph) return job_prepare(spec, job);
    TRY(graph_build_network(spec->graph, spec->batch, &at, &network));
    *job = job_prepare_abstract(spec, network);
    return ST_OK;
}
