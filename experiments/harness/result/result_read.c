/* Contract: an inconsistent file is refused with a message about what is wrong; nothing is guessed. */
#include "result/result_read.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "result/record_file.h"
#include "yaml/yaml_tree.h"

static enum status check_schema(struct result *r)
{
    const char *schema = h5_read_attribute_text(&r->h5, "/", "schema", "", r->region);
    const char *version = h5_read_attribute_text(&r->h5, "/", "schema_version", "", r->region);
    TRY(h5_status(&r->h5));
    if (strcmp(schema, "rematch-run") != 0)
        return fail(ST_SPEC, "%s: schema '%s'; expected 'rematch-run'", r->h5.path, schema);
    if (strncmp(version, "5.", 2) != 0)
        return fail(ST_SPEC, "%s: schema version '%s'; expected 5.x: run the experiment again", r->h5.path, version);
    return ST_OK;
}

static void read_root(struct result *r)
{
    const struct {
        const char **to, *object, *name;
    } texts[] = {
        {&r->run_id, "/", "run_id"},         {&r->variant, "/", "variant"},
        {&r->status, "/", "status"},         {&r->created, "/", "created"},
        {&r->invocation, "/", "invocation"}, {&r->policy, "/plan", "policy"},
        {&r->plan_hash, "/plan", "hash"},    {&r->not_finite, "/summary", "not_finite"},
    };
    const struct {
        uint64_t *to;
        const char *object, *name;
    } numbers[] = {
        {&r->peak_bytes, "/plan", "peak_bytes"},
        {&r->high_water, "/summary", "high_water_bytes"},
        {&r->best_case_ns, "/summary", "step_best_case_ns"},
        {&r->not_finite_step, "/summary", "not_finite_step"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i].to = h5_read_attribute_text(&r->h5, texts[i].object, texts[i].name, "", r->region);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i].to = h5_read_attribute_u64(&r->h5, numbers[i].object, numbers[i].name, 0);
}

static enum status read_tensors(struct result *r, const char *table, struct result_tensors *tensors)
{
    tensors->name = h5_read_texts(&r->h5, region_text(r->region, "%s/name", table), r->region, &tensors->count);
    TRY(h5_status(&r->h5));
    tensors->elements = result_column(r, region_text(r->region, "%s/elements", table), NUMBER_U64, 1, tensors->count);
    return h5_status(&r->h5);
}

const char *const digest_paths[DIGESTS] = {
    [DIGESTS_GRADIENT] = "/digests/gradient",
    [DIGESTS_PARAMETER] = "/digests/parameter",
    [DIGESTS_STATE] = "/digests/state",
    [DIGESTS_RUNNING] = "/digests/running",
};

#define MEMBER(name) offsetof(struct result, name)
/* The first ones are digests of all that enum digests names. */
static const struct {
    const char *path;
    enum number number;
    size_t width, member; /* member: the pointer to its rows */
} step_columns[] = {
    [DIGESTS_GRADIENT] = {"/steps/grad_digest", NUMBER_U64, 2, MEMBER(gradients)},
    [DIGESTS_PARAMETER] = {"/steps/param_digest", NUMBER_U64, 2, MEMBER(parameters_digest)},
    [DIGESTS_STATE] = {"/steps/state_digest", NUMBER_U64, 2, MEMBER(state)},
    [DIGESTS_RUNNING] = {"/steps/running_digest", NUMBER_U64, 2, MEMBER(running_digest)},
    {"/steps/committed", NUMBER_U8, 1, MEMBER(committed)},
    {"/steps/step", NUMBER_U32, 1, MEMBER(step)},
    {"/steps/loss", NUMBER_F32, 1, MEMBER(loss)},
    {"/steps/loss_bits", NUMBER_U32, 1, MEMBER(loss_bits)},
    {"/steps/total_ns", NUMBER_U64, 1, MEMBER(total_ns)},
    {"/steps/live_peak", NUMBER_U64, 1, MEMBER(live)},
    {"/steps/gradients_zero", NUMBER_U8, 1, MEMBER(gradients_zero)},
};
enum { STEP_COLUMNS = sizeof step_columns / sizeof *step_columns };

const struct result_tensors *result_tensors(const struct result *result, enum digests which)
{
    return which == DIGESTS_RUNNING ? &result->running : &result->parameters;
}

/* Every row is committed, loss and its bit pattern agree, steps ascend. */
static enum status check_steps(const struct result *r)
{
    for (size_t i = 0; i < r->steps; i++) {
        if (!r->committed[i])
            return fail(ST_FAILED, "%s: row %zu of /steps is counted, but not committed", r->h5.path, i);
        uint32_t bits;
        memcpy(&bits, &r->loss[i], sizeof bits);
        if (bits != r->loss_bits[i])
            return fail(ST_FAILED, "%s: step %u: loss and loss_bits disagree", r->h5.path, r->step[i]);
        if (i && r->step[i] <= r->step[i - 1])
            return fail(ST_FAILED, "%s: step %u comes after step %u", r->h5.path, r->step[i], r->step[i - 1]);
    }
    return ST_OK;
}

