/* The host device itself: it behaves like a device, and catches errors that a device may hide. */
#include <criterion/criterion.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"

#define OK(call) cr_assert((call) == cudaSuccess, "%s", #call)

static cudaStream_t stream;
static float *there, *back; /* COUNT floats of the device; page-locked */
enum { COUNT = 5000 };

static void begin(void)
{
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&there, COUNT * sizeof *there));
    OK(cudaMallocHost((void **)&back, COUNT * sizeof *back));
}

static void fetch(void)
{
    OK(cudaMemcpyAsync(back, there, COUNT * sizeof *back, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
}

static void end(void)
{
    OK(cudaFree(there));
    OK(cudaFreeHost(back));
    OK(cudaStreamDestroy(stream));
}

TestSuite(device, .init = begin, .fini = end);

Test(device, work_runs_when_it_is_waited_for)
{
    probe_set(there, 1, COUNT, 7, stream);
    OK(cudaMemcpyAsync(back, there, COUNT * sizeof *back, cudaMemcpyDeviceToHost, stream));
    for (int i = 0; i < COUNT; i++) cr_assert(isnan(back[i]));
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++) cr_assert(back[i] == 1);
}

Test(device, streams_are_ordered_by_events_alone)
{
    cudaStream_t other;
    cudaEvent_t event;
    float ms;
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    OK(cudaEventCreate(&event));
    probe_set(there, 1, COUNT, 7, stream);
    OK(cudaEventRecord(event, stream));
    probe_set(there, 2, COUNT, 7, stream);
    OK(cudaMemcpyAsync(back, there, COUNT * sizeof *back, cudaMemcpyDeviceToHost, other));
    OK(cudaStreamSynchronize(other));
    cr_assert(isnan(back[0]), "the other stream did not wait");
    cr_assert(cudaEventElapsedTime(&ms, event, event) == cudaErrorNotReady);
    OK(cudaStreamWaitEvent(other, event, 0));
    OK(cudaMemcpyAsync(back, there, COUNT * sizeof *back, cudaMemcpyDeviceToHost, other));
    OK(cudaStreamSynchronize(other));
    cr_assert(back[COUNT - 1] == 1, "what came before the event, and no more: %g", (double)back[COUNT - 1]);
    OK(cudaStreamSynchronize(stream));
    OK(cudaEventElapsedTime(&ms, event, event));
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(other));
}

Test(device, a_graph_keeps_its_arguments_and_runs_again)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float value = 1, *at = there;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    probe_set(at, value, COUNT, 7, stream);
    OK(cudaMemcpyAsync(back, there, 8, cudaMemcpyDeviceToHost, stream));
    OK(cudaMemsetAsync(there, 0, 4, stream));
    value = 2, at = NULL;
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamSynchronize(stream));
    cr_assert(isnan(back[0]), "a capture does nothing");
    for (int run = 0; run < 3; run++) {
        probe_set(there, (float)(5 + run), COUNT, 7, stream);
        OK(cudaGraphLaunch(exec, stream));
        back[0] = back[1] = 0;
        OK(cudaStreamSynchronize(stream));
        cr_assert(back[0] == 1 && back[1] == 1);
        fetch();
        cr_assert(back[0] == 0 && back[1] == 1 && back[COUNT - 1] == 1);
    }
    OK(cudaGraphExecDestroy(exec));
    cr_assert(value == 2 && at == NULL);
}

enum { LANES = 3, PART = COUNT / LANES };

/* A part of the work on each side stream, between earlier and later work of the queue. */
static void queue_on_lanes(cudaStream_t lane[LANES], cudaEvent_t left, cudaEvent_t returned[LANES], int joined)
{
    OK(cudaMemsetAsync(there, 1, COUNT * sizeof *there, stream));
    OK(cudaEventRecord(left, stream));
    for (int i = 0; i < LANES; i++) {
        OK(cudaStreamWaitEvent(lane[i], left, 0));
        probe_set(there + i * PART, (float)i, PART, 7, lane[i]);
        OK(cudaEventRecord(returned[i], lane[i]));
        if (i < joined) OK(cudaStreamWaitEvent(stream, returned[i], 0));
    }
    OK(cudaMemcpyAsync(back, there, COUNT * sizeof *back, cudaMemcpyDeviceToHost, stream));
}

