#include "job/memory_fit.h"

#include <float.h>

#include "analysis/policy_grid.h"
#include "base/units.h"

struct machine_memory memory_left(struct backend *backend)
{
    if (!backend->kind->device) return machine_memory("");
    return (struct machine_memory){backend->kind->device->available(backend), "the device"};
}

enum status fits_measuring(const struct network *network, size_t bytes)
{
    const struct machine_memory machine = memory_left(network->backend);
    char need[UNIT_TEXT], have[UNIT_TEXT];
    if (bytes <= machine.bytes) return ST_OK;
    return fail(ST_FAILED, "memory: measuring needs %s for batch %lld, of the %s that %s leaves; nothing was run",
                bytes_text((double)bytes, need), (long long)network->graph->batch,
                bytes_text((double)machine.bytes, have), machine.limit);
}

/* A front is asked for its least peak, at any slowdown; all of it is asked for by INFINITY. */
static enum status smallest(struct tries *tries, const struct trial **least)
{
    TRY(tries_own(tries));
    TRY(tries_all(tries));
    *least = NULL;
    for (int i = 0; i < tries->trials; i++)
        if (!*least || tries->trial[i].peak < (*least)->peak) *least = &tries->trial[i];
    return ST_OK;
}

enum status fits_smallest(const struct job *job, uint64_t bytes, char text[FITS_TEXT])
{
    struct tries tries = {.region = region_create(), .job = job, .slowdown = DBL_MAX};
    const struct trial *least = NULL;
    char need[UNIT_TEXT];
    if (!tries.region) return fail(ST_FAILED, "out of memory for plans");
    enum status status = smallest(&tries, &least);
    *text = '\0';
    if (status == ST_OK && least)
        snprintf(text, FITS_TEXT, "%s is policy %s%s%s, %s",
                 least->peak <= bytes ? "the smallest plan that fits" : "no policy's plan fits; the smallest",
                 least->policy->name, *least->settings ? ", " : "", least->settings,
                 bytes_text((double)least->peak, need));
    region_destroy(tries.region);
    return status;
}
