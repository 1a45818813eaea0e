#include "result/plan_file.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check/simulate.h"
#include "job/run_id.h"
#include "result/h5_write.h"
#include "result/record.h"
#include "result/record_plan.h"
#include "result/result_read.h"
#include "yaml/new_file.h"

static const char planned[] = "planned"; /* the status of a plan file */

/* ---- writing ---- */

static enum status check_place(const char *path)
{
    result_auto *there = NULL;
    if (access(path, F_OK) != 0) return ST_OK;
    bool is_plan = result_open(path, &there) == ST_OK && !there->steps && strcmp(there->status, planned) == 0;
    return is_plan ? ST_OK : fail(ST_SPEC, "%s: exists and is no plan file; nothing was written", path);
}

static enum status write_fresh(const struct job *job, const char *name, struct h5_manifest *manifest)
{
    struct h5 h5;
    char id[RUN_ID_TEXT];
    TRY(run_id_compute(job, id));
    TRY(h5_manifest_open(manifest, &h5, name, H5_CREATE));
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
    return new_file_end(&fresh, status);
}

/* ---- reading ---- */

struct taking {
    const char *path;
    struct region *region;
    const struct job *job;
    struct plan_data theirs, ours;
};

/* The line of a resolved spec that begins with key. */
static const char *line_of(const char *resolved, const char *key, struct region *region)
{
    for (const char *line = resolved; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, key, strlen(key)) == 0) return region_text(region, "%.*s", (int)strcspn(line, "\n"), line);
    return "";
}

static enum status check_count(const struct taking *t, const char *what, int theirs, int ours)
{
    if (theirs == ours) return ST_OK;
    return fail(ST_SPEC, "plan: %s has %d %ss; here are %d", t->path, theirs, what, ours);
}

/* what: the name of a row; NULL: the tables are settings, one row each. */
static enum status check_table(const struct taking *t, const char *what, const struct field *columns,
                               const void *theirs, int their_rows, const void *ours, int our_rows, size_t stride)
{
    char a[96], b[96];
    size_t row, rows = (size_t)(their_rows < our_rows ? their_rows : our_rows);
    const struct field *c = table_difference(columns, rows, theirs, ours, stride, &row);
    if (!c) return check_count(t, what, their_rows, our_rows);
    return fail(ST_SPEC, "plan: %s: %s%s is %s in it and %s here", t->path,
                what ? region_text(t->region, "%s %zu: ", what, row) : "", c->name,
                column_text(c, (const char *)theirs + row * stride, a),
                column_text(c, (const char *)ours + row * stride, b));
}

/* Kernels decide over the numbers of a node. */
static enum status check_nodes(const struct taking *t, const struct field *columns)
{
    char a[96], b[96];
    const int rows = t->theirs.nodes < t->ours.nodes ? t->theirs.nodes : t->ours.nodes;
    size_t row;
    const struct field *c =
        table_difference(columns, (size_t)rows, t->theirs.node, t->ours.node, sizeof *t->ours.node, &row);
    if (!c) return ST_OK;
    const struct plan_data_node *theirs = &t->theirs.node[row], *ours = &t->ours.node[row];
    const bool number = c->number != NUMBER_TEXT;
    return fail(ST_SPEC, "plan: %s is of another %s: node %zu (%s): %s is %s in it%s and %s here%s", t->path,
                number ? "network" : "model", row, ours->name, c->name, column_text(c, theirs, a),
                number ? region_text(t->region, " (%s)", theirs->footprint.implementation) : "",
                column_text(c, ours, b), number ? region_text(t->region, " (%s)", ours->footprint.implementation) : "");
}

/* The input of planning that depends on neither schedule nor kernels. */
static enum status check_model(struct taking *t)
{
    const struct plan_options options = job_plan_options(t->job);
    plan_network_to_data(t->job->network, &options, t->region, &t->ours);
    TRY(check_table(t, NULL, record_settings, &t->theirs, 1, &t->ours, 1, sizeof t->ours));
    TRY(check_nodes(t, record_name_columns));
    TRY(check_count(t, "node", t->theirs.nodes, t->ours.nodes));
    TRY(check_table(t, "parameter", record_parameter_columns, t->theirs.parameter, t->theirs.parameters,
                    t->ours.parameter, t->ours.parameters, sizeof *t->ours.parameter));
    TRY(check_table(t, "state", record_parameter_columns, t->theirs.state, t->theirs.states, t->ours.state,
                    t->ours.states, sizeof *t->ours.state));
    return check_nodes(t, record_model_columns);
}

static enum status build(struct taking *t, struct plan **plan)
{
    struct schedule schedule;
    const struct plan_options options = job_plan_options(t->job);
    const struct slicing slicing = graph_slicing(t->job->graph);
    TRY(check_model(t));
    TRY(schedule_parse(t->theirs.schedule, t->region, &schedule));
    TRY(schedule_check(&schedule, &slicing, false));
    *plan = plan_build(t->job->network, &schedule, &options);
    return ST_OK;
}

/* Policy, nodes, ops and buffers must be the same; plan takes over the offsets. */
static enum status take(struct taking *t, struct result *r, struct plan **plan)
{
    const struct plan_data *a = &t->theirs, *b = &t->ours;
    char hash[33];
    if (record_plan_read(&r->h5, t->region, &t->theirs) != ST_OK) return fail(ST_SPEC, "plan: %s", status_message());
    const char *theirs = line_of(h5_read_text(&r->h5, "/spec/resolved", t->region), "policy:", t->region);
    const char *ours = line_of(t->job->spec->resolved, "policy:", t->region);
    if (strcmp(theirs, ours) != 0)
        return fail(ST_SPEC, "plan: %s was planned with '%s'; this spec has '%s'", t->path, theirs, ours);
    enum status valid = simulate(&t->theirs);
    if (valid != ST_OK)
        return fail(valid == ST_DIFFERS ? ST_SPEC : valid, "plan: %s holds an invalid plan: %s", t->path,
                    status_message());
    TRY(build(t, plan));
    plan_to_data(*plan, t->region, &t->ours);
    TRY(check_nodes(t, record_node_columns));
    TRY(check_table(t, "op", record_op_columns, a->op, a->ops, b->op, b->ops, sizeof *a->op));
    if (a->buffers == b->buffers) plan_move(*plan, a->buffer);
    TRY(check_table(t, "buffer", record_buffer_columns, a->buffer, a->buffers, b->buffer, b->buffers,
                    sizeof *a->buffer));
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
    region_auto *region = region_create();
    struct taking t = {.path = path, .job = job, .region = region};
    result_auto *result = NULL;
    *plan = NULL;
    enum status status = result_open(path, &result);
    status = status == ST_OK ? take(&t, result, plan) : fail(ST_SPEC, "plan: %s", status_message());
    if (status != ST_OK) plan_destroy(*plan), *plan = NULL;
    return status;
}
