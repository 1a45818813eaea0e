/* Overrides, baselines and sweeps do what they say, and what is wrong with them is told at the argument. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "spec_text.h"

TestSuite(overrides, .init = spec_text_begin, .fini = spec_text_end);

Test(overrides, overrides_are_echoed)
{
    struct spec *spec = load_well(MINIMAL "policy: {name: segments, segments: 2, unit: stage}\n",
                                  "steps=3 seed=7 policy.segments=4 data.shape=[2,2] title=a..b results=../out", false);
    static const char *const expected[] = {"steps: 2 -> 3",           "seed: 1 -> 7",
                                           "policy.segments: 2 -> 4", "data.shape: [4, 4, 1] -> [2, 2]",
                                           "title: small -> a..b",    "results: results -> ../out"};
    cr_assert(spec->overrides == 6);
    for (int i = 0; i < 6; i++) cr_expect(!strcmp(spec->override[i], expected[i]), "%s", spec->override[i]);
    cr_expect(spec->steps == 3 && spec->seed == 7 && spec->policy_settings.segments == 4);
    cr_expect(spec->policy_settings.unit == UNIT_STAGE && spec->data_settings.shape.count == 2 && !spec->own_size);
    spec_destroy(spec);
}

Test(overrides, a_name_drops_its_maps_other_keys)
{
    static const char *const text = MINIMAL "policy: {name: segments, segments: 2, unit: stage, keep_last: false}\n";
    static const struct {
        const char *arguments, *policy;
    } cases[] = {
        {"policy=sqrt", "policy: {name: sqrt, by: count, unit: auto, keep_last: true, keep_saved: true}"},
        {"policy.name=sqrt", "policy: {name: sqrt, by: count, unit: auto, keep_last: true, keep_saved: true}"},
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

Test(overrides, a_bare_word_can_be_given_keys)
{
    struct spec *spec = load_well(MINIMAL "policy: sqrt\nbackend: ref\n", "policy.unit=stage backend.threads=3", false);
    cr_expect(!strcmp(spec->policy->name, "sqrt") && spec->policy_settings.unit == UNIT_STAGE);
    cr_expect(!strcmp(spec->backend, "ref") && spec->backend_options.threads == 3);
    spec_destroy(spec);
}

Test(overrides, wrong_overrides_are_told_at_the_argument)
{
    static const struct {
        const char *arguments, *message;
    } cases[] = {
        {"bacth=8", "argument 'bacth=8': error: bacth: a spec has no such key; expected one of name|"},
        {"bacth=8", "(did you mean 'batch'?)\n  bacth=8\n  ^~~~~\n"},
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
        {"epochs=1", "both steps and epochs; expected one of them (the argument epochs= or steps= removes one)"},
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

Test(overrides, own_size_is_what_changes_no_figure)
{
    static const struct {
        const char *arguments;
        bool own;
    } cases[] = {{"results=elsewhere", true},
                 {"name=other title=other", true},
                 {"backend.threads=1", true},
                 {"check=replay", true},
                 {"steps=2 batch=8", true},
                 {"record.state=true", true},
                 {"policy=store_all", true},
                 {"batch=4", false},
                 {"steps=3", false},
                 {"policy=sqrt", false},
                 {"seed=2", false},
                 {"backend=ref", false},
                 {"relu_save=bits", false},
                 {"data.classes=4", false},
                 {"model.init=zeros", false},
                 {"optimizer.lr=0.2", false},
                 {"conv.algorithm=direct", false},
                 {"memory=dynamic", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spec *spec = load_well(MINIMAL, cases[i].arguments, false);
        cr_expect(spec->own_size == cases[i].own, "%s", cases[i].arguments);
        spec_destroy(spec);
    }
}

/* ---- baseline and sweep ---- */

/* What only the variant's side has: a judgement, or points. */
static const struct {
    const char *text;
    int expectations, axes;
} of_the_variant[] = {{"expect: [{what: loss, below: 9, source: us}]\n", 1, 0},
                      {"sweep: {policy.segments: [1, 2]}\n", 0, 1}};

Test(overrides, the_baseline_stores_everything)
{
    static const char *const common = MINIMAL
        "policy: {name: segments, segments: 2}\nrelu_save: bits\nrelu_after_pool: true\nrng: unsafe\ncheck: replay\n"
        "fault: {kind: mask_bit, step: 1, node: linear1}\nconv: {algorithm: direct, scratch_limit: 1MiB}\n"
        "baseline: {relu_save: output, relu_after_pool: false, conv: {scratch_limit: 2MiB}}\n";
    for (size_t i = 0; i < sizeof of_the_variant / sizeof *of_the_variant; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s%s", common, of_the_variant[i].text);
        struct spec *spec = load_well(text, "batch=4 policy=sqrt", true);
        cr_expect(!strcmp(spec->policy->name, "store_all") && spec->batch == 4 && spec->relu_save == 0);
        cr_expect(!spec->relu_after_pool && spec->rng == RNG_STASH && spec->fault_kind == FAULT_NONE &&
                  spec->check == 0);
        cr_expect(spec->expectations == 0 && spec->axes == 0 && !strstr(spec->resolved, "baseline"));
        /* its maps replace, they do not merge */
        cr_expect(strstr(spec->resolved, "conv: {algorithm: auto, scratch_limit: 2MiB}"), "%s", spec->resolved);
        spec_destroy(spec);

        spec = load_well(text, "", false);
        cr_expect(!strcmp(spec->policy->name, "segments") && spec->relu_save == 1 && spec->relu_after_pool &&
                  spec->rng == RNG_UNSAFE && spec->fault_kind == FAULT_MASK_BIT);
        cr_expect(spec->expectations == of_the_variant[i].expectations && spec->axes == of_the_variant[i].axes);
        spec_destroy(spec);
    }
}

Test(overrides, a_sweep_is_read_and_can_be_decided)
{
    static const char *const text =
        MINIMAL "policy: {name: segments, segments: 2}\n"
                "sweep: {policy.segments: [1, 2, 3], data.shape: [[2, 2], 4], batch: [4]}\n";
    struct spec *spec = load_well(text, "", false);
    cr_assert(spec->axes == 3 && !strcmp(spec->axis[0].key, "policy.segments") && spec->axis[0].values.count == 3);
    cr_expect(!strcmp(spec->axis[0].values.texts[2], "3") && !strcmp(spec->axis[1].values.texts[0], "[2, 2]"));
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
