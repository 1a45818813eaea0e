#include "result/plan_file.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check/simulate.h"
#include "job/run_id.h"
#include "result/h5_manifest.h"
#include "result/h5_write.h"
#include "result/record_layout.h"
#include "result/record_plan.h"
#include "result/result.h"
#include "yaml/new_file.h"

static const char planned[] = "planned"; /* the status of a plan file */

/* ---- writing ---- */

static enum status check_place(const char *path)
{
    struct result *there = NULL;
    if (access(path, F_OK) != 0) return ST_OK;
    bool is_plan = result_open(path, &there) == ST_OK && !there->steps && strcmp(there->status, planned) == 0;
    result_close(there);
    return is_plan ? ST_OK : fail(ST_SPEC, "%s: exists and is no plan file; nothing was written", path);
}

static enum status write_fresh(const struct job *job, const char *name, struct h5_manifest *manifest)
{
    struct h5 h5;
    char id[RUN_ID_TEXT];
    TRY(run_id_compute(job, id));
    TRY(h5_open(&h5, name, H5_CREATE));
    h5.manifest = manifest;
    record_layout(&h5, job, "plan", id);
    h5_attribute_text(&h5, "/", "status", planned);
    TRY(h5_status(&h5));
    TRY(h5_close(&h5));
    return h5_manifest_check(manifest, name);
}

enum status plan_file_write(const struct job *job, const char *path)
{
    struct new_file fresh;
    signal(SIGXFSZ, SIG_IGN);
    TRY(check_place(path));
    TRY(new_file_begin(&fresh, path));
    struct h5_manifest *manifest = h5_manifest_create();
    enum status status = write_fresh(job, fresh.name, manifest);
    h5_manifest_destroy(manifest);
    if (status == ST_OK) return new_file_publish(&fresh);
    new_file_drop(&fresh);
    return status;
}

/* ---- reading ---- */

struct taking {
    const char *path;
    struct region *region;
    const struct job *job;
    struct plan_data theirs, ours;
};

static const char *text_of(const void *row, size_t offset)
{
    const char *text;
    memcpy(&text, (const char *)row + offset, sizeof text);
    return text;
}

/* The line of a resolved spec that begins with key. */
static const char *line_of(const char *resolved, const char *key, struct region *region)
{
    for (const char *line = resolved; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, key, strlen(key)) == 0) return region_text(region, "%.*s", (int)strcspn(line, "\n"), line);
    return "";
}

static enum status check_policy(struct taking *t, const char *resolved)
{
    const char *theirs = line_of(resolved, "policy:", t->region);
    const char *ours = line_of(t->job->spec->resolved, "policy:", t->region);
    if (strcmp(theirs, ours) == 0) return ST_OK;
    return fail(ST_SPEC, "plan: %s was planned with '%s'; this spec has '%s'", t->path, theirs, ours);
}

/* The texts of a node; groups and implementations may differ. */
static enum status check_names(const struct taking *t, int i)
{
    const struct plan_data_node *theirs = &t->theirs.node[i], *ours = &t->ours.node[i];
    for (const struct text_column *c = record_node_texts; c->name; c++) {
        const char *x = text_of(theirs, c->offset), *y = text_of(ours, c->offset);
        bool names_only = c->offset == offsetof(struct plan_data_node, group) ||
                          c->offset == offsetof(struct plan_data_node, implementation);
        if (!names_only && strcmp(x, y) != 0)
            return fail(ST_SPEC, "plan: %s is of another model: node %d (%s): %s is %s in it and %s here", t->path, i,
                        ours->name, c->name, x, y);
    }
    return ST_OK;
}

/* what: the name of a row; NULL: the tables are settings, one row each. */
static enum status check_table(const struct taking *t, const char *what, const struct column *columns,
                               const void *theirs, int their_rows, const void *ours, int our_rows, size_t stride)
{
    char a[96], b[96];
    size_t row, rows = (size_t)(their_rows < our_rows ? their_rows : our_rows);
    const struct column *c = table_difference(columns, rows, theirs, ours, stride, &row);
    if (c) {
        const char *name = what ? region_text(t->region, "%s %zu: ", what, row) : "";
        return fail(ST_SPEC, "plan: %s: %s%s is %s in it and %s here", t->path, name, c->name,
                    column_text(c, (const char *)theirs + row * stride, a),
                    column_text(c, (const char *)ours + row * stride, b));
    }
    if (their_rows == our_rows) return ST_OK;
    return fail(ST_SPEC, "plan: %s has %d %ss; its schedule gives %d here", t->path, their_rows, what, our_rows);
}

