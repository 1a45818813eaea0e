/* The numbers of a file's run, checked against each other. Contract: the first number that does not follow from the
 * others is named, with the expected value; numbers that depend on no other are in verify_not_checked[]. */
#include <math.h>
#include <string.h>

#include "analysis/proof_rule.h"
#include "analysis/verify.h"
#include "base/text.h"
#include "console/utf8.h"
#include "result/record.h"
#include "result/record_plan.h"

#define EXPECT(good, ...)                                                                                              \
    do {                                                                                                               \
        if (!(good)) return fail(ST_DIFFERS, __VA_ARGS__);                                                             \
    } while (0)

const char *const verify_not_checked[] = {
    "measured times beyond their sums",
    "resident set and high-water marks beyond the overhead",
    "clocks of the classes of ops",
    "created, invocation",
    "the text of the spec and its overrides",
    "processor, cores, memory and system of the host",
    "versions of libraries without kernels",
    "the state of the repository when it ran",
    "the policy's note on its search",
    "why a run ended early",
    "when and where its pieces ran, and how they ended",
    NULL,
};

static const char *text_at(const struct verification *v, const char *object, const char *name)
{
    return h5_read_attribute_text(&v->result->h5, object, name, NULL, v->result->region);
}

static uint64_t number_at(const struct verification *v, const char *object, const char *name)
{
    uint64_t value = 0;
    h5_read_value(&v->result->h5, object, name, NUMBER_U64, false, &value, NULL);
    return value;
}

static double real_at(const struct verification *v, const char *object, const char *name)
{
    double value = 0;
    h5_read_value(&v->result->h5, object, name, NUMBER_F64, false, &value, NULL);
    return value;
}

static bool is(const struct verification *v, const char *status) { return strcmp(v->result->status, status) == 0; }
static bool on_device(const struct verification *v) { return h5_exists(&v->result->h5, "/provenance/gpu"); }

/* ---- names and status ---- */

static enum status check_status(const struct verification *v)
{
    const struct result *r = v->result;
    const bool plan = strcmp(r->variant, "plan") == 0, completed = is(v, "completed"), planned = is(v, "planned");
    const bool failed = strncmp(r->status, "failed: ", 8) == 0;
    const long long steps = v->spec->steps;
    const bool baseline = strcmp(r->variant, "baseline") == 0;
    const char *why_none = baseline ? proof_no_baseline(v->spec->policy->name, &v->data, r->region) : NULL;
    EXPECT(plan || baseline || !strcmp(r->variant, "variant"), "@variant is %s; expected baseline, variant or plan",
           r->variant);
    EXPECT(!why_none, "@variant is baseline; expected variant, as it %s", why_none);
    EXPECT(completed || planned || failed || is(v, "running") || is(v, "interrupted"),
           "@status is %s; expected planned, running, completed, interrupted or failed: ...", r->status);
    EXPECT(plan == planned, "@status is %s where @variant is %s", r->status, r->variant);
    EXPECT(!planned || !r->steps, "@status is planned; expected no steps, /steps has %zu", r->steps);
    EXPECT(!completed || !text_ends(r->h5.path, ".part"), "@status is completed in a .part; expected a .h5");
    EXPECT(completed || planned || !r->whole, "@status is %s in a .h5; expected completed", r->status);
    EXPECT(!completed || !steps || (long long)r->steps == steps, "/steps has %zu rows; expected %lld, as in the spec",
           r->steps, steps);
    EXPECT(!steps || (long long)r->steps <= steps, "/steps has %zu rows; expected at most %lld, as in the spec",
           r->steps, steps);
    return ST_OK;
}

static enum status check_names(const struct verification *v)
{
    const struct spec *spec = v->spec;
    const struct {
        const char *object, *name, *expected;
    } texts[] = {
        {"/", "experiment", spec->name},
        {"/", "title", spec->title ? spec->title : ""},
        {"/", "software", "rematch"},
        {"/", "software_version", text_at(v, "/provenance/git", "commit")},
        {"/", "NX_class", "NXroot"},
        {"/", "default", "steps"},
        {"/steps", "NX_class", "NXdata"},
        {"/steps", "signal", "loss"},
        {"/steps", "axes", "step"},
        {"/plan", "policy", spec->policy->name},
        {"/memory", "mode", spec_memory_names[spec->memory]},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *found = text_at(v, texts[i].object, texts[i].name);
        char *expected = region_text(v->result->region, "%s", texts[i].expected);
        utf8_clean(expected, "");
        EXPECT(!strcmp(found, expected), "%s@%s is %s; expected %s", texts[i].object, texts[i].name, found, expected);
    }
    return ST_OK;
}

