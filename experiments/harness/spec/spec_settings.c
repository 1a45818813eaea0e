/* Words stand in the order of their enums. */
#include "spec/spec_settings.h"

#include <string.h>

#define MEMBER(name) offsetof(struct spec, name)
enum { MOST = 1 << 30 };

static const char *const relu_words[] = {"output", "bits", "auto", NULL};
static const char *const mode_words[] = {"counter", "stash", "mask", "unsafe", NULL};
static const char *const memory_words[] = {"planned", "dynamic", "poison", NULL};
static const char *const check_words[] = {"none", "recompute", NULL};
const char *const layout_words[] = {"auto", "channels_last", "blocked", "channels_first", NULL};
const char *const precision_words[] = {"fp32", "tf32", NULL};
const char *const algorithm_words[] = {"auto", "direct", "winograd", NULL};
const char *const costs_names[] = {"flops", "measured", NULL};
static const char *const fault_words[] = {"none", "mask_bit", "skip_recompute", "stale_read", NULL};
static const char *const split_words[] = {"train", "test", NULL};
const char *const expectation_names[] = {"peak_ratio", "live_ratio", "time_ratio", "accuracy", "loss", NULL};

const struct setting spec_keys[] = {
    {"name", SETTING_TEXT, MEMBER(name), 0, 0, NULL, NULL, "of the experiment, and of its folder of results"},
    {"title", SETTING_TEXT, MEMBER(title), 0, 0, "", NULL, "one line for people"},
    {"batch", SETTING_INT, MEMBER(batch), 1, 1 << 24, NULL, NULL, "samples a step"},
    {"steps", SETTING_INT, MEMBER(steps), 1, MOST, "0", NULL, "steps of training; or epochs"},
    {"epochs", SETTING_INT, MEMBER(epochs), 1, 1 << 20, "0", NULL, "passes over the training samples; or steps"},
    {"seed", SETTING_INT, MEMBER(seed), 0, 0x1p53, "1", NULL, "of initial values, data, dropout and shuffling"},
    {"relu_save", SETTING_CHOICE, MEMBER(relu_save), 0, 0, "output", relu_words, "what a relu keeps for its backward"},
    {"relu_after_pool", SETTING_BOOL, MEMBER(relu_after_pool), 0, 0, "false", NULL,
     "a fused relu that only a max pool reads is taken after it: same results, less to keep from forward to backward"},
    {"rng", SETTING_CHOICE, MEMBER(rng), 0, 0, "counter", mode_words, "where dropout's numbers come from"},
    {"precision", SETTING_CHOICE, MEMBER(backend_options.precision), 0, 0, "fp32", precision_words,
     "of products' and convolutions' operands"},
    {"memory", SETTING_CHOICE, MEMBER(memory), 0, 0, "planned", memory_words, "how buffers are had"},
    {"drop_dead", SETTING_BOOL, MEMBER(drop_dead), 0, 0, "true", NULL,
     "leave out dead recomputations: those that no op reads"},
    {"plan", SETTING_PATH, MEMBER(plan), 0, 0, "", NULL, "a plan or result file whose plan is taken, not made anew"},
    {"check", SETTING_CHOICE, MEMBER(check), 0, 0, "none", check_words, "compare each recomputed value with its first"},
    {"results", SETTING_TEXT, MEMBER(results), 0, 0, "results", NULL, "folder of the result files, in the current one"},
    {.key = NULL}};

static const struct setting model_keys[] = {
    {"file", SETTING_PATH, MEMBER(model_path), 0, 0, "", NULL, "a file with the list of layers"}, {.key = NULL}};

static const char *const missing_words[] = {"error", "init", NULL};
const struct setting init_keys[] = {
    {"name", SETTING_CHOICE, MEMBER(init), 0, 0, "glorot_uniform", init_words, "of layers that do not say"},
    {"file", SETTING_PATH, MEMBER(init_file), 0, 0, "", NULL, "safetensors: initial values by name"},
    {"missing", SETTING_CHOICE, MEMBER(init_missing), 0, 0, "error", missing_words,
     "parameters that the file does not have: an error, or initialised as usual"},
    {.key = NULL}};

#define OPTION(name) offsetof(struct backend_options, name)
#define ANY_BACKEND                                                                                                    \
    {"threads", SETTING_INT, OPTION(threads), 0, 4096, "0", NULL, "0: one a core"},                                    \
    {                                                                                                                  \
        "layout", SETTING_CHOICE, OPTION(layout), 0, 0, "auto", layout_words, "of images"                              \
    }