/* The numbers of all nodes. */
static enum status check_nodes(const struct taking *t, const struct column *columns)
{
    char a[96], b[96];
    size_t row;
    const struct column *c =
        table_difference(columns, (size_t)t->ours.nodes, t->theirs.node, t->ours.node, sizeof *t->ours.node, &row);
    if (!c) return ST_OK;
    const struct plan_data_node *theirs = &t->theirs.node[row], *ours = &t->ours.node[row];
    return fail(ST_SPEC, "plan: %s is of another network: node %zu (%s): %s is %s in it (%s) and %s here (%s)", t->path,
                row, ours->name, c->name, column_text(c, theirs, a), theirs->implementation, column_text(c, ours, b),
                ours->implementation);
}

static enum status check_parameters(const struct taking *t)
{
    for (int i = 0; i < t->theirs.parameters && i < t->ours.parameters; i++) {
        const struct plan_data_parameter *x = &t->theirs.parameter[i], *y = &t->ours.parameter[i];
        if (strcmp(x->name, y->name) != 0 || strcmp(x->shape, y->shape) != 0 || x->node != y->node ||
            x->elements != y->elements)
            return fail(ST_SPEC, "plan: %s is of another model: parameter %d is %s (%s) in it and %s (%s) here",
                        t->path, i, x->name, x->shape, y->name, y->shape);
    }
    if (t->theirs.parameters == t->ours.parameters) return ST_OK;
    return fail(ST_SPEC, "plan: %s is of another model: it has %d parameters, this one %d", t->path,
                t->theirs.parameters, t->ours.parameters);
}

/* The input of planning that depends on neither schedule nor kernels. */
static enum status check_model(struct taking *t)
{
    const struct plan_options options = job_plan_options(t->job);
    plan_network_to_data(t->job->network, &options, t->region, &t->ours);
    TRY(check_table(t, NULL, record_settings, &t->theirs, 1, &t->ours, 1, sizeof t->ours));
    for (int i = 0; i < t->theirs.nodes && i < t->ours.nodes; i++) TRY(check_names(t, i));
    if (t->theirs.nodes != t->ours.nodes)
        return fail(ST_SPEC, "plan: %s is of another model: it has %d nodes, this one %d", t->path, t->theirs.nodes,
                    t->ours.nodes);
    TRY(check_parameters(t));
    return check_nodes(t, record_model_columns);
}

/* Ops and buffers must be the same; plan takes over the offsets. */
static enum status check_plan(struct taking *t, struct plan *plan)
{
    const struct plan_data *a = &t->theirs, *b = &t->ours;
    TRY(check_table(t, "op", record_op_columns, a->op, a->ops, b->op, b->ops, sizeof *a->op));
    if (a->buffers == b->buffers) plan_move(plan, a->buffer);
    return check_table(t, "buffer", record_buffer_columns, a->buffer, a->buffers, b->buffer, b->buffers,
                       sizeof *a->buffer);
}

static enum status build(struct taking *t, struct plan **plan)
{
    struct schedule schedule;
    const struct plan_options options = job_plan_options(t->job);
    TRY(check_model(t));
    TRY(schedule_parse(t->theirs.schedule, t->region, &schedule));
    return plan_build(t->job->network, &schedule, &options, plan);
}

static enum status take(struct taking *t, struct result *r, struct plan **plan)
{
    char hash[33];
    if (record_plan_read(&r->h5, t->region, &t->theirs) != ST_OK) return fail(ST_SPEC, "plan: %s", status_message());
    TRY(check_policy(t, h5_read_text(&r->h5, "/spec/resolved", t->region)));
    enum status valid = simulate(&t->theirs);
    if (valid != ST_OK)
        return fail(valid == ST_DIFFERS ? ST_SPEC : valid, "plan: %s holds an invalid plan: %s", t->path,
                    status_message());
    TRY(build(t, plan));
    plan_to_data(*plan, t->region, &t->ours);
    TRY(check_nodes(t, record_node_columns));
    TRY(check_plan(t, *plan));
    if (strcmp(digest_print((*plan)->hash, hash), t->theirs.hash) == 0) return ST_OK;
    return fail(ST_SPEC, "plan: %s has the hash %s; its schedule and offsets give %s here", t->path, t->theirs.hash,
                hash);
}

enum status plan_file_of_model(const struct job *job, const char *path, const struct plan_data *data,
                               struct region *region)
{
    struct taking t = {.path = path, .job = job, .region = region, .theirs = *data};
    TRY(check_model(&t));
    return check_table(&t, NULL, record_static_settings, &t.theirs, 1, &t.ours, 1, sizeof t.ours);
}

enum status plan_file_take(const struct job *job, const char *path, struct plan **plan)
{
    struct taking t = {.path = path, .job = job, .region = region_create()};
    struct result *result = NULL;
    *plan = NULL;
    enum status status = result_open(path, &result);
    status = status == ST_OK ? take(&t, result, plan) : fail(ST_SPEC, "plan: %s", status_message());
    if (status != ST_OK) {
        plan_destroy(*plan);
        *plan = NULL;
    }
    result_close(result);
    region_destroy(t.region);
    return status;
}