enum status verify_run_id(struct result *r, struct run_id_parts *identity)
{
    struct h5 *h5 = &r->h5;
    *identity = (struct run_id_parts){
        .resolved = h5_read_text(h5, "/spec/resolved", r->region),
        .program = h5_read_attribute_text(h5, "/provenance/build", "program_xxh3", NULL, r->region),
        .data = h5_read_attribute_text(h5, "/provenance/data", "digest_xxh3", NULL, r->region),
        .libraries = h5_read_attribute_text(h5, "/provenance/libs", "kernels", NULL, r->region),
        .libc = h5_read_attribute_text(h5, "/provenance/libs", "libc", NULL, r->region),
        .isa = h5_read_attribute_text(h5, "/provenance/host", "isa", NULL, r->region),
        .plan = r->plan_hash,
        .costs = h5_read_attribute_text(h5, "/plan", "costs_digest_xxh3", "", r->region),
        .weights = h5_read_attribute_text(h5, "/provenance/weights", "sha256", "", r->region),
        .device = h5_read_attribute_text(h5, "/provenance/gpu", "device", "", r->region),
    };
    h5_read_value(h5, "/provenance/host", "threads", NUMBER_U64, false, &identity->threads, NULL);
    return h5_status(h5);
}

static enum status check_id(const struct verification *v)
{
    struct run_id_parts identity;
    char id[RUN_ID_TEXT];
    TRY(verify_run_id(v->result, &identity));
    run_id_print(&identity, v->result->region, id);
    EXPECT(!strcmp(id, v->result->run_id),
           "@run_id is %s; the spec, program, data, libraries, ISA, threads and plan of the file have %s",
           v->result->run_id, id);
    return ST_OK;
}

static bool is_digest(const char *text, size_t digits)
{
    return strspn(text, "0123456789abcdef") == digits && !text[digits];
}

/* The digest of measured costs is of the times that the file gives its nodes. */
static enum status check_costs(const struct verification *v)
{
    struct result *r = v->result;
    double rest = -1, add = 0, copy = 0;
    struct cost *cost;
    char digest[33];
    const char *claimed = h5_read_attribute_text(&r->h5, "/plan", "costs_digest_xxh3", "", r->region);
    h5_read_value(&r->h5, "/plan", "costs_rest_ns", NUMBER_F64, true, &rest, NULL);
    h5_read_value(&r->h5, "/plan", "costs_add_ns_per_byte", NUMBER_F64, true, &add, NULL);
    h5_read_value(&r->h5, "/plan", "costs_copy_ns_per_byte", NUMBER_F64, true, &copy, NULL);
    if (rest < 0) return h5_status(&r->h5); /* flops, or a file of before */
    NEW(r->region, cost, (size_t)v->data.nodes);
    record_plan_costs(&v->data, cost);
    digest_print(costs_digest(cost, v->data.nodes, rest, add, copy), digest);
    EXPECT(!strcmp(digest, claimed), "/plan@costs_digest_xxh3 is %s; expected %s, of the costs of /plan", claimed,
           digest);
    return h5_status(&r->h5);
}

