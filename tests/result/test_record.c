/* Result files, read back by plain HDF5 calls: the written content in the form of the schema. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/run_id.h"
#include "result/record.h"
#include "result/result_read.h"
#include "tests/support/altered_files.h"
#include "tests/support/layer_settings.h"
#include "tests/support/made_runs.h"
#include "tests/support/small_networks.h"
#include "train/executor.h"

static void check(enum status status) { cr_assert(status == ST_OK, "%s", status_message()); }

static hid_t open_raw(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, H5P_DEFAULT);
    cr_assert(file >= 0, "%s cannot be opened", path);
    return file;
}

/* Number of rows; -1: no such array. */
static long rows_raw(hid_t file, const char *path)
{
    hsize_t extent[8] = {0};
    hid_t id = H5Dopen2(file, path, H5P_DEFAULT), space = H5Dget_space(id);
    int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    H5Sclose(space);
    H5Dclose(id);
    return rank < 0 ? -1 : (long)extent[0];
}

static void read_raw(hid_t file, const char *path, hid_t type, void *to)
{
    hid_t id = H5Dopen2(file, path, H5P_DEFAULT);
    cr_assert(id >= 0 && H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) >= 0, "%s", path);
    H5Dclose(id);
}

static void text_raw(hid_t file, const char *object, const char *name, char to[256])
{
    char *text = NULL;
    hid_t id = H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(id >= 0, "%s of %s", name, object);
    hid_t type = H5Aget_type(id);
    cr_assert(H5Tis_variable_str(type) > 0 && H5Tget_cset(type) == H5T_CSET_UTF8, "%s of %s", name, object);
    cr_assert(H5Aread(id, type, &text) >= 0 && text);
    snprintf(to, 256, "%s", text);
    H5free_memory(text);
    H5Tclose(type);
    H5Aclose(id);
}

static struct fake fake;
static char folder[256], path[1024];

static void set_up(void)
{
    folder_make(folder);
    fake_open(&fake, &nets[0], folder);
}

static void tear_down(void)
{
    fake_close(&fake);
    folder_remove(folder);
}

TestSuite(record, .init = set_up, .fini = tear_down);

Test(record, reads_back_what_was_written)
{
    char text[256];
    fake_write(&fake, "variant", 3, NULL, path);
    cr_assert(folder_count(folder, ".h5") == 1 && folder_count(folder, "") == 1, "only the finished file is left");
    hid_t file = open_raw(path);
    text_raw(file, "/", "schema", text);
    cr_assert(strcmp(text, "rematch-run") == 0);
    text_raw(file, "/", "status", text);
    cr_assert(strcmp(text, "completed") == 0, "%s", text);
    text_raw(file, "/", "variant", text);
    cr_assert(strcmp(text, "variant") == 0);
    text_raw(file, "/provenance/host", "cpu", text);
    cr_assert(*text != 0);

    float loss[3];
    uint32_t bits[3];
    uint64_t ns[3];
    struct digest digest[3];
    const long parameters = fake.job.graph->parameters;
    cr_assert(rows_raw(file, "/steps/loss") == 3 && rows_raw(file, "/steps/committed") == 3);
    read_raw(file, "/steps/loss", H5T_NATIVE_FLOAT, loss);
    read_raw(file, "/steps/loss_bits", H5T_NATIVE_UINT32, bits);
    read_raw(file, "/steps/grad_digest", H5T_NATIVE_UINT64, digest);
    read_raw(file, "/steps/total_ns", H5T_NATIVE_UINT64, ns);
    uint64_t *each = calloc((size_t)(3 * parameters * 2), sizeof *each);
    read_raw(file, "/digests/parameter", H5T_NATIVE_UINT64, each);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t expected = bits_of(2.0F / (float)(i + 1));
        cr_assert(bits_of(loss[i]) == expected && bits[i] == expected);
        cr_assert(digest_equal(digest[i], fake_step(&fake, i).result.gradients) && ns[i] == 1000 + 10 * i);
        for (long p = 0; p < parameters; p++)
            cr_assert(each[(i * parameters + p) * 2] == i * 1000 + (uint64_t)p &&
                      each[(i * parameters + p) * 2 + 1] == 2);
    }
    free(each);
    H5Fclose(file);
}

