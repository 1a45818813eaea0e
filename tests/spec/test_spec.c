/* Specs: every file of tests/bad is refused with exactly the errors that its first lines announce; every key is read; a
 * resolved spec is a spec again; mutated bytes are refused or read. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "spec/model.h"
#include "spec/spec.h"
#include "tests/support/spec_text.h"

TestSuite(spec, .init = spec_text_begin, .fini = spec_text_end);

/* ---- bad input ---- */

/* Loads the file and, if that succeeds, builds its model. */
static void check_bad(const char *file)
{
    struct spec *spec;
    struct graph *graph = NULL;
    enum status status = spec_load(file, 0, NULL, &spec);
    if (status == ST_OK) {
        const struct dataset_settings *s = &spec->data_settings;
        struct dataset data = {.shape = {(int)s->shape.count, {0}}, .classes = s->classes};
        if (s->max_length) data.shape = (struct shape){2, {3, s->max_length}};
        data.tokens = s->vocabulary_size; /* as in synthetic-tokens */
        for (size_t i = 0; i < s->shape.count; i++) data.shape.dim[i] = s->shape.ints[i];
        status = spec_place(spec, model_build(spec, &data, &graph));
        cr_expect(!graph);
    }
    spec_destroy(spec);
    cr_expect(status == ST_SPEC, "%s: accepted", file);
}

Test(spec, every_bad_file_is_refused_at_its_place)
{
    int files = each_bad_file("tests/bad", check_bad);
    cr_expect(files > 90, "%d files", files);
}

Test(spec, errors_are_sorted_by_place)
{
    cr_assert(!load(MINIMAL "memory: x\nrng: y\nmodels: z\n", "seed=a batch=b", false));
    const char *text = messages(), *at = text;
    static const char *const order[] = {"memory: 'x'", "rng: 'y'", "models: ", "seed: 'a'", "batch: 'b'", "5 errors;"};
    for (int i = 0; i < 6; i++)
        cr_expect(at && (at = strstr(at, order[i])), "%s is not in its place in\n%s", order[i], text);
}

Test(spec, an_error_shows_its_line)
{
    cr_assert(!load("rematch: 1\nname: x\nbatch: \t64x # tab\n", "", false));
    const char *text = messages();
    cr_expect(strstr(text, "    3 | batch:  64x # tab\n                ^~~\n"), "%s", text);
    char line[3000] = "title: ";
    memset(line + 7, 'a', 2000);
    strcpy(line + 2007, "\xFF");
    cr_assert(!load(line, "", false));
    text = messages();
    const char *shown = strstr(text, "    1 | aaa"), *caret = shown ? strchr(shown, '^') : NULL;
    cr_assert(caret, "%s", text);
    cr_expect(strchr(shown, '\n') - strchr(shown, '?') == 1, "%s", text);
    cr_expect(caret - strchr(shown, '\n') - 1 == strchr(shown, '?') - shown, "the caret stands elsewhere: %s", text);
    cr_expect(!strchr(text, '\xFF'));
}

Test(spec, other_files_are_refused)
{
    struct spec *spec;
    cr_expect(spec_load("/nonexistent/spec.yaml", 0, NULL, &spec) == ST_SPEC && !spec);
    cr_expect(strstr(status_message(), "/nonexistent/spec.yaml: No such file or directory"));
    cr_expect(spec_load("tests/bad", 0, NULL, &spec) == ST_SPEC);
    cr_expect(strstr(status_message(), "tests/bad: is not a plain file"));
    const char *path = write_bytes("", 0);
    cr_expect(spec_load(path, 0, NULL, &spec) == ST_SPEC && strstr(messages(), ":1:1: error: nothing in it"));
    write_bytes("name: a\0b\n", 10);
    cr_expect(spec_load(path, 0, NULL, &spec) == ST_SPEC && strstr(status_message(), "holds a zero byte"));
    static char large[(1 << 24) + 2];
    memset(large, '#', sizeof large);
    write_bytes(large, sizeof large);
    cr_expect(spec_load(path, 0, NULL, &spec) == ST_SPEC && strstr(status_message(), "is larger than"));
    spec_destroy(load_well("\xEF\xBB\xBF" MINIMAL, "", false)); /* a byte order mark is skipped */
}