static enum status check_provenance(const struct verification *v)
{
    struct result *r = v->result;
    static const char *const texts[][2] = {{"git", "tree_commit"}, {"git", "tree_diff_xxh3"}, {"build", "compiler"},
                                           {"build", "flags"},     {"build", "variant"},      {"build", "backends"},
                                           {"libs", "hdf5"},       {"libs", "libyaml"},       {"libs", "jansson"},
                                           {"libs", "utf8proc"},   {"host", "cpu"},           {"host", "kernel"},
                                           {"host", "machine"},    {"data", "name"},          {"data", "notice"}};
    char group[64];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(group, sizeof group, "/provenance/%s", texts[i][0]);
        (void)text_at(v, group, texts[i][1]);
    }
    const bool synthetic = number_at(v, "/provenance/data", "synthetic") != 0;
    const uint64_t dirty = number_at(v, "/provenance/git", "dirty");
    const char *patch = text_at(v, "/provenance/git", "dirty_sha1"),
               *data = text_at(v, "/provenance/data", "digest_xxh3");
    const uint64_t cores = number_at(v, "/provenance/host", "cores"), files = h5_rows(&r->h5, "/provenance/data/file");
    size_t sums;
    const char **sha256 = h5_read_texts(&r->h5, "/provenance/data/sha256", r->region, &sums);
    EXPECT(dirty <= 1 && is_digest(patch, dirty ? 40 : 0), "/provenance/git@dirty_sha1 is '%s' where @dirty is %llu",
           patch, (unsigned long long)dirty);
    EXPECT(is_digest(data, 32), "/provenance/data@digest_xxh3 is '%s'; expected 32 hexadecimal digits", data);
    EXPECT(cores, "/provenance/host@cores is 0; expected at least 1");
    EXPECT(synthetic == !files, "/provenance/data@synthetic is %d where it has %llu files", synthetic,
           (unsigned long long)files);
    EXPECT(sums == files, "/provenance/data/sha256 has %zu rows; expected %llu", sums, (unsigned long long)files);
    for (size_t i = 0; i < sums; i++)
        EXPECT(is_digest(sha256[i], 64), "/provenance/data/sha256 is '%s'; expected 64 hexadecimal digits", sha256[i]);
    return check_costs(v);
}

/* ---- the plan's names ---- */

static enum status check_list(const struct verification *v, const char *path, size_t count, const char *const *expected)
{
    size_t found;
    const char **texts = h5_read_texts(&v->result->h5, path, v->result->region, &found);
    EXPECT(found == count, "%s has %zu rows; expected %zu", path, found, count);
    for (size_t i = 0; i < count; i++)
        EXPECT(!strcmp(texts[i], expected[i]), "%s %zu is %s; expected %s", path, i, texts[i], expected[i]);
    return ST_OK;
}

/* Ops and buffers as text, and the buffers that are live at the peak. */
static enum status check_plan_names(const struct verification *v)
{
    const struct plan_data *a = &v->data;
    struct record_plan_names names;
    record_plan_names(a, v->result->region, &names);
    TRY(check_list(v, "/plan/ops/text", (size_t)a->ops, names.op));
    TRY(check_list(v, "/plan/buffers/text", (size_t)a->buffers, names.buffer));
    TRY(check_list(v, "/plan/peak_tensors", names.peaks, names.peak));
    if (!v->spec->record_digests) return ST_OK;
    TRY(check_list(v, "/digests/tensor", v->result->parameters.count, v->result->parameters.name));
    if (!v->result->running.count) return ST_OK;
    return check_list(v, "/digests/running_tensor", v->result->running.count, v->result->running.name);
}

/* ---- the steps ---- */

/* Row i of a table with a row a step is of step i. */
static enum status check_rows(const struct verification *v, const char *path)
{
    struct result *r = v->result;
    const uint32_t *step = result_column(r, path, NUMBER_U32, 1, r->steps);
    TRY(h5_status(&r->h5));
    for (size_t i = 0; i < r->steps; i++) EXPECT(step[i] == i, "%s: row %zu is of step %u", path, i, step[i]);
    return ST_OK;
}

static enum status check_steps(const struct verification *v)
{
    const struct result *r = v->result;
    TRY(check_rows(v, "/steps/step"));
    if (v->spec->record_digests) TRY(check_rows(v, "/digests/step"));
    for (size_t i = 0; i < r->steps; i++)
        EXPECT(r->live[i] == v->data.count[COUNT_LIVE_PEAK], "step %zu: live_peak is %llu; expected %zu, as planned", i,
               (unsigned long long)r->live[i], v->data.count[COUNT_LIVE_PEAK]);
    return ST_OK;
}