/* All numbers of a step differ. */
static void all_different(struct fake *f, struct step_record *step)
{
    (void)f;
    step->result.loss = 1.5F, step->metric = 0.125F;
    step->result.lr = 0.25, step->result.gradient_norm = 3.5;
    step->total_ns = 11, step->data_ns = 12, step->result.phase_ns[PHASE_FORWARD] = 13;
    step->result.phase_ns[PHASE_RECOMPUTE] = 14, step->result.phase_ns[PHASE_BACKWARD] = 15,
    step->result.phase_ns[PHASE_OPTIMIZER] = 16;
    step->result.phase_ns[PHASE_DIGEST] = 17, step->result.phase_ns[PHASE_UNDEFINE] = 20;
    step->live_peak = 18, step->rss = 19;
}

/* The content of columns of one number; those of digests have two. */
static const struct {
    const char *name;
    double value;
} json[] = {
    {"step", 0},         {"loss", 1.5},        {"loss_bits", 0x3fc00000}, {"metric", 0.125},  {"lr", 0.25},
    {"grad_norm", 3.5},  {"total_ns", 11},     {"data_ns", 12},           {"forward_ns", 13}, {"recompute_ns", 14},
    {"backward_ns", 15}, {"optimizer_ns", 16}, {"digest_ns", 17},         {"live_peak", 18},  {"rss", 19},
    {"undefine_ns", 20}, {"gradients_zero", 0}};
enum { OBJECT = sizeof json / sizeof *json };

Test(record, every_column_holds_its_own_figure)
{
    char column[64];
    size_t columns = 0;
    struct digest gradients, parameters, state, running;
    fake_write(&fake, "variant", 1, all_different, path);
    const struct step_record step = fake_step(&fake, 0);
    hid_t file = open_raw(path);
    for (size_t i = 0; i < OBJECT; i++) {
        double value;
        snprintf(column, sizeof column, "/steps/%s", json[i].name);
        read_raw(file, column, H5T_NATIVE_DOUBLE, &value);
        cr_expect(value == json[i].value, "%s is %g, not %g", column, value, json[i].value);
    }
    read_raw(file, "/steps/grad_digest", H5T_NATIVE_UINT64, &gradients);
    read_raw(file, "/steps/param_digest", H5T_NATIVE_UINT64, &parameters);
    read_raw(file, "/steps/state_digest", H5T_NATIVE_UINT64, &state);
    read_raw(file, "/steps/running_digest", H5T_NATIVE_UINT64, &running);
    cr_expect(digest_equal(gradients, step.result.gradients) && digest_equal(parameters, step.result.parameters) &&
              digest_equal(state, step.result.state) && digest_equal(running, step.result.running));
    while (record_step_columns[columns].name) columns++;
    cr_expect(columns == OBJECT + 4, "%zu columns", columns);
    H5Fclose(file);
}

Test(record, holds_the_plan_and_its_memory)
{
    char text[256];
    fake_write(&fake, "variant", 3, NULL, path);
    const struct plan *plan = fake.job.plan;
    const size_t ops = (size_t)plan->lowered.ops, buffers = (size_t)plan->lowered.buffers;
    hid_t file = open_raw(path);
    uint64_t *live = calloc(ops, sizeof *live), *measured = calloc(ops, sizeof *measured);
    uint64_t *offset = calloc(buffers, sizeof *offset), predicted[(int)STATICS + (int)CATEGORIES], sum = 0;
    uint32_t step;
    cr_assert(rows_raw(file, "/plan/ops/live") == (long)ops && rows_raw(file, "/memory/live") == 1);
    read_raw(file, "/plan/ops/live", H5T_NATIVE_UINT64, live);
    read_raw(file, "/memory/live", H5T_NATIVE_UINT64, measured);
    read_raw(file, "/memory/step", H5T_NATIVE_UINT32, &step);
    read_raw(file, "/memory/predicted", H5T_NATIVE_UINT64, predicted);
    read_raw(file, "/plan/buffers/offset", H5T_NATIVE_UINT64, offset);
    for (size_t i = 0; i < ops; i++) cr_assert(live[i] == plan->live[i] && measured[i] == plan->live[i]);
    for (size_t i = 0; i < buffers; i++) cr_assert(offset[i] == plan->lowered.buffer[i].offset);
    for (size_t i = 0; i < sizeof predicted / sizeof *predicted; i++) sum += predicted[i];
    cr_assert(step == 1 && sum == plan_static(plan) + plan->live_peak, "categories add up to the peak");
    char *word = NULL;
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    read_raw(file, "/plan/schedule", type, &word);
    cr_assert(strcmp(word, plan->schedule) == 0);
    H5free_memory(word);
    H5Tclose(type);
    text_raw(file, "/memory/live", "units", text);
    cr_assert(strcmp(text, "byte") == 0);
    free(live), free(measured), free(offset);
    H5Fclose(file);
}