static void check_lanes(void)
{
    back[0] = NAN;
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < LANES * PART; i++) cr_assert(back[i] == (float)(i / PART), "%d: %g", i, (double)back[i]);
    memset(back, 0, COUNT * sizeof *back);
}

Test(device, side_streams_fork_and_join)
{
    cudaStream_t lane[LANES];
    cudaEvent_t left, returned[LANES];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaEventCreate(&left));
    for (int i = 0; i < LANES; i++) {
        OK(cudaStreamCreateWithFlags(&lane[i], cudaStreamNonBlocking));
        OK(cudaEventCreate(&returned[i]));
    }
    queue_on_lanes(lane, left, returned, LANES);
    check_lanes();
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    queue_on_lanes(lane, left, returned, LANES);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    for (int run = 0; run < 2; run++) {
        OK(cudaGraphLaunch(exec, stream));
        check_lanes();
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    queue_on_lanes(lane, left, returned, LANES - 1);
    cr_assert(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined && graph == NULL);
    cr_assert(cudaGetLastError() == cudaErrorStreamCaptureUnjoined);
    queue_on_lanes(lane, left, returned, LANES);
    check_lanes();
    for (int i = 0; i < LANES; i++) {
        OK(cudaEventDestroy(returned[i]));
        OK(cudaStreamDestroy(lane[i]));
    }
    OK(cudaEventDestroy(left));
}

/* A write by the second of two streams: after an event of the first, or while the first may still write there. */
static void write_twice(bool after)
{
    cudaStream_t other;
    cudaEvent_t event;
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    OK(cudaEventCreate(&event));
    OK(cudaMemsetAsync(there, 1, 64, stream));
    OK(cudaEventRecord(event, stream));
    if (after) OK(cudaStreamWaitEvent(other, event, 0));
    OK(cudaMemsetAsync((char *)there + 60, 2, 64, other));
    OK(cudaStreamSynchronize(other));
    OK(cudaMemsetAsync(there, 3, 64, stream));
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(other));
}

Test(device, two_ordered_streams_may_write_to_one_place) { write_twice(true); }
Test(device, two_unordered_streams_writing_to_one_place_end_the_program, .signal = SIGABRT) { write_twice(false); }

static cudaError_t synchronise(void) { return cudaStreamSynchronize(stream); }
static cudaError_t synchronise_all(void) { return cudaDeviceSynchronize(); }
static cudaError_t take(void)
{
    void *block;
    return cudaMalloc(&block, 8);
}
static cudaError_t give(void) { return cudaFree(there); }
static cudaError_t copy(void) { return cudaMemcpy(back, there, 8, cudaMemcpyDeviceToHost); }
static cudaError_t copy_pageable(void)
{
    float pageable[2];
    return cudaMemcpyAsync(pageable, there, sizeof pageable, cudaMemcpyDeviceToHost, stream);
}

Test(device, a_forbidden_call_invalidates_the_capture)
{
    static cudaError_t (*const forbidden[])(void) = {synchronise, synchronise_all, take, give, copy, copy_pageable};
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        cudaGraph_t graph;
        OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        cr_assert(forbidden[i]() == cudaErrorStreamCaptureUnsupported, "number %zu", i);
        cr_assert(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated && graph == NULL);
        cr_assert(cudaGetLastError() != cudaSuccess && cudaGetLastError() == cudaSuccess);
    }
}

Test(device, sums_by_shuffles_and_barriers)
{
    enum { ROWS = 7, COLUMNS = 700 };
    float *x;
    OK(cudaMallocHost((void **)&x, ROWS * COLUMNS * sizeof *x));
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i * 7 % 23);
    OK(cudaMemcpyAsync(there, x, ROWS * COLUMNS * sizeof *x, cudaMemcpyHostToDevice, stream));
    for (int run = 0; run < 2; run++) { /* lanes forwards and backwards */
        probe_sum(there + ROWS * COLUMNS, there, ROWS, COLUMNS, stream);
        fetch();
        for (int r = 0; r < ROWS; r++) {
            float sum = 0;
            for (int c = 0; c < COLUMNS; c++) sum += x[r * COLUMNS + c];
            cr_assert(back[ROWS * COLUMNS + r] == sum);
        }
    }
    OK(cudaFreeHost(x));
}