/* The processes that made the run, each of which took over a state of what was recorded before. */
static enum status check_pieces(const struct verification *v)
{
    struct result *r = v->result;
    size_t count;
    if (is(v, "planned")) return ST_OK;
    const struct record_piece *piece = record_pieces_read(&r->h5, r->region, &count);
    TRY(h5_status(&r->h5));
    EXPECT(count && !piece[0].step && !piece[0].state, "/pieces: expected a first piece from step 0");
    for (size_t i = 0; i < count; i++) {
        const uint32_t before = i ? piece[i - 1].step : 0;
        EXPECT(piece[i].step >= before && piece[i].step <= r->steps, "/pieces/step %zu is %u; expected %u..%zu", i,
               piece[i].step, before, r->steps);
        EXPECT(piece[i].state <= piece[i].step && (!i || piece[i].state),
               "/pieces/state %zu is %u; expected %d..%u, of which there was a state", i, piece[i].state, i > 0,
               piece[i].step);
        EXPECT(!*piece[i].ended == (i + 1 == count), "/pieces/ended %zu is '%s'", i, piece[i].ended);
    }
    return ST_OK;
}

/* The parts of a step are at most the step; not on a device, whose clock is another. */
static enum status check_times(const struct verification *v)
{
    static const char *const parts[] = {"data_ns",     "forward_ns",   "recompute_ns",
                                        "backward_ns", "optimizer_ns", "digest_ns"};
    struct result *r = v->result;
    uint64_t *sum;
    char path[64];
    NEW(r->region, sum, r->steps);
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
        snprintf(path, sizeof path, "/steps/%s", parts[part]);
        const uint64_t *ns = result_column(r, path, NUMBER_U64, 1, r->steps);
        TRY(h5_status(&r->h5));
        for (size_t i = 0; i < r->steps && !on_device(v); i++) {
            EXPECT(ns[i] <= r->total_ns[i] && (sum[i] += ns[i]) <= r->total_ns[i],
                   "step %zu: total_ns is %llu; its parts up to %s make more", i, (unsigned long long)r->total_ns[i],
                   parts[part]);
        }
    }
    return ST_OK;
}

/* The bytes of the steps that the spec lists are those of the plan, also where an allocator counted them. */
static enum status check_memory(const struct verification *v)
{
    struct result *r = v->result;
    const size_t ops = (size_t)v->data.ops;
    uint64_t *live, rows = h5_rows(&r->h5, "/memory/step"), row = 0;
    NEW(r->region, live, ops);
    for (uint32_t step = 0, kept; step < r->steps; step++) {
        if (!record_wants_memory(v->spec, step)) continue;
        EXPECT(row < rows, "/memory has no row of step %u", step);
        h5_read_rows(&r->h5, "/memory/step", NUMBER_U32, 1, row, 1, &kept);
        h5_read_rows(&r->h5, "/memory/live", NUMBER_U64, ops, row, 1, live);
        EXPECT(kept == step, "/memory/step %llu is %u; expected %u", (unsigned long long)row, kept, step);
        for (size_t i = 0; i < ops; i++)
            EXPECT(live[i] == v->data.live[i], "/memory/live: step %u, op %zu: %llu bytes; expected %zu, as planned",
                   step, i, (unsigned long long)live[i], v->data.live[i]);
        row++;
    }
    EXPECT(row == rows || !is(v, "completed"), "/memory has %llu rows; expected %llu", (unsigned long long)rows,
           (unsigned long long)row);
    return ST_OK;
}

static enum status check_evaluations(const struct verification *v)
{
    struct result *r = v->result;
    const int64_t each =
        v->spec->epochs ? 0 : v->spec->eval_every; /* with epochs it depends on the data; the second run checks it */
    const uint64_t rows = h5_rows(&r->h5, "/eval/committed");
    uint32_t last = 0, step;
    for (uint64_t i = 0; i < rows; i++, last = step) {
        float accuracy;
        h5_read_rows(&r->h5, "/eval/step", NUMBER_U32, 1, i, 1, &step);
        h5_read_rows(&r->h5, "/eval/accuracy", NUMBER_F32, 1, i, 1, &accuracy);
        EXPECT(v->spec->eval_every, "/eval has %llu rows; expected none", (unsigned long long)rows);
        EXPECT(step > last && step <= r->steps, "/eval/step %llu is %u; expected %u..%zu", (unsigned long long)i, step,
               last + 1, r->steps);
        EXPECT(!each || step % each == 0 || step == v->spec->steps,
               "/eval/step %llu is %u; expected a multiple of %lld", (unsigned long long)i, step, (long long)each);
        EXPECT(accuracy >= 0 && accuracy <= 1, "/eval/accuracy %llu is %g; expected 0..1", (unsigned long long)i,
               (double)accuracy);
    }
    if (!each || !is(v, "completed")) return ST_OK;
    const uint64_t expected = (uint64_t)((v->spec->steps + each - 1) / each);
    EXPECT(rows == expected, "/eval has %llu rows; expected %llu", (unsigned long long)rows,
           (unsigned long long)expected);
    return ST_OK;
}