/* ---- defaults and round trips ---- */

Test(spec, missing_keys_get_their_defaults)
{
    struct spec *spec = load_well(MINIMAL, "", false);
    const char *expected =
        "rematch: 1\nname: small\ntitle: small\nmodel:\n  init: glorot_uniform\n  layers:\n    - flatten: {}\n"
        "    - linear: {units: classes, activation: none, bias: true, init: glorot_uniform}\n"
        "data: {name: synthetic, shape: [4, 4, 1], classes: 3, labels: sample, samples: 10000, shuffle: true}\n"
        "batch: 8\nslices: 1\nwhole_layers: few_rows\nsteps: 2\nseed: 1\nloss: {name: cross_entropy}\n"
        "optimizer: {name: sgd, lr: 0.1, momentum: 0, nesterov: false, weight_decay: 0, decays: all, clip: 0, ema: 0}\n"
        "lr_schedule: {name: constant}\n"
        "backend: {name: cpu, threads: 0, layout: auto}\nprecision: fp32\nconv: {algorithm: auto, scratch_limit: "
        "128MiB}\n"
        "relu_save: output\nrelu_after_pool: false\npool_in_conv: false\nrng: counter\ncommit: once\nmemory: "
        "planned\ndrop_dead: "
        "true\nupdate: separate\nupdate_part: 0\npolicy: {name: "
        "store_all}\ncosts: {name: "
        "flops}\ncheck: none\n"
        "record: {state: false, digests: true, memory_steps: [0, 1], fsync: 0}\nstate_every: 0\nresults: results\n";
    cr_expect(!strcmp(spec->resolved, expected), "%s", spec->resolved);
    cr_expect(spec->steps == 2 && spec->epochs == 0 && spec->eval_every == 0 && spec->fault_kind == FAULT_NONE);
    cr_expect(!spec->changed[EXPECT_LOSS] && spec->overrides == 0 && !spec->model_path && spec->drop_dead);
    cr_expect(!strcmp(spec->text, MINIMAL) && spec->backend_options.scratch_limit == 128u << 20);
    spec_destroy(spec);
}

