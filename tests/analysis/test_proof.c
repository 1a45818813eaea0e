/* What equality proves: every reason why it proves nothing is named, by whole runs and by comparing their files alike.
 */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"
#include "tests/support/altered_files.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

/* ---- Files that were never run. ---- */

enum { STEPS = 4 };

static void zero_loss(struct fake *f, struct step_record *step)
{
    (void)f;
    if (step->step == 3) step->result.loss = 0;
}

static void zero_gradients(struct fake *f, struct step_record *step)
{
    (void)f;
    if (step->step == 1) step->result.gradient_norm = 0;
}

static void not_a_number(struct fake *f, struct step_record *step)
{
    (void)f;
    if (step->step == 2) step->result.loss = NAN;
}

/* Those of one tensor, at every step but one, or at all. */
static void one_zero_at_most_steps(struct fake *f, struct step_record *step)
{
    const struct graph *graph = f->job.graph;
    float *zeros = calloc((size_t)graph->parameter[2].elements, sizeof *zeros);
    if (step->step != 2) f->gradient[2] = digest_tensor(zeros, (size_t)graph->parameter[2].elements * sizeof *zeros, 1);
    free(zeros);
}

static void one_zero(struct fake *f, struct step_record *step)
{
    const uint32_t number = step->step;
    step->step = 0;
    one_zero_at_most_steps(f, step);
    step->step = number;
}

/* Both runs the same in every bit, and what that lacks to be a proof. */
Test(proof, reasons_against_a_proof_are_named)
{
    struct fake fake;
    char folder[256], one[1024], other[1024], tensor[256];
    folder_make(folder);
    fake_open(&fake, &nets[0], folder);
    snprintf(tensor, sizeof tensor, "of %d tensors the gradient of %s", fake.job.graph->parameters,
             fake.job.graph->parameter[2].name);
    const struct {
        void (*change)(struct fake *, struct step_record *);
        const char *reason, *says;
    } cases[] = {{NULL, NULL, ""},
                 {zero_loss, "loss", "the loss of step 3 is 0"},
                 {not_a_number, "loss", "the loss of step 2 is not a number"},
                 {zero_gradients, "all_gradients_zero", "every gradient of step 1 is zero"},
                 {one_zero_at_most_steps, NULL, ""},
                 {one_zero, "zero_gradients", tensor}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_plan(&fake, "store_all", "", true);
        fake_write(&fake, "baseline", STEPS, cases[i].change, one);
        struct comparison c;
        fake_plan(&fake, "segments", "segments=2", true);
        fake_write(&fake, "variant", STEPS, cases[i].change, other);
        cr_assert(compare_files(one, other, &c) == ST_OK, "%s", status_message());
        cr_assert(!c.differs && c.same[COLUMN_LOSS] == STEPS, "case %zu", i);
        const bool proven = !cases[i].reason;
        const size_t reasons = json_array_size(json_object_get(c.json, "reasons"));
        cr_assert(reasons == !proven, "case %zu: %zu reasons", i, reasons);
        cr_assert(comparison_verdict(&c) == (proven ? VERDICT_EQUAL : VERDICT_UNPROVEN));
        cr_assert(comparison_status(&c) == (proven ? ST_OK : ST_UNPROVEN));
        const char *says = proven ? "" : comparison_reason(&c, cases[i].reason);
        cr_assert(says && strstr(says, cases[i].says), "case %zu: %s", i, says);
        json_decref(c.json);
    }
    fake_close(&fake);
    folder_remove(folder);
}

static void print_both(const struct comparison *c, bool expected, char text[4096])
{
    FILE *out = fmemopen(text, 4096, "w");
    comparison_print_numbers(c, out);
    comparison_print_verdict(c, expected, out);
    fclose(out);
}

