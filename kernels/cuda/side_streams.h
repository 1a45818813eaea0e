/* Streams beside the queue, for work whose parts need not wait for each other. They may be recorded with it. */
#ifndef REMATCH_KERNELS_CUDA_SIDE_STREAMS_H
#define REMATCH_KERNELS_CUDA_SIDE_STREAMS_H

#include "cuda.h"

/* More than a device's multiprocessors need, where each lane has work for a few of them. Called work may wait for other
 * lanes' where the driver has fewer queues (CUDA_DEVICE_MAX_CONNECTIONS); recorded work does not. */
enum { SIDE_STREAMS = 32 };

struct side_streams {
    cudaStream_t stream[SIDE_STREAMS];
    cudaEvent_t left, back[SIDE_STREAMS];
};

enum status side_streams_open(struct cuda *cuda);
void side_streams_close(struct cuda *cuda);

/* What goes on the first count lanes from now on comes after what was queued. */
enum status side_streams_fork(const struct cuda *cuda, int count);
/* What is queued from now on comes after what went on the first count lanes. */
enum status side_streams_join(const struct cuda *cuda, int count);

#endif