/* With steps, a default of one evaluation per step would take longer than the training. */
Test(spec, evaluates_every_epoch_or_after_the_last_step)
{
    static const struct {
        const char *overrides;
        int64_t every;
    } cases[] = {{"eval=test", 2}, {"eval=test steps= epochs=3", 1}, {"eval.every=1", 1}, {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spec *spec = load_well(MINIMAL, cases[i].overrides, false);
        cr_expect(spec->eval_every == cases[i].every, "%s: %lld", cases[i].overrides, (long long)spec->eval_every);
        spec_destroy(spec);
    }
}

Test(spec, a_fused_update_and_its_parts_are_read)
{
    struct spec *spec = load_well(MINIMAL, "update=fused update_part=32MiB", false);
    cr_expect(spec->update == UPDATE_FUSED && spec->update_part == 32u << 20);
    cr_expect(strstr(spec->resolved, "update: fused\nupdate_part: 32MiB\n"), "%s", spec->resolved);
    spec_destroy(spec);
}

Test(spec, every_key_is_read)
{
    struct spec *spec = load_well(
        "rematch: 1\nname: full\ntitle: 'All: keys'\nmodel: {init: he_normal, layers: [flatten, {linear: {units: "
        "3}}]}\n"
        "data: {name: ones, shape: 16, classes: 3}\nbatch: 8\nsteps: 5\nseed: 9\nloss: cross_entropy\n"
        "optimizer: {name: sgd, lr: 0.5, momentum: 0.9, weight_decay: 1e-4}\n"
        "backend: {name: cpu, threads: 2, layout: channels_last}\nconv: {algorithm: winograd, scratch_limit: 1.5MiB}\n"
        "relu_save: bits\nrelu_after_pool: true\npool_in_conv: true\nrng: mask\ncommit: once\nmemory: "
        "poison\ndrop_dead: false\n"
        "policy: {name: segments, segments: 2, unit: stage, keep_last: false, keep_saved: false}\ncheck: recompute\n"
        "fault: {kind: stale_read, step: 4, node: linear1}\nrecord: {state: true, digests: false, memory_steps: [3]}\n"
        "costs: {name: measured, file: a/costs.yaml}\n"
        "eval: {split: train, every: 2}\nexpect:\n  - {what: time_ratio, below: 1.5, source: us}\n"
        "  - {what: accuracy, above: 0.25, source: us}\nresults: elsewhere/results\n",
        "", false);
    cr_expect(!strcmp(spec->title, "All: keys") && spec->init == INIT_HE_NORMAL && spec->seed == 9);
    cr_expect(spec->data_settings.shape.count == 1 && spec->data_settings.shape.ints[0] == 16);
    cr_expect(!strcmp(spec->loss->name, "cross_entropy") && !strcmp(spec->policy->name, "segments"));
    cr_expect(spec->optimizer_settings.momentum == 0.9 && spec->optimizer_settings.weight_decay == 1e-4);
    cr_expect(!strcmp(spec->backend, "cpu") && spec->backend_options.threads == 2);
    cr_expect(spec->backend_options.layout == LAYOUT_CHANNELS_LAST &&
              spec->backend_options.conv_algorithm == CONV_WINOGRAD);
    cr_expect(spec->backend_options.scratch_limit == 3u << 19 && spec->relu_save == 1 && spec->rng == RNG_MASK);
    cr_expect(spec->memory == MEMORY_POISON && !spec->drop_dead && spec->check == 1 && spec->relu_after_pool);
    cr_expect(spec->pool_in_conv);
    cr_expect(strstr(spec->resolved, "{name: segments, segments: 2, unit: stage, keep_last: false, keep_saved: false}"),
              "%s", spec->resolved);
    cr_expect(spec->fault_kind == FAULT_STALE_READ && spec->fault_step == 4 && !strcmp(spec->fault_node, "linear1"));
    cr_expect(spec->record_state && !spec->record_digests && spec->record_memory_steps.ints[0] == 3);
    cr_expect(spec->costs == COSTS_MEASURED && !strcmp(spec->costs_file, "a/costs.yaml"));
    cr_expect(spec->eval_split == SPLIT_TRAIN && spec->eval_every == 2 && !strcmp(spec->results, "elsewhere/results"));
    cr_expect(spec->expectations == 2 && spec->expectation[0].below == 1.5 && spec->expectation[1].above == 0.25);
    cr_expect(spec->expectation[0].above != spec->expectation[0].above); /* not given: NaN */
    spec_destroy(spec);
}

Test(spec, keys_of_a_device_are_read)
{
    struct spec *spec =
        load_well(MINIMAL "backend: {name: cuda, layout: channels_first, graph: false}\n", "precision=tf32", false);
    const struct backend_options *o = &spec->backend_options;
    cr_expect(!strcmp(spec->backend, "cuda") && o->layout == LAYOUT_CHANNELS_FIRST && !o->graph);
    cr_expect(o->precision == PRECISION_TF32);
    cr_expect(strstr(spec->resolved, "\nbackend: {name: cuda, threads: 0, layout: channels_first, graph: false}\n"
                                     "precision: tf32\n"),
              "%s", spec->resolved);
    spec_destroy(spec);
    spec = load_well(MINIMAL "backend: cuda\n", "", false);
    cr_expect(spec->backend_options.graph && spec->backend_options.precision == PRECISION_FP32);
    spec_destroy(spec);
}

static void check_round_trip(const char *name, bool baseline)
{
    char file[512];
    struct spec *spec, *again;
    snprintf(file, sizeof file, "experiments/%s", name);
    cr_assert(spec_load(file, 0, NULL, &spec) == ST_OK, "%s: %s", file, messages());
    if (baseline) spec = spec->baseline;
    again = load_well(spec->resolved, "", false);
    cr_expect(!strcmp(spec->resolved, again->resolved), "%s:\n%s\nbecame\n%s", name, spec->resolved, again->resolved);
    char *dot = strstr(name, ".yaml");
    cr_expect(strlen(spec->name) == (size_t)(dot - name) && !strncmp(spec->name, name, strlen(spec->name)),
              "%s is named %s", name, spec->name);
    spec_destroy(spec);
    spec_destroy(again);
}

Test(spec, resolved_experiments_are_the_same_specs)
{
    DIR *folder = opendir("experiments");
    int files = 0;
    cr_assert(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strstr(entry->d_name, ".yaml")) continue;
        check_round_trip(entry->d_name, false);
        check_round_trip(entry->d_name, true);
        files++;
    }
    closedir(folder);
    cr_expect(files >= 8, "%d files", files);
}

