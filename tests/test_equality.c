/* The promise: whatever the policy, the memory mode and the source of randomness, every loss, gradient, parameter and
 * momentum has the bits of the run that stored everything. Over every row of the policy and backend tables. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "allocations.h"
#include "mirror.h"
#include "nets.h"
#include "policy.h"
#include "sentences.h"
#include "thinned.h"
#include "train.h"

enum { STEPS_MAX = 100, STEPS_MANY = 20, RUNS_MAX = 200 };

/* A net bound to a backend; a network is prepared once for all its plans, as in a sweep. */
struct bench {
    const struct net *net;
    struct backend *backend;
    struct graph *graph;
    struct network *network;
};

/* How it learns; the state of either is under test. */
struct learner {
    const char *name, *rate;
    struct optim_settings settings;
};
static const struct learner momentum = {"sgd", "constant", {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4}};
static const struct learner adamw = {
    "adamw", "linear", {.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01, .clip = 0.5}};

struct trial {
    const struct bench *bench;
    const struct learner *learner;
    const struct policy *policy;
    struct policy_settings settings;
    bool drop_dead;
    enum rng_mode rng;
    enum memory_mode memory;
    int steps;
    struct fault fault;
};

struct trace {
    int replays;
    float loss[STEPS_MAX];
    struct digest gradients[STEPS_MAX], parameters[STEPS_MAX], state[STEPS_MAX];
};

/* A batch that depends on the step alone. */
static void make_batch(const struct net *net, uint32_t step, float *x, int32_t *labels)
{
    int64_t elements = shape_elements(&net->input);
    if (sentences_fit(&net->input)) sentences_make(x, net->batch, net->input.dim[1], 20, step);
    for (int64_t s = 0; s < net->batch; s++) {
        labels[s] = (int32_t)((s + step) % net->classes);
        for (int64_t i = 0; i < elements && !sentences_fit(&net->input); i++) {
            struct philox words = rng_words(7, RNG_DATA, (uint32_t)i, (uint32_t)s, 0, step);
            x[s * elements + i] = rng_uniform(words.word[0]) - 0.5F;
        }
    }
}

static struct bench set_up_graph(const struct net *net, const char *backend, struct graph *graph)
{
    struct backend_options options = {.threads = 2, .scratch_limit = 1 << 20};
    struct bench b = {.net = net, .graph = graph};
    cr_assert(backend_open(backend, &options, &b.backend) == ST_OK, "%s", status_message());
    cr_assert(network_prepare(b.graph, b.backend, &b.network) == ST_OK, "%s", status_message());
    return b;
}

static struct bench set_up(const struct net *net, const char *backend, enum relu_save relu)
{
    return set_up_graph(net, backend, net_build(net, relu));
}

static void tear_down(struct bench *b)
{
    network_destroy(b->network);
    graph_destroy(b->graph);
    backend_close(b->backend);
}

static struct plan *plan_of(const struct trial *t)
{
    struct network *network = t->bench->network;
    struct region *region = t->bench->graph->region;
    struct plan *plan;
    struct word word = word_empty(region);
    cr_assert(policy_word(t->policy, network, &t->settings, region, &word) == ST_OK, "%s", status_message());
    struct plan_options options = {.lower = {.drop_dead = t->drop_dead, .rng = t->rng},
                                   .state_per_parameter =
                                       optimizer_find(t->learner->name)->state(&t->learner->settings)};
    cr_assert(plan_build(network, &word, &options, &plan) == ST_OK, "%s", status_message());
    return plan;
}

/* None within a step but of dynamic buffers; on a device these are its own, and the first steps are what the third
 * repeats. */
static void check_allocations(const struct trial *t, int step, size_t made)
{
    const bool device = t->bench->backend->kind->device;
    if (device && step < 2) return;
    cr_assert((made > 0) == (t->memory == MEMORY_DYNAMIC && !device), "%zu allocations within step %d", made, step);
}