/* ---- the tensors ---- */

static enum status digest_of(const struct verification *v, const char *what, const char *name, size_t elements,
                             struct digest *digest)
{
    struct h5 *h5 = &v->result->h5;
    char path[512];
    snprintf(path, sizeof path, "/state/%s/%s", what, name);
    const uint64_t rows = h5_rows(h5, path);
    EXPECT(rows && elements % rows == 0, "%s has %llu rows; expected a divisor of %zu", path, (unsigned long long)rows,
           elements);
    freed_auto float *values = allocate(elements, sizeof *values);
    h5_read_rows(h5, path, NUMBER_F32, elements / rows, 0, rows, values);
    *digest = digest_tensor(values, elements * sizeof *values, 1);
    return h5_status(h5);
}

/* Whether it is the gradient of a parameter that is not trained: it is not there, and its digest, which may not be
 * recorded, is 0. */
static bool not_computed(const struct verification *v, const char *what, const char *name, const struct digest *digest)
{
    const char *path = region_text(v->result->region, "/state/%s/%s", what, name);
    return !strcmp(what, "gradient") && !h5_exists(&v->result->h5, path) &&
           (!digest || digest_equal(*digest, (struct digest){0}));
}

/* The tensors at the end are those whose digests the last step has. */
static enum status check_state(const struct verification *v)
{
    struct result *r = v->result;
    const struct {
        const char *what;
        enum digests digests;
        const struct digest *of_step;
    } kinds[] = {{"final", DIGESTS_PARAMETER, r->parameters_digest},
                 {"gradient", DIGESTS_GRADIENT, r->gradients},
                 {"final", DIGESTS_RUNNING, r->running_digest}};
    struct digest *found;
    if (!v->spec->record_state) return ST_OK;
    TRY(check_rows(v, "/state/step"));
    if (!is(v, "completed") || !r->steps) return ST_OK;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const struct result_tensors *tensors = result_tensors(r, kinds[k].digests);
        if (!tensors->count) continue;
        NEW(r->region, found, tensors->count);
        const struct digest *of_tensor = result_digests(r, kinds[k].digests, r->step[r->steps - 1]);
        for (size_t i = 0; i < tensors->count; i++) {
            if (not_computed(v, kinds[k].what, tensors->name[i], of_tensor ? &of_tensor[i] : NULL)) continue;
            TRY(digest_of(v, kinds[k].what, tensors->name[i], tensors->elements[i], &found[i]));
            EXPECT(!of_tensor || digest_equal(found[i], of_tensor[i]),
                   "/state/%s/%s is not what the last step's digest is of", kinds[k].what, tensors->name[i]);
        }
        EXPECT(digest_equal(digest_bytes(found, tensors->count * sizeof *found), kinds[k].of_step[r->steps - 1]),
               "/state/%s is not what the last step's digest is of", kinds[k].what);
    }
    return ST_OK;
}

/* ---- the summary ---- */

/* Numbers that follow from the steps, the plan and what was measured. */
static enum status check_numbers(const struct verification *v)
{
    struct result *r = v->result;
    const bool device = on_device(v);
    const size_t *count = v->data.count,
                 arena = count[v->spec->memory == MEMORY_DYNAMIC ? COUNT_LIVE_PEAK : COUNT_ARENA];
    const struct run_summary summary = {
        .high_water = number_at(v, "/summary", "high_water_bytes"),
        .device_used = device ? number_at(v, "/summary", "device_used_bytes") : 0,
    };
    const struct record_numbers expected = record_numbers(r, &summary, count[COUNT_PEAK], count[COUNT_STATIC] + arena);
    const struct field *const columns[] = {record_number_columns, record_device_columns};
    struct record_numbers found = {0};
    for (int i = 0; i < (device ? 2 : 1); i++) {
        size_t row;
        char is[96], should[96];
        table_read_attributes(&r->h5, "/summary", columns[i], &found, true, r->region);
        const struct field *c = table_difference(columns[i], 1, &found, &expected, sizeof found, &row);
        EXPECT(!c, "/summary@%s is %s; expected %s", c->name, column_text(c, &found, is),
               column_text(c, &expected, should));
    }
    EXPECT(number_at(v, "/summary", "start_rss_bytes") <= summary.high_water,
           "/summary@start_rss_bytes is above high_water_bytes, %llu", (unsigned long long)summary.high_water);
    return ST_OK;
}

