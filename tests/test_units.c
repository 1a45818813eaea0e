/* Sizes, work and times as messages and tables write them. */
#include <criterion/criterion.h>
#include <string.h>

#include "units.h"

static const struct {
    size_t bytes;
    const char *rough, *exact;
} sizes[] = {{0, "0 B", "0 B"},
             {1023, "1023 B", "1023 B"},
             {1024, "1.00 KiB", "1.00 KiB (1024 bytes)"},
             {1145395968, "1.07 GiB", "1.07 GiB (1145395968 bytes)"},
             {SIZE_MAX, "16384 PiB", "16384 PiB (18446744073709551615 bytes)"}};

Test(units, sizes)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char text[UNIT_TEXT];
        cr_expect_str_eq(bytes_text((double)sizes[i].bytes, text), sizes[i].rough);
        cr_expect_str_eq(exact_bytes_text(sizes[i].bytes, text), sizes[i].exact);
    }
}

static const struct {
    double flops;
    const char *text;
} works[] = {{0, "0 FLOP"}, {999, "999 FLOP"}, {1000, "1.00 kFLOP"}, {12345678, "12.3 MFLOP"}, {9.9e11, "990.0 GFLOP"}};

Test(units, works)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        char text[UNIT_TEXT];
        cr_expect_str_eq(flops_text(works[i].flops, text), works[i].text);
    }
}

static const struct {
    uint64_t ns;
    const char *text;
} times[] = {{0, "0 us"},
             {999000, "999 us"},
             {1234567, "1.2 ms"},
             {1000000000, "1.00 s"},
             {UINT64_C(9870000000), "9.87 s"},
             {UINT64_C(119900000000), "119.9 s"},
             {UINT64_C(120000000000), "2 min 00 s"},
             {UINT64_C(3661500000000), "61 min 02 s"}};

Test(units, times)
{
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char text[UNIT_TEXT];
        cr_expect_str_eq(duration_text(times[i].ns, text), times[i].text);
    }
}
