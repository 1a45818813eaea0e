/* Contract: what a step reads that differs from step to step is in the device's memory before it starts: the moment,
 * and the batch. So a recording, whose arguments are those of the step that was recorded, does what the calls would. */
#include "graph_capture.h"

#include <stdlib.h>

#include "phase_timing.h"

struct capture {
    cudaGraphExec_t graph;
    struct phase_timing *timeline;
    void *self; /* whose step it is */
};

void capture_forget(struct backend *backend)
{
    struct cuda *cuda = cuda_of(backend);
    if (cuda->capture == NULL) return;
    if (cuda->capture->graph != NULL) cudaGraphExecDestroy(cuda->capture->graph);
    if (cuda->timeline == cuda->capture->timeline) cuda->timeline = cuda->calls;
    phase_timing_destroy(cuda->capture->timeline);
    free(cuda->capture);
    cuda->capture = NULL;
}

static enum status queue_calls(struct backend *backend, bool recorded, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    cuda->timeline = recorded ? cuda->capture->timeline : cuda->calls;
    phase_timing_begin(backend, recorded);
    const enum status status = body(self);
    phase_timing_end(backend);
    return status;
}

static enum status record(struct backend *backend, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    cudaGraph_t graph = NULL;
    capture_forget(backend);
    cuda->capture = allocate(1, sizeof *cuda->capture);
    cuda->capture->timeline = phase_timing_create();
    TRY(cuda_check(cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal), "record the step"));
    enum status status = queue_calls(backend, true, body, self);
    const cudaError_t ended = cudaStreamEndCapture(cuda->stream, &graph);
    if (status == ST_OK) status = cuda_check(ended, "record the step");
    if (status == ST_OK) status = cuda_check(cuda->failed, "record the step");
    if (status == ST_OK)
        status = cuda_check(cudaGraphInstantiate(&cuda->capture->graph, graph, 0), "make the step's graph");
    if (status == ST_OK) /* or the first that is queued would take that long, which timing would see */
        status = cuda_check(cudaGraphUpload(cuda->capture->graph, cuda->stream), "upload the step's graph");
    if (graph != NULL) cudaGraphDestroy(graph);
    if (status == ST_OK) cuda->capture->self = self;
    return status;
}

static enum status queue_capture(struct backend *backend, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    if (cuda->capture == NULL || cuda->capture->self != self) TRY(record(backend, body, self));
    cuda->timeline = cuda->capture->timeline;
    return cuda_check(cudaGraphLaunch(cuda->capture->graph, cuda->stream), "queue the step");
}

enum status cuda_step(struct backend *backend, bool same, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    cuda->mail->moment = backend->moment;
    TRY(cuda_check(cudaMemcpyAsync((void *)(uintptr_t)backend->now, &cuda->mail->moment, sizeof cuda->mail->moment,
                                   cudaMemcpyHostToDevice, cuda->stream),
                   "copy the moment"));
    if (same && backend->options.graph)
        TRY(queue_capture(backend, body, self));
    else
        TRY(queue_calls(backend, false, body, self));
    TRY(cuda_check(cudaMemcpyAsync(&cuda->mail->outcome, backend->outcome_now, sizeof cuda->mail->outcome,
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
    TRY(cuda_queued("launch kernels")); /* a launch that was refused is no error of the stream's */
    if (!stepped) return ST_OK;
    backend->outcome = cuda->mail->outcome;
    return phase_timing_read(backend);
}