static const struct setting host_keys[] = {ANY_BACKEND, {.key = NULL}};
static const struct setting device_keys[] = {ANY_BACKEND,
                                             {"graph", SETTING_BOOL, OPTION(graph), 0, 0, "true", NULL,
                                              "record a step once and queue it again; false: to look for errors"},
                                             {.key = NULL}};

static const struct setting conv_keys[] = {{"algorithm", SETTING_CHOICE, MEMBER(backend_options.conv_algorithm), 0, 0,
                                            "auto", algorithm_words, "auto is a rule of shapes and limits"},
                                           {"scratch_limit", SETTING_BYTES, MEMBER(backend_options.scratch_limit), 0,
                                            0x1p62, "128MiB", NULL, "memory a convolution may use within an op"},
                                           {.key = NULL}};

static const struct setting costs_keys[] = {
    {"name", SETTING_CHOICE, MEMBER(costs), 0, 0, "flops", costs_names, "where planning's times come from"},
    {"file", SETTING_PATH, MEMBER(costs_file), 0, 0, "", NULL, "of measured times, written by rematch bench --costs"},
    {.key = NULL}};

static const struct setting fault_keys[] = {
    {"kind", SETTING_CHOICE, MEMBER(fault_kind), 0, 0, "none", fault_words, "a deliberate error, to see it caught"},
    {"step", SETTING_INT, MEMBER(fault_step), 0, MOST, "0", NULL, "the step it happens in, from 0"},
    {"node", SETTING_TEXT, MEMBER(fault_node), 0, 0, "", NULL, "the node it happens at"},
    {.key = NULL}};

static const struct setting record_keys[] = {
    {"state", SETTING_BOOL, MEMBER(record_state), 0, 0, "false", NULL,
     "initial and final parameters, the last gradients, the batches"},
    {"digests", SETTING_BOOL, MEMBER(record_digests), 0, 0, "true", NULL, "of every tensor at every step"},
    {"memory_steps", SETTING_INTS, MEMBER(record_memory_steps), 0, 1000, "[0, 1]", NULL,
     "steps whose live bytes are stored op by op"},
    {"fsync", SETTING_INT, MEMBER(record_fsync), 0, MOST, "0", NULL,
     "every so many steps all are forced to the disk, to outlast a crash of the machine; 0: at the end of the run "
     "only"},
    {.key = NULL}};

static const struct setting eval_keys[] = {
    {"split", SETTING_CHOICE, MEMBER(eval_split), 0, 0, "test", split_words, "samples to predict"},
    {"every", SETTING_INT, MEMBER(eval_every), 1, MOST, "0", NULL,
     "epochs, or steps where steps are given; unset: every epoch, or after the last step"},
    {.key = NULL}};

const struct setting expectation_keys[] = {
    {"what", SETTING_CHOICE, offsetof(struct expectation, what), 0, 0, NULL, expectation_names, "the figure judged"},
    {"below", SETTING_REAL, offsetof(struct expectation, below), 0, 1e15, "", NULL, "it must be less"},
    {"above", SETTING_REAL, offsetof(struct expectation, above), 0, 1e15, "", NULL, "it must be more"},
    {"source", SETTING_TEXT, offsetof(struct expectation, source), 0, 0, NULL, NULL, "whose figure it is"},
    {.key = NULL}};

/* ---- rows that are chosen by name ---- */

#define CHOICE(id, table)                                                                                              \
    static struct choice id##_choice(int i)                                                                            \
    {                                                                                                                  \
        if (!(table)[i]) return (struct choice){.name = NULL};                                                         \
        return (struct choice){(table)[i]->name, (table)[i]->doc, (table)[i]->keys, (table)[i]};                       \
    }

CHOICE(data, dataset_table)
CHOICE(policy, policy_table)
CHOICE(optimizer, optimizer_table)
CHOICE(learning_rate, learning_rate_table)

static struct choice loss_choice(int index)
{
    for (int i = 0; layer_table[i]; i++)
        if (layer_table[i]->loss && index-- == 0)
            return (struct choice){layer_table[i]->name, layer_table[i]->doc, NULL, layer_table[i]};
    return (struct choice){.name = NULL};
}

/* Includes backends that this program was built without. */
static struct choice backend_choice(int index)
{
    static const struct choice backends[] = {{"ref", "plain C, the reference of every kernel", host_keys, "ref"},
                                             {"cpu", "oneDNN and loops of our own", host_keys, "cpu"},
                                             {"cuda", "cuDNN, cuBLAS and kernels of our own", device_keys, "cuda"},
                                             {.name = NULL}};
    return backends[index];
}

