/* Contract: each element is updated alone, so the bits depend neither on threads nor on vector width. */
#include "model/optimizer.h"

#include <string.h>

enum { ELEMENTS_WORTH_A_THREAD = 1 << 14 };

static const char *const decays_words[] = {"all", "matrices", NULL};

/* The members of rows that several optimizers share. */
#define REAL(name) .key = #name, .type = SETTING_REAL, .offset = offsetof(struct optimizer_settings, name)
#define LR         REAL(lr), .max = 1e6, .doc = "learning rate"
#define BETA(name) REAL(name), .max = 0.999999 /* with 1, a moment would stay 0 */
#define CLIP       REAL(clip), .max = 1e15, .doc = "gradients are scaled down where the norm of all is larger; 0: never"
#define DECAYS                                                                                                         \
    .key = "decays", .type = SETTING_CHOICE, .offset = offsetof(struct optimizer_settings, decays),                    \
    .values = decays_words, .doc = "what decays: every parameter, or none of one dimension (biases, gains of norms)"
#define EMA                                                                                                            \
    BETA(ema), .preset = "0",                                                                                          \
               .doc = "share that averages of the parameters keep in a step, by which evaluations predict; 0: none"
#define ADDED .doc = "added to the gradient, times the parameter"
#define MEAN  .doc = "share of the mean gradient that is carried on"
#define MEAN2 .doc = "share of the mean squared gradient that is carried on"
#define ROOT  .doc = "added to the root of the mean square"

/* ---- sgd ---- */

static const struct setting sgd_keys[] = {
    {LR, .preset = "0.01"},
    {REAL(momentum), .max = 1, .preset = "0", .doc = "share of the last update that is carried on"},
    {.key = "nesterov",
     .type = SETTING_BOOL,
     .offset = offsetof(struct optimizer_settings, nesterov),
     .preset = "false",
     .doc = "adds the gradient to what is carried on of its own update (Nesterov); requires momentum"},
    {REAL(weight_decay), .max = 1e6, .preset = "0", ADDED},
    {DECAYS, .preset = "all"},
    {CLIP, .preset = "0"},
    {EMA},
    {.key = NULL}};

/* As torch.optim.SGD without dampening, both forms of momentum (Sutskever et al., "On the importance of initialization
 * and momentum in deep learning", 2013, with the rate outside). */
static void sgd_update(const struct optimizer_numbers *numbers, int64_t elements, float *parameter,
                       const float *gradient, float *state, int64_t stride, int threads)
{
    const struct optimizer_numbers n = *numbers;
    (void)stride;
    if (state) {
#pragma omp parallel for simd schedule(static) num_threads(threads) if (elements >= ELEMENTS_WORTH_A_THREAD)
        for (int64_t i = 0; i < elements; i++) momentum_element(n, &parameter[i], gradient[i], &state[i]);
    } else {
#pragma omp parallel for simd schedule(static) num_threads(threads) if (elements >= ELEMENTS_WORTH_A_THREAD)
        for (int64_t i = 0; i < elements; i++) sgd_element(n, &parameter[i], gradient[i]);
    }
}

/* ---- adam and adamw ---- */

static const struct setting adam_keys[] = {{LR, .preset = "0.001"},
                                           {BETA(beta1), .preset = "0.9", MEAN},
                                           {BETA(beta2), .preset = "0.999", MEAN2},
                                           {REAL(epsilon), .min = 1e-30, .max = 1, .preset = "1e-08", ROOT},
                                           {REAL(weight_decay), .max = 1e6, .preset = "0", ADDED},
                                           {DECAYS, .preset = "all"},
                                           {CLIP, .preset = "0"},
                                           {EMA},
                                           {.key = NULL}};

static const struct setting adamw_keys[] = {
    {LR, .preset = "0.001"},
    {BETA(beta1), .preset = "0.9", MEAN},
    {BETA(beta2), .preset = "0.999", MEAN2},
    {REAL(epsilon), .min = 1e-30, .max = 1, .preset = "1e-08", ROOT},
    {REAL(weight_decay), .max = 1e6, .preset = "0.01", .doc = "times the rate: share of the parameter taken away"},
    {DECAYS, .preset = "all"},
    {CLIP, .preset = "0"},
    {EMA},
    {.key = NULL}};

/* Of both: Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1. */
static void adam_update(const struct optimizer_numbers *numbers, int64_t elements, float *parameter,
                        const float *gradient, float *state, int64_t stride, int threads)
{
    const struct optimizer_numbers n = *numbers;
    float *mean = state, *square = state + stride;
#pragma omp parallel for simd schedule(static) num_threads(threads) if (elements >= ELEMENTS_WORTH_A_THREAD)
    for (int64_t i = 0; i < elements; i++) adam_element(n, &parameter[i], gradient[i], &mean[i], &square[i]);
}

/* ---- the table ---- */

static const struct optimizer sgd = {"sgd", "with momentum where it is set", sgd_keys, false, false, sgd_update};
static const struct optimizer adam = {"adam", "Kingma and Ba, 2015", adam_keys, true, false, adam_update};
static const struct optimizer adamw = {
    "adamw",    "with weight decay apart from the gradient: Loshchilov and Hutter, 2019", adamw_keys, true, true,
    adam_update};

const struct optimizer *const optimizer_table[] = {&sgd, &adam, &adamw, NULL};

/* Decay is part of the gradient, as in torch.optim.Adam; or it bypasses the moments (Loshchilov and Hutter, "Decoupled
 * weight decay regularization", 2019, algorithm 2), with the rate in it, as in torch.optim.AdamW. */
struct optimizer_numbers optimizer_numbers(const struct optimizer *optimizer, const struct optimizer_settings *settings,
                                           double lr, double scale, uint32_t step, int rank)
{
    const double decay = settings->decays == DECAYS_MATRICES && rank < 2 ? 0 : settings->weight_decay;
    const double ema = step > 0 ? settings->ema : 0; /* the first averages are the parameters, as AveragedModel's */
    const double t = (double)step + 1;
    struct optimizer_numbers n = {.scale = (float)scale, .keep = 1, .average = (float)ema, .latest = (float)(1 - ema)};
    n.rate = (float)(optimizer->moments ? lr / (1 - pow(settings->beta1, t)) : lr);
    if (optimizer->decoupled)
        n.keep = (float)(1 - lr * decay);
    else
        n.decay = (float)decay;
    if (!optimizer->moments) {
        n.momentum = (float)settings->momentum;
        n.nesterov = settings->nesterov;
        return n;
    }
    n.second = (float)(1 / sqrt(1 - pow(settings->beta2, t)));
    n.beta1 = (float)settings->beta1;
    n.beta2 = (float)settings->beta2;
    n.rest1 = (float)(1 - settings->beta1);
    n.rest2 = (float)(1 - settings->beta2);
    n.epsilon = (float)settings->epsilon;
    return n;
}

int optimizer_states(const struct optimizer *optimizer, const struct optimizer_settings *settings)
{
    return optimizer->moments ? 2 : settings->momentum != 0;
}

int optimizer_copies(const struct optimizer *optimizer, const struct optimizer_settings *settings)
{
    return optimizer_states(optimizer, settings) + (settings->ema > 0);
}

const struct optimizer *optimizer_find(const char *name)
{
    for (const struct optimizer *const *o = optimizer_table; *o; o++)
        if (!strcmp((*o)->name, name)) return *o;
    return NULL;
}
