/* Optimizers judged by ONNX's tests of its training operators, on every backend's update of all parameters at once.
 *
 * ONNX's inputs are the rate R, the number of updates before T, and the parameters X, then their gradients, then each
 * state: V, which Adam's H follows. With g = G + norm_coefficient X and beta' = beta, 1 where T = 0:
 *
 *     Momentum  V' = alpha V + beta' g;  X' = X - R V', or as Nesterov X - R (g + alpha V')
 *     Adam      V' = alpha V + (1 - alpha) g;  H' = beta H + (1 - beta) g^2;  X' = X - R' V' / (sqrt(H') + epsilon),
 *               R' = R sqrt(1 - beta^T) / (1 - alpha^T), R where T = 0
 *
 * Our adam divides by sqrt(H' / (1 - beta^t)) + epsilon in step t, from 1, so its rate and epsilon are set to what is
 * the same in the step that T names. With T = 0 ONNX corrects no bias, and the correction of our first step cancels. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "tests/support/device_mirror.h"
#include "tests/support/onnx_walk.h"

enum { TENSORS_MOST = 4, STATES_MOST = 2, FLOATS_ALIGNED = ALIGNMENT / sizeof(float) };

/* A node as an optimizer's step. */
struct step {
    const char *optimizer;
    struct optimizer_settings settings;
    uint32_t number; /* from 0 */
    int tensors, states;
};

/* ---- From ONNX's operators. ---- */

static const char *express_momentum(const struct onnx_test *test, struct step *step)
{
    const bool damped = test->input[1].integers[0] > 0 && onnx_real(test, "beta", 1) != 1;
    if (damped) return "a share of the gradient";
    step->optimizer = "sgd";
    step->settings.momentum = onnx_real(test, "alpha", 0);
    step->settings.nesterov = strcmp(onnx_text(test, "mode", ""), "nesterov") == 0;
    step->settings.lr = (double)test->input[0].floats[0];
    return NULL;
}

/* Without the attribute, the expected outputs of test_adam_multiple in ONNX 1.12 are those of 0.01, which its source
 * says and its node does not. */
static double epsilon_of(const struct onnx_test *test)
{
    return onnx_real(test, "epsilon", strstr(test->folder, "/test_adam_multiple") ? 1e-2 : 1e-6);
}

static const char *express_adam(const struct onnx_test *test, struct step *step)
{
    const int64_t updates = test->input[1].integers[0];
    const double t = updates > 0 ? (double)updates : 1, rate = (double)test->input[0].floats[0];
    const double alpha = onnx_real(test, "alpha", 0.9), beta = onnx_real(test, "beta", 0.999);
    const double first = 1 - pow(alpha, t), second = sqrt(1 - pow(beta, t));
    if (onnx_real(test, "norm_coefficient_post", 0) != 0) return "a parameter made smaller afterwards";
    step->optimizer = "adam";
    step->number = (uint32_t)t - 1;
    step->settings.beta1 = alpha;
    step->settings.beta2 = beta;
    step->settings.epsilon = epsilon_of(test) / second;
    step->settings.lr = updates > 0 ? rate : rate * first / second;
    return NULL;
}

static const struct row {
    const char *op_type;
    const char *(*express)(const struct onnx_test *test, struct step *step); /* NULL: no such optimizer here */
    int states;
} rows[] = {{"Momentum", express_momentum, 1}, {"Adam", express_adam, 2}, {"Adagrad", NULL, 1}};

static const struct row *row_find(const char *op_type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op_type, op_type) == 0) return &rows[i];
    return NULL;
}

static bool known(const char *op_type) { return row_find(op_type) != NULL; }

/* ---- On a backend. ---- */

struct trial {
    struct backend *backend;
    struct update update;
    struct update_tensor tensor[TENSORS_MOST];
    struct digest digest[DIGESTEDS][TENSORS_MOST], piece;
    double squares[TENSORS_MOST];
    float *block, *host; /* parameter, gradient and states of each tensor, each at its place; then the loss */
    size_t floats, bytes;
};

/* The place of what (0: parameter, 1: gradient, 2 and more: state) of a tensor, whose states follow each other. */
static float *place(float *block, int tensor, int what, int64_t elements)
{
    return block + FLOATS_ALIGNED * (3 * tensor + (what < 2 ? what : 2)) + (what > 2 ? (what - 2) * elements : 0);
}

static size_t room_bytes(const struct trial *t, int count)
{
    struct parameter parameter[TENSORS_MOST] = {0};
    for (int i = 0; i < count; i++) parameter[i].elements = t->tensor[i].elements;
    const struct update_kind *kind = t->backend->kind->update;
    return kind->bytes ? kind->bytes(&(struct graph){.parameters = count, .parameter = parameter}, t->update.states)
                       : 0;
}

/* Input 2 + what * tensors + i is of tensor i. */
static const struct onnx_tensor *given(const struct onnx_test *test, const struct step *step, int what, int i)
{
    return &test->input[2 + what * step->tensors + i];
}

