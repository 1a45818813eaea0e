/* The rule by which a device's convolutions are planned: algorithms and chunks. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/layer_under_test.h"

/* The requested algorithm, within the limit if one fits, and the same choice each time. */
Test(device_convolutions, algorithm_and_chunk_follow_the_rule)
{
    static const char *const others[] = {[CONV_AUTO] = "none", [CONV_DIRECT] = "winograd", [CONV_WINOGRAD] = "none"};
    static const uint64_t limits[] = {0, KIB(20), KIB(300), KIB(1 << 20)};
    const int layouts[] = {LAYOUT_CHANNELS_FIRST, LAYOUT_CHANNELS_LAST};
    if (!backend_opens("cuda")) cr_skip_test("no device");
    for (int a = CONV_AUTO; a <= CONV_WINOGRAD; a++)
        for (int i = 0; i < 8; i++) {
            const uint64_t limit = limits[i / 2];
            const struct subject_case c = {
                "conv", IMAGE(16, 15, 16), CONV(32, 3, 1, 1, ACTIVATION_RELU), 7, true, false, layouts[i % 2], a,
                limit};
            struct subject one, other;
            subject_open(&one, "cuda", &c), subject_open(&other, "cuda", &c);
            const char *text = one.footprint.implementation;
            cr_assert(strcmp(text, other.footprint.implementation) == 0, "%s, then %s", text,
                      other.footprint.implementation);
            cr_assert(strstr(text, others[a]) == NULL && (a != CONV_DIRECT || strstr(text, "fft") == NULL), "%s", text);
            cr_assert(strncmp(text, "winograd", 8) != 0 || one.footprint.forward_scratch <= limit, "%s", text);
            subject_close(&one), subject_close(&other);
        }
}
