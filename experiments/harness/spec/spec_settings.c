/* Names are in the order of their enums. */
#include "spec/spec_settings.h"

#include <string.h>

#define MEMBER(name) offsetof(struct spec, name)
enum { MOST = 1 << 30 };

static const char *const relu_save_names[] = {"output", "bits", NULL};
static const char *const whole_names[] = {"few_rows", "none", NULL};
static const char *const commit_names[] = {"once", "every", NULL};
static const char *const rng_names[] = {"counter", "stash", "mask", "unsafe", NULL};
const char *const spec_memory_names[] = {"planned", "dynamic", "poison", NULL};
static const char *const update_names[] = {"separate", "fused", NULL};
static const char *const check_names[] = {"none", "recompute", NULL};
const char *const layout_names[] = {"auto", "channels_last", "channels_first", NULL};
const char *const precision_names[] = {"fp32", "tf32", NULL};
static const char *const conv_algorithm_names[] = {"auto", "direct", "winograd", NULL};
const char *const costs_names[] = {"flops", "measured", NULL};
static const char *const fault_names[] = {"none", "mask_bit", "skip_recompute", "stale_read", NULL};
static const char *const split_names[] = {"train", "test", NULL};
const char *const expectation_names[] = {"peak_ratio", "live_ratio", "time_ratio", "accuracy", "loss", NULL};

/* The name of a folder. */
static enum status check_name(const char *name)
{
    enum { LENGTH = 100 };
    const size_t plain = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
    if (!name[plain] && plain <= LENGTH && *name != '.') return ST_OK;
    return fail(ST_SPEC, "is a folder's name; expected up to %d letters, digits, _ - and .", LENGTH);
}

const struct setting spec_keys[] = {
    {"name", SETTING_TEXT, MEMBER(name), 0, 0, NULL, NULL, "name of the experiment and of its folder of results",
     check_name},
    {"title", SETTING_TEXT, MEMBER(title), 0, 0, "", NULL, "description in one line"},
    {"batch", SETTING_INT, MEMBER(batch), 1, 1 << 24, NULL, NULL, "samples per step"},
    {"slices", SETTING_INT, MEMBER(slices), 1, 1 << 24, "1", NULL,
     "parts of the batch that every layer computes one by one; gradients of parameters are summed in their order"},
    {"whole_layers", SETTING_CHOICE, MEMBER(whole_layers), 0, 0, "few_rows", whole_names,
     "layers that compute the whole batch at once: linear ones with over 8 MiB of parameters and under 32 rows in a "
     "slice, or none"},
    {"steps", SETTING_INT, MEMBER(steps), 1, MOST, "0", NULL, "training steps; give steps or epochs"},
    {"epochs", SETTING_INT, MEMBER(epochs), 1, 1 << 20, "0", NULL,
     "passes over the training samples, without the last batch where it is incomplete; give steps or epochs"},
    {"seed", SETTING_INT, MEMBER(seed), 0, 0x1p53, "1", NULL, "seed of initial values, data, dropout and shuffling"},
    {"relu_save", SETTING_CHOICE, MEMBER(relu_save), 0, 0, "output", relu_save_names,
     "tensor that a relu saves for its backward"},
    {"relu_after_pool", SETTING_BOOL, MEMBER(relu_after_pool), 0, 0, "false", NULL,
     "move a fused relu behind the max pool that alone reads it: same results, a smaller saved tensor"},
    {"pool_in_conv", SETTING_BOOL, MEMBER(pool_in_conv), 0, 0, "false", NULL,
     "compute a 2x2 max pool with the convolution that it alone reads, without the image between: same results"},
    {"rng", SETTING_CHOICE, MEMBER(rng), 0, 0, "counter", rng_names, "source of dropout's random numbers"},
    {"commit", SETTING_CHOICE, MEMBER(commit), 0, 0, "once", commit_names,
     "forwards that move the running state: the first of a step, or recomputations too, which is wrong"},
    {"precision", SETTING_CHOICE, MEMBER(backend_options.precision), 0, 0, "fp32", precision_names,
     "precision of the operands of products and convolutions"},
    {"memory", SETTING_CHOICE, MEMBER(memory), 0, 0, "planned", spec_memory_names, "how buffers are allocated"},
    {"drop_dead", SETTING_BOOL, MEMBER(drop_dead), 0, 0, "true", NULL, "leave out recomputations that no op reads"},
    {"update", SETTING_CHOICE, MEMBER(update), 0, 0, "separate", update_names,
     "fused: parameters are updated during the backward, and their gradients need no static memory"},
    {"update_part", SETTING_BYTES, MEMBER(update_part), 0, 0x1p58, "0", NULL,
     "fused: larger gradients of linear layers that compute the whole batch at once are computed and applied in "
     "parts of rows; 0: none is"},
    {"plan", SETTING_PATH, MEMBER(plan), 0, 0, "", NULL,
     "a plan or result file whose plan is used instead of planning"},
    {"check", SETTING_CHOICE, MEMBER(check), 0, 0, "none", check_names,
     "compare each recomputed value with the original"},
    {"state_every", SETTING_INT, MEMBER(state_every), 0, MOST, "0", NULL,
     "write a state file, from which a killed run goes on, every so many steps; 0: only on SIGTERM and SIGUSR1"},
    {"results", SETTING_FOLDER, MEMBER(results), 0, 0, "results", NULL,
     "folder of the result files, within the current one"},
    {.key = NULL}};