static void create(struct trial *t, const struct onnx_test *test, const struct step *step)
{
    t->update = (struct update){.optimizer = optimizer_find(step->optimizer),
                                .settings = step->settings,
                                .states = step->states,
                                .count = step->tensors,
                                .tensor = t->tensor,
                                .squares = t->squares,
                                .piece = &t->piece};
    cr_assert(optimizer_states(t->update.optimizer, &step->settings) == step->states);
    for (int i = 0; i < DIGESTEDS; i++) t->update.digest[i] = t->digest[i];
    for (int i = 0; i < step->tensors; i++) t->tensor[i].elements = given(test, step, 0, i)->elements;
    t->floats = FLOATS_ALIGNED * (3 * (size_t)step->tensors + 1);
    t->bytes = t->floats * sizeof(float) + room_bytes(t, step->tensors);
    cr_assert(t->backend->kind->reserve(t->backend, t->bytes, (void **)&t->block) == ST_OK);
    cr_assert((t->host = calloc(t->floats, sizeof *t->host)) != NULL);
    t->update.room = t->block + t->floats;
    for (int i = 0; i < step->tensors; i++) {
        struct update_tensor *tensor = &t->tensor[i];
        cr_assert(tensor->elements * STATES_MOST <= FLOATS_ALIGNED);
        tensor->parameter = place(t->block, i, 0, tensor->elements);
        tensor->gradient = place(t->block, i, 1, tensor->elements);
        tensor->state = place(t->block, i, 2, tensor->elements);
        for (int what = 0; what < 2 + step->states; what++) {
            const struct onnx_tensor *x = given(test, step, what, i);
            cr_assert(x->floats != NULL && x->elements == tensor->elements, "%s: %s", test->folder, x->name);
            memcpy(place(t->host, i, what, x->elements), x->floats, (size_t)x->elements * sizeof(float));
        }
    }
    t->backend->kind->upload(t->backend, t->block, t->host, t->floats * sizeof(float));
    if (t->backend->kind->update->prepare)
        cr_assert(t->backend->kind->update->prepare(t->backend, &t->update) == ST_OK);
}

static enum status body(void *self)
{
    struct trial *t = self;
    const float *loss = t->block + t->floats - FLOATS_ALIGNED;
    t->backend->kind->copy(t->backend, t->backend->outcome_now->loss, loss, 2 * sizeof(float));
    t->backend->kind->update->run(t->backend, &t->update);
    return ST_OK;
}

/* Outputs are the parameters, then each state. */
static void check(const struct trial *t, const struct onnx_test *test, const struct step *step)
{
    static const char *const names[] = {"the parameter", "the first state", "the second state"};
    for (int what = 0; what < 1 + step->states; what++)
        for (int i = 0; i < step->tensors; i++) {
            const struct onnx_tensor *y = &test->output[what * step->tensors + i];
            cr_assert(y->floats != NULL && y->elements == t->tensor[i].elements, "%s: %s", test->folder, y->name);
            onnx_agree(test, t->backend->kind->name, names[what], place(t->host, i, what ? what + 1 : 0, y->elements),
                       y->floats, y->elements, 0);
        }
}

static void run(struct backend *backend, const struct onnx_test *test, const struct step *step)
{
    struct trial t = {.backend = backend};
    create(&t, test, step);
    backend->moment.step = step->number;
    for (int i = 0; i < 2; i++)
        backend->moment.numbers[i] =
            optimizer_numbers(t.update.optimizer, &step->settings, step->settings.lr, 1, step->number, 1 + i);
    cr_assert(backend->kind->step(backend, false, body, &t) == ST_OK && backend->kind->wait(backend) == ST_OK);
    backend->kind->download(backend, t.host, t.block, t.floats * sizeof(float));
    check(&t, test, step);
    backend->kind->unreserve(backend, t.block, t.bytes);
    free(t.host);
}

static const char *judge(const struct onnx_test *test, struct region *region)
{
    (void)region;
    const struct row *row = row_find(test->op_type);
    struct step step = {.states = row->states,
                        .tensors = (test->inputs.count - 2) / (2 + row->states),
                        .settings = {.weight_decay = onnx_real(test, "norm_coefficient", 0)}};
    cr_assert(step.tensors > 0 && step.tensors <= TENSORS_MOST &&
              test->outputs.count == step.tensors * (1 + step.states) &&
              test->inputs.count == 2 + step.tensors * (2 + step.states));
    cr_assert(test->input[0].floats != NULL && test->input[0].elements == 1 && test->input[1].integers != NULL &&
              test->input[1].elements == 1);
    const char *reason = row->express ? row->express(test, &step) : "an optimizer that is not here";
    if (reason != NULL) return reason;
    for (const struct backend_kind *const *kind = backend_table; *kind; kind++) {
        struct backend *backend;
        if (!backend_is_here(backend_open((*kind)->name, &(struct backend_options){0}, &backend))) continue;
        run(backend, test, &step);
        backend_close(backend);
    }
    return NULL;
}

/* least: as many as of ONNX 1.12. */
Test(onnx, optimizers_give_what_onnx_says) { onnx_walk(known, judge, 4); }
