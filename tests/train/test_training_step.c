/* One training step: its digests, the input of the update, and the state after a loss that is not finite. */
#include "train/training_step.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "tests/support/layer_settings.h"
#include "tests/support/policy_text.h"
#include "tests/support/small_networks.h"
#include "tests/support/watched_network.h"

/* A net under store_all on `ref`, ready to train. */
struct bench {
    struct bound_net on;
    struct graph *graph;
    struct plan *plan;
    struct executor *exec;
    struct train *train;
};

static watcher *looks; /* NULL: none */

static void check(enum status status) { cr_assert(status == ST_OK, "%s", status_message()); }

static void open_with(struct bench *b, const struct net *net, const struct train_options *train)
{
    const struct plan_options plan = {.lower = {.drop_dead = true},
                                      .state_per_parameter = optimizer_copies(train->optimizer, &train->settings)};
    b->on = net_bind(net, RELU_OUTPUT);
    b->graph = b->on.graph;
    if (looks) watch(b->on.network, looks);
    b->plan = policy_text_plan(b->on.network, "store_all", "", &plan);
    check(executor_create(b->plan, &(struct executor_options){.seed = 11}, &b->exec));
    check(train_create(b->on.network, b->exec, train, &b->train));
    float *x = executor_batch(b->exec);
    for (int64_t i = 0; i < b->graph->batch * shape_elements(&b->graph->value[0].shape); i++)
        x[i] = (float)(i % 13) / 13 - 0.5f;
    net_labels(b->graph, 0, 0, net->classes, executor_labels(b->exec));
}

static void open_bench(struct bench *b, const struct net *net, double lr, double momentum)
{
    const struct train_options train = {.optimizer = optimizer_find("sgd"),
                                        .settings = {.lr = lr, .momentum = momentum},
                                        .learning_rate = learning_rate_find("constant"),
                                        .steps = 1,
                                        .seed = 11};
    open_with(b, net, &train);
}

static void close_bench(struct bench *b)
{
    train_destroy(b->train);
    executor_destroy(b->exec);
    plan_destroy(b->plan);
    net_release(&b->on);
}

/* A copy of one kind of tensor of every parameter, one after the other. */
static float *copy_all(const struct bench *b, float *of(struct executor *, int), size_t *count)
{
    *count = 0;
    for (int i = 0; i < b->graph->parameters; i++) *count += (size_t)b->graph->parameter[i].elements;
    float *all = malloc(*count * sizeof *all), *to = all;
    cr_assert(all != NULL);
    for (int i = 0; i < b->graph->parameters; i++) {
        memcpy(to, of(b->exec, i), (size_t)b->graph->parameter[i].elements * sizeof *to);
        to += b->graph->parameter[i].elements;
    }
    return all;
}

static int one_linear(struct graph *graph)
{
    const struct settings settings = {.units = 2000, .bias = true};
    int inputs[] = {0, -1}, y = -1;
    check(graph_add(graph, layer_find("linear"), settings_of(layer_find("linear"), &settings), NULL, inputs, &y));
    return y;
}

/* A parameter of four million elements. */
static const struct net wide = {"wide", one_linear, {1, {2000}}, 1, 2000};

static void check_initial(const struct net *net)
{
    struct bench b;
    open_bench(&b, net, 0.1, 0.9);
    for (int i = 0; i < b.graph->parameters; i++) {
        const struct parameter *p = &b.graph->parameter[i];
        size_t bytes = (size_t)p->elements * sizeof(float);
        float *wanted = malloc(bytes), *zero = calloc(1, bytes);
        rng_init(p->definition.init, 11, (uint32_t)i, p->definition.fan_in, p->definition.fan_out, 0, p->elements,
                 wanted);
        cr_assert(memcmp(executor_parameter(b.exec, i), wanted, bytes) == 0, "%s", p->name);
        cr_assert(memcmp(executor_gradient(b.exec, i), zero, bytes) == 0 &&
                  memcmp(executor_state(b.exec, i), zero, bytes) == 0);
        free(wanted);
        free(zero);
    }
    close_bench(&b);
}

Test(train, starts_with_the_initial_values)
{
    check_initial(&nets[0]);
    check_initial(&wide);
}