static void run_plan(const struct trial *t, struct plan *plan, struct trace *trace)
{
    struct network *network = t->bench->network;
    struct exec *exec;
    struct train *train;
    struct exec_options exec_options = {.memory = t->memory,
                                        .rng = t->rng,
                                        .seed = 3,
                                        .check_replay = t->rng != RNG_UNSAFE && !t->fault.kind,
                                        .fault = t->fault};
    cr_assert(exec_create(plan, &exec_options, &exec) == ST_OK, "%s", status_message());
    struct train_options train_options = {.optimizer = optimizer_find(t->learner->name),
                                          .settings = t->learner->settings,
                                          .learning_rate = learning_rate_find(t->learner->rate),
                                          .learning_rate_settings = {.warmup = 0.1},
                                          .steps = STEPS_MAX, /* of the rate, however many are run */
                                          .seed = 3};
    cr_assert(train_create(network, exec, &train_options, &train) == ST_OK, "%s", status_message());
    trace->replays = plan->replays;
    for (int step = 0; step < t->steps; step++) {
        make_batch(t->bench->net, (uint32_t)step, exec_batch(exec), exec_labels(exec));
        struct train_result result;
        size_t before = allocations();
        cr_assert(train_step(train, (uint32_t)step, &result) == ST_OK, "%s", status_message());
        check_allocations(t, step, allocations() - before);
        trace->loss[step] = result.loss;
        trace->gradients[step] = result.gradients;
        trace->parameters[step] = result.parameters;
        trace->state[step] = result.state;
        const size_t *counted = exec_counted(exec);
        cr_assert((counted != NULL) == (t->memory == MEMORY_DYNAMIC));
        cr_assert(!counted || !memcmp(counted, plan->live, (size_t)plan->lowered.ops * sizeof *plan->live));
    }
    train_destroy(train);
    exec_destroy(exec);
}

static void run(const struct trial *t, struct trace *trace)
{
    struct plan *plan = plan_of(t);
    run_plan(t, plan, trace);
    plan_destroy(plan);
}

/* The first step at which two traces differ in any bit, -1: none. */
static int first_difference(const struct trace *a, const struct trace *b, int steps)
{
    for (int i = 0; i < steps; i++)
        if (memcmp(&a->loss[i], &b->loss[i], sizeof(float)) || !digest_equal(a->gradients[i], b->gradients[i]) ||
            !digest_equal(a->parameters[i], b->parameters[i]) || !digest_equal(a->state[i], b->state[i]))
            return i;
    return -1;
}

/* Settings under which a policy is tried; what a policy does not read is ignored by it. */
static const struct policy_settings tried[] = {
    {.segments = 1, .keep_last = false, .keep_saved = true},
    {.segments = 2, .keep_last = true, .keep_saved = true, .slots = 2, .by = 1, .budget = "94%", .heuristic = 3},
    {.segments = 3,
     .keep_last = false,
     .keep_saved = false,
     .unit = UNIT_STAGE,
     .slots = 3,
     .by = 1,
     .segment_budget = "8KiB",
     .heuristic = 1},
};

/* Kinds of layers that a net has, of images and of text, for selective under each of those settings. */
enum { TRIED = sizeof tried / sizeof *tried };
static const char *const light[] = {"weightless"}, *const heavy[] = {"conv", "linear"},
                         *const both[] = {"pool", "conv"}, *const core[] = {"attention"},
                         *const wide[] = {"linear", "gelu", "norm"};
#define KINDS(list)                                                                                                    \
    {                                                                                                                  \
        sizeof(list) / sizeof *(list), { .texts = (list) }                                                             \
    }
static const struct field_list kinds[][TRIED] = {{KINDS(light), KINDS(heavy), KINDS(both)},
                                                 {KINDS(light), KINDS(core), KINDS(wide)}};

/* Names of all the net's groups, for manual. */
static struct field_list all_groups(const struct graph *graph)
{
    const char **names = calloc((size_t)graph->groups, sizeof *names);
    for (int g = 0; g < graph->groups; g++) names[g] = graph->group[g].name;
    return (struct field_list){.count = (size_t)graph->groups, .texts = names};
}

/* A plan that was run, in one memory mode. */
struct ran {
    struct digest plan;
    enum memory_mode memory;
    int steps;
};

/* Policies and settings often come to the same plan: whether it was run for as many steps; if not, it is put down. */
static bool was_run(struct ran *ran, int *count, const struct plan *plan, const struct trial *t)
{
    for (int i = 0; i < *count; i++)
        if (digest_equal(ran[i].plan, plan->hash) && ran[i].memory == t->memory && ran[i].steps >= t->steps)
            return true;
    cr_assert(*count < RUNS_MAX);
    ran[(*count)++] = (struct ran){plan->hash, t->memory, t->steps};
    return false;
}

struct comparison {
    const struct net *net;
    int steps;
    struct trace baseline[RNG_MASK + 1]; /* store_all with outputs kept */
    struct ran ran[RUNS_MAX];
    int runs, compared, replaying;
};

/* One policy's plan under the index-th settings in every memory mode. */
static void compare_plan(struct comparison *c, struct trial *t, size_t index)
{
    static struct trace variant;
    struct plan *plan = plan_of(t);
    for (enum memory_mode memory = MEMORY_PLANNED; memory <= MEMORY_POISON; memory++) {
        if (t->rng != RNG_COUNTER && index > 0 && memory != MEMORY_PLANNED) continue;
        t->memory = memory;
        t->steps = memory == MEMORY_PLANNED && index == 0 ? c->steps : 2;
        if (was_run(c->ran, &c->runs, plan, t)) continue;
        run_plan(t, plan, &variant);
        int step = first_difference(&c->baseline[t->rng], &variant, t->steps);
        cr_assert(step < 0, "%s, %s, settings %zu, rng %d, memory %d: differs at step %d: %s", c->net->name,
                  t->policy->name, index, t->rng, memory, step, plan->word);
        c->compared++;
        c->replaying += variant.replays > 0;
    }
    plan_destroy(plan);
}

