/* The upper bound for products of float32 matrices on this machine: multiply-adds on registers alone, on every thread,
 * in enough independent chains to hide their latency. Prints the best GFLOP/s of some tries, for
 * experiments/bench/bench.py. */
#include <omp.h>
#include <stdio.h>

#ifdef __AVX512F__
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif
enum { CHAINS = 12, ROUNDS = 50 * 1000 * 1000, TRIES = 5 };
typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

/* The chains start from different values; otherwise the compiler would merge them. */
static float multiply_add(float factor)
{
    vector factors = (vector){0} + factor, chains[CHAINS];
    for (int k = 0; k < CHAINS; k++) chains[k] = (vector){0} + (float)k;
    for (int i = 0; i < ROUNDS; i++) {
#pragma GCC unroll 16
        for (int k = 0; k < CHAINS; k++) chains[k] = chains[k] * factors + factors;
    }
    float sum = 0;
    for (int k = 0; k < CHAINS; k++) sum += chains[k][0];
    return sum;
}

int main(int argc, char **argv)
{
    (void)argv;
    float half = 0.5f * (float)argc; /* not known before it runs; the chains neither grow nor vanish */
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        double began = omp_get_wtime(), flops = 0;
        float sum = 0;
#pragma omp parallel reduction(+ : sum, flops)
        {
            sum += multiply_add(half);
            flops += 2.0 * LANES * CHAINS * ROUNDS;
        }
        double rate = flops / (omp_get_wtime() - began);
        if (sum > 0 && rate > best) best = rate;
    }
    printf("%.1f\n", best * 1e-9);
    return 0;
}
