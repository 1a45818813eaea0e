/* Initial values from a file: Hugging Face's names for BERT's parameters, and the errors of files that do not fit. */
#include "job/weights.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/run_id.h"
#include "run/job_plans.h"
#include "spec/spec.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"
#include "tests/support/safetensors_files.h"
#include "tests/support/spec_text.h"

/* A tiny model with BERT's names: two blocks of width 2. */
static const char text[] = "rematch: 1\nname: weights\nmodel:\n"
                           "  init: {name: he_normal, file: %s, missing: %s}\n  layers:\n"
                           "    - embedding: {name: embedding, vocabulary: 9, positions: 4, units: 2}\n"
                           "    - layernorm: {name: embedding_norm}\n"
                           "    - repeat:\n        name: block\n        times: 2\n        layers:\n"
                           "          - linear: {name: qkv, units: 6}\n"
                           "          - linear: {name: projection, units: 2}\n"
                           "          - layernorm: {name: attention_norm}\n"
                           "          - linear: {name: up, units: 3}\n"
                           "          - linear: {name: down, units: 2}\n"
                           "          - layernorm: {name: norm}\n"
                           "    - select: {token: 0}\n    - linear: {name: pooler, units: 2}\n"
                           "    - linear: {name: classifier, units: classes}\n"
                           "data: {name: synthetic-tokens, max_length: 4, vocabulary_size: 9}\nbatch: 2\nsteps: 2\n"
                           "optimizer: {lr: 0.1}\nbackend: ref\npolicy: {name: every, unit: stage}\n";

static char path[64];

static void begin(void)
{
    spec_text_begin();
    strcpy(path, P_tmpdir "/rematch-weights-XXXXXX");
    int descriptor = mkstemp(path);
    cr_assert(descriptor >= 0);
    close(descriptor);
}

static void end(void)
{
    unlink(path);
    spec_text_end();
}

TestSuite(weights, .init = begin, .fini = end);

/* Every tensor but the classifier's; the values of each begin at a base of its own. */
static const struct {
    const char *ours, *theirs, *shape;
    float base;
    int row; /* of our parameter, where the tensor begins */
} tensors[] = {
    {"embedding.word", "embeddings.word_embeddings.weight", "9, 2", 10, 0},
    {"embedding.position", "embeddings.position_embeddings.weight", "4, 2", 30, 0},
    {"embedding.segment", "embeddings.token_type_embeddings.weight", "2, 2", 40, 0},
    {"embedding_norm.weight", "embeddings.LayerNorm.weight", "2", 50, 0},
    {"embedding_norm.bias", "embeddings.LayerNorm.bias", "2", 60, 0},
    {"pooler.weight", "pooler.dense.weight", "2, 2", 70, 0},
    {"pooler.bias", "pooler.dense.bias", "2", 80, 0},
    {"block[%d].qkv.weight", "encoder.layer.%d.attention.self.query.weight", "2, 2", 100, 0},
    {"block[%d].qkv.weight", "encoder.layer.%d.attention.self.key.weight", "2, 2", 110, 4},
    {"block[%d].qkv.weight", "encoder.layer.%d.attention.self.value.weight", "2, 2", 120, 8},
    {"block[%d].qkv.bias", "encoder.layer.%d.attention.self.query.bias", "2", 130, 0},
    {"block[%d].qkv.bias", "encoder.layer.%d.attention.self.key.bias", "2", 140, 2},
    {"block[%d].qkv.bias", "encoder.layer.%d.attention.self.value.bias", "2", 150, 4},
    {"block[%d].projection.weight", "encoder.layer.%d.attention.output.dense.weight", "2, 6", 160, 0},
    {"block[%d].projection.bias", "encoder.layer.%d.attention.output.dense.bias", "2", 175, 0},
    {"block[%d].attention_norm.weight", "encoder.layer.%d.attention.output.LayerNorm.weight", "2", 180, 0},
    {"block[%d].attention_norm.bias", "encoder.layer.%d.attention.output.LayerNorm.bias", "2", 190, 0},
    {"block[%d].up.weight", "encoder.layer.%d.intermediate.dense.weight", "3, 2", 200, 0},
    {"block[%d].up.bias", "encoder.layer.%d.intermediate.dense.bias", "3", 210, 0},
    {"block[%d].down.weight", "encoder.layer.%d.output.dense.weight", "2, 3", 220, 0},
    {"block[%d].down.bias", "encoder.layer.%d.output.dense.bias", "2", 230, 0},
    {"block[%d].norm.weight", "encoder.layer.%d.output.LayerNorm.weight", "2", 240, 0},
    {"block[%d].norm.bias", "encoder.layer.%d.output.LayerNorm.bias", "2", 250, 0},
};
enum { TENSORS = sizeof tensors / sizeof *tensors, ONCE = 7, POOLER = 5, KEY = 8, UP = 17 };

