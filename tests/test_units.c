/* Sizes as messages and tables write them. */
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
