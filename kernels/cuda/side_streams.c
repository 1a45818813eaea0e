#include "side_streams.h"

#include <stdlib.h>

enum status stream_create(cudaStream_t *stream)
{
    return cuda_check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "create a stream");
}

enum status event_create(cudaEvent_t *event)
{
    return cuda_check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "create an event");
}

enum status side_streams_open(struct cuda *cuda)
{
    struct side_streams *l = cuda->side_streams = allocate(1, sizeof *l);
    TRY(event_create(&l->fork));
    for (int i = 0; i < SIDE_STREAMS; i++) {
        TRY(stream_create(&l->stream[i]));
        TRY(event_create(&l->join[i]));
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