Test(train, a_step_updates_by_the_gradient_and_digests_both)
{
    struct bench b;
    struct train_result result;
    size_t count;
    open_bench(&b, &nets[0], 0.1, 0.9);
    float *before = copy_all(&b, executor_parameter, &count);
    check(train_step(b.train, 0, &result));
    float *after = copy_all(&b, executor_parameter, &count), *gradient = copy_all(&b, executor_gradient, &count);
    float *state = copy_all(&b, executor_state, &count);
    bool moved = false;
    for (size_t i = 0; i < count; i++) {
        moved |= gradient[i] != 0;
        cr_assert(state[i] == gradient[i], "the first momentum is the gradient");
        cr_assert(fabsf(after[i] - (before[i] - 0.1f * gradient[i])) < 1e-6f);
    }
    cr_assert(moved && isfinite(result.loss) && result.correct >= 0 && result.correct <= (float)b.graph->batch);

    struct digest digest[3][64];
    for (int i = 0; i < b.graph->parameters; i++) {
        size_t bytes = (size_t)b.graph->parameter[i].elements * sizeof(float);
        digest[0][i] = digest_tensor(executor_gradient(b.exec, i), bytes, 1);
        digest[1][i] = digest_tensor(executor_parameter(b.exec, i), bytes, 1);
        digest[2][i] = digest_tensor(executor_state(b.exec, i), bytes, 1);
        cr_assert(digest_equal(digest[0][i], result.gradient[i]) && digest_equal(digest[1][i], result.parameter[i]) &&
                  digest_equal(digest[2][i], result.parameter_state[i]));
    }
    size_t bytes = (size_t)b.graph->parameters * sizeof digest[0][0];
    cr_assert(digest_equal(digest_bytes(digest[0], bytes), result.gradients));
    cr_assert(digest_equal(digest_bytes(digest[1], bytes), result.parameters));
    cr_assert(digest_equal(digest_bytes(digest[2], bytes), result.state));
    free(before);
    free(after);
    free(gradient);
    free(state);
    close_bench(&b);
}

/* The averages after some steps, by the recurrence on the parameters of each: the first are the parameters. */
static void check_averages(const struct net *net, const char *optimizer, double momentum)
{
    const double ema = 0.75;
    const struct train_options train = {
        .optimizer = optimizer_find(optimizer),
        .settings = {.lr = 0.1, .momentum = momentum, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .ema = ema},
        .learning_rate = learning_rate_find("constant"),
        .steps = 4,
        .seed = 11};
    const int copies = 1 + optimizer_states(train.optimizer, &train.settings);
    struct bench b;
    struct train_result result;
    float *average = NULL;
    size_t count;
    open_with(&b, net, &train);
    cr_assert(b.plan->static_bytes[STATIC_OPTIMIZER] == (size_t)copies * graph_trained_bytes(b.graph));
    for (uint32_t step = 0; step < 4; step++) {
        check(train_step(b.train, step, &result));
        float *parameter = copy_all(&b, executor_parameter, &count), *at = parameter;
        if (!average) average = calloc(count, sizeof *average);
        for (int i = 0, before = 0; i < b.graph->parameters; before += (int)b.graph->parameter[i++].elements) {
            const struct parameter *p = &b.graph->parameter[i];
            const float *found = executor_state(b.exec, i);
            cr_assert((found != NULL) == (p->trained >= 0), "%s", p->name);
            for (int64_t k = 0; found && k < p->elements; k++) {
                float *a = &average[before + k];
                *a = step ? (float)ema * *a + (float)(1 - ema) * at[k] : at[k];
                cr_assert(found[k] == *a, "%s, step %u: %.9g is not %.9g", p->name, step, found[k], *a);
            }
            if (found)
                cr_assert(digest_equal(result.parameter_state[i],
                                       digest_tensor(found, (size_t)copies * parameter_bytes(p), 1)));
            at += p->elements;
        }
        free(parameter);
    }
    free(average);
    close_bench(&b);
}

Test(train, averages_follow_the_parameters)
{
    check_averages(&nets[0], "sgd", 0);
    check_averages(&nets[0], "sgd", 0.9);
    check_averages(&nets[0], "adam", 0);
    check_averages(&nets[8], "adamw", 0); /* some layers are frozen, and have none */
}

