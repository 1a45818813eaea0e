/* oneDNN's own allocations within a product stay within the backend's packing bytes. The suite's posix_memalign()
 * precedes the C library's, so every request of oneDNN is counted here. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "tests/support/device_mirror.h"

#if __has_include(<dnnl.h>) && !defined __SANITIZE_ADDRESS__

#include "kernels/cpu/cpu.h"

static atomic_size_t asked;

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    asked += bytes;
    *block = memalign(alignment, bytes); /* the suite counts calls of other names as our objects' */
    return *block || !bytes ? 0 : 12;    /* ENOMEM */
}

/* The sum of all requests within a product, since it frees none of them before its end. */
Test(packing, stays_within_the_reported_bytes)
{
    static const int64_t products[][3] = {
        {4096, 8, 4096}, {64, 8192, 384}, {10, 8192, 384}, {3, 8192, 768}, {16, 16, 16}};
    size_t most = 0, packing = 0;
    for (int64_t threads = 1; threads <= 4; threads *= 2) {
        struct backend *backend;
        const struct backend_options options = {.threads = threads, .scratch_limit = 1 << 20};
        cr_assert(backend_open("cpu", &options, &backend) == ST_OK, "%s", status_message());
        for (size_t i = 0; i < sizeof products / sizeof *products; i++)
            for (int t = 0; t < 4; t++) {
                const int64_t m = products[i][0], n = products[i][1], k = products[i][2];
                const struct matrix a = {calloc((size_t)(m * k), 4), t & 1 ? m : k, t & 1};
                const struct matrix b = {calloc((size_t)(k * n), 4), t & 2 ? k : n, t & 2};
                float *c = calloc((size_t)(m * n), sizeof *c);
                asked = 0;
                cr_assert(gemm(m, n, k, a, b, c, n) == ST_OK);
                most = asked > most ? asked : most;
                free((void *)(uintptr_t)a.data);
                free((void *)(uintptr_t)b.data);
                free(c);
            }
        packing = backend->packing;
        backend_close(backend);
    }
    cr_expect(most > packing / 2 && most <= packing, "%zu bytes", most);
}
#endif
