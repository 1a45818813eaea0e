/* Overrides, baselines and sweeps; errors in overrides are reported at the argument. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "spec/spec.h"
#include "spec/spec_settings.h"
#include "tests/support/spec_text.h"

TestSuite(overrides, .init = spec_text_begin, .fini = spec_text_end);

Test(overrides, are_recorded_with_old_and_new_value)
{
    struct spec *spec = load_well(MINIMAL "policy: {name: segments, segments: 2, unit: stage}\n",
                                  "steps=3 seed=7 policy.segments=4 data.shape=[2,2] title=a..b results=../out", false);
    static const char *const expected[] = {"steps: 2 -> 3",           "seed: 1 -> 7",
                                           "policy.segments: 2 -> 4", "data.shape: [4, 4, 1] -> [2, 2]",
                                           "title: small -> a..b",    "results: results -> ../out"};
    cr_assert(spec->overrides == 6);
    for (int i = 0; i < 6; i++) cr_expect(!strcmp(spec->override[i], expected[i]), "%s", spec->override[i]);
    cr_expect(spec->steps == 3 && spec->seed == 7 && strstr(spec->resolved, "segments: 4, unit: stage,"));
    cr_expect(spec->data_settings.shape.count == 2);
    spec_destroy(spec);
}

Test(overrides, a_removed_key_that_was_not_set_is_not_recorded)
{
    struct spec *spec = load_well(MINIMAL, "sweep= title= steps=3", false);
    cr_expect(spec->overrides == 2 && !strcmp(spec->override[0], "title: small -> small") &&
              !strcmp(spec->override[1], "steps: 2 -> 3"));
    spec_destroy(spec);
}

Test(overrides, a_name_drops_its_maps_other_keys)
{
    static const char *const text = MINIMAL "policy: {name: segments, segments: 2, unit: stage, keep_last: false}\n";
    static const struct {
        const char *arguments, *policy;
    } cases[] = {
        {"policy=sqrt", "policy: {name: sqrt, unit: auto, keep_last: true, keep_saved: auto}"},
        {"policy.name=sqrt", "policy: {name: sqrt, unit: auto, keep_last: true, keep_saved: auto}"},
        {"policy.segments=3 policy.name=segments", "policy: {name: segments, segments: 3, unit: auto, keep_last: true"},
        {"policy.name=segments policy.segments=3", "policy: {name: segments, segments: 3, unit: auto, keep_last: true"},
        {"policy={name:\u00A0x}", NULL},
        {"policy=store_all policy.unit=stage", NULL},
        {"policy=", "policy: {name: store_all}"},
        {"policy.keep_last=", "policy: {name: segments, segments: 2, unit: stage, keep_last: true"},
        {"steps= epochs=1", "policy: {name: segments, segments: 2, unit: stage, keep_last: false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spec *spec = load(text, cases[i].arguments, false);
        cr_expect(!spec == !cases[i].policy, "%s: %s", cases[i].arguments, messages());
        if (spec && cases[i].policy)
            cr_expect(strstr(spec->resolved, cases[i].policy), "%s: %s", cases[i].arguments, spec->resolved);
        spec_destroy(spec);
    }
}

Test(overrides, a_bare_word_becomes_a_map)
{
    struct spec *spec = load_well(MINIMAL "policy: sqrt\nbackend: ref\n", "policy.unit=stage backend.threads=3", false);
    cr_expect(!strcmp(spec->policy->name, "sqrt") && strstr(spec->resolved, "{name: sqrt, unit: stage,"));
    cr_expect(!strcmp(spec->backend, "ref") && spec->backend_options.threads == 3);
    spec_destroy(spec);
}

Test(overrides, errors_are_reported_at_the_argument)
{
    static const struct {
        const char *arguments, *message;
    } cases[] = {
        {"bacth=8", "argument 'bacth=8': error: bacth: a spec has no such key (did you mean 'batch'?); expected one of "
                    "name|"},
        {"bacth=8", "|sweep\n  bacth=8\n  ^~~~~\n"},
        {"batch=64x", "argument 'batch=64x': error: batch: '64x' is not an integer; expected an integer of 1..16777216"
                      "\n  batch=64x\n        ^~~\n"},
        {"policy.segments=3", "error: policy.segments: policy store_all has no such key"},
        {"policy.segments=3", "  policy.segments=3\n         ^~~~~~~~\n"},
        {"batch", "argument 'batch': error: expected key=value, as in batch=8"},
        {"=8", "expected key=value"},
        {"a..b=8", "expected key=value"},
        {".a=8", "expected key=value"},
        {"batch=8 batch=9", "argument 'batch=9': error: batch: given twice"},
        {"batch=[", "argument 'batch=[': error: not YAML: "},
        {"batch=&a", "anchors (&name) are not allowed"},
        {"batch.size=3", "argument 'batch.size=3': error: batch: a map of keys; expected an integer"},
        {"batch=", "error: batch: missing; expected an integer"},
        {"epochs=1 steps=3", "argument 'epochs=1': error: epochs: both steps and epochs; expected one of them"},
        {"data.name=synthetic", "argument 'data.name=synthetic': error: data.shape: missing"},
        {"model=none.yaml", "argument 'model=none.yaml': error: model.file: no file 'none.yaml' beside"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spec *spec = load(MINIMAL, cases[i].arguments, false);
        const char *text = messages();
        cr_expect(!spec && strstr(text, cases[i].message), "%s told\n%s\nnot\n%s", cases[i].arguments, text,
                  cases[i].message);
        spec_destroy(spec);
    }
}

/* What people write who know other programs, and the word or argument that is suggested before any list. */
Test(overrides, other_programs_words_are_understood)
{
    static const struct {
        const char *arguments, *guess;
    } cases[] = {
        {"lr=0.1", "(did you mean 'optimizer.lr'?)"},
        {"learning_rate=0.1", "(did you mean 'optimizer.lr'?)"},
        {"optimizer.learning_rate=1", "(did you mean 'lr'?)"},
        {"momentum=0.9", "(did you mean 'optimizer.momentum'?)"},
        {"lr_scheduler_type=linear", "(did you mean 'lr_schedule'?)"},
        {"threads=2", "(did you mean 'backend.threads'?)"},
        {"num_threads=2", "(did you mean 'backend.threads'?)"},
        {"device=cpu", "(did you mean 'backend'?)"},
        {"backend=gpu", "(did you mean 'cuda'?)"},
        {"batch_size=4", "(did you mean 'batch'?)"},
        {"per_device_train_batch_size=4", "(did you mean 'batch'?)"},
        {"micro_batch=2", "(did you mean 'slices'?)"},
        {"gradient_accumulation_steps=2", "(did you mean 'slices'?)"},
        {"num_train_epochs=2", "(did you mean 'epochs'?)"},
        {"dtype=fp16", "(did you mean 'precision'?)"},
        {"gradient_checkpointing=true", "(did you mean 'policy'?)"},
        {"segments=2", "(did you mean 'policy.segments'?)"},
        {"budget=40%", "(did you mean 'policy.budget'?)"},
        {"segment=2", "(did you mean 'policy.segments'?)"},
        {"data.batch=3", "(did you mean 'batch'?)"},
        {"policy.budget=40%", "store_all has no such key (others do: rematch schema policy.budget)"},
        {"policy=checkmate", "(did you mean 'optimal'?)"},
        {"policy=none", "(did you mean 'store_all'?)"},
        {"policy=Checkpoint_Sequential", "(did you mean 'segments'?)"},
        {"optimizer=AdamW", "(did you mean 'adamw'?)"},
        {"policy=optimal policy.budget=16G", "'16G' is not a size (did you mean '16GB'?); expected"},
        {"policy=optimal policy.budget=16gb", "(did you mean '16GB'?)"},
        {"policy=dtr policy.budget=16gib", "(did you mean '16GiB'?)"},
        {"policy=dtr policy.budget=0.4", "(did you mean '40%'?)"},
        {"policy=optimal policy.budget=0.125", "(did you mean '12.5%'?)"},
        {"conv.scratch_limit=16M", "(did you mean '16MB'?)"},
        {"batch=8,16", "(for several values: 'sweep={batch: [8,16]}')"},
        {"batch=[8,16]", "(for several values: 'sweep={batch: [8, 16]}'"},
        {"policy=segments policy.segments=2,4", "(for several values: 'sweep={policy.segments: [2,4]}'"},
        {"policy=every,sqrt", "(for several values: 'sweep={policy.name: [every,sqrt]}'"},
        {"policy=optimal policy.budget=40%,60%", "(for several values: 'sweep={policy.budget: [40%,60%]}'"},
        {"data.shape=4,4,1", "(did you mean [4,4,1]?)"},
        {"model.layers=[lstm]", "can be planned as a graph file (rematch plan --graph); expected one of conv|"},
        {"model.layers=[conv2d]", "(did you mean 'conv'?); expected one of conv|"},
        {"model.layers=[{\"linear\":{\"out_features\":3}}]", "(did you mean 'units'?)"},
        {"model.layers=[{\"linear\":{\"lr\":3}}]", "linear has no such key; expected"}, /* no key of a spec is meant */
        {"unheard_of=3", "a spec has no such key; expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spec *spec = load(MINIMAL, cases[i].arguments, false);
        const char *text = messages(), *guess = strstr(text, cases[i].guess),
                   *list = strstr(text, "; expected one of ");
        cr_expect(!spec && guess, "%s: no %s in\n%s", cases[i].arguments, cases[i].guess, text);
        cr_expect(!guess || !list || guess < list, "%s: a list comes first in\n%s", cases[i].arguments, text);
        spec_destroy(spec);
    }
}

/* As the error says it. */
Test(overrides, a_suggested_sweep_is_one)
{
    static const struct {
        const char *sweep;
        int points;
    } cases[] = {{"sweep={\"batch\":[8,16]}", 2}, {"sweep={\"policy.name\":[every,sqrt]}", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spec *spec = load_well(MINIMAL, cases[i].sweep, false);
        cr_expect(spec->points == cases[i].points, "%s: %d points", cases[i].sweep, spec->points);
        spec_destroy(spec);
    }
}

/* An argument replaces the file's key and its axis; both steps and epochs in one source are an error. */
Test(overrides, steps_and_epochs_replace_each_other)
{
    static const struct {
        const char *steps, *more, *arguments;
        int steps_left, epochs_left, axes; /* steps_left -1: refused */
    } cases[] = {
        {"steps: 2", "", "epochs=3", 0, 3, 0},
        {"epochs: 2", "", "steps=5", 5, 0, 0},
        {"epochs: 2", "", "steps=5 epochs=", 5, 0, 0},
        {"epochs: 2", "sweep: {epochs: [1, 2], batch: [2, 4]}\n", "steps=5", 5, 0, 1},
        {"steps: 2", "sweep: {steps: [1, 2]}\n", "epochs=5", 0, 5, 0},
        {"epochs: 2", "", "epochs=5", 0, 5, 0},
        {"epochs: 2", "", "batch=4", 0, 2, 0},
        {"epochs: 2", "", "epochs=3 steps=5", -1, 0, 0},
        {"epochs: 2", "", "steps=5 epochs=3", -1, 0, 0},
        {"epochs: 2\nsteps: 2", "", "batch=4", -1, 0, 0},
        {"epochs: 2", "", "epochs=", -1, 0, 0},
        {"epochs: 2", "", "steps=", 0, 2, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        const char *at = strstr(MINIMAL, "steps: 2");
        snprintf(text, sizeof text, "%.*s%s%s%s", (int)(at - MINIMAL), MINIMAL, cases[i].steps, at + strlen("steps: 2"),
                 cases[i].more);
        struct spec *spec = load(text, cases[i].arguments, false);
        const bool refused = cases[i].steps_left < 0;
        cr_expect(!spec == refused, "%s, %s: %s", cases[i].steps, cases[i].arguments, messages());
        if (spec && !refused)
            cr_expect(spec->steps == cases[i].steps_left && spec->epochs == cases[i].epochs_left &&
                          spec->axes == cases[i].axes,
                      "%s, %s: %s", cases[i].steps, cases[i].arguments, spec->resolved);
        spec_destroy(spec);
    }
}

/* A number out of range is one error, at the argument, with the expected range. */
Test(overrides, numbers_out_of_range_are_one_error)
{
    static const char *const keys[] = {"steps", "epochs", "batch", "data.samples", "backend.threads"};
    static const char *const values[] = {
        "-1", "-99999999999999999999", "4.5", "1e3", "4294967296", "99999999999999999999", "0x10", "+3", "three"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            char argument[128], begin[160];
            snprintf(argument, sizeof argument, "%s=%s", keys[k], values[v]);
            snprintf(begin, sizeof begin, "argument '%s': error: %s: '%s' ", argument, keys[k], values[v]);
            struct spec *spec = load(MINIMAL, argument, false);
            const char *text = messages();
            cr_expect(!spec && strstr(text, begin) == text && strstr(text, "; expected an integer of ") &&
                          strstr(text, "rematch: 1 error; nothing was run"),
                      "%s: %s", argument, text);
            spec_destroy(spec);
        }
    static const char *const zeros[] = {"steps=0", "epochs=0", "batch=0", "data.samples=0"};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        struct spec *spec = load(MINIMAL, zeros[i], false);
        const char *text = messages();
        cr_expect(!spec && strstr(text, "'0' is out of range; expected an integer of 1..") &&
                      strstr(text, "rematch: 1 error"),
                  "%s: %s", zeros[i], text);
        spec_destroy(spec);
    }
}

/* By number (peak, live, time, accuracy, loss) '-' where the overrides change it, else its first letter. */
Test(overrides, change_the_figures_of_their_keys)
{
    static const struct {
        const char *arguments, *left;
    } cases[] = {{"results=elsewhere", "pltal"},
                 {"name=other title=other", "pltal"},
                 {"backend.threads=1", "pltal"},
                 {"steps=2 batch=8", "pltal"},
                 {"policy=store_all", "pltal"},
                 {"check=recompute", "pl-al"},
                 {"record.state=true", "pl-al"},
                 {"memory=dynamic", "pl-al"},
                 {"steps=3", "plt--"},
                 {"epochs=3", "plt--"},
                 {"seed=2", "plt--"},
                 {"optimizer.lr=0.2", "plt--"},
                 {"lr_schedule=linear lr_schedule.warmup=1", "plt--"},
                 {"model.init=zeros", "-----"},
                 {"data.samples=80", "plt--"},
                 {"loss=sum", "-----"},
                 {"eval.split=test", "-lt-l"},
                 {"policy=sqrt", "---al"},
                 {"relu_save=bits", "---al"},
                 {"relu_after_pool=true", "---al"},
                 {"pool_in_conv=true", "---al"},
                 {"drop_dead=false", "---al"},
                 {"baseline.relu_save=bits", "---al"},
                 {"batch=4", "-----"},
                 {"optimizer=adam", "-----"},
                 {"optimizer.momentum=0.5", "-----"},
                 {"backend=ref", "-----"},
                 {"backend.layout=channels_last", "-----"},
                 {"data.classes=4", "-----"},
                 {"rng=mask", "-----"},
                 {"conv.algorithm=direct", "-----"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char left[] = "pltal";
        struct spec *spec = load(MINIMAL, cases[i].arguments, false);
        cr_assert(spec, "%s: %s", cases[i].arguments, messages());
        for (int json_member = 0; json_member < EXPECTABLE; json_member++)
            if (spec->changed[json_member]) left[json_member] = '-';
        cr_expect(!strcmp(left, cases[i].left), "%s: %s", cases[i].arguments, left);
        spec_destroy(spec);
    }
}

Test(overrides, the_first_key_that_changes_a_figure_is_named)
{
    struct spec *spec = load_well(MINIMAL, "steps=3 optimizer.momentum=0.5 policy=sqrt", false);
    cr_expect(!strcmp(spec->changed[EXPECT_LOSS], "steps"), "%s", spec->changed[EXPECT_LOSS]);
    cr_expect(!strcmp(spec->changed[EXPECT_PEAK_RATIO], "optimizer.momentum"), "%s", spec->changed[EXPECT_PEAK_RATIO]);
    spec_destroy(spec);
}

/* A key without a row of its own changes every number. */
Test(overrides, keys_without_figures_change_no_result)
{
    static const char *const idle[] = {"rematch",   "name",  "title",       "results", "expect",
                                       "published", "sweep", "state_every", NULL};
    for (int i = 0; spec_order[i]; i++) {
        int at = 0;
        while (idle[at] && strcmp(idle[at], spec_order[i])) at++;
        cr_expect(!idle[at] == (spec_changes(spec_order[i]) != 0), "%s", spec_order[i]);
    }
    cr_expect(spec_changes("new") == (1u << EXPECTABLE) - 1 && spec_changes("stepsize") == spec_changes("new"));
}

/* ---- baseline and sweep ---- */

/* Keys of the variant alone: expectations, or a sweep. */
static const struct {
    const char *text;
    int expectations, axes;
} of_the_variant[] = {{"expect: [{what: loss, below: 9, source: us}]\n", 1, 0},
                      {"sweep: {policy.segments: [1, 2]}\n", 0, 1}};

Test(overrides, the_baseline_stores_everything)
{
    static const char *const common = MINIMAL
        "policy: {name: segments, segments: 2}\nrelu_save: bits\nrelu_after_pool: true\nrng: unsafe\ncommit: every\n"
        "check: recompute\n"
        "fault: {kind: mask_bit, step: 1, node: linear1}\nconv: {algorithm: direct, scratch_limit: 1MiB}\n"
        "baseline: {relu_save: output, relu_after_pool: false, conv: {scratch_limit: 2MiB}}\n";
    for (size_t i = 0; i < sizeof of_the_variant / sizeof *of_the_variant; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s%s", common, of_the_variant[i].text);
        struct spec *spec = load_well(text, "batch=4 policy=sqrt", true);
        cr_expect(!strcmp(spec->policy->name, "store_all") && spec->batch == 4 && spec->relu_save == 0);
        cr_expect(!spec->relu_after_pool && spec->rng == RNG_STASH && !spec->commit && spec->fault_kind == FAULT_NONE &&
                  spec->check == 0);
        cr_expect(spec->expectations == 0 && spec->axes == 0 && !strstr(spec->resolved, "baseline"));
        /* maps of the baseline block replace, they are not merged */
        cr_expect(strstr(spec->resolved, "conv: {algorithm: auto, scratch_limit: 2MiB}"), "%s", spec->resolved);
        spec_destroy(spec);

        spec = load_well(text, "", false);
        cr_expect(!strcmp(spec->policy->name, "segments") && spec->relu_save == 1 && spec->relu_after_pool &&
                  spec->rng == RNG_UNSAFE && spec->commit && spec->fault_kind == FAULT_MASK_BIT);
        cr_expect(spec->expectations == of_the_variant[i].expectations && spec->axes == of_the_variant[i].axes);
        spec_destroy(spec);
    }
}

/* A model file with presets, beside the spec of each test. */
static const char *write_model(const char *text)
{
    static char path[256];
    snprintf(path, sizeof path, "%s.model", write_bytes("", 0));
    FILE *file = fopen(path, "wb");
    cr_assert(file && fputs(text, file) >= 0 && !fclose(file));
    return path;
}

/* The nearest of preset, spec and argument counts; each point of a sweep has its own value. */
Test(overrides, parameters_of_a_model_can_be_set)
{
    const char *model = write_model("parameters: {depth: 2, width2: 5}\nlayers:\n"
                                    "  - repeat: {name: a, times: $depth, layers: [relu]}\n"
                                    "  - flatten\n  - linear: {units: $width2}\n  - linear: {units: classes}\n");
    static const struct {
        const char *of_spec, *arguments, *times, *units, *override; /* NULL: none, or refused */
    } cases[] = {{"", "", "times: 2\n", "units: 5,", NULL},
                 {"parameters: {width2: 7}", "", "times: 2\n", "units: 7,", NULL},
                 {"parameters: {width2: 7}", "model.parameters.depth=4", "times: 4\n", "units: 7,",
                  "model.parameters.depth: 2 -> 4"},
                 {"parameters: {width2: 7}", "model.parameters.width2=9", "times: 2\n", "units: 9,",
                  "model.parameters.width2: 7 -> 9"},
                 {"parameters: {width2: 7}", "model.parameters.width2=", "times: 2\n", "units: 5,",
                  "model.parameters.width2: 7 -> 5"},
                 {"", "model.parameters.width2=9", "times: 2\n", "units: 9,", "model.parameters.width2: 5 -> 9"},
                 {"", "model.parameters={depth:\u00A03}", NULL, NULL, NULL},
                 {"", "model.parameters.with=9", NULL, NULL, NULL},
                 {"", "model.parameters.depth=$width2", NULL, NULL, NULL}};
    char text[1024];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text,
                 "rematch: 1\nname: x\nmodel: {file: %s, %s}\nbatch: 8\nsteps: 2\noptimizer: {lr: 0.1}\n"
                 "data: {name: synthetic, shape: [4, 4, 1], classes: 3}\n",
                 model, cases[i].of_spec);
        struct spec *spec = load(text, cases[i].arguments, false);
        cr_expect(!spec == !cases[i].times, "%s: %s", cases[i].arguments, messages());
        if (spec && cases[i].times)
            cr_expect(strstr(spec->resolved, cases[i].times) && strstr(spec->resolved, cases[i].units), "%s: %s",
                      cases[i].arguments, spec->resolved);
        for (int of = 0; spec && of < 2; of++) {
            const struct spec *s = of ? spec->baseline : spec;
            cr_expect_str_eq(s->overrides ? s->override[0] : "", cases[i].override ? cases[i].override : "");
        }
        spec_destroy(spec);
    }
    strcat(text, "sweep: {model.parameters.depth: [1, 3]}\n");
    spec_destroy(load_well(text, "", false));
    *strstr(text, "3]}") = 'x';
    cr_expect(!load(text, "", false) && strstr(messages(), ".times: 'x' is not an integer"));
    write_model("parameters: {depth: 2}\nlayer: []\n");
    cr_expect(!load(text, "", false));
    const char *said = messages();
    cr_expect(strstr(said, "layer: a model file has no such key") && strstr(said, "layers: missing"), "%s", said);
    remove(model);
}

Test(overrides, a_swept_key_can_be_set)
{
    static const char *const text =
        MINIMAL "policy: {name: segments, segments: 2}\n"
                "sweep: {policy.segments: [1, 2, 3], data.shape: [[2, 2], 4], batch: [4]}\n";
    struct spec *spec = load_well(text, "", false);
    cr_assert(spec->axes == 3 && !strcmp(spec->axis[0].key, "policy.segments") && spec->axis[0].count == 3);
    cr_expect(!strcmp(spec->axis[0].text[2], "3") && !strcmp(spec->axis[1].text[0], "[2, 2]"));
    spec_destroy(spec);
    static const struct {
        const char *arguments;
        int axes;
    } cases[] = {{"sweep=", 0},      {"policy.segments=2", 2},
                 {"policy=sqrt", 2}, {"batch=4 seed=3", 2},
                 {"seed=3", 3},      {"sweep= policy.segments=2 data.shape=[2,2] batch=4", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spec = load_well(text, cases[i].arguments, false);
        cr_expect(spec->axes == cases[i].axes, "%s: %d axes", cases[i].arguments, spec->axes);
        spec_destroy(spec);
    }
}
