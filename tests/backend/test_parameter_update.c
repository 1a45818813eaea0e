/* What follows a backward, on every backend that can be opened here: norm, digests, parameters and state in every bit
 * as they are computed tensor by tensor on the host; and nothing changed where something is not finite. Likewise part
 * by part, where nothing changes from the part on that is not finite. */
#include "backend/backend.h"
#include "numerics/sum_of_squares.h"
#include "tests/support/device_mirror.h"
#include "tests/support/same_bits.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static const int64_t sizes[] = {1, 60, 61, 16384, 16385, 100000, 2, 49153, 3 * 16384 - 4, 20, 16384 + 1000};
enum {
    TENSORS = sizeof sizes / sizeof *sizes,
    FLOATS_ALIGNED = ALIGNMENT / sizeof(float),
    STATES_MOST = 3,
    PIECES = 7
};

static const struct {
    const char *name;
    struct optimizer_settings settings;
    int64_t part; /* of a fused update, elements; 0: it is not */
} cases[] = {
    {"sgd", {.lr = 0.1, .weight_decay = 0.01}},
    {"sgd", {.lr = 0.1, .weight_decay = 0.01, .momentum = 0.9, .clip = 3, .decays = DECAYS_MATRICES}},
    {"adam", {.lr = 0.01, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .clip = 1e9}},
    {"adamw", {.lr = 0.01, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .clip = 1, .decays = 1}},
    {"sgd", {.lr = 0.1, .weight_decay = 0.01}, .part = 16384},
    {"sgd", {.lr = 0.1, .momentum = 0.9, .nesterov = true}, .part = 2 * 16384},
    {"adam", {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}, .part = 16384},
    {"adamw", {.lr = 0.01, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8}, .part = 1 << 20},
    {"sgd", {.lr = 0.1, .ema = 0.9}},
    {"sgd", {.lr = 0.1, .momentum = 0.9, .ema = 0.99}, .part = 16384},
    {"adamw", {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .ema = 0.9}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Parameters, gradients and states: floats of one block, by their places. */
struct place {
    int64_t parameter, gradient, state;
};

struct trial {
    struct backend *backend;
    struct update update;
    int64_t part;
    float *scratch; /* the backend's: the gradient of a part, as long as it lives */
    struct update_tensor tensor[TENSORS];
    struct digest digest[DIGESTEDS][TENSORS], piece[PIECES];
    double squares[TENSORS];
    struct place place[TENSORS];
    int64_t floats; /* of all tensors and the loss, which is the last */
    float *block;   /* the backend's */
    float *host;    /* what is there, or must be */
    size_t bytes;   /* of the block */
};

static uint32_t noise = 1;

static float number(void)
{
    noise = noise * 1664525 + 1013904223;
    return (float)(noise >> 8) * 0x1p-23f - 1;
}

static int64_t take(int64_t *floats, int64_t count)
{
    const int64_t place = *floats;
    *floats += (count + FLOATS_ALIGNED - 1) / FLOATS_ALIGNED * FLOATS_ALIGNED;
    return place;
}

static size_t room_bytes(const struct trial *t)
{
    struct parameter parameter[TENSORS] = {0};
    for (int i = 0; i < TENSORS; i++) parameter[i].elements = sizes[i];
    const struct update_kind *kind = t->backend->kind->update;
    return kind->bytes ? kind->bytes(&(struct graph){.parameters = TENSORS, .parameter = parameter}, t->update.states)
                       : 0;
}

static void create(struct trial *t, int which)
{
    struct update *u = &t->update;
    *u = (struct update){.optimizer = optimizer_find(cases[which].name),
                         .settings = cases[which].settings,
                         .count = TENSORS,
                         .tensor = t->tensor,
                         .squares = t->squares,
                         .piece = t->piece};
    u->states = optimizer_copies(u->optimizer, &u->settings);
    for (int what = 0; what < (u->states > 0 ? DIGESTEDS : DIGESTED_STATE); what++) u->digest[what] = t->digest[what];
    t->floats = 0;
    for (int i = 0; i < TENSORS; i++)
        t->place[i] = (struct place){take(&t->floats, sizes[i]), take(&t->floats, sizes[i]),
                                     take(&t->floats, STATES_MOST * sizes[i])};
    t->floats += 2;
    const size_t room = round_up((size_t)t->floats * sizeof(float)), scratch = room + round_up(room_bytes(t));
    t->part = cases[which].part;
    t->bytes = scratch + 100000 * sizeof(float); /* as many as a tensor has at most */
    cr_assert(t->backend->kind->reserve(t->backend, t->bytes, (void **)&t->block) == ST_OK);
    cr_assert(t->host = calloc((size_t)t->floats, sizeof(float)));
    u->room = (char *)t->block + room;
    t->scratch = t->block + scratch / sizeof(float);
    for (int i = 0; i < TENSORS; i++)
        t->tensor[i] = (struct update_tensor){.parameter = t->block + t->place[i].parameter,
                                              .gradient = t->part ? NULL : t->block + t->place[i].gradient,
                                              .state = u->states > 0 ? t->block + t->place[i].state : NULL,
                                              .average = u->settings.ema > 0 ? t->block + t->place[i].state : NULL,
                                              .elements = sizes[i],
                                              .numbers = i % 2};
    for (int64_t i = 0; i < t->floats; i++) t->host[i] = fabsf(number()); /* a mean square is positive */
    if (t->backend->kind->update->prepare) cr_assert(t->backend->kind->update->prepare(t->backend, u) == ST_OK);
}

static void destroy(struct trial *t)
{
    t->backend->kind->unreserve(t->backend, t->block, t->bytes);
    free(t->host);
}

/* ---- on the host ---- */

/* Elements from at on; averages are the first copy of state. */
static void update_elements(const struct trial *t, int i, const struct optimizer_numbers *n, int64_t at, int64_t count)
{
    const struct update *u = &t->update;
    float *parameter = t->host + t->place[i].parameter + at, *state = t->host + t->place[i].state + at;
    const bool averages = u->settings.ema > 0;
    float *own = averages ? state + sizes[i] : state;
    u->optimizer->update(n, count, parameter, t->host + t->place[i].gradient + at,
                         optimizer_states(u->optimizer, &u->settings) > 0 ? own : NULL, sizes[i], 1);
    for (int64_t k = 0; averages && k < count; k++) state[k] = n->average * state[k] + n->latest * parameter[k];
}

/* Up to the first part that is not finite. */
static void update_parts_here(struct trial *t, uint32_t step, float loss)
{
    const struct update *u = &t->update;
    for (int i = TENSORS - 1; i >= 0; i--) {
        const struct optimizer_numbers n =
            optimizer_numbers(u->optimizer, &u->settings, u->settings.lr, 1, step, 1 + i % 2);
        for (int64_t at = 0; at < sizes[i]; at += t->part) {
            const int64_t count = sizes[i] - at < t->part ? sizes[i] - at : t->part;
            const float *gradient = t->host + t->place[i].gradient + at;
            if (!isfinite(loss) || !isfinite(sum_of_squares(gradient, (size_t)count, 1))) return;
            update_elements(t, i, &n, at, count);
        }
    }
}

/* What the gradients give; updates what is on the host where it may. Returns whether. */
static bool update_here(struct trial *t, uint32_t step, struct step_outcome *outcome)
{
    const struct update *u = &t->update;
    *outcome = (struct step_outcome){{t->host[t->floats - 2], t->host[t->floats - 1]}, 0, -1};
    for (int i = TENSORS - 1; i >= 0; i--) {
        const double squares = sum_of_squares(t->host + t->place[i].gradient, (size_t)sizes[i], 1);
        if (!isfinite(squares) && outcome->not_finite < 0) outcome->not_finite = i;
        outcome->squares += squares;
    }
    if (t->part) update_parts_here(t, step, outcome->loss[0]);
    if (!isfinite(outcome->loss[0]) || outcome->not_finite >= 0) return false;
    if (t->part) return true;
    const double scale = optimizer_clip(u->settings.clip, sqrt(outcome->squares));
    for (int i = 0; i < TENSORS; i++) {
        const struct optimizer_numbers n =
            optimizer_numbers(u->optimizer, &u->settings, u->settings.lr, scale, step, 1 + i % 2);
        update_elements(t, i, &n, 0, sizes[i]);
    }
    return true;
}

static void check_digests(const struct trial *t, enum digested what, uint32_t step)
{
    if (!t->update.digest[what]) return;
    for (int i = 0; i < TENSORS; i++) {
        const int64_t places[] = {t->place[i].gradient, t->place[i].parameter, t->place[i].state};
        const size_t copies = what == DIGESTED_STATE ? (size_t)t->update.states : 1;
        cr_assert(digest_equal(t->digest[what][i],
                               digest_tensor(t->host + places[what], copies * (size_t)sizes[i] * sizeof(float), 1)),
                  "%s, %s, step %u: digest %d of tensor %d", t->backend->kind->name, t->update.optimizer->name, step,
                  what, i);
    }
}

/* ---- on the backend ---- */

/* A part's gradient is gone after its update. */
static void update_parts_there(struct trial *t)
{
    struct backend *b = t->backend;
    b->kind->fill(b, &b->outcome_now->not_finite, UINT32_MAX, sizeof(int32_t));
    for (int i = TENSORS - 1; i >= 0; i--)
        for (int64_t at = 0; at < sizes[i]; at += t->part) {
            const int64_t count = sizes[i] - at < t->part ? sizes[i] - at : t->part;
            const size_t bytes = (size_t)count * sizeof(float);
            b->kind->copy(b, t->scratch, t->block + t->place[i].gradient + at, bytes);
            b->kind->update->part(b, &t->update, &(struct update_part){i, at, count, t->scratch});
            b->kind->fill(b, t->scratch, 0x7fa0dead, bytes);
        }
    b->kind->update->finish(b, &t->update);
}

static enum status body(void *self)
{
    struct trial *t = self;
    t->backend->kind->copy(t->backend, t->backend->outcome_now->loss, t->block + t->floats - 2, 2 * sizeof(float));
    if (t->part)
        update_parts_there(t);
    else
        t->backend->kind->update->run(t->backend, &t->update);
    return ST_OK;
}

static void update_there(struct trial *t, uint32_t step)
{
    struct backend *b = t->backend;
    const struct update *u = &t->update;
    b->kind->upload(b, t->block, t->host, (size_t)t->floats * sizeof(float));
    b->moment.step = step;
    for (int i = 0; i < 2; i++)
        b->moment.numbers[i] = optimizer_numbers(u->optimizer, &u->settings, u->settings.lr, 1, step, 1 + i);
    memset(t->digest, 0, sizeof t->digest);
    cr_assert(b->kind->step(b, step > 1, body, t) == ST_OK && b->kind->wait(b) == ST_OK);
    if (b->kind->update->collect) cr_assert(b->kind->update->collect(b, u) == ST_OK);
}

/* Both, one after the other from the same. */
static void check_step(struct trial *t, uint32_t step, bool updates)
{
    const char *name = t->backend->kind->name, *optimizer = t->update.optimizer->name;
    struct step_outcome expected;
    update_there(t, step);
    cr_assert(update_here(t, step, &expected) == updates);
    const struct step_outcome *outcome = &t->backend->outcome;
    cr_assert(outcome->not_finite == expected.not_finite &&
                  same_bits(outcome->loss, expected.loss, sizeof expected.loss),
              "%s, %s, step %u: %d", name, optimizer, step, outcome->not_finite);
    cr_assert(expected.not_finite >= 0 || outcome->squares == expected.squares, "%s, %s, step %u: %a, not %a", name,
              optimizer, step, outcome->squares, expected.squares);
    float *back = malloc((size_t)t->floats * sizeof(float));
    cr_assert(back);
    t->backend->kind->download(t->backend, back, t->block, (size_t)t->floats * sizeof(float));
    for (int64_t i = 0; i < t->floats; i++)
        cr_assert(same_bits(back + i, t->host + i, sizeof *back), "%s, %s, step %u: float %ld is %a, not %a", name,
                  optimizer, step, (long)i, (double)back[i], (double)t->host[i]);
    free(back);
    check_digests(t, DIGESTED_GRADIENT, step);
    if (updates) check_digests(t, DIGESTED_PARAMETER, step), check_digests(t, DIGESTED_STATE, step);
}

static void draw_gradients(struct trial *t)
{
    for (int i = 0; i < TENSORS; i++)
        for (int64_t j = 0; j < sizes[i]; j++) t->host[t->place[i].gradient + j] = number() * (j % 7 ? 1 : 1e-20f);
}

/* A few steps, then such as must change nothing, then another. */
static void check_update(struct trial *t)
{
    uint32_t step = 0;
    for (; step < 4; step++) draw_gradients(t), check_step(t, step, true);
    static const float wrong[] = {INFINITY, -INFINITY, NAN};
    for (int i = 0; i < TENSORS; i += 2) {
        t->host[t->place[i / 2].gradient] = wrong[i % 3];
        t->host[t->place[i].gradient + sizes[i] - 1] = wrong[i % 3];
        check_step(t, step++, false);
        draw_gradients(t);
    }
    for (int i = 0; i < 3; i++) {
        t->host[t->floats - 2] = wrong[i];
        check_step(t, step++, false);
    }
    t->host[t->floats - 2] = 1;
    check_step(t, step++, true);
}

/* Calls check with every backend that opens. */
static void each_backend(void (*check)(struct backend *backend))
{
    for (const struct backend_kind *const *kind = backend_table; *kind; kind++) {
        struct backend *backend;
        if (!backend_is_here(backend_open((*kind)->name, &(struct backend_options){.graph = true}, &backend))) continue;
        check(backend);
        backend_close(backend);
    }
}

static void check_cases(struct backend *backend)
{
    for (int i = 0; i < CASES; i++) {
        struct trial trial = {.backend = backend};
        create(&trial, i);
        check_update(&trial);
        destroy(&trial);
    }
}

Test(update, every_backend_updates_and_digests_as_the_host_does_tensor_by_tensor) { each_backend(check_cases); }

/* ---- of one tensor ---- */

enum { LONGEST = 2050 * DIGEST_PIECE + 20, BLOCK = LONGEST + 4 };

/* Bytes, or floats where they are a multiple of 4, at the start of the block and, as a slice's part of a value may, at
 * an odd float. */
static void check_length(struct backend *b, const float *block, const float *host, size_t bytes)
{
    for (int odd = 0; odd < 2; odd++, block++, host++) {
        cr_assert(digest_equal(b->kind->digest(b, block, bytes), digest_tensor(host, bytes, 1)),
                  "%s: %zu bytes from %d", b->kind->name, bytes, odd);
        if (bytes % sizeof(float)) continue;
        const double sum = b->kind->squares(b, block, bytes / 4), expected = sum_of_squares(host, bytes / 4, 1);
        cr_assert(sum == expected, "%s: %zu bytes from %d: %a, not %a", b->kind->name, bytes, odd, sum, expected);
    }
}

static void check_lengths(struct backend *b)
{
    static const size_t lengths[] = {DIGEST_PIECE - 1,        DIGEST_PIECE,
                                     DIGEST_PIECE + 4,        DIGEST_PIECE + 240,
                                     DIGEST_PIECE + 241,      5 * DIGEST_PIECE + 64,
                                     5 * DIGEST_PIECE + 1023, 5 * DIGEST_PIECE + 1024,
                                     5 * DIGEST_PIECE + 1028, LONGEST};
    float *block, *host = malloc(BLOCK);
    cr_assert(host && b->kind->reserve(b, BLOCK, (void **)&block) == ST_OK);
    for (size_t i = 0; i < BLOCK / sizeof *host; i++) host[i] = number() * (i % 5 ? 1 : 1e-30f);
    b->kind->upload(b, block, host, BLOCK);
    for (size_t bytes = 0; bytes < 2300; bytes += bytes < 260 ? 1 : 13) check_length(b, block, host, bytes);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) check_length(b, block, host, lengths[i]);
    b->kind->unreserve(b, block, BLOCK);
    free(host);
}

Test(update, every_backend_digests_and_sums_any_length) { each_backend(check_lengths); }
