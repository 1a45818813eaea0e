/* The rule by which a device's convolutions are planned: algorithms, chunks, split sums. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/layer_under_test.h"

/* The requested algorithm, within the limit if one fits, and the same choice each time. */
Test(device_convolutions, algorithm_and_chunk_follow_the_rule)
{
    static const char *const others[] = {[CONV_AUTO] = "none", [CONV_DIRECT] = "winograd", [CONV_WINOGRAD] = "none"};
    static const uint64_t limits[] = {0, KIB(20), KIB(300), KIB(1 << 20)};
    const int layouts[] = {LAYOUT_BLOCKED, LAYOUT_CHANNELS_LAST};
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

/* As many chunks as fill the device, unless their sums are too short or the limit allows only few at once; limits fit
 * the host device's workspaces. */
static const struct {
    struct shape x;
    struct settings settings;
    int64_t batch;
    uint64_t limit;
    int chunk;
} shared[] = {
    {IMAGE(64, 64, 2), CONV(3, 3, 1, 1, ACTIVATION_RELU), 5, KIB(1 << 20), 1},
    {IMAGE(48, 48, 3), CONV(4, 3, 1, 1, ACTIVATION_RELU), 7, KIB(1 << 20), 3},
    {IMAGE(48, 48, 3), CONV(4, 3, 1, 1, ACTIVATION_RELU), 7, KIB(4), 3},
    {IMAGE(48, 48, 3), CONV(4, 3, 1, 1, ACTIVATION_RELU), 7, KIB(3), 7},
    {IMAGE(32, 32, 3), CONV(4, 3, 1, 1, ACTIVATION_RELU), 7, KIB(1 << 20), 7},
    {IMAGE(64, 64, 512), CONV(1024, 1, 1, 0, ACTIVATION_RELU), 4, KIB(1 << 20), 2},
    {IMAGE(64, 64, 512), CONV(2048, 1, 1, 0, ACTIVATION_RELU), 2, KIB(1 << 20), 2},
    {IMAGE(64, 64, 1), CONV(1, 1, 1, 0, ACTIVATION_RELU), 70, KIB(1 << 20), 3}, /* at most a turn a lane */
};

Test(device_convolutions, sums_over_samples_are_split)
{
    if (!backend_opens("cuda")) cr_skip_test("no device");
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (device_is_real() && shared[i].limit < KIB(1 << 20)) continue;
        const struct subject_case c = {"conv", shared[i].x,    shared[i].settings, shared[i].batch, false,
                                       false,  LAYOUT_BLOCKED, CONV_DIRECT,        shared[i].limit};
        struct subject s;
        subject_open(&s, "cuda", &c);
        const char *params = strstr(s.footprint.implementation, " | ");
        const int64_t turns = (c.batch + shared[i].chunk - 1) / shared[i].chunk;
        const size_t sums =
            (size_t)turns * round_up((size_t)s.graph->parameter[s.node->first_parameter].elements * sizeof(float));
        cr_assert(params && strtol(strstr(params, "chunk ") + strlen("chunk "), NULL, 10) == shared[i].chunk, "%zu: %s",
                  i, s.footprint.implementation);
        cr_assert(turns == 1 || s.footprint.backward_scratch[PART_INDEX_PARAMS] >= sums, "%zu", i);
        cr_assert(s.footprint.backward_scratch[PART_INDEX_PARAMS] <= c.scratch_limit, "%zu", i);
        subject_close(&s);
    }
}