/* Every policy, memory mode, rng mode and choice of what relus keep on one net: steps steps in PLANNED under each
 * policy's first settings, two elsewhere. On a device the scratch of nets as small as these leaves a budget no choice.
 */
static void compare_all(const struct net *net, const char *backend, int steps)
{
    static struct comparison c;
    c = (struct comparison){.net = net, .steps = steps};
    const bool slow = THINNING > 1 && !strcmp(backend, "cuda"); /* each policy once, and one rng mode */
    for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_AUTO; relu++) {
        if (relu == RELU_BITS && !strcmp(backend, "cuda")) continue; /* AUTO has both: a stand-in is slow */
        struct bench bench = set_up(net, backend, relu);
        struct field_list groups = all_groups(bench.graph);
        for (enum rng_mode rng = slow ? RNG_STASH : RNG_COUNTER; rng <= (slow ? RNG_STASH : RNG_MASK); rng++) {
            struct trial t = {.bench = &bench,
                              .learner = sentences_fit(&net->input) ? &adamw : &momentum,
                              .policy = policy_find("store_all"),
                              .drop_dead = true,
                              .rng = rng,
                              .steps = steps};
            const float *loss = c.baseline[rng].loss;
            if (relu == RELU_OUTPUT) run(&t, &c.baseline[rng]);
            cr_assert(loss[0] > 0 && loss[0] != loss[1], "a loss that moves");
            c.runs = 0;
            for (const struct policy *const *p = policy_table; *p; p++)
                for (size_t s = 0; s < (slow ? 1 : TRIED); s++) {
                    t.policy = *p;
                    t.settings = tried[s];
                    if (bench.backend->kind->device && t.settings.budget) t.settings.budget = "100%";
                    t.settings.groups = groups;
                    t.settings.kinds = kinds[sentences_fit(&net->input)][s];
                    t.drop_dead = s != 2;
                    compare_plan(&c, &t, s);
                }
        }
        free((void *)(uintptr_t)groups.texts);
        tear_down(&bench);
    }
    cr_assert(c.replaying > c.compared / 2, "%d of %d plans replay anything", c.replaying, c.compared);
    printf("%s on %s: %d different plans and memory modes\n", net->name, backend, c.compared);
}

Test(equality, small_cnn_ref) { compare_all(&nets[0], "ref", 2); }
Test(equality, residual_ref) { compare_all(&nets[1], "ref", 2); }
Test(equality, small_cnn_cpu) { compare_all(&nets[0], "cpu", STEPS_MANY); }
Test(equality, residual_cpu) { compare_all(&nets[1], "cpu", STEPS_MANY); }
Test(equality, transformer_ref) { compare_all(&nets[3], "ref", 2); }
Test(equality, transformer_cpu) { compare_all(&nets[3], "cpu", STEPS_MANY); }
Test(equality, vgg_cpu) { compare_all(&nets[2], "cpu", STEPS_MANY); }

static void compare_on_device(const struct net *net)
{
    if (!backend_opens("cuda")) cr_skip_test("no device");
    compare_all(net, "cuda", 4);
}

Test(equality, small_cnn_cuda) { compare_on_device(&nets[0]); }
Test(equality, residual_cuda) { compare_on_device(&nets[1]); }
Test(equality, transformer_cuda) { compare_on_device(&nets[3]); }

/* Relus taken after their pools, whatever they keep, against all of them where they were written: each policy once. */
static void compare_after_pools(const struct net *net, const char *backend)
{
    static struct comparison c;
    c = (struct comparison){.net = net, .steps = 3};
    struct trial t = {.learner = &momentum, .drop_dead = true, .steps = c.steps, .rng = RNG_COUNTER};
    struct bench bench = set_up(net, backend, RELU_OUTPUT);
    t.bench = &bench;
    t.policy = policy_find("store_all");
    run(&t, &c.baseline[t.rng]);
    tear_down(&bench);
    for (enum relu_save relu = RELU_OUTPUT; relu <= RELU_AUTO; relu++) {
        struct graph *graph = net_build(net, relu);
        int moved = 0;
        graph_select_first(graph);
        for (int i = 0; i < graph->nodes; i++) moved += graph->node[i].relu_of_input;
        cr_assert(moved > 0, "%s", net->name);
        bench = set_up_graph(net, backend, graph);
        struct field_list groups = all_groups(bench.graph);
        c.runs = 0;
        for (const struct policy *const *p = policy_table; *p; p++) {
            t.policy = *p;
            t.settings = tried[0];
            t.settings.budget = "100%";
            t.settings.groups = groups;
            t.settings.kinds = kinds[0][0];
            compare_plan(&c, &t, 0);
        }
        free((void *)(uintptr_t)groups.texts);
        tear_down(&bench);
    }
    printf("%s on %s, relus after pools: %d different plans and memory modes\n", net->name, backend, c.compared);
}