/* The last line is the verdict, and its reasons. */
Test(proof, the_verdict_comes_last)
{
    struct comparison c = {.differs = true,
                           .first_step = 2,
                           .first_tensor = "loss",
                           .loss_ulp = 1,
                           .steps = STEPS,
                           .name = {"A", "B"},
                           .json = json_pack("{s:{}, s:{}, s:[]}", "a", "b", "reasons")};
    char text[4096] = "";
    print_both(&c, true, text);
    cr_assert(strstr(text, "\nverdict   DIFFERS at step 2, loss; the losses are 1 ulp apart\n"), "%s", text);
    c.differs = false;
    print_both(&c, true, text);
    cr_assert_str_eq(strstr(text, "\nverdict "), "\nverdict   EQUAL IN EVERY BIT\n");
    print_both(&c, false, text);
    cr_assert_str_eq(strstr(text, "\nverdict "), "\nverdict   EQUAL IN EVERY BIT; an expectation FAILED\n");
    json_object_set_new(
        c.json, "reasons",
        json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "copy", "text", "a copy", "name", "gaps", "text", "gaps"));
    print_both(&c, true, text);
    cr_assert_str_eq(strstr(text, "\nverdict "),
                     "\nverdict   EQUAL IN EVERY BIT, BUT NOT A PROOF: a copy\n          and: gaps\n");
    snprintf(c.fault, sizeof c.fault, "an error");
    print_both(&c, true, text);
    cr_assert_str_eq(strstr(text, "\nverdict "),
                     "\nverdict   FAULT NOT CAUGHT: equal in every bit, although an error\n");
    json_decref(c.json);
}

/* Lines break between counts, however long these are. */
Test(proof, no_line_of_counts_is_wider_than_a_terminal)
{
    for (int64_t steps = 1; steps < 10000000; steps *= 10) {
        struct comparison c = {
            .steps = steps, .evaluations = steps, .json = json_pack("{s:{}, s:{}, s:[]}", "a", "b", "reasons")};
        char text[4096] = "";
        size_t lines = 0;
        for (int k = 0; k < STEP_COLUMNS; k++) c.present[k] = true;
        print_both(&c, true, text);
        const char *line = strstr(text, "equal     losses 0/");
        cr_assert(line, "%s", text);
        for (size_t width; strncmp(line, "verdict", 7); line += width + 1, lines++) {
            width = strcspn(line, "\n");
            cr_expect(width < 80, "%lld steps: %zu columns:\n%s", (long long)steps, width, text);
        }
        cr_expect(lines > 1 && strstr(text, "evaluations 0/"), "%s", text);
        json_decref(c.json);
    }
}

/* ---- Files of runs, altered. ---- */

/* The paths that the last run printed. */
static void paths_of(const struct cli *cli, char path[2][600])
{
    char name[2][256];
    const char *at = strstr(cli->out, "\nbaseline  results");
    cr_assert(at && sscanf(at, "\nbaseline %255s (%*[^)]) variant %255s", name[0], name[1]) == 2, "%s", cli->out);
    for (int i = 0; i < 2; i++) snprintf(path[i], 600, "%s/%s", cli->folder, name[i]);
}

static const char full_run[] = "run small.yaml --quiet record.state=true 'eval={split: test, every: 2}'";

/* Compares as a person does and as a program does, either way round; the codes agree. *json: to be freed. */
static json_t *compare_all_ways(struct cli *cli, const char *a, const char *b, int code)
{
    char arguments[1300];
    snprintf(arguments, sizeof arguments, "compare %s %s", b, a);
    cli_expect(cli, code, arguments);
    snprintf(arguments, sizeof arguments, "compare %s %s", a, b);
    cli_expect(cli, code, arguments);
    char *text = strdup(cli->out);
    strcat(arguments, " --json");
    json_t *json = cli_json(cli, code, arguments);
    const char *verdict = json_string_value(json_object_get(json, "verdict"));
    cr_assert(strstr(text, "\nverdict   DIFFERS") ? !strcmp(verdict, "differs")
              : strstr(text, "BUT NOT A PROOF")   ? !strcmp(verdict, "unproven")
                                                  : !strcmp(verdict, "equal"),
              "%s\n%s", verdict, text);
    cr_assert(json_is_true(json_object_get(json, "proven")) == (code == 0));
    free(text);
    return json;
}

static bool names(const json_t *json, const char *list, const char *name)
{
    const json_t *all = json_object_get(json, list);
    for (size_t i = 0; i < json_array_size(all); i++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(all, i), "name")), name)) return true;
    return false;
}

