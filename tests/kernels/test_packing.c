/* oneDNN's own allocations within a product stay within gemm_packing(). The suite's posix_memalign()
 * precedes the C library's, so every request of oneDNN is counted here. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "backend/backend.h"

#if __has_include(<dnnl.h>) && !defined __SANITIZE_ADDRESS__

#include "kernels/cpu/cpu.h"

static atomic_size_t asked;

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    asked += bytes;
    *block = memalign(alignment, bytes); /* the suite counts calls of other names as our objects' */
    return *block || !bytes ? 0 : 12;    /* ENOMEM */
}

/* Bytes that a product requests in all, since it frees none of them before its end. */
static size_t requested(const int64_t *product, int transposed)
{
    const int64_t m = product[0], n = product[1], k = product[2];
    const struct matrix a = {calloc((size_t)(m * k), 4), transposed & 1 ? m : k, transposed & 1};
    const struct matrix b = {calloc((size_t)(k * n), 4), transposed & 2 ? k : n, transposed & 2};
    float *c = calloc((size_t)(m * n), sizeof *c);
    asked = 0;
    cr_assert(gemm(m, n, k, a, b, c, n) == ST_OK);
    free((void *)(uintptr_t)a.data);
    free((void *)(uintptr_t)b.data);
    free(c);
    return asked;
}

/* The bound is kept by every product, and one takes more than half of it. */
Test(packing, stays_within_the_reported_bytes)
{
    static const int64_t products[][3] = {{4096, 8, 4096}, {64, 8192, 384},  {10, 8192, 384}, {3, 8192, 768},
                                          {16, 16, 16},    {850, 10332, 11}, {1153, 485, 213}};
    double share = 0;
    for (int64_t threads = 1; threads <= 8; threads *= 2) {
        omp_set_num_threads((int)threads);
        for (size_t i = 0; i < sizeof products / sizeof *products; i++)
            for (int t = 0; t < 4; t++) {
                const int64_t *p = products[i];
                const size_t bytes = requested(p, t), most = gemm_packing(threads, p[0], p[1], p[2]);
                cr_expect(bytes <= most, "%zu of %zu bytes: %lld threads, row %zu, %d", bytes, most, (long long)threads,
                          i, t);
                share = fmax(share, (double)bytes / (double)most);
            }
    }
    cr_expect(share > 0.5, "at most %.2f of the bound is taken", share);
}

/* A network without products is said to take none; a small one takes less than a large one, at least with AVX2. */
Test(packing, is_that_of_the_largest_product_of_the_network)
{
    size_t packing[3];
    for (int i = 0; i < 3; i++) {
        struct backend *backend;
        cr_assert(backend_open("cpu", &(struct backend_options){.threads = 2}, &backend) == ST_OK);
        if (i > 0) expect_product(backend, i * 8, i * 8, 8);
        if (i > 1) expect_product(backend, 8, 8, 8);
        packing[i] = backend->packing;
        backend_close(backend);
    }
    cr_expect(packing[0] == 0 && packing[1] == gemm_packing(2, 8, 8, 8) && packing[2] == gemm_packing(2, 16, 16, 8));
}
#endif