static const struct setting model_keys[] = {
    {"file", SETTING_PATH, MEMBER(model_path), 0, 0, "", NULL,
     "a file with the list of layers, or with layers and the presets of parameters"},
    {.key = NULL}};

static const char *const missing_names[] = {"error", "init", NULL};
const struct setting init_keys[] = {
    {"name", SETTING_CHOICE, MEMBER(init), 0, 0, "glorot_uniform", init_words,
     "initial values of layers without an init of their own"},
    {"file", SETTING_PATH, MEMBER(init_file), 0, 0, "", NULL, "safetensors: initial values by name"},
    {"missing", SETTING_CHOICE, MEMBER(init_missing), 0, 0, "error", missing_names,
     "parameters and running state that are not in the file: an error, or initialised as usual"},
    {"prefix", SETTING_TEXT, MEMBER(init_prefix), 0, 0, "", NULL,
     "what the file's names begin with, such as _orig_mod. or module.; other tensors are not used"},
    {.key = NULL}};

#define OPTION(name) offsetof(struct backend_options, name)
#define THREADS      "threads", SETTING_INT, OPTION(threads), 0, 4096, "0", NULL, "number of threads; 0: one per core"
#define LAYOUT       "layout", SETTING_CHOICE, OPTION(layout), 0, 0, "auto", layout_names, "layout of images"
static const struct setting host_keys[] = {{THREADS}, {LAYOUT}, {.key = NULL}};
static const struct setting device_keys[] = {{THREADS},
                                             {LAYOUT},
                                             {"graph", SETTING_BOOL, OPTION(graph), 0, 0, "true", NULL,
                                              "record a step once and launch it again; false: for debugging"},
                                             {.key = NULL}};

static const struct setting conv_keys[] = {{"algorithm", SETTING_CHOICE, MEMBER(backend_options.conv_algorithm), 0, 0,
                                            "auto", conv_algorithm_names, "auto: chosen by shapes and limits"},
                                           {"scratch_limit", SETTING_BYTES, MEMBER(backend_options.scratch_limit), 0,
                                            0x1p62, "128MiB", NULL, "most scratch memory of a convolution"},
                                           {.key = NULL}};

static const struct setting costs_keys[] = {{"name", SETTING_CHOICE, MEMBER(costs), 0, 0, "flops", costs_names,
                                             "source of the times that planning uses; a file: measured"},
                                            {"file", SETTING_PATH, MEMBER(costs_file), 0, 0, "", NULL,
                                             "the result file of a run of this model, whose measured times count"},
                                            {.key = NULL}};

static const struct setting fault_keys[] = {
    {"kind", SETTING_CHOICE, MEMBER(fault_kind), 0, 0, "none", fault_names,
     "a deliberate error, which the comparison must find"},
    {"step", SETTING_INT, MEMBER(fault_step), 0, MOST, "0", NULL, "step of the error, from 0"},
    {"node", SETTING_TEXT, MEMBER(fault_node), 0, 0, "", NULL, "node of the error"},
    {.key = NULL}};

static const struct setting record_keys[] = {
    {"state", SETTING_BOOL, MEMBER(record_state), 0, 0, "false", NULL,
     "store initial and final parameters, the last gradients and the batches"},
    {"digests", SETTING_BOOL, MEMBER(record_digests), 0, 0, "true", NULL,
     "store digests of every tensor at every step"},
    {"memory_steps", SETTING_INTS, MEMBER(record_memory_steps), 0, 1000, "[0, 1]", NULL,
     "steps whose live bytes are stored op by op"},
    {"fsync", SETTING_INT, MEMBER(record_fsync), 0, MOST, "0", NULL,
     "force the file to disk every so many steps, against a crash of the machine; 0: at the end of the run only"},
    {.key = NULL}};