/* Variants of a file: with a prefix, with the norms' old names, without one tensor. */
struct naming {
    const char *prefix;
    bool old;
    int without; /* -1: none */
};

/* format with the block's number; avoids the compiler's warning about a format that is no literal. */
static void number_in(char name[128], const char *prefix, const char *format, int block)
{
    const char *mark = strstr(format, "%d");
    if (mark)
        snprintf(name, 128, "%s%.*s%d%s", prefix, (int)(mark - format), format, block, mark + 2);
    else
        snprintf(name, 128, "%s%s", prefix, format);
}

static struct safetensors_writer *write_bert(const struct naming *way)
{
    static struct safetensors_writer w;
    memset(&w, 0, sizeof w);
    for (int block = 0; block < 2; block++)
        for (int i = 0; i < TENSORS; i++) {
            char name[128];
            if ((block && i < ONCE) || i == way->without) continue;
            number_in(name, way->prefix, tensors[i].theirs, block);
            char *end = strrchr(name, '.');
            if (way->old && strstr(name, "LayerNorm")) strcpy(end, !strcmp(end, ".weight") ? ".gamma" : ".beta");
            safetensors_add(&w, name, tensors[i].shape, tensors[i].base + 1000 * (float)block);
        }
    return &w;
}

static struct spec *spec_of(const char *missing)
{
    char filled[4096];
    snprintf(filled, sizeof filled, text, path, missing);
    return load_well(filled, "", false);
}

/* The initial values of each parameter, for every naming. */
static void check_loaded(struct job *job)
{
    struct executor *exec;
    const struct executor_options options = job_exec_options(job);
    cr_assert(executor_create(job->plan, &options, &exec) == ST_OK, "%s", status_message());
    cr_assert(weights_load(job->weights, job->backend, exec) == ST_OK, "%s", status_message());
    int given = 0;
    for (int i = 0; i < job->graph->parameters; i++)
        for (int k = 0; k < 2 * TENSORS; k++) {
            char ours[128];
            const int block = k / TENSORS;
            number_in(ours, "", tensors[k % TENSORS].ours, block);
            if (strcmp(ours, job->graph->parameter[i].name) != 0 || (block && k % TENSORS < ONCE)) continue;
            const float *at = executor_parameter(exec, i) + tensors[k % TENSORS].row;
            const float base = tensors[k % TENSORS].base + 1000 * (float)block;
            cr_assert(at[0] == base && at[1] == base + 1, "%s: %g, not %g", ours, (double)at[0], (double)base);
            cr_assert(job->weights->given[i]);
            given++;
        }
    cr_assert(given == 2 * TENSORS - ONCE);
    executor_destroy(exec);
}

Test(weights, hugging_faces_names_are_found)
{
    static const struct naming ways[] = {{"", false, -1}, {"bert.", false, -1}, {"", true, -1}, {"bert.", true, -1}};
    for (int i = 0; i < 4; i++) {
        struct safetensors_writer *w = write_bert(&ways[i]);
        safetensors_add(w, "classifier.weight", "3, 2", 7); /* under our own name */
        safetensors_add(w, "cls.predictions.bias", "5", 0);
        safetensors_finish(w, path);
        struct spec *spec = spec_of("init");
        struct job *job;
        cr_assert(job_create(spec, &job) == ST_OK, "%s", status_message());
        check_loaded(job);
        char id[RUN_ID_TEXT];
        cr_assert(!*job->weights->sha256, "a plan needs no digest of the values");
        cr_assert(run_id_compute(job, id) == ST_OK && strlen(job->weights->sha256) == 64);
        const char *told = weights_text(job->weights);
        cr_assert(job->weights->initialised == 1 && job->weights->unused == 1, "%s", told);
        cr_assert(strstr(told, "32 of 33 parameters") && strstr(told, "initialised as usual: classifier.bias"));
        cr_assert(strstr(told, "not used: cls.predictions.bias"));
        job_destroy(job);
        spec_destroy(spec);
    }
}