struct visit {
    int arrays, scaled, timed;
};

/* Every dimension of numbers has a scale, no object has a time. */
static herr_t visit(hid_t file, const char *name, const H5O_info_t *info, void *data)
{
    struct visit *v = data;
    v->timed += info->atime != 0 || info->mtime != 0 || info->ctime != 0 || info->btime != 0;
    if (info->type != H5O_TYPE_DATASET) return 0;
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT), type = H5Dget_type(id), space = H5Dget_space(id);
    const int rank = H5Sget_simple_extent_ndims(space);
    bool scaled = H5Tget_class(type) == H5T_STRING || H5DSis_scale(id) > 0 || rank > 0;
    for (int i = 0; i < rank && H5Tget_class(type) != H5T_STRING && H5DSis_scale(id) <= 0; i++)
        scaled = scaled && H5DSget_num_scales(id, (unsigned)i) == 1;
    if (!scaled) cr_log_warn("%s has a dimension without scale", name);
    v->arrays++;
    v->scaled += scaled;
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(id);
    return 0;
}

Test(record, dimensions_have_scales_and_objects_no_times)
{
    struct visit v = {0};
    fake_write(&fake, "variant", 2, NULL, path);
    hid_t file = open_raw(path);
    H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, visit, &v);
    cr_assert(v.timed == 0, "%d objects carry times", v.timed);
    cr_assert(v.arrays > 40 && v.scaled == v.arrays, "%d of %d arrays have a scale", v.scaled, v.arrays);
    H5Fclose(file);
}

static int wide_net(struct graph *graph)
{
    const int x = 0;
    int y = -1, z = -1;
    const struct settings settings = {.units = 700, .bias = true}, norm = {.epsilon = 1e-5, .momentum = 0.1};
    check(graph_add(graph, layer_find("linear"), settings_of(layer_find("linear"), &settings), NULL, &x, &y));
    check(graph_add(graph, layer_find("batch_norm"), settings_of(layer_find("batch_norm"), &norm), NULL, &y, &z));
    return z;
}

/* A parameter of 28 MB, which needs more than one slice, and running state. */
static const struct net wide = {"wide", wide_net, {1, {10000}}, 2, 700};

/* The running state before the first step and after the last, in full. */
static void check_running(hid_t file, const char *when, int tensor, float first)
{
    char name[512];
    const struct parameter *p = &fake.job.graph->state[tensor];
    float *values = calloc((size_t)p->elements, sizeof *values);
    snprintf(name, sizeof name, "/state/%s/%s", when, p->name);
    cr_assert(rows_raw(file, name) == (long)p->elements);
    read_raw(file, name, H5T_NATIVE_FLOAT, values);
    for (int64_t i = 0; i < p->elements; i++)
        cr_assert(values[i] == first + (float)i, "%s: %lld is %g", name, (long long)i, (double)values[i]);
    free(values);
}

static void set_running(struct executor *exec, int tensor, float first)
{
    const int64_t elements = fake.job.graph->state[tensor].elements;
    for (int64_t i = 0; i < elements; i++) executor_running(exec, tensor)[i] = first + (float)i;
}

