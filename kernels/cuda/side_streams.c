#include "side_streams.h"

#include <stdlib.h>

enum status side_streams_open(struct cuda *cuda)
{
    struct side_streams *l = cuda->side_streams = allocate(1, sizeof *l);
    TRY(cuda_check(cudaEventCreateWithFlags(&l->fork, cudaEventDisableTiming), "make an event"));
    for (int i = 0; i < SIDE_STREAMS; i++) {
        TRY(cuda_check(cudaStreamCreateWithFlags(&l->stream[i], cudaStreamNonBlocking), "make a stream"));
        TRY(cuda_check(cudaEventCreateWithFlags(&l->join[i], cudaEventDisableTiming), "make an event"));
    }
    return ST_OK;
}

void side_streams_close(struct cuda *cuda)
{
    struct side_streams *l = cuda->side_streams;
    if (l == NULL) return;
    for (int i = 0; i < SIDE_STREAMS; i++) {
        if (l->join[i] != NULL) cudaEventDestroy(l->join[i]);
        if (l->stream[i] != NULL) cudaStreamDestroy(l->stream[i]);
    }
    if (l->fork != NULL) cudaEventDestroy(l->fork);
    free(l);
    cuda->side_streams = NULL;
}

enum status side_streams_fork(const struct cuda *cuda, int count)
{
    const struct side_streams *l = cuda->side_streams;
    TRY(cuda_check(cudaEventRecord(l->fork, cuda->stream), "fork side streams"));
    for (int i = 0; i < count; i++) TRY(cuda_check(cudaStreamWaitEvent(l->stream[i], l->fork, 0), "fork side streams"));
    return ST_OK;
}

enum status side_streams_join(const struct cuda *cuda, int count)
{
    const struct side_streams *l = cuda->side_streams;
    for (int i = 0; i < count; i++) {
        TRY(cuda_check(cudaEventRecord(l->join[i], l->stream[i]), "join side streams"));
        TRY(cuda_check(cudaStreamWaitEvent(cuda->stream, l->join[i], 0), "join side streams"));
    }
    return ST_OK;
}
