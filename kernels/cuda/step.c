/* A training step on the device: queued call by call, or captured as a graph and launched as one; and its times.
 *
 * Contract: everything a step reads that differs from step to step is in device memory before it starts: the moment and
 * the batch. So a captured graph, whose arguments are those of the captured step, gives the bits that calls give. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

/* ---- times ---- */

/* Doubles the room for marks. */
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

/* Events of a captured step are recorded at each launch. */
static cudaError_t put(struct cuda *cuda)
{
    struct phase_timing *t = cuda->now;
    if (t->marks == t->room) {
        const cudaError_t error = grow(t);
        if (error != cudaSuccess) return error;
    }
    struct mark *mark = &t->mark[t->marks++];
    mark->phase = cuda->phase;
    mark->class = cuda->class;
    mark->op = cuda->op;
    return cudaEventRecordWithFlags(mark->event, cuda->stream,
                                    t == &cuda->timing[1] ? cudaEventRecordExternal : cudaEventRecordDefault);
}

static void change(struct backend *backend, enum phase phase, enum clock_class class)
{
    struct cuda *cuda = cuda_of(backend);
    if (cuda->phase == phase && cuda->class == class && cuda->op == backend->op) return;
    cuda->phase = phase;
    cuda->class = class;
    cuda->op = backend->op;
    if (cuda->timed) cuda_note(backend, put(cuda));
}

cudaStream_t cuda_queue(struct backend *backend, enum clock_class class)
{
    change(backend, cuda_of(backend)->phase, class);
    return cuda_of(backend)->stream;
}

void cuda_phase(struct backend *backend, enum phase phase) { change(backend, phase, cuda_of(backend)->class); }

/* After all queued work is done: sets the backend's phase_ns and op_ns, and adds the time of passes to its clock_ns. */
static enum status read_times(struct backend *backend)
{
    const struct phase_timing *t = cuda_of(backend)->now;
    memset(backend->phase_ns, 0, sizeof backend->phase_ns);
    for (int i = 0; i < t->marks; i++)
        if (t->op_ns && t->mark[i].op >= 0) t->op_ns[t->mark[i].op] = 0;
    for (int i = 0; i + 1 < t->marks; i++) {
        float ms = 0;
        TRY(cuda_check(cudaEventElapsedTime(&ms, t->mark[i].event, t->mark[i + 1].event),
                       "measure the time between two events"));
        const uint64_t ns = (uint64_t)((double)ms * 1e6);
        const enum phase phase = t->mark[i].phase;
        backend->phase_ns[phase] += ns;
        if (t->op_ns && t->mark[i].op >= 0) t->op_ns[t->mark[i].op] += ns;
        if (phase != PHASE_OPTIMIZER && phase != PHASE_DIGEST) backend->clock_ns[t->mark[i].class] += ns;
    }
    return ST_OK;
}

void cuda_free_events(struct cuda *cuda)
{
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < cuda->timing[k].room; i++) cudaEventDestroy(cuda->timing[k].mark[i].event);
        free(cuda->timing[k].mark);
    }
}

/* ---- steps ---- */

void cuda_forget_step(struct backend *backend)
{
    struct cuda *cuda = cuda_of(backend);
    if (cuda->graph != NULL) cudaGraphExecDestroy(cuda->graph);
    cuda->graph = NULL;
}

static enum status queue_calls(struct backend *backend, bool captured, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    cuda->now = &cuda->timing[captured];
    cuda->now->marks = 0;
    cuda->phase = PHASE_FORWARD;
    cuda->class = CLOCK_OTHER;
    cuda->op = backend->op = -1;
    backend->op_ns = NULL;
    cuda->timed = true;
    cuda_note(backend, put(cuda));
    const enum status status = body(self);
    cuda_note(backend, put(cuda));
    cuda->now->op_ns = backend->op_ns;
    cuda->timed = false;
    return status;
}

static enum status capture_step(struct backend *backend, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    cudaGraph_t graph = NULL;
    cuda_forget_step(backend);
    TRY(cuda_check(cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal), "capture the step"));
    enum status status = queue_calls(backend, true, body, self);
    const cudaError_t ended = cudaStreamEndCapture(cuda->stream, &graph);
    if (status == ST_OK) status = cuda_check(ended, "capture the step");
    if (status == ST_OK) status = cuda_check(cuda->failed, "capture the step");
    if (status == ST_OK) status = cuda_check(cudaGraphInstantiate(&cuda->graph, graph, 0), "instantiate the graph");
    if (status == ST_OK) /* otherwise the first launch would take that time */
        status = cuda_check(cudaGraphUpload(cuda->graph, cuda->stream), "upload the step's graph");
    if (graph != NULL) cudaGraphDestroy(graph);
    cuda->graph_self = self;
    return status;
}

static enum status queue_capture(struct backend *backend, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    if (cuda->graph == NULL || cuda->graph_self != self) TRY(capture_step(backend, body, self));
    cuda->now = &cuda->timing[1];
    return cuda_check(cudaGraphLaunch(cuda->graph, cuda->stream), "launch the step's graph");
}

enum status cuda_step(struct backend *backend, bool same, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    cuda->mail->moment = backend->moment;
    TRY(cuda_check(cudaMemcpyAsync(&cuda->there->mail.moment, &cuda->mail->moment, sizeof cuda->mail->moment,
                                   cudaMemcpyHostToDevice, cuda->stream),
                   "copy the moment"));
    TRY(same && backend->options.graph ? queue_capture(backend, body, self) : queue_calls(backend, false, body, self));
    TRY(cuda_check(cudaMemcpyAsync(&cuda->mail->outcome, &cuda->there->mail.outcome, sizeof cuda->mail->outcome,
                                   cudaMemcpyDeviceToHost, cuda->stream),
                   "copy the outcome"));
    cuda->stepped = true;
    return ST_OK;
}

enum status cuda_wait(struct backend *backend)
{
    struct cuda *cuda = cuda_of(backend);
    const bool stepped = cuda->stepped;
    cuda->stepped = false;
    TRY(cuda_check(cudaStreamSynchronize(cuda->copies), "wait for transfers"));
    TRY(cuda_check(cudaStreamSynchronize(cuda->stream), "wait for the device"));
    TRY(cuda_check(cuda->failed, "queue work"));
    TRY(cuda_queued("launch kernels")); /* a rejected launch is not an error of the stream */
    if (!stepped) return ST_OK;
    backend->outcome = cuda->mail->outcome;
    return read_times(backend);
}