Test(record, state_holds_the_tensors_of_the_run)
{
    fake_close(&fake);
    fake_open(&fake, &wide, folder);
    fake.spec.record_state = true;
    struct executor *exec;
    struct record *record;
    const struct executor_options options = {.memory = MEMORY_PLANNED};
    struct run_summary summary = {0};
    const int64_t elements = wide.batch * shape_elements(&wide.input);
    float *x = calloc((size_t)elements, sizeof *x), *back = calloc((size_t)(2 * elements), sizeof *back);
    int32_t labels[64] = {0};
    check(executor_create(fake.job.plan, &options, &exec));
    const struct parameter *p = &fake.job.graph->parameter[0];
    for (int64_t i = 0; i < p->elements; i++) executor_parameter(exec, 0)[i] = (float)i;
    for (int i = 0; i < fake.job.graph->states; i++) set_running(exec, i, (float)i);
    check(record_create(&fake.job, "variant", &record));
    snprintf(path, sizeof path, "%s", record_path(record));
    check(record_tensors(record, false, exec));
    for (uint32_t s = 0; s < 2; s++) {
        for (int64_t i = 0; i < elements; i++) x[i] = (float)(s * 7 + i);
        labels[1] = (int32_t)s + 3;
        check(record_batch(record, s, x, labels));
        struct step_record step = fake_step(&fake, s);
        check(record_step(record, &step));
    }
    executor_parameter(exec, 0)[0] = -5;
    executor_gradient(exec, 0)[0] = 7;
    for (int i = 0; i < fake.job.graph->states; i++) set_running(exec, i, 100 + (float)i);
    check(record_tensors(record, true, exec));
    check(record_finish(record, "completed", &summary, NULL));

    char name[512];
    hsize_t extent[8];
    float *values = calloc((size_t)p->elements, sizeof *values);
    hid_t file = open_raw(path);
    snprintf(name, sizeof name, "/state/initial/%s", p->name);
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(id);
    cr_assert(H5Sget_simple_extent_dims(space, extent, NULL) == p->definition.shape.rank);
    for (int i = 0; i < p->definition.shape.rank; i++) cr_assert((int64_t)extent[i] == p->definition.shape.dim[i]);
    H5Sclose(space);
    H5Dclose(id);
    read_raw(file, name, H5T_NATIVE_FLOAT, values);
    for (int64_t i = 0; i < p->elements; i++) cr_assert(values[i] == (float)i);
    snprintf(name, sizeof name, "/state/final/%s", p->name);
    read_raw(file, name, H5T_NATIVE_FLOAT, values);
    cr_assert(values[0] == -5 && values[1] == 1);
    snprintf(name, sizeof name, "/state/gradient/%s", p->name);
    read_raw(file, name, H5T_NATIVE_FLOAT, values);
    cr_assert(values[0] == 7 && values[1] == 0);
    cr_assert(fake.job.graph->states == 2);
    for (int i = 0; i < 2; i++)
        check_running(file, "initial", i, (float)i), check_running(file, "final", i, 100 + (float)i);
    cr_assert(rows_raw(file, "/state/x") == 2 && rows_raw(file, "/state/labels") == 2);
    read_raw(file, "/state/x", H5T_NATIVE_FLOAT, back);
    for (int64_t i = 0; i < 2 * elements; i++) cr_assert(back[i] == (float)((i >= elements ? 7 : 0) + i % elements));
    H5Fclose(file);
    free(values), free(x), free(back);
    executor_destroy(exec);
}

