/* Streams beside the queue, for independent parts of one pass. They are captured together with the queue. */
#ifndef REMATCH_KERNELS_CUDA_SIDE_STREAMS_H
#define REMATCH_KERNELS_CUDA_SIDE_STREAMS_H

#include "cuda.h"

/* Enough to occupy a device's multiprocessors where the work of a stream occupies a few of them. Where the driver has
 * fewer hardware queues (CUDA_DEVICE_MAX_CONNECTIONS), work of different streams may wait for each other; captured work
 * does not. */
enum { SIDE_STREAMS = 32 };

struct side_streams {
    cudaStream_t stream[SIDE_STREAMS];
    cudaEvent_t fork, join[SIDE_STREAMS];
};

/* Streams without order to the legacy stream, events without times. */
enum status stream_create(cudaStream_t *stream);
enum status event_create(cudaEvent_t *event);

enum status side_streams_open(struct cuda *cuda);
void side_streams_close(struct cuda *cuda);

/* Work queued on the first count side streams from now on runs after all work queued before. */
enum status side_streams_fork(const struct cuda *cuda, int count);
/* Work queued from now on runs after all work of the first count side streams. */
enum status side_streams_join(const struct cuda *cuda, int count);

#endif
