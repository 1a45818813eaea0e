/* Optimisers. Contract: each element is updated alone, so the bits depend neither on threads nor on vector width. */
#include "model/optimizer.h"

#include <string.h>

enum { ELEMENTS_WORTH_A_THREAD = 1 << 14 };

static const char *const decays_words[] = {"all", "matrices", NULL};

#define MEMBER(name) offsetof(struct optimizer_settings, name)
#define FIELD_LR(preset)                                                                                               \
    {                                                                                                                  \
        "lr", SETTING_REAL, MEMBER(lr), 0, 1e6, preset, NULL, "learning rate"                                          \
    }
#define FIELD_DECAY(preset, doc)                                                                                       \
    {                                                                                                                  \
        "weight_decay", SETTING_REAL, MEMBER(weight_decay), 0, 1e6, preset, NULL, doc                                  \
    }
#define FIELDS_ALL                                                                                                     \
    {"decays",                                                                                                         \
     SETTING_CHOICE,                                                                                                   \
     MEMBER(decays),                                                                                                   \
     0,                                                                                                                \
     0,                                                                                                                \
     "all",                                                                                                            \
     decays_words,                                                                                                     \
     "what decays: every parameter, or none of one dimension (biases, gains of norms)"},                               \
    {                                                                                                                  \
        "clip", SETTING_REAL, MEMBER(clip), 0, 1e15, "0", NULL,                                                        \
            "gradients are made smaller where the norm of all is larger; 0: never"                                     \
    }

/* ---- sgd ---- */

static const struct setting sgd_keys[] = {
    FIELD_LR("0.01"),
    {"momentum", SETTING_REAL, MEMBER(momentum), 0, 1, "0", NULL, "share of the last update that is carried on"},
    FIELD_DECAY("0", "added to the gradient, times the parameter"),
    FIELDS_ALL,
    {.key = NULL}};

static int sgd_state(const struct optimizer_settings *settings) { return settings->momentum != 0; }

static void sgd_numbers(const struct optimizer_settings *settings, double lr, uint32_t step,
                        struct optimizer_numbers *numbers)
{
    (void)step;
    numbers->rate = (float)lr;
    numbers->momentum = (float)settings->momentum;
    numbers->decay = (float)settings->weight_decay;
}

/* As torch.optim.SGD without dampening (Sutskever et al., "On the importance of initialization and momentum in deep
 * learning", 2013, with the rate outside). */
static void sgd_update(const struct optimizer_numbers *numbers, int64_t elements, float *parameter,
                       const float *gradient, float *state, int threads)
{
    const struct optimizer_numbers n = *numbers;
    if (state) {
#pragma omp parallel for simd schedule(static) num_threads(threads) if (elements >= ELEMENTS_WORTH_A_THREAD)
        for (int64_t i = 0; i < elements; i++) momentum_element(n, &parameter[i], gradient[i], &state[i]);
    } else {
#pragma omp parallel for simd schedule(static) num_threads(threads) if (elements >= ELEMENTS_WORTH_A_THREAD)
        for (int64_t i = 0; i < elements; i++) sgd_element(n, &parameter[i], gradient[i]);
    }
}

/* ---- adam and adamw ---- */

/* What of a moment is kept; 1 would keep it at 0 for ever. */
#define FIELD_BETA(name, preset, doc)                                                                                  \
    {                                                                                                                  \
#name, SETTING_REAL, MEMBER(name), 0, 0.999999, preset, NULL, doc                                              \
    }
#define FIELDS_ADAM                                                                                                    \
    FIELD_BETA(beta1, "0.9", "share of the mean gradient that is carried on"),                                         \
        FIELD_BETA(beta2, "0.999", "share of the mean squared gradient that is carried on"),                           \
    {                                                                                                                  \
        "epsilon", SETTING_REAL, MEMBER(epsilon), 1e-30, 1, "1e-8", NULL, "added to the root of the mean square"       \
    }

