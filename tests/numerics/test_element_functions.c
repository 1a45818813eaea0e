/* The elementwise layers' functions in float against the C library's functions in double, over floats of every size and
 * sign. */
#include "numerics/element_functions.h"

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

static double logistic(double x) { return 1 / (1 + exp(-x)); }
static struct exact sigmoid(double x) { return sum(logistic(x), 0); }
static struct exact silu(double x) { return sum(x * logistic(x), 0); }
static struct exact silu_slope(double x) { return sum(logistic(x), x * logistic(x) * logistic(-x)); }
static struct exact hyperbolic(double x) { return sum(tanh(x), 0); }
static struct exact hardswish(double x) { return sum(x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6, 0); }
static struct exact hardswish_slope(double x)
{
    return sum(x <= -3 ? 0 : x >= 3 ? 1 : x / 3, x > -3 && x < 3 ? 0.5 : 0);
}

/* limit: what is expected at -FLT_MAX and FLT_MAX; squashes: at the infinities too, which otherwise are not finite. */
static const struct {
    const char *name;
    float (*formula)(float x);
    struct exact (*exact)(double x);
    double ulps;
    float limit[2];
    bool squashes;
} functions[] = {{"gelu", element_gelu, gelu, 6, {0, FLT_MAX}, false},
                 {"the slope of gelu", element_gelu_slope, gelu_slope, 5, {0, 1}, false},
                 {"sigmoid", element_sigmoid, sigmoid, 3, {0, 1}, true},
                 {"silu", element_silu, silu, 4, {0, FLT_MAX}, false},
                 {"the slope of silu", element_silu_slope, silu_slope, 5, {0, 1}, false},
                 {"tanh", element_tanh, hyperbolic, 3, {-1, 1}, true},
                 {"hardswish", element_hardswish, hardswish, 3, {0, FLT_MAX}, true},
                 {"the slope of hardswish", element_hardswish_slope, hardswish_slope, 3, {0, 1}, true}};
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
Test(element_functions, is_near_its_definition_everywhere)
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
        cr_assert(most > 0.4 && below > 1000000, "%s: never off, or never exact", functions[f].name);
    }
}

/* Neighbours in the range where all that happens happens, where a wrong range of one polynomial would show. */
Test(element_functions, is_near_its_definition_where_it_bends)
{
    for (int f = 0; f < FUNCTIONS; f++)
        for (float x = -16; x < 16; x += 0x1p-13f) {
            const struct exact exact = functions[f].exact(x);
            cr_assert(fabs(functions[f].formula(x) - exact.value) <= functions[f].ulps * ulp(exact.size, 0x1p-142),
                      "%s(%.9g) is off by %.2f ulp", functions[f].name, (double)x,
                      fabs(functions[f].formula(x) - exact.value) / ulp(exact.size, 0x1p-142));
        }
}

Test(element_functions, what_is_not_finite_is_seen)
{
    for (int f = 0; f < FUNCTIONS; f++) {
        cr_assert(isnan(functions[f].formula(NAN)) && isnan(functions[f].formula(-NAN)), "%s", functions[f].name);
        for (int above = 0; above < 2; above++) {
            const float most = above ? FLT_MAX : -FLT_MAX, infinity = above ? INFINITY : -INFINITY;
            const float limit = functions[f].limit[above], there = functions[f].formula(infinity);
            cr_assert(functions[f].formula(most) == limit, "%s(%g)", functions[f].name, (double)most);
            cr_assert(functions[f].squashes && fabsf(limit) < 2 ? there == limit : !isfinite(there), "%s(%g)",
                      functions[f].name, (double)infinity);
        }
    }
}

/* The C library's exponential in double; a rest counts as bits beyond the float. */
Test(element_functions, exp_is_within_an_ulp_and_a_quarter)
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