static void compare_all_after_pools(const char *backend)
{
    const struct net *const all[] = {&nets[2], &pooled_net};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) compare_after_pools(all[i], backend);
}

Test(equality, relus_after_pools_ref) { compare_all_after_pools("ref"); }
Test(equality, relus_after_pools_cpu) { compare_all_after_pools("cpu"); }
Test(equality, relus_after_pools_cuda)
{
    if (!backend_opens("cuda")) cr_skip_test("no device");
    compare_after_pools(&pooled_net, "cuda");
}

/* Two copies of state a parameter, over many steps. */
static void compare_adamw(const struct net *net, const char *backend)
{
    static struct trace baseline, variant;
    struct bench bench = set_up(net, backend, RELU_BITS);
    struct trial t = {.bench = &bench,
                      .learner = &adamw,
                      .policy = policy_find("store_all"),
                      .drop_dead = true,
                      .steps = STEPS_MAX / THINNING};
    run(&t, &baseline);
    t.policy = policy_find("every");
    run(&t, &variant);
    tear_down(&bench);
    cr_assert(variant.replays > 0 && !digest_equal(variant.state[0], variant.state[1]));
    int step = first_difference(&baseline, &variant, t.steps);
    cr_assert(step < 0, "differs at step %d", step);
}

Test(equality, adamw_cpu)
{
    compare_adamw(&nets[0], "cpu");
    compare_adamw(&nets[3], "cpu");
}
Test(equality, adamw_cuda)
{
    if (!backend_opens("cuda")) cr_skip_test("no device");
    compare_adamw(&nets[0], "cuda");
}

/* What must not be equal: the proof is only worth something if it catches these. */
static int step_of_difference(const struct net *net, enum rng_mode rng, enum rng_mode baseline_rng, struct fault fault,
                              enum relu_save relu)
{
    struct bench bench = set_up(net, "ref", relu);
    static struct trace baseline, variant;
    struct trial t = {.bench = &bench,
                      .learner = &momentum,
                      .policy = policy_find("store_all"),
                      .drop_dead = true,
                      .rng = baseline_rng,
                      .steps = 4};
    run(&t, &baseline);
    t.policy = policy_find("every");
    t.settings = (struct policy_settings){.keep_saved = false};
    t.rng = rng;
    t.fault = fault;
    run(&t, &variant);
    tear_down(&bench);
    return first_difference(&baseline, &variant, t.steps);
}

Test(equality, unsafe_randomness_is_caught)
{
    for (int n = 0; n < 4; n += 3)
        cr_assert(step_of_difference(&nets[n], RNG_UNSAFE, RNG_STASH, (struct fault){0}, RELU_OUTPUT) == 0);
}

Test(equality, faults_are_caught_at_their_step)
{
    for (int step = 0; step < 3; step++) {
        struct graph *graph = net_build(&nets[0], RELU_BITS);
        int dropped = graph_find_node(graph, "dropout2"), convolved = graph_find_node(graph, "conv1");
        graph_destroy(graph);
        struct fault faults[] = {{FAULT_MASK_BIT, step, convolved},
                                 {FAULT_MASK_BIT, step, dropped},
                                 {FAULT_SKIP_REPLAY, step, convolved},
                                 {FAULT_STALE_READ, step, convolved + 1}};
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
            int found = step_of_difference(&nets[0], RNG_COUNTER, RNG_COUNTER, faults[i], RELU_BITS);
            cr_assert(found == step, "fault %zu at step %d was found at %d", i, step, found);
        }
    }
}

/* In the saved probabilities, and in what the row that saves none drew again. */
Test(equality, faults_of_attention_are_caught)
{
    struct graph *graph = net_build(&nets[3], RELU_BITS);
    const int saves = graph_find_node(graph, "attention1"), draws = graph_find_node(graph, "attention2");
    graph_destroy(graph);
    struct fault faults[] = {{FAULT_MASK_BIT, 1, saves},
                             {FAULT_MASK_BIT, 1, draws},
                             {FAULT_SKIP_REPLAY, 1, saves},
                             {FAULT_STALE_READ, 1, draws}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int found = step_of_difference(&nets[3], RNG_COUNTER, RNG_COUNTER, faults[i], RELU_BITS);
        cr_assert(found == 1, "fault %zu was found at %d", i, found);
    }
}
