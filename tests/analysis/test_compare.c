/* Two files, bit by bit: what differs is named by step and tensor, what cannot be compared is refused. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <hdf5.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/compare.h"
#include "result/result_read.h"
#include "tests/support/altered_files.h"
#include "tests/support/made_runs.h"
#include "tests/support/policy_text.h"
#include "tests/support/small_networks.h"

enum { STEPS = 4 };

static struct fake fake;
static char folder[256], one[1024], other[1024];

static json_t *kept; /* numbers of all comparisons of a test */

static enum status compare(const char *a, const char *b, struct comparison *comparison)
{
    const enum status status = compare_files(a, b, comparison);
    json_array_append_new(kept, comparison->json);
    return status;
}

static void set_up(void)
{
    kept = json_array();
    folder_make(folder);
    fake_open(&fake, &nets[0], folder);
    fake_write(&fake, "baseline", STEPS, NULL, one);
}

static void tear_down(void)
{
    json_decref(kept);
    fake_close(&fake);
    folder_remove(folder);
}

TestSuite(compare, .init = set_up, .fini = tear_down);

static void next_float(struct fake *f, struct step_record *step)
{
    (void)f;
    if (step->step >= 2) step->result.loss = nextafterf(step->result.loss, 10);
}

static void gradients(struct fake *f, struct step_record *step)
{
    if (step->step < 1) return;
    f->gradient[1].high++, f->gradient[3].low++;
    f->parameter[0].low++;
}

static void parameters(struct fake *f, struct step_record *step)
{
    if (step->step < 3) return;
    f->parameter[2].low ^= 1ull << 63, f->parameter[5].low++;
}

static void state(struct fake *f, struct step_record *step)
{
    if (step->step != 2) return;
    f->state[4].high++;
}

static void running(struct fake *f, struct step_record *step)
{
    if (step->step < 2) return;
    f->running[5].high++, f->running[1].low++;
    if (step->step == 3) f->gradient[0].low++;
}

static void no_digests(struct fake *f, struct step_record *step)
{
    gradients(f, step);
    step->result.gradient = NULL;
}

/* Of the steps after the first, the median is three times as long. */
static void times(struct fake *f, struct step_record *step)
{
    static const uint64_t total[STEPS] = {1, 3060, 90, 9000};
    (void)f;
    step->total_ns = total[step->step], step->result.phase_ns[PHASE_FORWARD] = 17, step->rss += 4096;
}

static struct comparison compare_with(void (*change)(struct fake *, struct step_record *), uint32_t steps)
{
    struct comparison comparison;
    fake_write(&fake, "variant", steps, change, other);
    cr_assert(compare(one, other, &comparison) == ST_OK, "%s", status_message());
    return comparison;
}

/* side: "a" or "b". */
static double json_member(const struct comparison *c, const char *side, const char *key)
{
    return json_number_at(json_object_get(c->json, side), key);
}

Test(compare, runs_that_differ_in_times_alone_are_equal)
{
    struct comparison c = compare_with(times, STEPS);
    cr_assert(!c.differs && c.steps == STEPS && c.first_step == -1);
    for (int k = 0; k < STEP_COLUMNS; k++) cr_assert(c.same[k] == STEPS, "%s", step_column_name((enum step_column)k));
    cr_assert(c.peak_ratio == 1 && c.live_ratio == 1 && c.time_ratio == 3, "%g", c.time_ratio);
    cr_assert(json_member(&c, "a", "step_median_ns") == 1020 && json_member(&c, "a", "step_least_ns") == 1010 &&
                  json_member(&c, "a", "step_most_ns") == 1030,
              "of the steps after the first");
    cr_assert(json_member(&c, "b", "step_median_ns") == 3060 && json_member(&c, "b", "step_least_ns") == 90 &&
              json_member(&c, "b", "step_most_ns") == 9000);
    c = compare_with(NULL, 3);
    cr_assert(json_member(&c, "b", "step_median_ns") == 1015, "between the two in the middle");
    cr_assert(!c.side_by_side, "they have no invocation in common");
}