Test(device, every_block_of_a_grid_runs_once)
{
    probe_where((int *)(void *)there, stream);
    fetch();
    for (int z = 0, b = 0; z < 5; z++)
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 3; x++, b++) {
                int where;
                memcpy(&where, &back[b], sizeof where);
                cr_assert(where == (z * 100 + y) * 100 + x);
            }
}

Test(device, a_missing_barrier_is_noticed)
{
    for (int barrier = 0; barrier < 2; barrier++) {
        int right = 0, given;
        probe_turn((int *)(void *)there, barrier, stream);
        fetch();
        for (int t = 0; t < 64; t++) {
            memcpy(&given, &back[t], sizeof given);
            right += given == (t + 1) % 64;
        }
        cr_assert((right == 64) == (barrier == 1), "%d of 64", right);
    }
}

Test(device, a_barrier_without_all_threads_ends_the_program, .signal = SIGABRT)
{
    probe_diverge(0, stream);
    cudaStreamSynchronize(stream);
}

Test(device, a_shuffle_without_all_lanes_ends_the_program, .signal = SIGABRT)
{
    probe_diverge(1, stream);
    cudaStreamSynchronize(stream);
}

Test(device, host_memory_given_to_a_kernel_ends_the_program, .signal = SIGABRT)
{
    float host[8];
    probe_set(host, 1, 8, 1, stream);
}

Test(device, writing_past_a_block_ends_the_program, .signal = SIGABRT)
{
    probe_set(there, 1, COUNT + 1, 7, stream);
    cudaFree(there);
}

static sigjmp_buf out;
static void caught(int signal)
{
    (void)signal;
    siglongjmp(out, 1);
}

Test(device, the_host_cannot_touch_the_memory)
{
    struct sigaction catch = {.sa_handler = caught}, old;
    volatile float seen = 0;
    sigaction(SIGSEGV, &catch, &old);
    if (sigsetjmp(out, 1) == 0) {
        seen = there[0];
        cr_assert(false, "read %g", (double)seen);
    }
    sigaction(SIGSEGV, &old, NULL);
}

Test(device, memory_is_counted)
{
    size_t before, after, total;
    void *block, *other;
    OK(cudaMemGetInfo(&before, &total));
    OK(cudaMallocAsync(&block, 1 << 20, stream));
    OK(cudaMemGetInfo(&after, &total));
    cr_assert(before - after == 1 << 20);
    OK(cudaFreeAsync(block, stream));
    OK(cudaMemGetInfo(&after, &total));
    cr_assert(after < before, "it is given back in the stream's turn");
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemGetInfo(&after, &total));
    cr_assert(after == before);
    cr_assert(cudaMalloc(&other, total) == cudaErrorMemoryAllocation && other == NULL);
    cr_assert(cudaGetLastError() == cudaErrorMemoryAllocation);
}

Test(device, an_impossible_launch_is_an_error)
{
    probe_set(there, 1, COUNT, 0, stream);
    cr_assert(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
    cr_assert(cudaGetLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaSuccess);
}

Test(device, a_variable_of_the_device)
{
    uint32_t *step, *value = (uint32_t *)(void *)back;
    OK(probe_step(&step));
    *value = 17;
    OK(cudaMemcpyAsync(step, value, sizeof *value, cudaMemcpyHostToDevice, stream));
    probe_read_step((uint32_t *)(void *)there, stream);
    fetch();
    cr_assert(*value == 17);
}

Test(lost_device, every_call_fails_after_it)
{
    setenv("REMATCH_HOST_DEVICE", "memory=1000000,lost=2", 1);
    begin();
    size_t unused, total;
    OK(cudaMemGetInfo(&unused, &total));
    cr_assert(total == 1000000 && unused <= total - COUNT * sizeof *there);
    for (int i = 0; i < 2; i++) probe_set(there, 1, COUNT, 7, stream);
    OK(cudaStreamSynchronize(stream));
    probe_set(there, 1, COUNT, 7, stream);
    OK(cudaPeekAtLastError());
    cr_assert(cudaStreamSynchronize(stream) == cudaErrorLaunchFailure);
    cr_assert(cudaGetLastError() == cudaErrorLaunchFailure && cudaGetLastError() == cudaErrorLaunchFailure);
    cr_assert(cudaFree(there) == cudaErrorLaunchFailure);
    cr_assert(cudaStreamDestroy(stream) == cudaErrorLaunchFailure);
}