/* ---- mutated specs ---- */

static uint64_t random_next(uint64_t *state) { return *state = *state * 6364136223846793005u + 1442695040888963407u; }

/* One to four edits: a byte changed, a piece cut out, or a word of YAML inserted. */
static size_t mutate(char *text, size_t length, uint64_t *state)
{
    static const char *const words[] = {"[",
                                        "]",
                                        "{",
                                        "}",
                                        ": ",
                                        "- ",
                                        "\n",
                                        "\t",
                                        "&a ",
                                        "*a",
                                        "!!x ",
                                        "---\n",
                                        "\"",
                                        "'",
                                        "|\n",
                                        "#",
                                        "%",
                                        "<<",
                                        "\xC3",
                                        "\xE2\x80\xA8",
                                        "\n\n  ",
                                        "? ",
                                        "1e400",
                                        "layers",
                                        "repeat",
                                        "sweep",
                                        "baseline: {a: b}\n",
                                        "~",
                                        "name"};
    for (uint64_t edits = random_next(state) >> 62; edits != UINT64_MAX; edits--) {
        size_t at = (size_t)(random_next(state) >> 16) % (length + 1), cut = (size_t)(random_next(state) >> 20) % 20;
        const char *word = words[(random_next(state) >> 20) % (sizeof words / sizeof *words)];
        switch (random_next(state) >> 62) {
        case 0:
            if (at < length) text[at] = (char)(random_next(state) >> 40);
            break;
        case 1:
            if (at + cut > length) break;
            memmove(text + at, text + at + cut, length - at - cut);
            length -= cut;
            break;
        default:
            memmove(text + at + strlen(word), text + at, length - at);
            memcpy(text + at, word, strlen(word));
            length += strlen(word);
        }
    }
    return length;
}

Test(spec, mutated_specs_are_refused_or_read)
{
#define BLOCKS                                                                                                         \
    MINIMAL "policy: {name: segments, segments: 2}\nbaseline:\n  relu_save: output\n"                                  \
            "fault: {kind: mask_bit, step: 1, node: linear1}\n"
    static const char *const seeds[] = {BLOCKS "expect:\n  - {what: loss, below: 1, source: \"a: b\"}\n",
                                        BLOCKS "sweep: {policy.segments: [1, 2], batch: [4]}\n"};
    char text[4096];
    uint64_t state = 20240607;
    int accepted = 0;
    for (int i = 0; i < 3000; i++) {
        struct spec *spec;
        strcpy(text, seeds[i / 2 % 2]);
        const char *path = write_bytes(text, mutate(text, strlen(text), &state));
        enum status status = spec_load(path, 0, NULL, &spec);
        cr_assert(status == ST_OK || status == ST_SPEC, "status %d", status);
        if (status == ST_SPEC) cr_assert(strstr(messages(), "error: ") || strstr(status_message(), "zero byte"));
        accepted += status == ST_OK;
        if (status == ST_OK) { /* then its resolved text is a spec, too */
            struct spec *again, *side = i % 2 ? spec->baseline : spec;
            write_bytes(side->resolved, strlen(side->resolved));
            cr_assert(spec_load(path, 0, NULL, &again) == ST_OK, "%s\n%s", side->resolved, messages());
            cr_assert(!strcmp(side->resolved, again->resolved));
            spec_destroy(again);
        }
        spec_destroy(spec);
    }
    cr_expect(accepted > 30 && accepted < 2900, "%d accepted", accepted);
}
