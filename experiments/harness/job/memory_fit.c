#include "job/memory_fit.h"

#include "base/units.h"

struct machine_memory memory_left(struct backend *backend)
{
    if (!backend->kind->device) return machine_memory("");
    return (struct machine_memory){backend->kind->device->available(backend), "the device"};
}

enum status memory_fit_measuring(const struct network *network, size_t bytes)
{
    const struct machine_memory machine = memory_left(network->backend);
    char need[UNIT_TEXT], have[UNIT_TEXT];
    if (bytes <= machine.bytes) return ST_OK;
    return fail(ST_FAILED, "memory: measuring needs %s for batch %lld, of the %s that %s leaves; nothing was run",
                bytes_text((double)bytes, need), (long long)network->graph->batch,
                bytes_text((double)machine.bytes, have), machine.limit);
}