/* One bit of whatever a run determines. */
Test(proof, every_deterministic_column_is_compared)
{
    static const struct {
        const char *array;
        int64_t element, step;
        const char *tensor;
    } cases[] = {{"/steps/metric", 2, 2, "metric"},
                 {"/steps/lr", 1, 1, "learning rate"},
                 {"/steps/grad_norm", 3, 3, "gradient norm"},
                 {"/steps/gradients_zero", 0, 0, "flag of gradients that are all zero"},
                 {"/eval/loss", 0, 1, "loss of the evaluation after it"},
                 {"/eval/accuracy", 1, 3, "accuracy of the evaluation after it"},
                 {"/eval/step", 1, 3, "step of the evaluation after it"},
                 {"/state/x", 2 * 128 + 100, 2, "/state/x"},
                 {"/state/labels", 3 * 8 + 7, 3, "/state/labels"},
                 {"/state/initial/two.bias", 15, 0, "/state/initial/two.bias"},
                 {"/state/gradient/one.weight", 5, 3, "/state/gradient/one.weight"},
                 {"/state/final/three.weight", 0, 3, "/state/final/three.weight"}};
    struct cli cli;
    char path[2][600], altered[300];
    cli_open(&cli);
    cli_expect(&cli, 0, full_run);
    cli_says(&cli, "evaluations 2/2");
    cli_says(&cli, "tensors kept 20/20");
    paths_of(&cli, path);
    snprintf(altered, sizeof altered, "%s/altered.h5", cli.folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        alter_copy(path[1], altered);
        alter_element(altered, cases[i].array, cases[i].element, 1);
        json_t *json = compare_all_ways(&cli, path[0], altered, 1);
        const json_t *first = json_object_get(json, "first_difference");
        cr_expect(json_integer_value(json_object_get(first, "step")) == cases[i].step, "%s", cli.out);
        cr_expect_str_eq(json_string_value(json_object_get(first, "tensor")), cases[i].tensor);
        json_decref(json);
    }
    cli_close(&cli);
}

static void cut_rows(const char *path, const char *array, hsize_t rows)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), id = H5Dopen2(file, array, H5P_DEFAULT);
    cr_assert(H5Dset_extent(id, &rows) >= 0);
    H5Dclose(id);
    cr_assert(H5Fclose(file) >= 0);
}

static void cut_steps(const char *path) { cut_rows(path, "/steps/committed", 2); }
static void cut_evaluations(const char *path) { cut_rows(path, "/eval/committed", 1); }
static void make_gap(const char *path) { alter_element(path, "/steps/step", 3, 4); }
static void make_failed(const char *path) { alter_text(path, "/", "status", "failed: no memory"); }
static void make_interrupted(const char *path) { alter_text(path, "/", "status", "interrupted"); }
static void make_running(const char *path) { alter_text(path, "/", "status", "running"); }
static void leave(const char *path) { (void)path; }

/* The same bits as far as they go; both: the baseline's file is altered in the same way. */
Test(proof, incomplete_files_are_no_proof)
{
    static const struct {
        void (*alter)(const char *path);
        bool both;
        const char *reasons[3];
    } cases[] = {{leave, false, {NULL}},
                 {cut_steps, false, {"steps", "fewer_steps"}},
                 {cut_steps, true, {"fewer_steps"}},
                 {make_gap, false, {"steps", "gaps"}},
                 {make_gap, true, {"gaps"}},
                 {cut_evaluations, false, {"evaluations"}},
                 {make_failed, false, {"not_completed"}},
                 {make_failed, true, {"not_completed"}},
                 {make_interrupted, false, {"not_completed"}},
                 {make_running, true, {"not_completed"}}};
    struct cli cli;
    char path[2][600], altered[2][300];
    cli_open(&cli);
    cli_expect(&cli, 0, full_run);
    paths_of(&cli, path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int s = 0; s < 2; s++) {
            snprintf(altered[s], sizeof altered[s], "%s/altered%d.h5", cli.folder, s);
            alter_copy(path[s], altered[s]);
            if (s || cases[i].both) cases[i].alter(altered[s]);
        }
        json_t *json = compare_all_ways(&cli, altered[0], altered[1], cases[i].reasons[0] ? 4 : 0);
        size_t count = 0;
        for (; cases[i].reasons[count]; count++)
            cr_expect(names(json, "reasons", cases[i].reasons[count]), "case %zu: %s\n%s", i, cases[i].reasons[count],
                      cli.out);
        cr_expect(json_array_size(json_object_get(json, "reasons")) == count, "case %zu: %s", i, cli.out);
        cr_expect(json_is_true(json_object_get(json, "equal")));
        json_decref(json);
    }
    cli_close(&cli);
}

