/* Transfers of batches and results, as early and as late as events allow; and refused memory. */
#include <criterion/criterion.h>

#include "kernels/cuda/cuda.h"

enum { SIDE = 5, CHANNELS = 3, BATCH = 2, COUNT = BATCH * SIDE * SIDE * CHANNELS, BATCHES = 3 };

static struct backend *backend;
static struct graph *graph;
static float *next, *batch, *staged;

static void begin(void)
{
    const struct shape image = {3, {SIDE, SIDE, CHANNELS}};
    void *block[2];
    cr_assert(backend_open("cuda", &(struct backend_options){.layout = LAYOUT_CHANNELS_LAST}, &backend) == ST_OK);
    cr_assert(graph_create(&image, BATCH, &graph) == ST_OK);
    cr_assert(backend->kind->arrange(backend, graph) == ST_OK && graph->value[0].bytes == COUNT * sizeof *batch);
    for (int i = 0; i < 2; i++) cr_assert(backend->kind->reserve(backend, COUNT * sizeof *batch, &block[i]) == ST_OK);
    next = block[0], batch = block[1];
    staged = backend->kind->device->stage(backend, BATCHES * COUNT * sizeof *staged);
    cr_assert(staged);
    for (int i = 0; i < BATCHES * COUNT; i++) staged[i] = (float)(1 + i / COUNT);
}

static void end(void)
{
    backend->kind->device->unstage(backend, staged);
    backend->kind->unreserve(backend, next, COUNT * sizeof *next);
    backend->kind->unreserve(backend, batch, COUNT * sizeof *batch);
    graph_destroy(graph);
    backend_close(backend);
}

TestSuite(transfers, .init = begin, .fini = end);

static void send(int which)
{
    backend->kind->device->send(backend, next, staged + which * COUNT, COUNT * sizeof *staged);
}

static void take(void)
{
    backend->kind->device->arrive(backend, graph, batch, next);
    backend->kind->device->taken(backend);
}

/* The batch is number which, from 0 on. */
static void expect(int which)
{
    float got[COUNT];
    backend->kind->download(backend, got, batch, sizeof got);
    for (int i = 0; i < COUNT; i++) cr_assert(got[i] == (float)(1 + which), "batch %d: %g", which, (double)got[i]);
}

Test(transfers, a_step_waits_for_its_batch)
{
    for (int i = 0; i < BATCHES; i++) {
        send(i), take();
        expect(i); /* of the stream of steps alone */
    }
}

Test(transfers, a_batch_waits_until_the_one_before_it_is_taken)
{
    send(0);
    for (int i = 0; i < BATCHES; i++) {
        take();
        if (i + 1 < BATCHES) send(i + 1);
        cr_assert(cudaStreamSynchronize(cuda_of(backend)->copies) == cudaSuccess); /* as early as can be */
        expect(i);
    }
    cr_assert(backend->kind->wait(backend) == ST_OK, "%s", status_message());
}

/* With page-locked host memory no other call waits. */
Test(transfers, a_download_waits_for_its_copy)
{
    backend->kind->fill(backend, batch, 0x40e00000, COUNT * sizeof *batch);
    backend->kind->download(backend, staged, batch, COUNT * sizeof *staged);
    for (int i = 0; i < COUNT; i++) cr_assert(staged[i] == 7, "%g", (double)staged[i]);
}

Test(transfers, a_refused_block_leaves_the_device_usable)
{
    void *block;
    cr_assert(backend->kind->reserve(backend, (size_t)1 << 50, &block) == ST_FAILED);
    cr_assert(backend->kind->wait(backend) == ST_OK, "%s", status_message());
}
