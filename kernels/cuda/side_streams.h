/* Streams beside the queue, for work whose parts need not wait for each other. They may be recorded with it. */
#ifndef REMATCH_KERNELS_CUDA_SIDE_STREAMS_H
#define REMATCH_KERNELS_CUDA_SIDE_STREAMS_H

#include "cuda.h"

/* More than a device's multiprocessors need, where each lane has work for a few of them. Called work may wait for other
 * lanes' where the driver has fewer queues (CUDA_DEVICE_MAX_CONNECTIONS); recorded work does not. */
enum { LANES = 32 };

struct lanes {
    cudaStream_t stream[LANES];
    cudaEvent_t left, back[LANES];
};

enum status lanes_open(struct cuda *cuda);
void lanes_close(struct cuda *cuda);

/* What goes on the first count lanes from now on comes after what was queued. */
enum status lanes_leave(const struct cuda *cuda, int count);
/* What is queued from now on comes after what went on the first count lanes. */
enum status lanes_return(const struct cuda *cuda, int count);

#endif
