#include "phase_timing.h"

#include <stdlib.h>
#include <string.h>

struct mark {
    cudaEvent_t event;
    enum phase phase; /* of the work after it */
    enum clock_class class;
};

struct phase_timing {
    struct mark *mark;
    int marks, room;
    bool on, captured;
    enum phase phase; /* of the work queued now */
    enum clock_class class;
};

struct phase_timing *phase_timing_create(void) { return allocate(1, sizeof(struct phase_timing)); }

void phase_timing_destroy(struct phase_timing *timeline)
{
    if (timeline == NULL) return;
    for (int i = 0; i < timeline->room; i++) cudaEventDestroy(timeline->mark[i].event);
    free(timeline->mark);
    free(timeline);
}

/* Doubles the room. */
static cudaError_t grow(struct phase_timing *t)
{
    const int room = t->room > 0 ? 2 * t->room : 256;
    struct mark *mark = realloc(t->mark, (size_t)room * sizeof *mark);
    if (mark == NULL) return cudaErrorMemoryAllocation;
    t->mark = mark;
    while (t->room < room) {
        const cudaError_t error = cudaEventCreate(&t->mark[t->room].event);
        if (error != cudaSuccess) return error;
        t->room++;
    }
    return cudaSuccess;
}

static cudaError_t put(struct phase_timing *t, cudaStream_t stream)
{
    if (t->marks == t->room) {
        const cudaError_t error = grow(t);
        if (error != cudaSuccess) return error;
    }
    struct mark *mark = &t->mark[t->marks++];
    mark->phase = t->phase;
    mark->class = t->class;
    return cudaEventRecordWithFlags(mark->event, stream,
                                    t->captured ? cudaEventRecordExternal : cudaEventRecordDefault);
}

static void change(struct backend *backend, enum phase phase, enum clock_class class)
{
    struct phase_timing *t = cuda_of(backend)->timeline;
    if (t->phase == phase && t->class == class) return;
    t->phase = phase;
    t->class = class;
    if (t->on) cuda_note(backend, put(t, cuda_of(backend)->stream));
}

cudaStream_t cuda_queue(struct backend *backend, enum clock_class class)
{
    change(backend, cuda_of(backend)->timeline->phase, class);
    return cuda_of(backend)->stream;
}

void cuda_phase(struct backend *backend, enum phase phase)
{
    change(backend, phase, cuda_of(backend)->timeline->class);
}

void phase_timing_begin(struct backend *backend, bool captured)
{
    struct phase_timing *t = cuda_of(backend)->timeline;
    t->on = true;
    t->captured = captured;
    t->marks = 0;
    t->phase = PHASE_FORWARD;
    t->class = CLOCK_OTHER;
    cuda_note(backend, put(t, cuda_of(backend)->stream));
}

void phase_timing_end(struct backend *backend)
{
    struct phase_timing *t = cuda_of(backend)->timeline;
    if (t->on) cuda_note(backend, put(t, cuda_of(backend)->stream));
    t->on = false;
}

enum status phase_timing_read(struct backend *backend)
{
    const struct phase_timing *t = cuda_of(backend)->timeline;
    memset(backend->phase_ns, 0, sizeof backend->phase_ns);
    for (int i = 0; i + 1 < t->marks; i++) {
        float ms = 0;
        TRY(cuda_check(cudaEventElapsedTime(&ms, t->mark[i].event, t->mark[i + 1].event),
                       "measure the time between two events"));
        const uint64_t ns = (uint64_t)((double)ms * 1e6);
        const enum phase phase = t->mark[i].phase;
        backend->phase_ns[phase] += ns;
        if (phase != PHASE_OPTIMIZER && phase != PHASE_DIGEST) backend->clock_ns[t->mark[i].class] += ns;
    }
    return ST_OK;
}