static const struct registry data_registry = {data_choice, MEMBER(data), MEMBER(data_settings), NULL, "data set"};
static const struct registry policy_registry = {policy_choice, MEMBER(policy), MEMBER(policy_settings), "store_all",
                                                "policy"};
static const struct registry optimizer_registry = {optimizer_choice, MEMBER(optimizer), MEMBER(optimizer_settings),
                                                   "sgd", "optimizer"};
static const struct registry learning_rate_registry = {learning_rate_choice, MEMBER(learning_rate),
                                                       MEMBER(learning_rate_settings), "constant", "lr_schedule"};
static const struct registry loss_registry = {loss_choice, MEMBER(loss), 0, "cross_entropy", "loss"};
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

const struct section spec_sections[] = {
    {"model", "file", model_keys, NULL, {"layers", "init"}, true, NULL, "the layers, in a file or here"},
    {"data", "name", NULL, &data_registry, {"name"}, true, NULL, "what is trained on"},
    {"loss", "name", NULL, &loss_registry, {"name"}, false, NULL, "what ends the model"},
    {"optimizer", "name", NULL, &optimizer_registry, {"name"}, false, NULL, "how parameters are updated"},
    {"lr_schedule", "name", NULL, &learning_rate_registry, {"name"}, false, NULL, "of the learning rate"},
    {"backend", "name", NULL, &backend_registry, {"name"}, false, NULL, "whose kernels run"},
    {"conv", NULL, conv_keys, NULL, {NULL}, false, NULL, "how convolutions are done"},
    {"policy", "name", NULL, &policy_registry, {"name"}, false, NULL, "which forwards are run again, and when"},
    {"costs", "name", costs_keys, NULL, {NULL}, false, NULL, "where planning's times come from"},
    {"fault", "kind", fault_keys, NULL, {NULL}, false, has_fault, "a deliberate error, to see it caught"},
    {"record", NULL, record_keys, NULL, {NULL}, false, NULL, "what a result file holds besides"},
    {"eval", "split", eval_keys, NULL, {NULL}, false, has_evaluation, "predictions of a split; left out: none"},
    {.key = NULL},
};

const char *const spec_order[] = {
    "rematch",  "name",      "title",       "model",   "data",      "batch", "steps",     "epochs",          "seed",
    "loss",     "optimizer", "lr_schedule", "backend", "precision", "conv",  "relu_save", "relu_after_pool", "rng",
    "memory",   "drop_dead", "policy",      "plan",    "costs",     "check", "fault",     "record",          "eval",
    "baseline", "expect",    "sweep",       "results", NULL};

/* ---- what a key changes ---- */

enum {
    LEARNING = 1 << EXPECT_ACCURACY | 1 << EXPECT_LOSS,
    TIME = 1 << EXPECT_TIME_RATIO,
    PLAN = 1 << EXPECT_PEAK_RATIO | 1 << EXPECT_LIVE_RATIO | TIME, /* but not a bit of the results */
    ALL = PLAN | LEARNING
};

/* The row of the longest prefix holds. A key without a row changes every figure. */
static const struct {
    const char *key;
    unsigned figures;
} effects[] = {
    {"rematch", 0},
    {"name", 0},
    {"title", 0},
    {"results", 0},
    {"expect", 0},
    {"sweep", 0},
    {"data.samples", LEARNING},
    {"steps", LEARNING},
    {"epochs", LEARNING},
    {"seed", LEARNING},
    {"optimizer.lr", LEARNING},
    {"lr_schedule", LEARNING},
    {"backend.threads", 0}, /* by default those of the machine, which no spec knows */
    {"relu_save", PLAN},
    {"relu_after_pool", PLAN},
    {"drop_dead", PLAN},
    {"policy", PLAN},
    {"plan", PLAN},
    {"costs", PLAN},
    {"baseline", PLAN},
    {"memory", TIME},
    {"check", TIME},
    {"record", TIME},
    {"eval", 1 << EXPECT_PEAK_RATIO | 1 << EXPECT_ACCURACY}, /* it may take the larger arena */
};

unsigned spec_changes(const char *key)
{
    unsigned figures = ALL;
    size_t longest = 0;
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        const size_t length = strlen(effects[i].key);
        if (length < longest || strncmp(key, effects[i].key, length) || (key[length] && key[length] != '.')) continue;
        longest = length;
        figures = effects[i].figures;
    }
    return figures;
}

const struct section *spec_section(const char *key)
{
    for (const struct section *s = spec_sections; s->key; s++)
        if (!strcmp(s->key, key)) return s;
    return NULL;
}