Test(proof, a_copy_is_recognised)
{
    struct cli cli;
    char path[2][600], copy[300];
    cli_open(&cli);
    cli_expect(&cli, 4, "run small.yaml policy=store_all"); /* a control, in the same second, is none */
    paths_of(&cli, path);
    json_t *control = compare_all_ways(&cli, path[0], path[1], 4);
    cr_expect(!names(control, "reasons", "copy"), "%s", cli.out);
    json_decref(control);
    for (int s = 0; s < 2; s++) {
        snprintf(copy, sizeof copy, "%s/copy%d.h5", cli.folder, s);
        alter_copy(path[s], copy);
        json_t *json = compare_all_ways(&cli, path[s], copy, 4);
        cr_expect(names(json, "reasons", "copy"), "%s", cli.out);
        json_decref(json);
    }
    control = compare_all_ways(&cli, path[0], copy, 4); /* of the other's copy there is nothing to say */
    cr_expect(!names(control, "reasons", "copy"), "%s", cli.out);
    json_decref(control);
    cli_close(&cli);
}

Test(proof, differences_of_spec_and_machine_are_named)
{
    struct cli cli;
    char path[2][600], altered[300], arguments[1300];
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet");
    paths_of(&cli, path);
    cr_expect(!strstr(cli.out, "unlike"), "%s", cli.out);
    snprintf(altered, sizeof altered, "%s/altered.h5", cli.folder);
    alter_copy(path[1], altered);
    alter_number(altered, "/provenance/host", "threads", 2);
    alter_text(altered, "/provenance/git", "commit", "feed");
    json_t *json = compare_all_ways(&cli, path[0], altered, 0);
    const json_t *first = json_array_get(json_object_get(json, "unlike"), 0);
    cr_expect_str_eq(json_string_value(json_object_get(first, "name")), "threads");
    cr_expect_str_eq(json_string_value(json_object_get(first, "a")), "1");
    cr_expect_str_eq(json_string_value(json_object_get(first, "b")), "2");
    cr_expect(names(json, "unlike", "commit") && json_array_size(json_object_get(json, "unlike")) == 2, "%s", cli.out);
    json_decref(json);
    alter_text(altered, "/provenance/data", "digest_xxh3", "0");
    json = compare_all_ways(&cli, path[0], altered, 0);
    cr_expect(names(json, "notes", "other_data"), "%s", cli.out);
    json_decref(json);
    alter_digest(altered, 2, 1);
    snprintf(arguments, sizeof arguments, "compare %s %s", path[0], altered);
    cli_expect(&cli, 1, arguments);
    cli_says(&cli, "\nunlike    threads: 1, 2\n");
    cli_says(&cli, "\nverdict   DIFFERS at step 2, gradient of one.bias; unlike: threads, digest_xxh3, commit\n");
    cli_close(&cli);
}

/* ---- Whole runs. ---- */

#define DEAD "sed -i 's/name: one, units: 24/name: one, init: zeros, units: 24/' small.yaml"

/* Nothing but linear layers, whose outputs no backward reads but the one after. */
#define LINEAR "sed -i 's/, activation: relu//; /dropout/d' small.yaml"

