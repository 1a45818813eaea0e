#include "arrays.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { ARRAYS_MOST = 64 };

static void *here[ARRAYS_MOST], *there[ARRAYS_MOST];
static int heres, theres;

void ok(cudaError_t error) { cr_assert(error == cudaSuccess, "%s", cudaGetErrorString(error)); }

void *array_here(size_t bytes)
{
    cr_assert(heres < ARRAYS_MOST);
    here[heres] = calloc(1, bytes + 1);
    cr_assert(here[heres]);
    return here[heres++];
}

void *array_there(size_t bytes)
{
    cr_assert(theres < ARRAYS_MOST);
    ok(cudaMalloc(&there[theres], bytes ? bytes : 1));
    return there[theres++];
}

void *array_upload(const void *from, size_t bytes)
{
    void *to = array_there(bytes);
    ok(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    return to;
}

void *array_download(const void *from, size_t bytes)
{
    void *to = array_here(bytes);
    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
    return to;
}

void arrays_free(void)
{
    ok(cudaDeviceSynchronize());
    while (heres > 0) free(here[--heres]);
    while (theres > 0) ok(cudaFree(there[--theres]));
}
