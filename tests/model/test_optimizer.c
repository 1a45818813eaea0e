/* Optimisers against their recurrences written out in double, against steps worked out by hand, and against themselves
 * on other threads. */
#include "model/optimizer.h"
#include "tests/support/same_bits.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 5, STEPS = 12 };

/* The moments' shares as everybody has them, and others. */
#define USUAL .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8
static const struct {
    const char *name;
    struct optimizer_settings settings;
} tried[] = {
    {"sgd", {.lr = 0.1}},
    {"sgd", {.lr = 0.1, .weight_decay = 0.5}},
    {"sgd", {.lr = 0.01, .momentum = 0.9}},
    {"sgd", {.lr = 0.01, .momentum = 0.9, .weight_decay = 0.1}},
    {"sgd", {.lr = 0.01, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1}},
    {"adam", {.lr = 0.001, USUAL}},
    {"adam", {.lr = 0.1, .weight_decay = 0.3, USUAL}},
    {"adam", {.lr = 0.01, .weight_decay = 0.3, .beta1 = 0, .beta2 = 0.5, .epsilon = 0.1}},
    {"adamw", {.lr = 0.001, .weight_decay = 0.01, USUAL}},
    {"adamw", {.lr = 0.1, .weight_decay = 0.5, USUAL}},
    {"adamw", {.lr = 0.01, .weight_decay = 2, .beta1 = 0.5, .beta2 = 0, .epsilon = 1e-3, .decays = DECAYS_MATRICES}},
};
enum { TRIED = sizeof tried / sizeof *tried };

/* One element's path, in double. */
struct path {
    double p, m, v;
};

static void sgd_by_hand(const struct optimizer_settings *s, struct path *a, double g, int t)
{
    (void)t;
    g += s->weight_decay * a->p;
    a->m = s->momentum * a->m + g;
    a->p -= s->lr * (s->nesterov ? g + s->momentum * a->m : a->m);
}

/* The corrected moments have names of their own here, and no coefficient is folded into another. */
static void move_by_moments(const struct optimizer_settings *s, struct path *a, double g, int t)
{
    a->m = s->beta1 * a->m + (1 - s->beta1) * g;
    a->v = s->beta2 * a->v + (1 - s->beta2) * g * g;
    const double mean = a->m / (1 - pow(s->beta1, t)), square = a->v / (1 - pow(s->beta2, t));
    a->p -= s->lr * mean / (sqrt(square) + s->epsilon);
}

static void adam_by_hand(const struct optimizer_settings *s, struct path *a, double g, int t)
{
    move_by_moments(s, a, g + s->weight_decay * a->p, t);
}

static void adamw_by_hand(const struct optimizer_settings *s, struct path *a, double g, int t)
{
    a->p -= s->lr * s->weight_decay * a->p;
    move_by_moments(s, a, g, t);
}

static const struct {
    const char *name;
    void (*step)(const struct optimizer_settings *settings, struct path *path, double gradient, int t);
} by_hand[] = {{"sgd", sgd_by_hand}, {"adam", adam_by_hand}, {"adamw", adamw_by_hand}};

static void take_by_hand(const char *name, const struct optimizer_settings *settings, struct path *path, double g,
                         int t)
{
    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++)
        if (!strcmp(by_hand[i].name, name)) {
            by_hand[i].step(settings, path, g, t);
            return;
        }
    cr_assert_fail("%s has no recurrence here", name);
}

static float gradient_at(int i, int t) { return i == 3 ? 0 : (float)(sin(7.0 * i + 3.0 * t) * pow(10, i - 2)); }

Test(optim, the_table_finds_its_rows)
{
    for (const struct optimizer *const *o = optimizer_table; *o; o++) {
        cr_assert(optimizer_find((*o)->name) == *o && (*o)->keys && (*o)->update);
        for (const struct setting *f = (*o)->keys; f->key; f++) cr_assert(f->doc && *f->doc);
        bool is_tried = false;
        for (int i = 0; i < TRIED; i++) is_tried |= !strcmp(tried[i].name, (*o)->name);
        cr_assert(is_tried, "%s", (*o)->name);
    }
    cr_assert(!optimizer_find("no such optimizer"));
    cr_assert(optimizer_states(optimizer_find("sgd"), &tried[0].settings) == 0);
    cr_assert(optimizer_states(optimizer_find("sgd"), &tried[2].settings) == 1);
    cr_assert(optimizer_states(optimizer_find("adam"), &tried[4].settings) == 2);
}

Test(optim, each_is_its_recurrence)
{
    for (int k = 0; k < TRIED; k++) {
        const struct optimizer *o = optimizer_find(tried[k].name);
        const struct optimizer_settings *s = &tried[k].settings;
        float p[ELEMENTS], state[2 * ELEMENTS] = {0};
        struct path path[ELEMENTS];
        for (int i = 0; i < ELEMENTS; i++) path[i] = (struct path){.p = p[i] = (float)(i - 2) / 3};
        for (int t = 1; t <= STEPS; t++) {
            const struct optimizer_numbers numbers = optimizer_numbers(o, s, s->lr, 1, (uint32_t)t - 1, 2);
            float g[ELEMENTS];
            for (int i = 0; i < ELEMENTS; i++) take_by_hand(o->name, s, &path[i], g[i] = gradient_at(i, t), t);
            o->update(&numbers, ELEMENTS, p, g, optimizer_states(o, s) ? state : NULL, ELEMENTS, 1);
            for (int i = 0; i < ELEMENTS; i++) {
                const double off = fabs(p[i] - path[i].p), allowed = 2e-6 * t * (fabs(path[i].p) + s->lr);
                cr_assert(off <= allowed, "%s %d, step %d, %d: %.9g, not %.9g", o->name, k, t, i, p[i], path[i].p);
                if (optimizer_states(o, s) < 1) continue;
                cr_assert(fabs(state[i] - path[i].m) <= 2e-6 * t * (fabs(path[i].m) + fabs(g[i])), "%s %d", o->name, k);
                if (optimizer_states(o, s) > 1)
                    cr_assert(fabs(state[ELEMENTS + i] - path[i].v) <= 2e-6 * t * (path[i].v + g[i] * g[i]));
            }
        }
    }
}