/* A whole run and its --quiet twin end as comparing their files does. */
Test(proof, the_exit_code_is_that_of_the_comparison)
{
    static const struct {
        const char *before, *arguments;
        int code;
        const char *verdict, *list, *name; /* what is in that list; NULL: both lists are empty */
    } cases[] = {
        {"", "", 0, "equal", NULL, NULL},
        {"", "optimizer.momentum=0", 0, "equal", NULL, NULL},
        {"", "policy=", 4, "unproven", "reasons", "no_recomputation"},
        {"", "policy=store_all", 4, "unproven", "reasons", "no_recomputation"},
        {"", "policy=store_all relu_save=bits", 4, "unproven", "reasons", "no_recomputation"},
        {"", "policy=store_all update=fused baseline.update=separate", 4, "unproven", "reasons", "no_recomputation"},
        {LINEAR, "policy='{name: every, unit: stage, keep_saved: false}'", 4, "unproven", "reasons",
         "no_recomputation"},
        {LINEAR, "policy='{name: every, unit: stage, keep_saved: false}' drop_dead=false", 4, "unproven", "reasons",
         "no_recomputation"},
        {"", "slices=4 policy=microbatch", 0, "equal", NULL, NULL},
        {"", "slices=4 policy='{name: every, unit: stage}'", 4, "unproven", "reasons", "no_recomputation"},
        {"", "slices=4 policy='{name: sliced, groups: [front]}'", 0, "equal", NULL, NULL},
        {"", "slices=4 policy=store_all", 4, "unproven", "reasons", "no_recomputation"},
        {"", "policy=segments policy.segments=1", 4, "unproven", "reasons", "no_recomputation"},
        {"", "\"data={name: ones, shape: [4, 4, 1], classes: 4}\"", 0, "equal", "notes", "ones"},
        {"", "record.digests=false", 0, "equal", "notes", "no_digests"},
        {"", "data.classes=1", 4, "unproven", "reasons", "all_gradients_zero"},
        {DEAD, "", 4, "unproven", "reasons", "zero_gradients"},
        {DEAD, "fault.kind=mask_bit fault.node=drop fault.step=2", 1, "fault not caught", "reasons", "zero_gradients"},
        {"", "fault.kind=mask_bit fault.node=drop fault.step=3", 1, "differs", NULL, NULL},
        {"", "memory=poison fault.kind=skip_recompute fault.node=one fault.step=1", 1, "differs", "reasons",
         "not_completed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli cli;
        char arguments[1300], path[2][600];
        cli_open(&cli);
        snprintf(arguments, sizeof arguments, "run small.yaml %s", cases[i].arguments);
        cli_run(&cli, *cases[i].before ? cases[i].before : ":", arguments);
        cr_expect(cli.code == cases[i].code, "%s: %d\n%s%s", arguments, cli.code, cli.out, cli.err);
        strcat(arguments, " --quiet");
        cli_expect(&cli, cases[i].code, arguments);
        paths_of(&cli, path);
        const char *verdict = strstr(cli.out, "\nverdict   ");
        cr_assert(verdict && !strstr(verdict, "\n\n") && !strstr(verdict, "x1."), "the last lines: %s", cli.out);
        cr_expect(!strstr(cli.out, ", state ") == (strstr(arguments, "momentum=0") != NULL), "%s", cli.out);
        snprintf(arguments, sizeof arguments, "compare %s %s --json", path[0], path[1]);
        json_t *json = cli_json(&cli, cases[i].code, arguments);
        cr_expect_str_eq(json_string_value(json_object_get(json, "verdict")), cases[i].verdict);
        cr_expect(json_is_true(json_object_get(json, "proven")) == (cases[i].code == 0), "%s", cli.out);
        cr_expect(json_is_null(json_object_get(json, "state_equal")) ==
                  (strstr(cases[i].arguments, "momentum") != NULL));
        if (cases[i].list)
            cr_expect(names(json, cases[i].list, cases[i].name), "%s", cli.out);
        else
            cr_expect(!json_array_size(json_object_get(json, "reasons")) &&
                          json_array_size(json_object_get(json, "notes")) == names(json, "notes", "times"),
                      "%s", cli.out);
        json_decref(json);
        cli_close(&cli);
    }
}

/* All but the last bias: what comes of zeros is zero. */
Test(proof, tensors_without_gradients_are_named)
{
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, DEAD, "run small.yaml --quiet");
    cr_assert(cli.code == 4, "%d\n%s", cli.code, cli.err);
    cli_says(&cli, "\nverdict   EQUAL IN EVERY BIT, BUT NOT A PROOF: zero at every step, of 6 tensors the gradients of "
                   "one.weight, one.bias, two.weight, two.bias and 1 more\n");
    cli_close(&cli);
}