/* A step's digest must be the digest of its tensors' digests, of which a step has at most one row. */
static enum status check_digests(struct result *r, enum digests which)
{
    enum { BLOCK = 256, BYTES = 1 << 20 };
    const char *path = digest_paths[which];
    const size_t tensors = result_tensors(r, which)->count;
    struct digest *found, *of_step;
    if (!h5_exists(&r->h5, path)) return h5_status(&r->h5);
    if (tensors == 0) return fail(ST_FAILED, "%s: has %s, but no tensors for them", r->h5.path, path);
    const uint64_t fit = BYTES / (tensors * sizeof *found), block = fit < 1 ? 1 : fit < BLOCK ? fit : BLOCK;
    h5_expect_rows(&r->h5, path, NUMBER_U64, 2 * tensors, r->digest_rows);
    TRY(h5_status(&r->h5));
    memcpy(&of_step, (char *)r + step_columns[which].member, sizeof of_step);
    NEW(r->region, found, block * tensors);
    for (uint64_t first = 0, row = 0, count; first < r->digest_rows; first += count) {
        const uint32_t *steps = r->digest_step + first;
        count = r->digest_rows - first < block ? r->digest_rows - first : block;
        h5_read_rows(&r->h5, path, NUMBER_U64, 2 * tensors, first, count, found);
        TRY(h5_status(&r->h5));
        for (uint64_t i = 0; i < count; i++) {
            while (row < r->steps && r->step[row] < steps[i]) row++;
            if (row == r->steps || r->step[row] != steps[i]) continue;
            const struct digest *own = found + i * tensors;
            if (!digest_equal(digest_bytes(own, tensors * sizeof *own), of_step[row++]))
                return fail(ST_FAILED, "%s: step %u: %s and %s disagree", r->h5.path, steps[i],
                            step_columns[which].path + strlen("/steps/"), path);
        }
    }
    return ST_OK;
}

uint64_t result_committed_rows(struct result *r, const char *path)
{
    uint64_t rows = (r->whole ? h5_rows : h5_rows_stored)(&r->h5, path);
    uint8_t committed = r->whole;
    while (rows && !committed) {
        h5_read_rows(&r->h5, path, NUMBER_U8, 1, rows - 1, 1, &committed);
        rows -= !committed;
    }
    return rows;
}

/* Every column is checked before memory is allocated for any. */
static enum status read_steps(struct result *r)
{
    r->steps = result_committed_rows(r, "/steps/committed");
    for (size_t i = 0; i < STEP_COLUMNS; i++)
        h5_expect_rows(&r->h5, step_columns[i].path, step_columns[i].number, step_columns[i].width, r->steps);
    TRY(h5_status(&r->h5));
    for (size_t i = 0; i < STEP_COLUMNS; i++) {
        const size_t width = step_columns[i].width;
        void *rows = region_array(r->region, r->steps, width * h5_number_bytes(step_columns[i].number));
        memcpy((char *)r + step_columns[i].member, &rows, sizeof rows);
        h5_read_rows(&r->h5, step_columns[i].path, step_columns[i].number, width, 0, r->steps, rows);
    }
    for (size_t i = 0; i < r->steps; i++) r->live_peak = r->live[i] > r->live_peak ? r->live[i] : r->live_peak;
    r->timing = timing_of(r->total_ns, r->steps);
    TRY(h5_status(&r->h5));
    TRY(check_steps(r));
    if (h5_exists(&r->h5, "/digests")) {
        const uint64_t rows = h5_rows(&r->h5, "/digests/step");
        r->digest_rows = rows < r->steps ? rows : r->steps; /* the writer is ahead of what it has committed */
        r->digest_step = result_column(r, "/digests/step", NUMBER_U32, 1, r->digest_rows);
    }
    for (int which = 0; which < DIGESTS; which++) TRY(check_digests(r, (enum digests)which));
    return ST_OK;
}

/* HDF5 may open a file that was cut behind what it reads first; one that is written may not have its length yet. */
static enum status check_length(struct result *r)
{
    hsize_t bytes = 0;
    h5_guard(&r->h5);
    h5_check(&r->h5, H5Fget_filesize(r->h5.file, &bytes) >= 0, "read", "its length");
    h5_release(&r->h5);
    TRY(h5_status(&r->h5));
    if (bytes > r->h5.bytes)
        return fail(ST_FAILED, "%s: is cut: it has %" PRIu64 " of %" PRIu64 " bytes", r->h5.path, r->h5.bytes,
                    (uint64_t)bytes);
    return ST_OK;
}