static enum status check_prediction(const struct verification *v)
{
    const struct timing *t = &v->result->timing;
    if (strcmp(text_at(v, "/plan", "costs"), "measured") != 0) return ST_OK;
    const double predicted = real_at(v, "/summary", "predicted_step_ns"),
                 percent = 100 * (predicted / t->median_ns - 1);
    EXPECT(predicted == real_at(v, "/plan", "predicted_step_ns"), "/summary@predicted_step_ns is not that of /plan");
    if (!t->steps) return ST_OK;
    const double found = real_at(v, "/summary", "prediction_percent");
    EXPECT(fabs(found - percent) <= 1e-9 * (1 + fabs(percent)), "/summary@prediction_percent is %g; expected %g", found,
           percent);
    return ST_OK;
}

/* The steps take at most the whole run, and the least times of all ops at most the fastest step. */
static enum status check_sums(const struct verification *v)
{
    struct result *r = v->result;
    const uint64_t wall = number_at(v, "/summary", "wall_ns"), rows = (uint64_t)v->data.ops;
    uint64_t left = wall, setup = number_at(v, "/summary", "setup_ns");
    EXPECT(setup <= left, "/summary@wall_ns is less than setup_ns");
    left -= setup;
    for (size_t i = 0; i < r->steps; left -= r->total_ns[i++])
        EXPECT(r->total_ns[i] <= left, "/summary@wall_ns is less than setup_ns and the steps up to %zu", i);
    const bool there = h5_exists(&r->h5, "/summary/op_least_ns");
    EXPECT(there == (r->timing.steps > 0) || (on_device(v) && !there), "/summary/op_least_ns is %s",
           there ? "there" : "missing"); /* an older file of a device has none */
    if (!there) return ST_OK;
    uint64_t sum = number_at(v, "/summary", "rest_least_ns"), claimed = number_at(v, "/summary", "step_best_case_ns");
    EXPECT(h5_rows(&r->h5, "/summary/op_least_ns") == rows, "/summary/op_least_ns: expected a row an op");
    const uint64_t *op = result_column(r, "/summary/op_least_ns", NUMBER_U64, 1, rows);
    TRY(h5_status(&r->h5));
    for (uint64_t i = 0; i < rows; i++) sum += op[i];
    EXPECT(sum == claimed, "/summary@step_best_case_ns is %llu; expected %llu", (unsigned long long)claimed,
           (unsigned long long)sum);
    if (on_device(v) || h5_rows(&r->h5, "/pieces/piece") > 1)
        return ST_OK; /* another clock; or the times of ops are lost after a piece's last state */
    EXPECT((double)sum <= r->timing.least_ns, "/summary@step_best_case_ns is %llu; expected at most step_least_ns",
           (unsigned long long)sum);
    return ST_OK;
}

/* Written when a run ends. */
static enum status check_summary(const struct verification *v)
{
    if (is(v, "planned") || is(v, "running")) return ST_OK;
    TRY(check_numbers(v));
    TRY(check_prediction(v));
    return check_sums(v);
}

/* ---- all of it ---- */

enum status verify_record(struct verification *v)
{
    static enum status (*const checks[])(const struct verification *) = {
        check_status, check_names, check_id,     check_provenance,  check_plan_names, check_steps,
        check_pieces, check_times, check_memory, check_evaluations, check_state,      check_summary,
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        enum status status = checks[i](v);
        const enum status read = h5_status(&v->result->h5);
        if (read != ST_OK) return read; /* the check saw zeros instead of the file's numbers */
        if (status == ST_OK) continue;
        v->wrong_record = region_text(v->result->region, "%s", status_message());
        return status == ST_DIFFERS ? ST_OK : status;
    }
    return ST_OK;
}