static const struct setting adam_keys[] = {FIELD_LR("0.001"),
                                           FIELDS_ADAM,
                                           FIELD_DECAY("0", "added to the gradient, times the parameter"),
                                           FIELDS_ALL,
                                           {.key = NULL}};

static const struct setting adamw_keys[] = {FIELD_LR("0.001"),
                                            FIELDS_ADAM,
                                            FIELD_DECAY("0.01", "times the rate: share of the parameter taken away"),
                                            FIELDS_ALL,
                                            {.key = NULL}};

static int adam_state(const struct optimizer_settings *settings)
{
    (void)settings;
    return 2;
}

/* What both have: Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1. */
static void moment_numbers(const struct optimizer_settings *settings, double lr, uint32_t step,
                           struct optimizer_numbers *n)
{
    const double t = (double)step + 1;
    n->rate = (float)(lr / (1 - pow(settings->beta1, t)));
    n->second = (float)(1 / sqrt(1 - pow(settings->beta2, t)));
    n->beta1 = (float)settings->beta1;
    n->beta2 = (float)settings->beta2;
    n->rest1 = (float)(1 - settings->beta1);
    n->rest2 = (float)(1 - settings->beta2);
    n->epsilon = (float)settings->epsilon;
}

/* Decay is part of the gradient, as in torch.optim.Adam. */
static void adam_numbers(const struct optimizer_settings *settings, double lr, uint32_t step,
                         struct optimizer_numbers *numbers)
{
    moment_numbers(settings, lr, step, numbers);
    numbers->decay = (float)settings->weight_decay;
}

/* Decay goes past the moments (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, algorithm 2), with
 * the rate in it, as in torch.optim.AdamW. */
static void adamw_numbers(const struct optimizer_settings *settings, double lr, uint32_t step,
                          struct optimizer_numbers *numbers)
{
    moment_numbers(settings, lr, step, numbers);
    numbers->keep = (float)(1 - lr * settings->weight_decay);
}

static void adam_update(const struct optimizer_numbers *numbers, int64_t elements, float *parameter,
                        const float *gradient, float *state, int threads)
{
    const struct optimizer_numbers n = *numbers;
    float *mean = state, *square = state + elements;
#pragma omp parallel for simd schedule(static) num_threads(threads) if (elements >= ELEMENTS_WORTH_A_THREAD)
    for (int64_t i = 0; i < elements; i++) adam_element(n, &parameter[i], gradient[i], &mean[i], &square[i]);
}

/* ---- the table ---- */

static const struct optimizer sgd = {"sgd",     "with momentum where it is set", sgd_keys, sgd_state, sgd_numbers,
                                     sgd_update};
static const struct optimizer adam = {"adam", "Kingma and Ba, 2015", adam_keys, adam_state, adam_numbers, adam_update};
static const struct optimizer adamw = {
    "adamw",       "with weight decay apart from the gradient: Loshchilov and Hutter, 2019",
    adamw_keys,    adam_state,
    adamw_numbers, adam_update};

const struct optimizer *const optimizer_table[] = {&sgd, &adam, &adamw, NULL};

struct optimizer_numbers optimizer_numbers(const struct optimizer *optimizer, const struct optimizer_settings *settings,
                                           double lr, double scale, uint32_t step, int rank)
{
    struct optimizer_numbers numbers = {.scale = (float)scale, .keep = 1};
    struct optimizer_settings own = *settings;
    if (own.decays == DECAYS_MATRICES && rank < 2) own.weight_decay = 0;
    optimizer->numbers(&own, lr, step, &numbers);
    return numbers;
}

double optimizer_scale(const struct optimizer_settings *settings, double norm)
{
    return optimizer_clip(settings->clip, norm);
}

const struct optimizer *optimizer_find(const char *name)
{
    for (const struct optimizer *const *o = optimizer_table; *o; o++)
        if (!strcmp((*o)->name, name)) return *o;
    return NULL;
}
