/* SGD against its recurrence written out for one number, and against itself on other threads. */
#include "bits.h"
#include "optim.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct optim_settings settings[] = {{.lr = 0.1},
                                                 {.lr = 0.1, .weight_decay = 0.5},
                                                 {.lr = 0.01, .momentum = 0.9},
                                                 {.lr = 0.01, .momentum = 0.9, .weight_decay = 0.1}};
enum { SETTINGS = sizeof settings / sizeof *settings, STEPS = 4 };

Test(optim, the_table_finds_its_rows)
{
    for (const struct optimizer *const *o = optimizer_table; *o; o++) {
        cr_assert(optimizer_find((*o)->name) == *o && (*o)->fields && (*o)->state && (*o)->update);
        for (const struct field *f = (*o)->fields; f->key; f++) cr_assert(f->doc && *f->doc);
    }
    cr_assert(!optimizer_find("no such optimizer"));
    cr_assert(optimizer_find("sgd")->state(&settings[0]) == 0 && optimizer_find("sgd")->state(&settings[2]) == 1);
}

/* With g = 1, 2, 3, 4 and the recurrences in double: g + wd p; v = m v + g; p - lr v. */
Test(optim, sgd_is_its_recurrence)
{
    const struct optimizer *sgd = optimizer_find("sgd");
    for (int s = 0; s < SETTINGS; s++) {
        float p[3] = {1, -2, 0.5f}, v[3] = {0};
        double q[3] = {1, -2, 0.5}, u[3] = {0};
        for (int step = 1; step <= STEPS; step++) {
            float g[3] = {(float)step, (float)-step, 0};
            sgd->update(&settings[s], 3, p, g, sgd->state(&settings[s]) ? v : NULL, 1);
            for (int i = 0; i < 3; i++) {
                u[i] = settings[s].momentum * u[i] + (g[i] + settings[s].weight_decay * q[i]);
                q[i] -= settings[s].lr * u[i];
                cr_assert(fabs(p[i] - q[i]) < 1e-5, "settings %d, step %d, %d: %g, not %g", s, step, i, p[i], q[i]);
                cr_assert(!settings[s].momentum || fabs(v[i] - u[i]) < 1e-5);
            }
        }
    }
}

/* Two steps that torch.optim.SGD(lr=0.1, momentum=0.9, weight_decay=0.01) takes from 1 with gradients 0.5 and 0.25,
 * worked out by hand: v = 0.51, p = 0.949; v = 0.459 + 0.25949 = 0.71849, p = 0.877151. */
Test(optim, sgd_takes_the_steps_worked_out_by_hand)
{
    struct optim_settings hand = {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01};
    float p = 1, v = 0, first = 0.5f, second = 0.25f;
    optimizer_find("sgd")->update(&hand, 1, &p, &first, &v, 2);
    cr_assert(fabs(v - 0.51) < 1e-6 && fabs(p - 0.949) < 1e-6);
    optimizer_find("sgd")->update(&hand, 1, &p, &second, &v, 2);
    cr_assert(fabs(v - 0.71849) < 1e-6 && fabs(p - 0.877151) < 1e-6);
}

Test(optim, threads_change_no_bit)
{
    enum { COUNT = 100003 };
    static float p[2][COUNT], g[COUNT], v[2][COUNT];
    for (int s = 0; s < SETTINGS; s++) {
        for (int i = 0; i < COUNT; i++)
            p[0][i] = p[1][i] = sinf((float)i), g[i] = cosf((float)i), v[0][i] = v[1][i] = 0;
        for (int step = 0; step < STEPS; step++)
            for (int t = 0; t < 2; t++) optimizer_find("sgd")->update(&settings[s], COUNT, p[t], g, v[t], 1 + 2 * t);
        cr_assert(same_bits(p[0], p[1], sizeof p[0]) && same_bits(v[0], v[1], sizeof v[0]));
    }
}