static const struct setting eval_keys[] = {
    {"split", SETTING_CHOICE, MEMBER(eval_split), 0, 0, "test", split_names, "samples to predict"},
    {"every", SETTING_INT, MEMBER(eval_every), 1, MOST, "0", NULL,
     "epochs, or steps where steps are given; unset: every epoch, or after the last step"},
    {.key = NULL}};

const struct setting expectation_keys[] = {
    {"what", SETTING_CHOICE, offsetof(struct expectation, what), 0, 0, NULL, expectation_names, "the figure"},
    {"below", SETTING_REAL, offsetof(struct expectation, below), 0, 1e15, "", NULL, "the figure must be less"},
    {"above", SETTING_REAL, offsetof(struct expectation, above), 0, 1e15, "", NULL, "the figure must be greater"},
    {"source", SETTING_TEXT, offsetof(struct expectation, source), 0, 0, NULL, NULL, "where the figure was published"},
    {.key = NULL}};

const struct setting published_keys[] = {
    {"label", SETTING_TEXT, offsetof(struct published, label), 0, 0, NULL, NULL, "the name of the point"},
    {"memory", SETTING_REAL, offsetof(struct published, memory), 1e-6, 10, NULL, NULL,
     "its memory, as a share of storing everything there"},
    {"slowdown", SETTING_REAL, offsetof(struct published, slowdown), 0.1, 1e6, NULL, NULL,
     "its time, as a multiple of storing everything there"},
    {"source", SETTING_TEXT, offsetof(struct published, source), 0, 0, NULL, NULL, "where it was published"},
    {.key = NULL}};

/* ---- rows that are chosen by name ---- */

/* The registry of a table's rows; member: of struct spec, beside its settings. */
#define REGISTRY(member, table, preset, what)                                                                          \
    static struct choice member##_choice(int i)                                                                        \
    {                                                                                                                  \
        if (!(table)[i]) return (struct choice){.name = NULL};                                                         \
        return (struct choice){(table)[i]->name, (table)[i]->doc, (table)[i]->keys, (table)[i]};                       \
    }                                                                                                                  \
    static const struct registry member##_registry = {member##_choice, MEMBER(member), MEMBER(member##_settings),      \
                                                      preset, what};

REGISTRY(data, dataset_table, NULL, "data set")
REGISTRY(policy, policy_table, "store_all", "policy")
REGISTRY(optimizer, optimizer_table, "sgd", "optimizer")
REGISTRY(learning_rate, learning_rate_table, "constant", "lr_schedule")

static struct choice loss_choice(int index)
{
    for (int i = 0; layer_table[i]; i++)
        if (layer_table[i]->loss && !layer_table[i]->in_backward && index-- == 0)
            return (struct choice){layer_table[i]->name, layer_table[i]->doc, layer_table[i]->keys, layer_table[i]};
    return (struct choice){.name = NULL};
}

/* Includes backends that this program was built without. */
static struct choice backend_choice(int index)
{
    static const struct choice backends[] = {{"ref", "plain C, the reference of every kernel", host_keys, "ref"},
                                             {"cpu", "kernels of our own", host_keys, "cpu"},
                                             {"cuda", "cuDNN, cuBLAS and kernels of our own", device_keys, "cuda"},
                                             {.name = NULL}};
    return backends[index];
}

static const struct registry loss_registry = {loss_choice, MEMBER(loss), MEMBER(loss_settings), "cross_entropy",
                                              "loss"};
static const struct registry backend_registry = {backend_choice, MEMBER(backend), MEMBER(backend_options), "cpu",
                                                 "backend"};

struct setting registry_setting(const struct registry *registry, struct region *region)
{
    const char **names = NULL;
    int count = 0;
    do {
        region_grow(region, &names, count, sizeof *names);
        names[count] = registry->choice(count).name;
    } while (names[count++]);
    return (struct setting){.key = "name", .type = SETTING_CHOICE, .preset = registry->preset, .values = names};
}

static bool has_fault(const struct spec *spec) { return spec->fault_kind != FAULT_NONE; }
static bool has_evaluation(const struct spec *spec) { return spec->eval_every > 0; }