/* A fault whose bytes are no numbers ends the run within its step, before that is committed: at the first, too. */
Test(proof, the_first_number_that_is_not_finite_is_located)
{
    for (int64_t step = 0; step < STEPS; step++) {
        struct cli cli;
        char arguments[256], path[2][600], line[256];
        cli_open(&cli);
        snprintf(arguments, sizeof arguments,
                 "run small.yaml --quiet memory=poison fault.kind=skip_recompute fault.node=one fault.step=%lld",
                 (long long)step);
        cli_expect(&cli, 1, arguments);
        snprintf(line, sizeof line, "\nverdict   DIFFERS at step %lld, gradient of two.weight, not finite in variant; ",
                 (long long)step);
        cli_says(&cli, line);
        paths_of(&cli, path);
        cr_expect(strstr(path[1], ".h5.part"), "%s", path[1]);
        json_t *json = compare_all_ways(&cli, path[0], path[1], 1);
        const json_t *first = json_object_get(json, "first_difference");
        cr_expect(json_integer_value(json_object_get(first, "step")) == step, "%s", cli.out);
        cr_expect_str_eq(json_string_value(json_object_get(first, "tensor")), "gradient of two.weight");
        cr_expect(json_integer_value(json_object_get(json, "steps")) == step);
        json_decref(json);
        cli_close(&cli);
    }
}

/* Points that merely recompute nothing are there to compare with; else the worst point counts. */
Test(proof, the_exit_code_of_a_sweep_is_that_of_its_worst_point)
{
    static const struct {
        const char *sweep, *arguments;
        int code;
        const char *says;
    } cases[] = {{"{policy: [store_all, sqrt]}", "", 0, "equal"},
                 {"{seed: [1, 2]}", "policy=store_all", 4, "no proof: nothing is recomputed"},
                 {"{seed: [1, 2]}", "policy=store_all --point 2", 0, "no proof: nothing is recomputed"},
                 {"{policy.segments: [1, 2]}", "", 0, "no proof: nothing is recomputed"},
                 {"{data.classes: [1, 4]}", "", 4, "no proof: the loss of step 0 is 0"},
                 {"{data.classes: [4, 1], rng: [counter, unsafe]}", "", 1, "FAULT NOT CAUGHT"},
                 {"{data.classes: [1, 4], memory: [planned, poison]}",
                  "fault.kind=skip_recompute fault.node=one fault.step=1", 1, "DIFFERS"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli cli;
        char before[256], arguments[256];
        cli_open(&cli);
        const char *segments =
            strstr(cases[i].sweep, "segments") ? "/^policy/s/{.*/{name: segments, segments: 2}/" : "";
        snprintf(before, sizeof before, "sed -i '%s' small.yaml; echo 'sweep: %s' >>small.yaml", segments,
                 cases[i].sweep);
        snprintf(arguments, sizeof arguments, "run small.yaml --quiet %s", cases[i].arguments);
        cli_run(&cli, before, arguments);
        cr_expect(cli.code == cases[i].code, "%s: %d\n%s%s", cases[i].sweep, cli.code, cli.out, cli.err);
        cr_expect(strstr(cli.out, cases[i].says) || strstr(cli.err, cases[i].says), "%s\n%s", cases[i].says, cli.out);
        cli_close(&cli);
    }
}

Test(proof, verbose_prints_what_sets_the_peaks)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --verbose");
    cli_says(&cli, "\n    largest tensors  ");
    cli_expect(&cli, 0, "run small.yaml");
    cr_expect(!strstr(cli.out, "largest tensors"), "%s", cli.out);
    cli_expect(&cli, 2, "run small.yaml --verbose --quiet");
    cli_close(&cli);
}