Test(record, id_depends_on_everything_that_changes_bits)
{
    char id[RUN_ID_TEXT], other[RUN_ID_TEXT];
    check(run_id_compute(&fake.job, id));
    cr_assert(strlen(id) == 16 && strspn(id, "0123456789abcdef") == 16);
    static const char *const same[] = {"rematch: 1\nname: other\nbatch: 4\n",
                                       "rematch: 1\nname: fake\ntitle: 'x'\nbatch: 4\nsweep:\n  batch: [1]\n",
                                       "rematch: 1\nbatch: 4\nexpect:\n- what: loss\n  below: 1\nresults: there\n"};
    static const char *const not_same[] = {"rematch: 1\nname: fake\nbatch: 5\n",
                                           "rematch: 1\nname: fake\nbatch: 4\ndata:\n  name: ones\n",
                                           "rematch: 1\nexpect:\n  - loss\nbatch: 4\nseed: 1\n"};
    for (size_t i = 0; i < 3; i++) {
        fake.spec.resolved = same[i];
        check(run_id_compute(&fake.job, other));
        cr_assert(strcmp(id, other) == 0, "%s", same[i]);
        fake.spec.resolved = not_same[i];
        check(run_id_compute(&fake.job, other));
        cr_assert(strcmp(id, other) != 0, "%s", not_same[i]);
    }
    fake.spec.resolved = same[0];
    fake.dataset.digest.low++;
    check(run_id_compute(&fake.job, other));
    cr_assert(strcmp(id, other) != 0, "other data, same id");
    fake.dataset.digest.low--;
    fake.job.backend->options.threads++;
    check(run_id_compute(&fake.job, other));
    cr_assert(strcmp(id, other) != 0, "other threads, same id");
    fake.job.backend->options.threads--;
    fake.job.plan->hash.low++;
    check(run_id_compute(&fake.job, other));
    cr_assert(strcmp(id, other) != 0, "another plan, same id");
    fake.job.plan->hash.low--;
    const char **const texts[] = {&fake.job.backend->isa, &fake.job.backend->libraries, &fake.job.backend->device};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *kept = *texts[i];
        *texts[i] = "another";
        check(run_id_compute(&fake.job, other));
        cr_assert(strcmp(id, other) != 0, "text %zu of the backend is another, same id", i);
        *texts[i] = kept;
    }
    check(run_id_compute(&fake.job, other));
    cr_assert(strcmp(id, other) == 0, "nothing is another");
}

Test(record, a_control_does_not_replace_its_baseline)
{
    char baseline[1024], control[1024];
    fake_write(&fake, "baseline", 2, NULL, baseline);
    fake_write(&fake, "variant", 2, NULL, control);
    cr_assert(strcmp(baseline, control) != 0, "%s", control);
    cr_assert(folder_count(folder, ".h5") == 2);
    fake_write(&fake, "baseline", 3, NULL, control);
    cr_assert(strcmp(baseline, control) == 0 && folder_count(folder, ".h5") == 2);
}

/* As if writing the last `committed` had failed. */
Test(record, an_uncommitted_last_row_of_a_part_does_not_count)
{
    char part[1100];
    struct result *result;
    fake_write(&fake, "variant", 3, NULL, path);
    alter_element(path, "/steps/committed", 2, -1);
    cr_assert(result_open(path, &result) == ST_FAILED, "the finished file has no such row");
    snprintf(part, sizeof part, "%s.part", path);
    cr_assert(rename(path, part) == 0);
    check(result_open(part, &result));
    cr_assert(result->steps == 2 && result->step[1] == 1, "%zu steps", result->steps);
    result_close(result);
}

Test(record, one_writer_at_a_time)
{
    struct record *first, *second;
    check(record_create(&fake.job, "variant", &first));
    struct step_record step = fake_step(&fake, 0);
    check(record_step(first, &step));
    cr_assert(record_create(&fake.job, "variant", &second) == ST_FAILED);
    cr_assert(strstr(status_message(), "another process is writing it"), "%s", status_message());
    step = fake_step(&fake, 1);
    check(record_step(first, &step));
    struct run_summary summary = {0};
    check(record_finish(first, "interrupted", &summary, NULL));
    cr_assert(folder_count(folder, ".h5.part") == 1 && folder_count(folder, "") == 1);
    check(record_create(&fake.job, "variant", &second));
    check(record_finish(second, "completed", &summary, NULL));
}

Test(record, a_folder_that_cannot_be_written_is_an_error)
{
    struct fake other;
    struct record *record;
    char file[300], *const cases[] = {file, (char[]){"/proc/1/results"}};
    snprintf(file, sizeof file, "%s/taken", folder);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    for (size_t i = 0; i < 2; i++) {
        fake_open(&other, &nets[0], cases[i]);
        cr_assert(record_create(&other.job, "variant", &record) == ST_FAILED && !record);
        cr_assert(strstr(status_message(), cases[i]) && strstr(status_message(), "results folder"), "%s",
                  status_message());
        fake_close(&other);
    }
}
