/* A convolution in groups against convolutions of each group. */
#include "tests/support/same_bits.h"
#include "tests/support/single_layer.h"

#include <criterion/criterion.h>
#include <string.h>

enum { BATCH = 2, GROUPS = 3, IN = 2, OUT = 4, PIXELS = BATCH * 5 * 6 };

/* Copies channels [from, from + some) of images with all channels to part, or back. */
static void copy_channels(float *part, float *image, int64_t pixels, int64_t all, int64_t from, int64_t some, bool back)
{
    for (int64_t p = 0; p < pixels; p++) {
        float *one = part + p * some, *other = image + p * all + from;
        memcpy(back ? other : one, back ? one : other, (size_t)some * sizeof *one);
    }
}

/* Copies number group of equal parts of a tensor, or back. */
static void copy_part(float *part, float *whole, size_t bytes, size_t group, bool back)
{
    float *other = whole + group * bytes / sizeof *whole;
    memcpy(back ? other : part, back ? part : other, bytes);
}

/* Runs group number g of all as a convolution of its own, and puts the results where those of all belong in made. */
static void run_group(struct single *one, const struct single *all, struct single *made, int g)
{
    copy_channels(one->x[0], all->x[0], PIXELS, GROUPS * IN, g * IN, IN, false);
    copy_channels(one->dy, all->dy, PIXELS, GROUPS * OUT, g * OUT, OUT, false);
    for (int i = 0; i < 2; i++)
        copy_part(one->parameter[i], all->parameter[i], one->parameter_bytes[i], (size_t)g, false);
    single_forward(one);
    single_backward(one);
    copy_channels(one->y, made->y, PIXELS, GROUPS * OUT, g * OUT, OUT, true);
    copy_channels(one->dx[0], made->dx[0], PIXELS, GROUPS * IN, g * IN, IN, true);
    for (int i = 0; i < 2; i++)
        copy_part(one->gradient[i], made->gradient[i], one->parameter_bytes[i], (size_t)g, true);
}

/* In every pass and bit. */
Test(reference, conv_in_groups_is_a_conv_of_each_group)
{
    struct settings settings = {.channels = GROUPS * OUT,
                                .groups = GROUPS,
                                .kernel = 3,
                                .stride = 1,
                                .padding = 1,
                                .activation = 1,
                                .bias = true};
    struct single all, made, one;
    single_open(&all, "ref", "conv", &settings, &(struct shape){3, {5, 6, GROUPS * IN}}, BATCH, false);
    single_open(&made, "ref", "conv", &settings, &(struct shape){3, {5, 6, GROUPS * IN}}, BATCH, false);
    settings.groups = 1, settings.channels = OUT;
    single_open(&one, "ref", "conv", &settings, &(struct shape){3, {5, 6, IN}}, BATCH, false);
    cr_assert(all.graph->node[0].flops.forward == GROUPS * one.graph->node[0].flops.forward);
    single_random(all.dy, all.y_bytes, 1, 9);
    for (int g = 0; g < GROUPS; g++) run_group(&one, &all, &made, g);
    single_forward(&all);
    single_backward(&all);
    cr_assert(same_bits(all.y, made.y, all.y_bytes) && same_bits(all.dx[0], made.dx[0], all.x_bytes[0]));
    for (int i = 0; i < 2; i++) cr_assert(same_bits(all.gradient[i], made.gradient[i], all.parameter_bytes[i]));
    single_close(&all), single_close(&made), single_close(&one);
}