static void refuse(const char *missing, enum status status, const char *const *messages)
{
    struct spec *spec = spec_of(missing);
    struct job *job;
    cr_assert(job_create(spec, &job) == status, "%s", status_message());
    for (; *messages; messages++)
        cr_assert(strstr(status_message(), *messages), "'%s' is not in %s", *messages, status_message());
    cr_assert(!strchr(status_message(), '\n'));
    spec_destroy(spec);
}

Test(weights, a_misfit_is_refused)
{
    struct safetensors_writer *w = write_bert(&(struct naming){"", false, POOLER});
    safetensors_add(w, "other", "1", 0);
    safetensors_finish(w, path);
    refuse("error", ST_SPEC,
           (const char *const[]){"does not fit the model",
                                 "missing: pooler.weight (pooler.dense.weight), classifier.weight, classifier.bias",
                                 "missing: init", "not used: other", NULL});
    w = write_bert(&(struct naming){"", false, KEY}); /* without the keys, the fused weights are incomplete */
    safetensors_finish(w, path);
    refuse(
        "init", ST_SPEC,
        (const char *const[]){"block[0].qkv.weight (encoder.layer.0.attention.self.key.weight) is incomplete", NULL});
    w = write_bert(&(struct naming){"", false, UP});
    safetensors_add(w, "encoder.layer.0.intermediate.dense.weight", "2, 3", 0);
    safetensors_finish(w, path);
    refuse("init", ST_SPEC,
           (const char *const[]){
               "encoder.layer.0.intermediate.dense.weight is F32 [2, 3], expected F32, F16 or BF16 of [3, 2]", NULL});
    w = write_bert(&(struct naming){"", false, KEY});
    safetensors_add(w, "encoder.layer.0.attention.self.key.weight", "4611686018427387904, 0", 0); /* of no byte */
    safetensors_finish(w, path);
    refuse("init", ST_SPEC,
           (const char *const[]){"key.weight is F32 [4611686018427387904, 0], expected F32, F16 or BF16 of a", NULL});
    w = write_bert(&(struct naming){"x.", false, KEY}); /* without the prefix, they do not fit either */
    safetensors_finish(w, path);
    refuse("init", ST_SPEC,
           (const char *const[]){"missing: ", "more", "not used: x.embeddings.word_embeddings.weight", NULL});
    safetensors_write(path, 2, "{}", NULL, 0);
    refuse("init", ST_SPEC, (const char *const[]){"missing: ", NULL});
    unlink(path);
    refuse("init", ST_MISSING, (const char *const[]){path, NULL});
}

