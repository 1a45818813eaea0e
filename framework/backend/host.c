#include "backend/host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/layer_state.h"
#include "numerics/sum_of_squares.h"

void host_open(struct backend *backend)
{
    backend->now = &backend->moment;
    backend->outcome_now = &backend->outcome;
}

void host_close(struct backend *backend) { (void)backend; }

enum status host_arrange(struct backend *backend, struct graph *graph)
{
    (void)backend;
    for (int v = 0; v < graph->values; v++) TRY(value_arrange(graph, v, 0));
    return ST_OK;
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

#define WHOLE(update, i)                                                                                               \
    (struct update_part) { i, 0, (update)->tensor[i].elements, (update)->tensor[i].gradient }

/* The sum of squares, and the digest with the last part. */
static void measure(struct backend *backend, const struct update *update, const struct update_part *p)
{
    const int threads = (int)backend->options.threads;
    const int64_t elements = update->tensor[p->tensor].elements;
    double *squares = &update->squares[p->tensor];
    *squares = sum_of_squares_from(p->first ? *squares : 0, p->gradient, (size_t)p->count, threads);
    digest_measure(p->gradient, (size_t)p->count * sizeof(float), threads,
                   update->piece + (size_t)p->first * sizeof(float) / DIGEST_PIECE);
    if (p->first + p->count == elements)
        update->digest[DIGESTED_GRADIENT][p->tensor] = digest_join((size_t)elements * sizeof(float), update->piece);
}

/* Of all gradients, measured before. */
static void judge(struct backend *backend, const struct update *update)
{
    struct step_outcome *outcome = backend->outcome_now;
    outcome->squares = 0;
    outcome->not_finite = -1;
    for (int i = update->count - 1; i >= 0; i--) {
        if (!isfinite(update->squares[i]) && outcome->not_finite < 0) outcome->not_finite = i;
        outcome->squares += update->squares[i];
    }
}

static bool all_finite(const struct backend *backend)
{
    return isfinite(backend->outcome_now->loss[0]) && backend->outcome_now->not_finite < 0;
}

static void move_averages(const struct optimizer_numbers *numbers, int64_t count, float *average,
                          const float *parameter, int threads)
{
    const struct optimizer_numbers n = *numbers;
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (int64_t i = 0; i < count; i++) average_element(n, &average[i], parameter[i]);
}

static void apply(struct backend *backend, const struct update *update, const struct update_part *p, double scale)
{
    const struct update_tensor *t = &update->tensor[p->tensor];
    struct optimizer_numbers numbers = backend->now->numbers[t->numbers];
    const int threads = (int)backend->options.threads;
    numbers.scale = (float)scale;
    update->optimizer->update(&numbers, p->count, t->parameter + p->first, p->gradient, update_state(update, p),
                              t->elements, threads);
    if (t->average) move_averages(&numbers, p->count, t->average + p->first, t->parameter + p->first, threads);
}

static void digest_updated(struct backend *backend, const struct update *update)
{
    host_phase(backend, PHASE_DIGEST);
    for (int i = 0; i < update->count; i++) {
        const struct update_tensor *t = &update->tensor[i];
        const size_t bytes = (size_t)t->elements * sizeof(float), states = (size_t)update->states;
        update->digest[DIGESTED_PARAMETER][i] = host_digest(backend, t->parameter, bytes);
        if (states) update->digest[DIGESTED_STATE][i] = host_digest(backend, t->state, states * bytes);
    }
}

static void run(struct backend *backend, const struct update *update)
{
    host_phase(backend, PHASE_DIGEST);
    for (int i = 0; i < update->count; i++) measure(backend, update, &WHOLE(update, i));
    judge(backend, update);
    if (!all_finite(backend)) return;
    host_phase(backend, PHASE_OPTIMIZER);
    const double scale = optimizer_clip(update->settings.clip, sqrt(backend->outcome_now->squares));
    for (int i = 0; i < update->count; i++) apply(backend, update, &WHOLE(update, i), scale);
    digest_updated(backend, update);
}

static void run_part(struct backend *backend, const struct update *update, const struct update_part *part)
{
    host_phase(backend, PHASE_DIGEST);
    measure(backend, update, part);
    if (!isfinite(update->squares[part->tensor])) backend->outcome_now->not_finite = part->tensor;
    host_phase(backend, PHASE_OPTIMIZER);
    if (all_finite(backend)) apply(backend, update, part, 1);
}

static void finish(struct backend *backend, const struct update *update)
{
    judge(backend, update);
    if (all_finite(backend)) digest_updated(backend, update);
}

const struct update_kind host_update = {.run = run, .part = run_part, .finish = finish};