static const char *const also_model[] = {"layers", "init", "parameters", NULL}, *const also_name[] = {"name", NULL};

const struct section spec_sections[] = {
    {"model", "file", model_keys, NULL, also_model, true, NULL, "the layers, in a file or here"},
    {"data", "name", NULL, &data_registry, also_name, true, NULL, "the training data"},
    {"loss", "name", NULL, &loss_registry, also_name, false, NULL, "the loss, the last node of the model"},
    {"optimizer", "name", NULL, &optimizer_registry, also_name, false, NULL, "how parameters are updated"},
    {"lr_schedule", "name", NULL, &learning_rate_registry, also_name, false, NULL,
     "how the learning rate changes over the steps"},
    {"backend", "name", NULL, &backend_registry, also_name, false, NULL, "the kernels that run"},
    {"conv", NULL, conv_keys, NULL, NULL, false, NULL, "algorithms of convolutions"},
    {"policy", "name", NULL, &policy_registry, also_name, false, NULL, "what is recomputed, and when"},
    {"costs", "name", costs_keys, NULL, NULL, false, NULL, "source of the times that planning uses"},
    {"fault", "kind", fault_keys, NULL, NULL, false, has_fault, "a deliberate error, which the comparison must find"},
    {"record", NULL, record_keys, NULL, NULL, false, NULL, "optional parts of a result file"},
    {"eval", "split", eval_keys, NULL, NULL, false, has_evaluation, "predictions of a split; default: none"},
    {.key = NULL},
};

const struct other_key spec_other_keys[] = {
    {"rematch", "1", "version of the format", true},
    {"baseline", "a map of keys", "keys that the baseline overrides; its policy is store_all", false},
    {"expect", "a list of maps",
     "published figures, each judged unless an override changes it; at: the points of a sweep", false},
    {"published", "a list of maps", "points of other systems, which a report shows beside the plans", false},
    {"sweep", "a map of keys to lists",
     "runs each combination: {policy.segments: [1, 2, 5], seed: {from: 1, to: 3}}; zip, exclude", false},
    {.key = NULL}};

const char *const spec_order[] = {"rematch",      "name",        "title",  "published",    "model",
                                  "data",         "batch",       "slices", "whole_layers", "steps",
                                  "epochs",       "seed",        "loss",   "optimizer",    "lr_schedule",
                                  "backend",      "precision",   "conv",   "relu_save",    "relu_after_pool",
                                  "pool_in_conv", "rng",         "commit", "memory",       "drop_dead",
                                  "update",       "update_part", "policy", "plan",         "costs",
                                  "check",        "fault",       "record", "eval",         "baseline",
                                  "state_every",  "expect",      "sweep",  "results",      NULL};

/* ---- which numbers a key changes ---- */

enum {
    LEARNING = 1 << EXPECT_ACCURACY | 1 << EXPECT_LOSS,
    TIME = 1 << EXPECT_TIME_RATIO,
    PLAN = 1 << EXPECT_PEAK_RATIO | 1 << EXPECT_LIVE_RATIO | TIME, /* but no bit of the results */
    ALL = PLAN | LEARNING
};

/* A key changes the numbers of its row, as do the keys below it; a key without a row changes every number. */
static const struct {
    unsigned numbers;
    const char *keys[10];
} effects[] = {
    {0, {"rematch", "name", "title", "results", "expect", "published", "sweep", "state_every"}},
    {0, {"backend.threads"}}, /* the default depends on the machine */
    {LEARNING, {"data.samples", "steps", "epochs", "seed", "optimizer.lr", "lr_schedule"}},
    {PLAN,
     {"relu_save", "relu_after_pool", "pool_in_conv", "drop_dead", "update", "policy", "plan", "costs", "baseline"}},
    {TIME, {"memory", "check", "record"}},
    {1 << EXPECT_PEAK_RATIO | 1 << EXPECT_ACCURACY, {"eval"}}, /* it may need the larger arena */
};

unsigned spec_changes(const char *key)
{
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++)
        for (const char *const *row = effects[i].keys; *row; row++) {
            const size_t length = strlen(*row);
            if (!strncmp(key, *row, length) && (!key[length] || key[length] == '.')) return effects[i].numbers;
        }
    return ALL;
}

const struct section *spec_section(const char *key)
{
    for (const struct section *s = spec_sections; s->key; s++)
        if (!strcmp(s->key, key)) return s;
    return NULL;
}