/* A file whose names all begin so is refused with that prefix, and read with it as the key. */
Test(weights, a_common_prefix_is_named_and_read)
{
    static const char *const prefixes[] = {"_orig_mod.",     "module.", "model.",     "module._orig_mod.",
                                           "bert.module.0.", "net_",    "state_dict."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        for (int head = 0; head < 2; head++) {
            char words[128], key[64];
            struct safetensors_writer *w = write_bert(&(struct naming){prefixes[i], i % 2 == 0, -1});
            for (int k = 0; k < 2 && head; k++) {
                snprintf(words, sizeof words, "%sclassifier.%s", prefixes[i], k ? "bias" : "weight");
                safetensors_add(w, words, k ? "3" : "3, 2", 7);
            }
            safetensors_add(w, "loss.scale", "1", 0);
            safetensors_finish(w, path);
            snprintf(words, sizeof words,
                     "fit the model, but all names%s fit without the prefix '%s': set "
                     "model.init.prefix",
                     head ? "" : " but 2", prefixes[i]);
            snprintf(key, sizeof key, "%s, prefix: %s", head ? "error" : "init", prefixes[i]);
            refuse(head ? "error" : "init", ST_SPEC, (const char *const[]){words, NULL});
            struct spec *spec = spec_of(key);
            struct job *job;
            cr_assert(job_create(spec, &job) == ST_OK, "%s", status_message());
            check_loaded(job);
            cr_assert(job->weights->initialised == (head ? 0 : 2) && job->weights->unused == 1);
            cr_assert(strstr(spec->resolved, "prefix: "), "%s", spec->resolved);
            job_destroy(job);
            spec_destroy(spec);
        }
    safetensors_finish(write_bert(&(struct naming){"", false, -1}), path);
    refuse("init, prefix: module.", ST_SPEC,
           (const char *const[]){"all names but 2 fit without model.init.prefix", NULL});
}

static enum status loaded(struct spec *spec)
{
    struct job *job;
    struct executor *exec;
    cr_assert(job_create(spec, &job) == ST_OK, "%s", status_message());
    const struct executor_options options = job_exec_options(job);
    cr_assert(executor_create(job->plan, &options, &exec) == ST_OK, "%s", status_message());
    const enum status status = weights_load(job->weights, job->backend, exec);
    executor_destroy(exec);
    job_destroy(job);
    spec_destroy(spec);
    return status;
}

Test(weights, values_must_be_finite)
{
    static const struct {
        uint32_t bits;
        const char *text;
    } values[] = {{0x7fc00000, "nan"}, {0x7f800000, "inf"}, {0xff800000, "-inf"}};
    for (int i = 0; i < 3; i++) {
        struct safetensors_writer *w = write_bert(&(struct naming){"", false, -1});
        char expected[256];
        memcpy(&w->data[9], &values[i].bits, sizeof values[i].bits);
        safetensors_finish(w, path);
        snprintf(expected, sizeof expected,
                 "model.init.file: %s: element 9 of embeddings.word_embeddings.weight is %s, expected a finite number",
                 path, values[i].text);
        cr_assert(loaded(spec_of("init")) == ST_FAILED);
        cr_assert_str_eq(status_message(), expected);
    }
}

/* Means and parameters may be negative, and a variance may be 0. */
Test(weights, a_running_variance_is_not_negative)
{
    static const char *const tensor[] = {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var", "fc.bias"};
    static const float variance[] = {0, 0.25f, -0.5f};
    for (int i = 0; i < 3; i++) {
        struct safetensors_writer w = {.length = 0};
        char filled[1024], expected[256];
        for (int t = 0; t < 5; t++) safetensors_add(&w, tensor[t], "3", t == 3 ? 0 : -7);
        safetensors_add(&w, "fc.weight", "3, 12", -9);
        w.data[11] = variance[i];
        safetensors_finish(&w, path);
        snprintf(filled, sizeof filled,
                 "rematch: 1\nname: norm\nmodel:\n  init: {name: zeros, file: %s}\n  layers:\n"
                 "    - batch_norm: {name: bn}\n    - flatten\n    - linear: {name: fc, units: classes}\n"
                 "data: {name: synthetic, shape: [2, 2, 3], classes: 3}\nbatch: 2\nsteps: 1\noptimizer: {lr: 0.1}\n"
                 "backend: ref\n",
                 path);
        snprintf(expected, sizeof expected,
                 "model.init.file: %s: element 2 of bn.running_var is -0.5, expected a finite number, not below 0",
                 path);
        cr_assert(loaded(load_well(filled, "", false)) == (variance[i] < 0 ? ST_FAILED : ST_OK), "%s",
                  status_message());
        if (variance[i] < 0) cr_assert_str_eq(status_message(), expected);
    }
}

/* A parameter larger than one slice. */
Test(weights, a_large_parameter_is_read_completely)
{
    enum { IN = 600, OUT = 500, COUNT = IN * OUT };
    char header[256], filled[1024];
    float *values = malloc((COUNT + OUT) * sizeof *values);
    for (int i = 0; i < COUNT + OUT; i++) values[i] = (float)i;
    snprintf(header, sizeof header,
             "{\"big.weight\": {\"dtype\": \"F32\", \"shape\": [%d, %d], \"data_offsets\": [0, %d]}, "
             "\"big.bias\": {\"dtype\": \"F32\", \"shape\": [%d], \"data_offsets\": [%d, %d]}}",
             OUT, IN, 4 * COUNT, OUT, 4 * COUNT, 4 * (COUNT + OUT));
    safetensors_write(path, strlen(header), header, values, (COUNT + OUT) * sizeof *values);
    snprintf(filled, sizeof filled,
             "rematch: 1\nname: big\nmodel:\n  init: {name: zeros, file: %s}\n  layers:\n    - flatten\n"
             "    - linear: {name: big, units: classes}\ndata: {name: synthetic, shape: [20, 30, 1], classes: %d}\n"
             "batch: 1\nsteps: 1\noptimizer: {lr: 0.1}\nbackend: ref\n",
             path, OUT);
    struct spec *spec = load_well(filled, "", false);
    struct job *job;
    struct executor *exec;
    cr_assert(job_create(spec, &job) == ST_OK, "%s", status_message());
    const struct executor_options options = job_exec_options(job);
    cr_assert(executor_create(job->plan, &options, &exec) == ST_OK, "%s", status_message());
    cr_assert(weights_load(job->weights, job->backend, exec) == ST_OK, "%s", status_message());
    for (int i = 0; i < COUNT; i++) cr_assert(executor_parameter(exec, 0)[i] == values[i], "%d", i);
    for (int i = 0; i < OUT; i++) cr_assert(executor_parameter(exec, 1)[i] == values[COUNT + i], "%d", i);
    executor_destroy(exec);
    job_destroy(job);
    spec_destroy(spec);
    free(values);
}

/* Through the program: baseline and variant start from the file, which is in the result and in the run id. */
Test(weights, a_run_starts_from_its_file)
{
    struct cli cli;
    char file[512], filled[4096];
    cli_open(&cli);
    snprintf(file, sizeof file, "%s/w.safetensors", cli.folder);
    safetensors_finish(write_bert(&(struct naming){"bert.", false, -1}), file);
    snprintf(filled, sizeof filled, text, "w.safetensors", "init");
    cli_file(&cli, "weights.yaml", filled);
    cli_expect(&cli, 4, "run weights.yaml"); /* one group: nothing is recomputed */
    cli_says(&cli, "EQUAL IN EVERY BIT");
    cli_complains(&cli, "w.safetensors: 31 of 33 parameters; initialised as usual: classifier.weight, classifier.bias");
    cr_assert(folder_count(cli.folder, ".h5") == 2);
    safetensors_finish(write_bert(&(struct naming){"bert.", true, -1}), file); /* the same values under other names */
    cli_expect(&cli, 4, "run weights.yaml --quiet");
    cr_assert(folder_count(cli.folder, ".h5") == 4, "another file is another run");
    cli_expect(&cli, 0, "verify results/weights/$(ls results/weights | head -1)");
    cli_says(&cli, "steps     same bits");
    cli_expect(&cli, 0, "show --provenance results/weights/$(ls results/weights | head -1)");
    cli_says(&cli, "/provenance/weights");
    cli_says(&cli, "  initialised                classifier.weight\n");
    cli_expect(&cli, 3, "run weights.yaml model.init.missing=init model.init.file=weights.yaml");
    cli_complains(&cli, "not a safetensors file");
    cli_expect(&cli, 2, "run weights.yaml model.init.missing=error");
    cli_complains(&cli, "does not fit the model");
    cli_expect(&cli, 77, "run weights.yaml model.init.file=none.safetensors");
    cli_complains(&cli, "model.init.file: none.safetensors: No such file or directory; expected a safetensors file");
    cr_assert(cli_complaints(&cli) == 1, "%s", cli.err);
    cli_expect(&cli, 2, "run weights.yaml model.init=zeros model.init.missing=init");
    cli_complains(&cli, "requires a file");
    cli_close(&cli);
}