static double norm_of(const float *x, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* One step at the third of four falling rates, and with gradients too long: what moved is rate, scale, gradient, but
 * the gradients and their digests are as the backward left them. */
Test(train, a_step_depends_on_rate_and_norm)
{
    static const double clips[] = {0, 1e-3, 1e6};
    for (int i = 0; i < 3; i++) {
        const struct train_options train = {.optimizer = optimizer_find("sgd"),
                                            .settings = {.lr = 0.1, .clip = clips[i]},
                                            .learning_rate = learning_rate_find("linear"),
                                            .steps = 4,
                                            .seed = 11};
        struct bench b;
        struct train_result result;
        size_t count;
        open_with(&b, &nets[0], &train);
        float *before = copy_all(&b, executor_parameter, &count);
        check(train_step(b.train, 2, &result));
        float *after = copy_all(&b, executor_parameter, &count), *gradient = copy_all(&b, executor_gradient, &count);
        const double norm = norm_of(gradient, count), scale = i == 1 ? 1e-3 / norm : 1;
        cr_assert(fabs(result.lr - 0.05) < 1e-15 && fabs(result.gradient_norm - norm) < 1e-12 * norm && norm > 1e-2);
        for (size_t k = 0; k < count; k++) {
            const double step = 0.05 * scale * (double)gradient[k];
            cr_assert(fabs((double)before[k] - step - (double)after[k]) < 1e-7 + 1e-4 * fabs(step), "clip %g",
                      clips[i]);
        }
        const size_t bytes = (size_t)b.graph->parameter[0].elements * sizeof(float);
        cr_assert(digest_equal(result.gradient[0], digest_tensor(gradient, bytes, 1)));
        free(before);
        free(after);
        free(gradient);
        close_bench(&b);
    }
}

Test(train, without_momentum_there_is_no_state)
{
    struct bench b;
    struct train_result result;
    open_bench(&b, &nets[0], 0.1, 0);
    check(train_step(b.train, 0, &result));
    cr_assert(result.parameter_state == NULL && result.state.low == 0 && result.state.high == 0);
    close_bench(&b);
}

/* On a net of parameters alone, so that whatever looks at all of them shows; the best step of some, since a busy
 * machine may take one away between two columns. */
Test(train, phases_add_up_to_the_step)
{
    struct bench b;
    struct train_result r;
    double most = 0;
    open_bench(&b, &wide, 0.1, 0.9);
    for (uint32_t i = 0; i < 20; i++) {
        const uint64_t start = clock_now_ns();
        check(train_step(b.train, i, &r));
        const uint64_t total = clock_now_ns() - start;
        uint64_t parts = 0;
        for (int p = 0; p < PHASES; p++) parts += r.phase_ns[p];
        cr_assert(parts <= total);
        most = fmax(most, (double)parts / (double)total);
    }
    cr_assert(most > 0.995, "%g of a step's time has a name", most);
    close_bench(&b);
}

/* A parameter that is not finite is found at the first node that uses it, and parameters stay. */
Test(train, a_loss_that_is_not_finite_names_node_and_parameter)
{
    struct bench b;
    struct train_result result;
    size_t count;
    open_bench(&b, &nets[0], 0.1, 0.9);
    int spoilt = b.graph->parameters - 2;
    const struct parameter *p = &b.graph->parameter[spoilt];
    for (int64_t i = 0; i < p->elements; i++) executor_parameter(b.exec, spoilt)[i] = NAN;
    float *before = copy_all(&b, executor_parameter, &count);
    cr_assert(train_step(b.train, 5, &result) == ST_FAILED);
    float *after = copy_all(&b, executor_parameter, &count);
    cr_assert(memcmp(before, after, count * sizeof *before) == 0);
    cr_assert(strstr(status_message(), "step 5") && strstr(status_message(), b.graph->node[p->node].name) &&
                  strstr(status_message(), p->name),
              "%s", status_message());
    free(before);
    free(after);
    close_bench(&b);
}

static struct executor *spoilt;

/* Before the last backward of a step, the gradient of a node whose backward was earlier. */
static void spoil_gradient(const struct network *network, int node, const struct kernel_args *args, unsigned parts)
{
    (void)args;
    if (node == 0 && parts) executor_gradient(spoilt, network->graph->parameters - 1)[0] = INFINITY;
}

Test(train, a_gradient_that_is_not_finite_is_named_and_parameters_stay)
{
    struct bench b;
    struct train_result result;
    size_t count;
    looks = spoil_gradient;
    open_bench(&b, &nets[0], 0.1, 0.9);
    spoilt = b.exec;
    float *before = copy_all(&b, executor_parameter, &count);
    cr_assert(train_step(b.train, 5, &result) == ST_FAILED);
    float *after = copy_all(&b, executor_parameter, &count);
    cr_assert(memcmp(before, after, count * sizeof *before) == 0);
    cr_assert(strstr(status_message(), "step 5: the loss is finite, but the gradient of ") &&
                  strstr(status_message(), b.graph->parameter[b.graph->parameters - 1].name),
              "%s", status_message());
    free(before);
    free(after);
    close_bench(&b);
}
