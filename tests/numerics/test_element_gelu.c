/* Gelu in float against the C library's functions in double, over floats of every size and sign. */
#include "numerics/element_gelu.h"

#include <criterion/criterion.h>
#include <float.h>

static double normal(double x) { return erfc(-x * M_SQRT1_2) / 2; }
static double density(double x) { return exp(-x * x / 2) / sqrt(2 * M_PI); }

/* A value, and the size of what it was added up from: where terms cancel, errors are of that. */
struct exact {
    double value, size;
};

static struct exact sum(double a, double b) { return (struct exact){a + b, fmax(fabs(a), fabs(b))}; }

static struct exact gelu(double x) { return sum(x * normal(x), 0); }
static struct exact gelu_slope(double x) { return sum(normal(x), x * density(x)); }

static const struct {
    const char *name;
    float (*formula)(float x);
    struct exact (*exact)(double x);
    double ulps;
} functions[] = {{"gelu", element_gelu, gelu, 6}, {"its slope", element_gelu_slope, gelu_slope, 5}};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* A unit in the last place of a float of that size, at least least. */
static double ulp(double size, double least)
{
    int exponent;
    frexp(size, &exponent);
    return fmax(ldexp(1, exponent - 24), least);
}

/* Every 1009th float; each is about 1e-4 of itself from the next. Below 2^-118 the unit is 2^-142: subnormal
 * exponentials are rounded more coarsely. */
Test(element_gelu, is_near_its_definition_everywhere)
{
    for (int f = 0; f < FUNCTIONS; f++) {
        double most = 0;
        int below = 0;
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1009) {
            const float x = element_of_bits((uint32_t)bits);
            if (!isfinite(x)) continue;
            const struct exact exact = functions[f].exact(x);
            const double off = fabs(functions[f].formula(x) - exact.value) / ulp(exact.size, 0x1p-142);
            cr_assert(off <= functions[f].ulps, "%s(%.9g) is %.9g, not %.9g: off by %.2f ulp", functions[f].name,
                      (double)x, (double)functions[f].formula(x), exact.value, off);
            most = fmax(most, off);
            below += off < 1;
        }
        cr_assert(most > 0.5 && below > 1000000, "%s: never off, or never exact", functions[f].name);
    }
}

/* Neighbours in the range where all that happens happens, where a wrong range of one polynomial would show. */
Test(element_gelu, is_near_its_definition_where_it_bends)
{
    for (int f = 0; f < FUNCTIONS; f++)
        for (float x = -16; x < 16; x += 0x1p-13f) {
            const struct exact exact = functions[f].exact(x);
            cr_assert(fabs(functions[f].formula(x) - exact.value) <= functions[f].ulps * ulp(exact.size, 0x1p-142),
                      "%s(%.9g)", functions[f].name, (double)x);
        }
}

Test(element_gelu, what_is_not_finite_is_seen)
{
    for (int f = 0; f < FUNCTIONS; f++) {
        cr_assert(isnan(functions[f].formula(NAN)) && isnan(functions[f].formula(-NAN)), "%s", functions[f].name);
        cr_assert(!isfinite(functions[f].formula(INFINITY)) && !isfinite(functions[f].formula(-INFINITY)));
        cr_assert(functions[f].formula(FLT_MAX) == (f % 2 ? 1 : FLT_MAX) && functions[f].formula(-FLT_MAX) == 0);
    }
}

/* The C library's exponential in double; a rest counts as bits beyond the float. */
Test(element_gelu, exp_is_within_an_ulp_and_a_quarter)
{
    for (float x = -87; x < 88; x += 0x1p-10f) {
        cr_assert(fabs(element_exp(x, 0) - exp(x)) <= 1.25 * ulp(exp(x), 0), "exp(%.9g)", (double)x);
        const float rest = x * 0x1p-25f;
        const double exact = exp((double)x + rest);
        cr_assert(fabs(element_exp(x, rest) - exact) <= 1.25 * ulp(exact, 0), "exp(%.9g + %.9g)", (double)x,
                  (double)rest);
    }
    cr_assert(element_exp(0, 0) == 1 && element_exp(-170, 0) == 0 && isnan(element_exp(NAN, 0)));
}