Test(compare, ratios_are_of_the_second_to_the_first)
{
    static const struct plan_options options = {.lower = {.drop_dead = true}, .state_per_parameter = 1};
    struct fake small;
    struct comparison c;
    fake_open(&small, &nets[0], folder);
    plan_destroy(small.job.plan);
    small.job.plan = policy_text_plan(small.job.network, "optimal", "budget=least", &options);
    small.live = small.job.plan->live;
    fake_write(&small, "variant", STEPS, NULL, other);
    cr_assert(compare(one, other, &c) == ST_OK && !c.differs, "%s", status_message());
    const struct plan *a = fake.job.plan, *b = small.job.plan;
    cr_assert(json_member(&c, "a", "peak_bytes") == (double)plan_peak(a) &&
              c.peak_ratio == (double)plan_peak(b) / (double)plan_peak(a));
    cr_assert(c.live_ratio == (double)b->live_peak / (double)a->live_peak && c.live_ratio < c.peak_ratio);
    fake_close(&small);
}

Test(compare, names_the_first_difference)
{
    char gradient[160], parameter[160], moment[160];
    const struct parameter *p = fake.job.graph->parameter;
    snprintf(gradient, sizeof gradient, "gradient of %s", p[3].name);
    snprintf(parameter, sizeof parameter, "%s", p[2].name);
    snprintf(moment, sizeof moment, "state of %s", p[4].name);
    const struct {
        void (*change)(struct fake *, struct step_record *);
        int64_t step, ulp, losses, gradients, parameters, state;
        const char *tensor;
    } cases[] = {
        {next_float, 2, 1, 2, 4, 4, 4, "loss"},      {gradients, 1, 0, 4, 1, 1, 4, gradient},
        {parameters, 3, 0, 4, 4, 3, 4, parameter},   {state, 2, 0, 4, 4, 4, 3, moment},
        {no_digests, 1, 0, 4, 1, 1, 4, "gradients"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison c = compare_with(cases[i].change, STEPS);
        cr_assert(c.differs && c.first_step == cases[i].step, "%s: step %lld", cases[i].tensor,
                  (long long)c.first_step);
        cr_assert(strcmp(c.first_tensor, cases[i].tensor) == 0, "'%s', not '%s'", c.first_tensor, cases[i].tensor);
        cr_assert(c.loss_ulp == cases[i].ulp && c.same[COLUMN_LOSS] == cases[i].losses);
        cr_assert(c.same[COLUMN_GRADIENTS] == cases[i].gradients && c.same[COLUMN_PARAMETERS] == cases[i].parameters &&
                  c.same[COLUMN_STATE] == cases[i].state);
    }
}

/* The running state of a step comes after its gradients: both are of its forwards, but a wrong gradient shows first. */
Test(compare, names_the_running_state_that_differs)
{
    const struct net *net = nets;
    while (strcmp(net->name, "normalised") != 0) net++;
    fake_close(&fake);
    fake_open(&fake, net, folder);
    fake_write(&fake, "baseline", STEPS, NULL, one);
    struct comparison c = compare_with(NULL, STEPS);
    cr_assert(!c.differs && c.present[COLUMN_RUNNING] && c.same[COLUMN_RUNNING] == STEPS);
    c = compare_with(running, STEPS);
    cr_assert(c.differs && c.first_step == 2 && strcmp(c.first_tensor, fake.job.graph->state[1].name) == 0,
              "'%s' at step %lld", c.first_tensor, (long long)c.first_step);
    cr_assert(c.same[COLUMN_RUNNING] == 2 && c.same[COLUMN_GRADIENTS] == 3 && c.same[COLUMN_LOSS] == STEPS);
    cr_assert(json_integer_value(json_object_get(c.json, "running_state_equal")) == 2);

    fake.job.graph->state[3].name = "another.running_var";
    fake_write(&fake, "variant", STEPS, NULL, other);
    cr_assert(compare(one, other, &c) == ST_SPEC && strstr(status_message(), "tensor of running state 3 is "), "%s",
              status_message());
}

static void flip_sign(struct fake *f, struct step_record *step)
{
    (void)f;
    if (step->step == 1) step->result.loss = -step->result.loss;
}

Test(compare, ulps_count_the_floats_in_between)
{
    struct comparison c = compare_with(flip_sign, STEPS);
    cr_assert(c.loss_ulp == 2 * (int64_t)bits_of(1), "from 1 to -1");
    cr_assert(compare(other, one, &c) == ST_OK && c.loss_ulp == 2 * (int64_t)bits_of(1), "and back");
}

Test(compare, side_by_side_within_one_invocation)
{
    setenv("REMATCH_INVOCATION", "17", true);
    fake_write(&fake, "baseline", STEPS, NULL, one);
    cr_assert(compare_with(NULL, STEPS).side_by_side);
    setenv("REMATCH_INVOCATION", "18", true);
    cr_assert(!compare_with(NULL, STEPS).side_by_side);
}

Test(compare, only_common_steps_are_compared)
{
    struct comparison c = compare_with(NULL, 2), none;
    cr_assert(!c.differs && c.steps == 2 && json_member(&c, "a", "steps") == STEPS &&
              json_member(&c, "b", "steps") == 2);
    fake_write(&fake, "variant", 0, NULL, other);
    cr_assert(compare(one, other, &none) == ST_SPEC && strstr(status_message(), "no step in common"), "%s",
              status_message());
    cr_assert(isnan(compare_with(NULL, 1).time_ratio));
}

Test(compare, an_unfinished_file_is_compared)
{
    struct record *record;
    struct comparison c;
    fake.spec.name = "unfinished";
    cr_assert(record_create(&fake.job, "variant", &record) == ST_OK, "%s", status_message());
    for (uint32_t i = 0; i < 2; i++) {
        struct step_record step = fake_step(&fake, i);
        if (i == 1) step.result.loss = nextafterf(step.result.loss, 10);
        cr_assert(record_step(record, &step) == ST_OK);
    }
    snprintf(other, sizeof other, "%.1000s.part", record_path(record));
    cr_assert(compare(one, other, &c) == ST_OK, "%s", status_message());
    cr_assert(c.steps == 2 && c.first_step == 1 && c.differs);
    record_abandon(record);
}

Test(compare, json_has_the_promised_keys)
{
    static const char *const keys[] = {"verdict",
                                       "sentence",
                                       "equal",
                                       "proven",
                                       "reasons",
                                       "notes",
                                       "unlike",
                                       "steps",
                                       "losses_equal",
                                       "metrics_equal",
                                       "state_equal",
                                       "parameters_equal",
                                       "peak_ratio",
                                       "first_difference",
                                       "gradients_equal",
                                       "evaluations",
                                       "time_ratio",
                                       "side_by_side",
                                       "fault_not_caught",
                                       "evaluations_equal",
                                       "learning_rates_equal"};
    void (*const changes[])(struct fake *, struct step_record *) = {NULL, next_float};
    for (size_t i = 0; i < 2; i++) {
        struct comparison c = compare_with(changes[i], STEPS);
        json_t *json = comparison_json(&c), *first = json_object_get(json, "first_difference");
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            cr_assert(json_object_get(json, keys[k]), "%s", keys[k]);
        cr_assert(json_is_true(json_object_get(json, "equal")) == !i);
        cr_assert(i ? json_integer_value(json_object_get(first, "step")) == 2 &&
                          strcmp(json_string_value(json_object_get(first, "tensor")), "loss") == 0 &&
                          json_integer_value(json_object_get(first, "loss_ulp")) == 1
                    : json_is_null(first));
        json_decref(json);
    }
}

/* ---- files that are refused ---- */

static void refuse(const char *path, enum status status, const char *why)
{
    struct comparison c;
    cr_assert(compare(one, path, &c) == status, "%s", status_message());
    cr_assert(strstr(status_message(), path) && strstr(status_message(), why), "%s", status_message());
    cr_assert(compare(path, one, &c) == status, "%s", status_message());
}

Test(compare, a_file_and_itself_are_refused)
{
    struct comparison c;
    snprintf(other, sizeof other, "%s/./fake/%s", folder, strrchr(one, '/') + 1);
    cr_assert(compare(one, other, &c) == ST_SPEC && strstr(status_message(), "one and the same file"), "%s",
              status_message());
}

Test(compare, runs_with_other_parameters_are_refused)
{
    struct fake changed;
    struct comparison c;
    fake_open(&changed, &nets[0], folder);
    changed.job.graph->parameter[1].name = "another.bias";
    changed.spec.name = "other";
    fake_write(&changed, "variant", STEPS, NULL, other);
    cr_assert(compare(one, other, &c) == ST_SPEC && strstr(status_message(), "not of the same experiment"), "%s",
              status_message());
    fake_close(&changed);
    fake_open(&changed, &nets[0], folder);
    changed.job.graph->parameter[1].elements--;
    fake_write(&changed, "variant", STEPS, NULL, other);
    cr_assert(compare(one, other, &c) == ST_SPEC && strstr(status_message(), "parameter 1 is "), "%s",
              status_message());
    fake_close(&changed);
    fake_open(&changed, &nets[1], folder);
    fake_write(&changed, "variant", STEPS, NULL, other);
    cr_assert(compare(one, other, &c) == ST_SPEC && strstr(status_message(), "parameters"), "%s", status_message());
    fake_close(&changed);
}

Test(compare, a_file_without_results_is_refused)
{
    static const char text[] = "loss 2.3\n";
    refuse("/nowhere/at/all.h5", ST_SPEC, "No such file");
    refuse(folder, ST_SPEC, "not a file");
    snprintf(other, sizeof other, "%s/text.h5", folder);
    int file = open(other, O_CREAT | O_WRONLY, 0600);
    refuse(other, ST_SPEC, "not an HDF5 file");
    cr_assert(write(file, text, sizeof text) == sizeof text && close(file) == 0);
    refuse(other, ST_SPEC, "not an HDF5 file");
    snprintf(other, sizeof other, "%s/bare.h5", folder);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Fclose(H5Fcreate(other, H5F_ACC_TRUNC, H5P_DEFAULT, access));
    refuse(other, ST_SPEC, "schema");
}

static void copy_of_one(const char *name, off_t bytes)
{
    struct stat file;
    snprintf(other, sizeof other, "%s/%s", folder, name);
    cr_assert(stat(one, &file) == 0);
    char *content = malloc((size_t)file.st_size);
    int from = open(one, O_RDONLY), to = open(other, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    cr_assert(read(from, content, (size_t)file.st_size) == file.st_size);
    if (bytes <= 0) bytes += file.st_size;
    cr_assert(write(to, content, (size_t)bytes) == bytes);
    close(from), close(to);
    free(content);
}

/* Cut anywhere, a file is refused, even by its last byte. */
Test(compare, a_truncated_file_is_refused)
{
    struct stat file;
    struct comparison c;
    cr_assert(stat(one, &file) == 0);
    for (int i = 0; i <= 50; i++) {
        const off_t bytes = i < 50 ? 1 + i * (file.st_size / 50) : file.st_size - 1;
        copy_of_one("cut.h5", bytes);
        enum status status = compare(one, other, &c);
        cr_assert((status == ST_SPEC || status == ST_FAILED) && strstr(status_message(), other), "%lld bytes: %s",
                  (long long)bytes, status_message());
    }
}

/* Where a checksum is wrong HDF5 reads again, as a writer may be at work; it gives up after some attempts. */
Test(compare, a_damaged_attribute_is_refused, .timeout = 60)
{
    static const char block[] = "FHDB";
    struct comparison c;
    struct stat file;
    cr_assert(stat(one, &file) == 0);
    int from = open(one, O_RDONLY), damaged = 0;
    char *content = malloc((size_t)file.st_size);
    cr_assert(read(from, content, (size_t)file.st_size) == file.st_size);
    close(from);
    for (char *at = content; damaged < 4; damaged++) {
        at = memmem(at, (size_t)(content + file.st_size - at), block, 4);
        cr_assert(at != NULL, "%d blocks of attributes", damaged);
        copy_of_one("damaged.h5", 0);
        int to = open(other, O_WRONLY);
        at += 20;
        const char wrong = (char)~*at;
        cr_assert(pwrite(to, &wrong, 1, at - content) == 1 && close(to) == 0);
        enum status status = compare(one, other, &c);
        cr_assert(status == ST_OK || strstr(status_message(), other), "%s", status_message());
    }
    free(content);
}

static hid_t edit(const char *name)
{
    copy_of_one(name, 0);
    hid_t file = H5Fopen(other, H5F_ACC_RDWR, H5P_DEFAULT);
    cr_assert(file >= 0);
    return file;
}

static void text_attribute(hid_t file, const char *name, const char *value)
{
    hid_t id = H5Aopen(file, name, H5P_DEFAULT), type = H5Aget_type(id);
    cr_assert(H5Awrite(id, type, &value) >= 0);
    H5Tclose(type);
    H5Aclose(id);
}

/* An array of the given kind and rows in the place of another. */
static void replace(hid_t file, const char *path, hid_t type, hsize_t rows)
{
    const hsize_t chunk = 1 << 20, most = H5S_UNLIMITED;
    hid_t space = H5Screate_simple(1, &rows, &most), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, &chunk);
    cr_assert(H5Ldelete(file, path, H5P_DEFAULT) >= 0);
    hid_t id = H5Dcreate2(file, path, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    cr_assert(id >= 0);
    H5Dclose(id);
    H5Pclose(creation);
    H5Sclose(space);
}

Test(compare, a_file_with_altered_tables_is_refused)
{
    hid_t file = edit("schema.h5");
    text_attribute(file, "schema", "something-else");
    H5Fclose(file);
    refuse(other, ST_SPEC, "something-else");

    file = edit("version.h5");
    text_attribute(file, "schema_version", "1.0");
    H5Fclose(file);
    refuse(other, ST_SPEC, "1.0");

    file = edit("missing.h5");
    H5Ldelete(file, "/steps/loss_bits", H5P_DEFAULT);
    H5Fclose(file);
    refuse(other, ST_FAILED, "/steps/loss_bits is missing");

    file = edit("short.h5");
    replace(file, "/steps/param_digest", H5T_STD_U64LE, 2);
    H5Fclose(file);
    refuse(other, ST_FAILED, "/steps/param_digest");

    file = edit("absurd.h5");
    replace(file, "/steps/committed", H5T_STD_U8LE, 1ull << 40);
    H5Fclose(file);
    refuse(other, ST_FAILED, "claims more rows than the file has bytes");

    file = edit("kind.h5");
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    replace(file, "/steps/loss", type, STEPS);
    H5Fclose(file);
    refuse(other, ST_FAILED, "/steps/loss is not a column of numbers");

    file = edit("real.h5");
    replace(file, "/steps/step", H5T_IEEE_F64LE, STEPS);
    H5Fclose(file);
    refuse(other, ST_FAILED, "/steps/step is not a column of numbers of its kind");

    H5Fclose(edit("flag.h5"));
    alter_element(other, "/steps/gradients_zero", 1, 7);
    refuse(other, ST_FAILED, "/steps/gradients_zero holds a flag other than 0 or 1");

    H5Fclose(edit("uncommitted.h5"));
    alter_element(other, "/steps/committed", 1, -1);
    refuse(other, ST_FAILED, "row 1 of /steps is counted, but not committed");

    H5Fclose(edit("order.h5"));
    alter_element(other, "/steps/step", 1, 7);
    refuse(other, ST_FAILED, "step 2 comes after step 8");

    H5Fclose(edit("lie.h5"));
    alter_element(other, "/steps/loss", 1, 1);
    refuse(other, ST_FAILED, "loss and loss_bits disagree");

    file = edit("sparse.h5");
    replace(file, "/steps/loss", H5T_IEEE_F32LE, STEPS);
    H5Fclose(file);
    refuse(other, ST_FAILED, "/steps/loss claims 4 rows; the file stores 0 of them");
}

/* A step's digest is that of its tensors' digests: neither can be altered alone. */
Test(compare, an_altered_digest_is_refused)
{
    static const char *const pairs[][2] = {{"/digests/gradient", "/steps/grad_digest"},
                                           {"/digests/parameter", "/steps/param_digest"},
                                           {"/digests/state", "/steps/state_digest"}};
    for (size_t i = 0; i < 6; i++) {
        char why[64];
        const int64_t tensors = fake.job.graph->parameters, row = i % 2 ? 1 : tensors;
        copy_of_one("altered.h5", 0);
        alter_element(other, pairs[i / 2][i % 2], (2 * row + row - 1) * 2, 1); /* of the last tensor at step 2 */
        snprintf(why, sizeof why, "step 2: %s and %s disagree", pairs[i / 2][1] + strlen("/steps/"), pairs[i / 2][0]);
        refuse(other, ST_FAILED, why);
    }
}
