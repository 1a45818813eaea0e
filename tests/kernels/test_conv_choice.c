/* Which algorithm the cpu backend chooses for a convolution. */
#include <criterion/criterion.h>
#include <string.h>

#include "backend/backend.h"
#include "tests/support/layer_under_test.h"

/* Winograd is used where scratch allows it. */
Test(conv_choice, winograd_keeps_the_limit)
{
    static const struct {
        int algorithm;
        uint64_t limit;
        bool winograd;
    } rows[] = {{CONV_AUTO, KIB(65536), true}, {CONV_DIRECT, KIB(65536), false}, {CONV_AUTO, KIB(64), false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct subject_case c = {"conv", IMAGE(56, 56, 64), CONV(64, 3, 1, 1, ACTIVATION_RELU), 8, true};
        struct subject s;
        c.algorithm = rows[i].algorithm, c.scratch_limit = rows[i].limit;
        subject_open(&s, "cpu", &c);
        cr_assert((strstr(s.footprint.implementation, "winograd") != NULL) == rows[i].winograd, "row %zu: %s", i,
                  s.footprint.implementation);
        cr_assert(s.footprint.forward_scratch <= c.scratch_limit || !rows[i].winograd);
        subject_close(&s);
    }
}

/* What is not worth Winograd's transforms is a product, unless the spec asks for it. */
Test(conv_choice, winograd_needs_tiles)
{
    static const struct {
        int64_t kernel, side, in, out, batch;
        bool used;
    } rows[] = {{3, 224, 3, 64, 1, true},   {3, 64, 64, 8, 4, true},    {3, 12, 512, 512, 1, false},
                {3, 14, 512, 512, 1, true}, {3, 7, 64, 64, 3, false},   {3, 7, 64, 64, 4, true},
                {3, 64, 64, 8, 3, false},   {5, 6, 192, 192, 1, false}, {5, 8, 192, 192, 1, true},
                {5, 64, 1, 10, 1, true},    {5, 60, 1, 10, 1, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int algorithm = CONV_AUTO; algorithm <= CONV_WINOGRAD; algorithm++) {
            struct subject_case c = {"conv", IMAGE(rows[i].side, rows[i].side, rows[i].in),
                                     CONV(rows[i].out, rows[i].kernel, 1, rows[i].kernel / 2, ACTIVATION_NONE),
                                     rows[i].batch};
            struct subject s;
            c.algorithm = algorithm, c.scratch_limit = KIB(65536);
            subject_open(&s, "cpu", &c);
            const bool used = algorithm == CONV_WINOGRAD || (algorithm == CONV_AUTO && rows[i].used);
            cr_assert((strstr(s.footprint.implementation, "winograd") != NULL) == used, "row %zu, algorithm %d: %s", i,
                      algorithm, s.footprint.implementation);
            subject_close(&s);
        }
}