static enum status read_all(struct result *r, const char *path)
{
    struct stat file;
    if (stat(path, &file) < 0)
        return fail(errno == ENOENT ? ST_SPEC : ST_FAILED, "%s: cannot read: %s", path, strerror(errno));
    if (!S_ISREG(file.st_mode)) return fail(ST_SPEC, "%s: not a file; expected a result or plan file", path);
    r->whole = text_ends(path, ".h5");
    r->lock = record_file_lock(path);
    enum status opened = h5_open(&r->h5, path, H5_READ);
    if (opened != ST_OK && H5Fis_hdf5(path) == 0)
        return fail(ST_SPEC, "%s: not an HDF5 file; expected a result or plan file", path);
    TRY(opened);
    if (r->whole) TRY(check_length(r));
    TRY(check_schema(r));
    read_root(r);
    TRY(read_tensors(r, "/plan/parameters", &r->parameters));
    if (r->parameters.count == 0 && !h5_exists(&r->h5, "/plan/operators"))
        return fail(ST_FAILED, "%s: has no parameters", r->h5.path);
    TRY(read_tensors(r, "/plan/running_states", &r->running));
    return read_steps(r);
}

enum status result_open(const char *path, struct result **result)
{
    *result = NULL;
    struct region *region = region_create();
    struct result *r = region_array(region, 1, sizeof *r);
    r->region = region;
    r->h5.file = -1;
    enum status status = read_all(r, region_text(region, "%s", path));
    if (status != ST_OK) {
        result_close(r);
        return status;
    }
    const bool running = strcmp(r->status, "running") == 0;
    r->written = running && r->lock != LOCK_FREE;
    r->now = !running || r->lock == LOCK_HELD ? r->status
             : r->written ? region_text(region, "running, or died after %zu steps (no locks here)", r->steps)
                          : region_text(region, "died after %zu steps", r->steps);
    *result = r;
    return ST_OK;
}

void result_close(struct result *result)
{
    if (!result) return;
    result->h5.broken = false; /* its failure was reported, and the message may have been added to */
    if (result->h5.file >= 0) h5_close(&result->h5);
    region_destroy(result->region);
}

void *result_column(struct result *result, const char *path, enum number number, size_t width, uint64_t rows)
{
    struct h5 *h5 = &result->h5;
    h5_expect_rows(h5, path, number, width, rows);
    if (h5->broken) rows = 0;
    void *column = region_array(result->region, rows, width * h5_number_bytes(number));
    if (rows) h5_read_rows(h5, path, number, width, 0, rows, column);
    return column;
}

enum status result_same_rows(struct result *a, struct result *b, const char *path, enum number number, uint64_t rows,
                             uint64_t *same)
{
    enum { SLICE = 4 << 20 };
    const uint64_t width = h5_width(&b->h5, path), bytes = width * h5_number_bytes(number),
                   most = bytes && bytes < SLICE ? SLICE / bytes : 1;
    freed_auto char *x = allocate((size_t)most, (size_t)bytes), *y = allocate((size_t)most, (size_t)bytes);
    for (*same = 0; *same < rows; ++*same) {
        const uint64_t row = *same % most, count = rows - *same < most ? rows - *same : most;
        if (row == 0) h5_read_rows(&a->h5, path, number, (size_t)width, *same, count, x);
        if (row == 0) h5_read_rows(&b->h5, path, number, (size_t)width, *same, count, y);
        if (memcmp(x + row * bytes, y + row * bytes, (size_t)bytes) != 0) break;
    }
    TRY(h5_status(&a->h5));
    return h5_status(&b->h5);
}

struct digest *result_digests(struct result *result, enum digests which, uint32_t step)
{
    const char *path = digest_paths[which];
    const size_t tensors = result_tensors(result, which)->count;
    struct digest *found;
    for (size_t i = 0; i < result->digest_rows; i++) {
        if (result->digest_step[i] != step || !h5_exists(&result->h5, path)) continue;
        NEW(result->region, found, tensors);
        h5_read_rows(&result->h5, path, NUMBER_U64, 2 * tensors, i, 1, found);
        return result->h5.broken ? NULL : found;
    }
    return NULL;
}

uint64_t result_steps_asked(struct result *result, const struct yaml_tree *resolved)
{
    static const char *const keys[] = {"steps", "epochs", "batch"};
    int64_t value[3] = {0};
    for (int i = 0; i < 3; i++) {
        const struct yaml_tree *found = yaml_tree_get(resolved, keys[i]);
        if (found && found->kind == YAML_TEXT) text_to_int(found->text, &value[i]);
    }
    if (value[1] <= 0 || value[2] <= 0) return value[0] > 0 ? (uint64_t)value[0] : 0;
    const uint64_t samples = h5_read_attribute_u64(&result->h5, "/provenance/data", "training_samples", 0);
    return (uint64_t)value[1] * (samples / (uint64_t)value[2]);
}
