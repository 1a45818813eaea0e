#include "backend/host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numerics/sum_of_squares.h"

void host_open(struct backend *backend)
{
    backend->now = &backend->moment;
    backend->outcome_now = &backend->outcome;
}

void *host_allocate(struct backend *backend, size_t bytes)
{
    void *buffer = aligned_alloc(ALIGNMENT, bytes);
    if (buffer) allocation_count_add(&backend->allocated, buffer, bytes);
    return buffer;
}

void host_release(struct backend *backend, void *buffer)
{
    allocation_count_remove(&backend->allocated, buffer);
    free(buffer);
}

void host_position(struct backend *backend, uint64_t *to, uint64_t offset) { *to = backend->moment.position + offset; }

void host_mask(struct backend *backend, const struct draw *draw, double rate, int64_t elements, int64_t batch)
{
    (void)backend;
    rng_mask_fill(draw, rate, elements, batch);
}

double host_squares(struct backend *backend, const float *x, size_t count)
{
    return sum_of_squares(x, count, (int)backend->options.threads);
}

struct digest host_digest(struct backend *backend, const void *data, size_t bytes)
{
    return digest_tensor(data, bytes, (int)backend->options.threads);
}

/* ---- time ---- */

void host_phase(struct backend *backend, enum phase phase)
{
    const uint64_t now = clock_now_ns();
    backend->phase_ns[backend->phase] += now - backend->phase_start;
    backend->phase_start = backend->lap_start = now;
    backend->phase = phase;
}

enum status host_step(struct backend *backend, bool same, enum status (*body)(void *self), void *self)
{
    (void)same;
    backend->phase = PHASE_FORWARD;
    backend->phase_start = backend->lap_start = clock_now_ns();
    memset(backend->phase_ns, 0, sizeof backend->phase_ns);
    enum status status = body(self);
    host_phase(backend, PHASE_FORWARD);
    return status;
}

enum status host_wait(struct backend *backend)
{
    (void)backend;
    return ST_OK;
}

/* ---- the update ---- */

static void measure(struct backend *backend, const struct update *update)
{
    struct step_outcome *outcome = backend->outcome_now;
    outcome->squares = 0;
    outcome->not_finite = -1;
    for (int i = update->count - 1; i >= 0; i--) {
        const struct update_tensor *t = &update->tensor[i];
        const double squares = host_squares(backend, t->gradient, (size_t)t->elements);
        if (!isfinite(squares) && outcome->not_finite < 0) outcome->not_finite = i;
        outcome->squares += squares;
    }
}

static void digest(struct backend *backend, const struct update *update, enum digested what)
{
    for (int i = 0; i < update->count; i++) {
        const struct update_tensor *t = &update->tensor[i];
        const float *const tensors[DIGESTEDS] = {t->gradient, t->parameter, t->state};
        const size_t copies[DIGESTEDS] = {1, 1, (size_t)update->states};
        if (copies[what] > 0)
            update->digest[what][i] =
                host_digest(backend, tensors[what], copies[what] * (size_t)t->elements * sizeof(float));
    }
}

static void run(struct backend *backend, const struct update *update)
{
    const struct step_outcome *outcome = backend->outcome_now;
    host_phase(backend, PHASE_DIGEST);
    measure(backend, update);
    digest(backend, update, DIGESTED_GRADIENT);
    if (!isfinite(outcome->loss[0]) || outcome->not_finite >= 0) return;
    host_phase(backend, PHASE_OPTIMIZER);
    struct optimizer_numbers numbers[2];
    memcpy(numbers, backend->now->numbers, sizeof numbers);
    for (int i = 0; i < 2; i++) numbers[i].scale = (float)optimizer_clip(update->settings.clip, sqrt(outcome->squares));
    for (int i = 0; i < update->count; i++) {
        const struct update_tensor *t = &update->tensor[i];
        update->optimizer->update(&numbers[t->numbers], t->elements, t->parameter, t->gradient, t->state,
                                  (int)backend->options.threads);
    }
    host_phase(backend, PHASE_DIGEST);
    digest(backend, update, DIGESTED_PARAMETER);
    digest(backend, update, DIGESTED_STATE);
}

const struct update_kind host_update = {.run = run};
