#include "side_streams.h"

#include <stdlib.h>

enum status lanes_open(struct cuda *cuda)
{
    struct lanes *l = cuda->lanes = calloc(1, sizeof *l);
    if (l == NULL) return fail(ST_FAILED, "cuda: out of memory");
    TRY(cuda_check(cudaEventCreateWithFlags(&l->left, cudaEventDisableTiming), "make an event"));
    for (int i = 0; i < LANES; i++) {
        TRY(cuda_check(cudaStreamCreateWithFlags(&l->stream[i], cudaStreamNonBlocking), "make a stream"));
        TRY(cuda_check(cudaEventCreateWithFlags(&l->back[i], cudaEventDisableTiming), "make an event"));
    }
    return ST_OK;
}

void lanes_close(struct cuda *cuda)
{
    struct lanes *l = cuda->lanes;
    if (l == NULL) return;
    for (int i = 0; i < LANES; i++) {
        if (l->back[i] != NULL) cudaEventDestroy(l->back[i]);
        if (l->stream[i] != NULL) cudaStreamDestroy(l->stream[i]);
    }
    if (l->left != NULL) cudaEventDestroy(l->left);
    free(l);
    cuda->lanes = NULL;
}

enum status lanes_leave(const struct cuda *cuda, int count)
{
    const struct lanes *l = cuda->lanes;
    TRY(cuda_check(cudaEventRecord(l->left, cuda->stream), "leave the queue"));
    for (int i = 0; i < count; i++) TRY(cuda_check(cudaStreamWaitEvent(l->stream[i], l->left, 0), "leave the queue"));
    return ST_OK;
}

enum status lanes_return(const struct cuda *cuda, int count)
{
    const struct lanes *l = cuda->lanes;
    for (int i = 0; i < count; i++) {
        TRY(cuda_check(cudaEventRecord(l->back[i], l->stream[i]), "return to the queue"));
        TRY(cuda_check(cudaStreamWaitEvent(cuda->stream, l->back[i], 0), "return to the queue"));
    }
    return ST_OK;
}