/* Two steps that torch.optim.SGD(lr=0.1, momentum=0.9, weight_decay=0.01) takes from 1 with gradients 0.5 and 0.25,
 * worked out by hand: v = 0.51, p = 0.949; v = 0.459 + 0.25949 = 0.71849, p = 0.877151. */
Test(optim, sgd_takes_the_steps_worked_out_by_hand)
{
    const struct optimizer_settings hand = {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01};
    const struct optimizer *sgd = optimizer_find("sgd");
    const struct optimizer_numbers numbers = optimizer_numbers(sgd, &hand, hand.lr, 1, 0, 1);
    float p = 1, v = 0, first = 0.5f, second = 0.25f;
    sgd->update(&numbers, 1, &p, &first, &v, 1, 2);
    cr_assert(fabs(v - 0.51) < 1e-6 && fabs(p - 0.949) < 1e-6);
    sgd->update(&numbers, 1, &p, &second, &v, 1, 2);
    cr_assert(fabs(v - 0.71849) < 1e-6 && fabs(p - 0.877151) < 1e-6);
}

/* Adam's first step is lr long whatever the gradient's size; decoupled decay takes lr weight_decay of the parameter
 * besides (at lr 0.1 and 0.5: 1 -> 0.95 -> 0.85), while decay within the gradient is lost in its sign. */
Test(optim, the_first_step_of_adam_is_as_long_as_its_rate)
{
    for (float g = 1e-3f; g < 1e4f; g *= 10) {
        const struct optimizer_settings s = {.lr = 0.1, .weight_decay = 0.5, USUAL};
        static const char *const name[2] = {"adam", "adamw"};
        for (int i = 0; i < 2; i++) {
            const struct optimizer *o = optimizer_find(name[i]);
            const struct optimizer_numbers numbers = optimizer_numbers(o, &s, s.lr, 1, 0, 2);
            float p = 1, state[2] = {0};
            o->update(&numbers, 1, &p, &g, state, 1, 1);
            cr_assert(fabs(p - (i ? 0.85 : 0.9)) < 2e-6, "%s, g %g: %.9g", name[i], g, p);
        }
    }
}

Test(optim, vectors_may_be_left_out_of_the_decay)
{
    for (const struct optimizer *const *o = optimizer_table; *o; o++)
        for (int rank = 1; rank <= 4; rank++) {
            struct optimizer_settings s = {.lr = 0.1, .weight_decay = 0.5, .decays = DECAYS_MATRICES, USUAL}, plain = s;
            if (rank == 1) plain.weight_decay = 0;
            plain.decays = DECAYS_ALL;
            const struct optimizer_numbers a = optimizer_numbers(*o, &s, s.lr, 1, 3, rank);
            const struct optimizer_numbers b = optimizer_numbers(*o, &plain, s.lr, 1, 3, rank);
            cr_assert(same_bits(&a, &b, sizeof a), "%s, rank %d", (*o)->name, rank);
            cr_assert((a.decay != 0 || a.keep != 1) == (rank > 1));
        }
}

/* A power of two: the scaled gradient is exact. */
Test(optim, a_scale_is_of_the_gradient)
{
    for (int k = 0; k < TRIED; k++) {
        const struct optimizer *o = optimizer_find(tried[k].name);
        const struct optimizer_settings *s = &tried[k].settings;
        float p[2] = {1, 1}, state[2][2] = {{0}};
        for (uint32_t t = 0; t < STEPS; t++)
            for (int i = 0; i < 2; i++) {
                const struct optimizer_numbers numbers = optimizer_numbers(o, s, s->lr, i ? 0.25 : 1, t, 2);
                const float g = gradient_at(1, (int)t) * (i ? 4 : 1);
                o->update(&numbers, 1, &p[i], &g, optimizer_states(o, s) ? state[i] : NULL, 1, 1);
            }
        cr_assert(same_bits(&p[0], &p[1], sizeof *p) && same_bits(state[0], state[1], sizeof *state));
    }
}

Test(optim, threads_change_no_bit)
{
    enum { COUNT = 100003 };
    static float p[2][COUNT], g[COUNT], state[2][2 * COUNT];
    for (int k = 0; k < TRIED; k++) {
        const struct optimizer *o = optimizer_find(tried[k].name);
        const struct optimizer_settings *s = &tried[k].settings;
        memset(state, 0, sizeof state);
        for (int i = 0; i < COUNT; i++) p[0][i] = p[1][i] = sinf((float)i), g[i] = cosf((float)i);
        for (uint32_t step = 0; step < 4; step++)
            for (int t = 0; t < 2; t++) {
                const struct optimizer_numbers numbers = optimizer_numbers(o, s, s->lr, 1, step, 2);
                o->update(&numbers, COUNT, p[t], g, optimizer_states(o, s) ? state[t] : NULL, COUNT, 1 + 2 * t);
            }
        cr_assert(same_bits(p[0], p[1], sizeof p[0]) && same_bits(state[0], state[1], sizeof state[0]));
    }
}
