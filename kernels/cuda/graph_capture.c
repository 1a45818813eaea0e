/* Contract: everything a step reads that differs from step to step is in device memory before it starts: the moment and
 * the batch. So a captured graph, whose arguments are those of the captured step, gives the bits that calls give. */
#include "graph_capture.h"

#include <stdlib.h>

#include "phase_timing.h"

struct capture {
    cudaGraphExec_t graph;
    struct phase_timing *timeline;
    void *self; /* the captured step's argument */
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

static enum status queue_calls(struct backend *backend, bool captured, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    cuda->timeline = captured ? cuda->capture->timeline : cuda->calls;
    phase_timing_begin(backend, captured);
    const enum status status = body(self);
    phase_timing_end(backend);
    return status;
}

static enum status capture_step(struct backend *backend, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    cudaGraph_t graph = NULL;
    capture_forget(backend);
    cuda->capture = allocate(1, sizeof *cuda->capture);
    cuda->capture->timeline = phase_timing_create();
    TRY(cuda_check(cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal), "capture the step"));
    enum status status = queue_calls(backend, true, body, self);
    const cudaError_t ended = cudaStreamEndCapture(cuda->stream, &graph);
    if (status == ST_OK) status = cuda_check(ended, "capture the step");
    if (status == ST_OK) status = cuda_check(cuda->failed, "capture the step");
    if (status == ST_OK)
        status = cuda_check(cudaGraphInstantiate(&cuda->capture->graph, graph, 0), "instantiate the step's graph");
    if (status == ST_OK) /* otherwise the first launch would take that time */
        status = cuda_check(cudaGraphUpload(cuda->capture->graph, cuda->stream), "upload the step's graph");
    if (graph != NULL) cudaGraphDestroy(graph);
    if (status == ST_OK) cuda->capture->self = self;
    return status;
}

static enum status queue_capture(struct backend *backend, enum status (*body)(void *self), void *self)
{
    struct cuda *cuda = cuda_of(backend);
    if (cuda->capture == NULL || cuda->capture->self != self) TRY(capture_step(backend, body, self));
    cuda->timeline = cuda->capture->timeline;
    return cuda_check(cudaGraphLaunch(cuda->capture->graph, cuda->stream), "launch the step's graph");
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
    TRY(cuda_queued("launch kernels")); /* a rejected launch is not an error of the stream */
    if (!stepped) return ST_OK;
    backend->outcome = cuda->mail->outcome;
    return phase_timing_read(backend);
}
