/* Learning rates by step against values by hand, and clipping by norm. */
#include "model/optimizer.h"
#include "numerics/sum_of_squares.h"
#include "tests/support/same_bits.h"
#include "train/learning_rate.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static double factor(const char *name, double warmup, int64_t step, int64_t steps)
{
    return learning_rate_find(name)->factor(&(struct learning_rate_settings){.warmup = warmup}, step, steps);
}

Test(learning_rate, the_table_finds_its_rows)
{
    for (const struct learning_rate *const *r = learning_rate_table; *r; r++)
        cr_assert(learning_rate_find((*r)->name) == *r && (*r)->keys && (*r)->factor);
    cr_assert(!learning_rate_find("none such"));
}

Test(learning_rate, constant_stays)
{
    for (int64_t step = 0; step < 5; step++) cr_assert(factor("constant", 0, step, 5) == 1);
}

/* Of 10 steps, 4 rise: 0, 1/4, 2/4, 3/4, and then 6/6, 5/6 ... 1/6. */
Test(learning_rate, linear_rises_and_falls)
{
    static const double wanted[10] = {0, 0.25, 0.5, 0.75, 1, 5 / 6.0, 4 / 6.0, 3 / 6.0, 2 / 6.0, 1 / 6.0};
    for (int64_t step = 0; step < 10; step++) {
        cr_assert(fabs(factor("linear", 4, step, 10) - wanted[step]) < 1e-15, "step %d", (int)step);
        cr_assert(fabs(factor("linear", 0.4, step, 10) - wanted[step]) < 1e-15, "step %d", (int)step);
        cr_assert(fabs(factor("linear", 0, step, 10) - (double)(10 - step) / 10) < 1e-15);
    }
    cr_assert(factor("linear", 4, 10, 10) == 0 && factor("linear", 4, 99, 10) == 0);
}

Test(learning_rate, more_warm_up_than_steps_only_rises)
{
    for (int64_t step = 0; step < 5; step++) cr_assert(fabs(factor("linear", 20, step, 5) - (double)step / 20) < 1e-15);
    cr_assert(factor("linear", 0.07, 7, 100) == 1 && factor("linear", 0.07, 6, 100) < 1, "a share is rounded");
}

/* What torch.optim.lr_scheduler.CosineAnnealingLR gives with T_max 8 and eta_min 0.1 at a rate of 1: 0.1 + 0.45 (1 +
 * cos pi t / 8). Behind a warm-up of two of ten steps the same. */
Test(learning_rate, cosine_falls_to_the_least)
{
    static const double wanted[8] = {1,    0.9657457896300791,  0.8681980515339464,  0.7222075445642904,
                                     0.55, 0.37779245543570973, 0.23180194846605367, 0.134254210369921};
    const struct learning_rate *cosine = learning_rate_find("cosine");
    const struct learning_rate_settings plain = {.least = 0.1}, risen = {.least = 0.1, .warmup = 0.2};
    for (int64_t step = 0; step < 8; step++) {
        cr_expect(fabs(cosine->factor(&plain, step, 8) - wanted[step]) < 1e-14, "step %d", (int)step);
        cr_expect(fabs(cosine->factor(&risen, step + 2, 10) - wanted[step]) < 1e-14, "step %d", (int)step);
    }
    cr_expect(cosine->factor(&risen, 0, 10) == 0 && cosine->factor(&risen, 1, 10) == 0.5);
    cr_expect(fabs(cosine->factor(&plain, 8, 8) - 0.1) < 1e-15 && fabs(cosine->factor(&plain, 99, 8) - 0.1) < 1e-15);
    cr_expect(factor("cosine", 20, 3, 5) == 3 / 20.0, "more warm-up than steps only rises");
}

/* As StepLR(step_size=3, gamma=0.1) and MultiStepLR([2, 5], gamma=0.5), at a rate of 1; of epochs of four steps too. */
Test(learning_rate, steps_fall_at_milestones)
{
    static const double every[10] = {1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.001};
    static const double at[10] = {1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25};
    static const int64_t milestones[] = {2, 5};
    const struct learning_rate *row = learning_rate_find("step");
    for (int64_t step = 0; step < 40; step++)
        for (int64_t unit = 0; unit < 5; unit += unit ? 3 : 1) { /* 0, which is 1, 1 and 4 */
            const int64_t done = unit ? step / unit : step;
            const struct learning_rate_settings by = {.gamma = 0.1, .every = 3, .unit = unit},
                                                list = {.gamma = 0.5, .at = {2, {milestones}}, .unit = unit};
            if (done >= 10) continue;
            cr_expect(fabs(row->factor(&by, step, 40) - every[done]) < 1e-15, "step %d of %d", (int)step, (int)unit);
            cr_expect(row->factor(&list, step, 40) == at[done], "step %d of %d", (int)step, (int)unit);
        }
    const struct learning_rate_settings risen = {.gamma = 0.5, .every = 3, .warmup = 4};
    cr_expect(row->factor(&risen, 3, 10) == 0.75 && row->factor(&risen, 4, 10) == 0.5, "milestones are counted from 0");
}

/* Against the plain sum, with sizes around those of a lane, a piece and a thread. */
Test(squares, do_not_depend_on_the_threads)
{
    static const size_t counts[] = {0, 1, 15, 16, 17, 1000, 16383, 16384, 16385, 100000, 17 << 20};
    float *x = malloc((17 << 20) * sizeof *x);
    cr_assert(x != NULL);
    for (size_t i = 0; i < 17 << 20; i++) x[i] = (float)((i * 2654435761u) % 2001) / 1000 - 1;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const double one = sum_of_squares(x, counts[c], 1), three = sum_of_squares(x, counts[c], 3);
        long double plain = 0;
        for (size_t i = 0; i < counts[c]; i++) plain += (long double)x[i] * (long double)x[i];
        cr_assert(same_bits(&one, &three, sizeof one), "%zu", counts[c]);
        cr_assert(fabsl(one - plain) <= 1e-13L * plain, "%zu: %.17g, not %.17Lg", counts[c], one, plain);
    }
    for (size_t i = 0; i < 40; i++) x[i] = 3e38F;
    cr_assert(isfinite(sum_of_squares(x, 40, 1)), "finite where all are");
    free(x);
}

Test(optim, a_norm_above_clip_becomes_clip)
{
    for (double norm = 1e-3; norm < 1e6; norm *= 3) {
        cr_assert(optimizer_clip(0, norm) == 1);
        const double clipped = norm * optimizer_clip(2, norm);
        if (norm < 1.99) cr_assert(optimizer_clip(2, norm) == 1);
        if (norm > 2) cr_assert(clipped < 2 && clipped > 2 - 2e-6);
    }
}
