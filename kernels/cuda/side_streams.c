#include "side_streams.h"

#include <stdlib.h>

enum status side_streams_open(struct cuda *cuda)
{
    struct side_streams *l = cuda->side_streams = allocate(1, sizeof *l);
    TRY(cuda_check(cudaEventCreateWithFlags(&l->left, cudaEventDisableTiming), "make an event"));
    for (int i = 0; i < SIDE_STREAMS; i++) {
        TRY(cuda_check(cudaStreamCreateWithFlags(&l->stream[i], cudaStreamNonBlocking), "make a stream"));
        TRY(cuda_check(cudaEventCreateWithFlags(&l->back[i], cudaEventDisableTiming), "make an event"));
    }
    return ST_OK;
}

void side_streams_close(struct cuda *cuda)
{
    struct side_streams *l = cuda->side_streams;
    if (l == NULL) return;
    for (int i = 0; i < SIDE_STREAMS; i++) {
        if (l->back[i] != NULL) cudaEventDestroy(l->back[i]);
        if (l->stream[i] != NULL) cudaStreamDestroy(l->stream[i]);
    }
    if (l->left != NULL) cudaEventDestroy(l->left);
    free(l);
    cuda->side_streams = NULL;
}

enum status side_streams_fork(const struct cuda *cuda, int count)
{
    const struct side_streams *l = cuda->side_streams;
    TRY(cuda_check(cudaEventRecord(l->left, cuda->stream), "leave the queue"));
    for (int i = 0; i < count; i++) TRY(cuda_check(cudaStreamWaitEvent(l->stream[i], l->left, 0), "leave the queue"));
    return ST_OK;
}

enum status side_streams_join(const struct cuda *cuda, int count)
{
    const struct side_streams *l = cuda->side_streams;
    for (int i = 0; i < count; i++) {
        TRY(cuda_check(cudaEventRecord(l->back[i], l->stream[i]), "return to the queue"));
        TRY(cuda_check(cudaStreamWaitEvent(cuda->stream, l->back[i], 0), "return to the queue"));
    }
    return ST_OK;
}
