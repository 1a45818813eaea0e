/* Optimisers. Contract: each element is updated alone, so the bits depend neither on threads nor on vector width. */
#include "optim.h"

#include <string.h>

enum { ELEMENTS_WORTH_A_THREAD = 1 << 14 };

static const struct field sgd_fields[] = {
    {"lr", FIELD_REAL, offsetof(struct optim_settings, lr), 0, 1e6, "0.01", NULL, "learning rate"},
    {"momentum", FIELD_REAL, offsetof(struct optim_settings, momentum), 0, 1, "0", NULL,
     "share of the last update that is carried on"},
    {"weight_decay", FIELD_REAL, offsetof(struct optim_settings, weight_decay), 0, 1e6, "0", NULL,
     "added to the gradient, times the parameter"},
    {.key = NULL}};

static int sgd_state(const struct optim_settings *settings) { return settings->momentum != 0; }

/* g = gradient + weight_decay p;  v = momentum v + g;  p -= lr v: as torch.optim.SGD without dampening (Sutskever et
 * al., "On the importance of initialization and momentum in deep learning", 2013, with the rate outside). */
static void sgd_update(const struct optim_settings *settings, int64_t elements, float *parameter, const float *gradient,
                       float *state, int threads)
{
    const float lr = (float)settings->lr, momentum = (float)settings->momentum;
    const float decay = (float)settings->weight_decay;
    if (settings->momentum != 0) {
#pragma omp parallel for simd schedule(static) num_threads(threads) if (elements >= ELEMENTS_WORTH_A_THREAD)
        for (int64_t i = 0; i < elements; i++) {
            float v = momentum * state[i] + (gradient[i] + decay * parameter[i]);
            state[i] = v;
            parameter[i] -= lr * v;
        }
    } else {
#pragma omp parallel for simd schedule(static) num_threads(threads) if (elements >= ELEMENTS_WORTH_A_THREAD)
        for (int64_t i = 0; i < elements; i++) parameter[i] -= lr * (gradient[i] + decay * parameter[i]);
    }
}

static const struct optimizer sgd = {"sgd", sgd_fields, sgd_state, sgd_update};

const struct optimizer *const optimizer_table[] = {&sgd, NULL};

const struct optimizer *optimizer_find(const char *name)
{
    for (const struct optimizer *const *o = optimizer_table; *o; o++)
        if (!strcmp((*o)->name, name)) return *o;
    return NULL;
}
