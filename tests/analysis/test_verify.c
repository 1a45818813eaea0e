/* Plans judged by the simulator: right as they are, for every policy on every network, and wrong, by name, after any
 * alteration; and `rematch verify`, on files that were changed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "result/record_plan.h"
#include "result/result_read.h"
#include "tests/support/altered_files.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"
#include "tests/support/plan_faults.h"
#include "tests/support/planned_networks.h"
#include "tests/support/policy_cases.h"
#include "tests/support/simulated.h"

/* ---- plans as data ---- */

/* Everything that alterations touch, and room for a buffer more. */
static struct plan_data copy_of(const struct plan_data *a, struct region *region)
{
    struct plan_data c = *a;
    NEW(region, c.node, (size_t)a->nodes);
    NEW(region, c.parameter, (size_t)a->parameters);
    NEW(region, c.op, (size_t)a->ops);
    NEW(region, c.live, (size_t)a->ops);
    NEW(region, c.buffer, (size_t)a->buffers + 1);
    memcpy(c.node, a->node, (size_t)a->nodes * sizeof *c.node);
    memcpy(c.parameter, a->parameter, (size_t)a->parameters * sizeof *c.parameter);
    memcpy(c.op, a->op, (size_t)a->ops * sizeof *c.op);
    memcpy(c.live, a->live, (size_t)a->ops * sizeof *c.live);
    memcpy(c.buffer, a->buffer, (size_t)a->buffers * sizeof *c.buffer);
    return c;
}

/* As a forger would: the hash fits again. */
static void stamp(struct plan_data *a, char hash[33])
{
    struct digest digest;
    digest = ops_digest(a->op, a->ops, a->buffer, a->buffers);
    a->hash = digest_print(digest, hash);
}

static int made[ALTERATIONS], made_aimed[AIMED_ALTERATIONS], judged;

/* Each alteration of a table somewhere else for each plan; made: how often each was. */
static void alter(const struct plan_data *a, const char *what, const struct alteration *table, int count,
                  int *made_here)
{
    struct source source = {.seed = (uint32_t)judged};
    for (int i = 0; i < count; i++) {
        struct region *region = region_create();
        struct plan_data altered = copy_of(a, region);
        char hash[33];
        if (table[i].alter(&altered, &source)) {
            stamp(&altered, hash);
            enum status status = simulate(&altered);
            cr_assert(status == ST_DIFFERS, "%s: %s is not noticed\n  %s", what, table[i].name, a->schedule);
            cr_assert(!table[i].says || strstr(status_message(), table[i].says), "%s: %s: '%s' is not in\n  %s", what,
                      table[i].name, table[i].says, status_message());
            made_here[i]++;
        }
        region_destroy(region);
    }
}

static void check_made(const struct alteration *table, int count, const int *made_here)
{
    for (int i = 0; i < count; i++) cr_assert(made_here[i] > 0, "%s: made in none of %d plans", table[i].name, judged);
}

/* The hash alone tells where the plan would be right in another way. */
static void move(const struct plan_data *a, const char *what)
{
    struct region *region = region_create();
    struct plan_data moved = copy_of(a, region);
    char hash[33];
    for (int i = 0; i < moved.buffers; i++) /* upside down */
        moved.buffer[i].offset = a->count[COUNT_ARENA] - a->buffer[i].offset - a->buffer[i].bytes;
    cr_assert(simulate(&moved) == ST_DIFFERS && strstr(status_message(), "hash is"), "%s: %s", what, status_message());
    stamp(&moved, hash);
    cr_assert(simulate(&moved) == (moved.count[COUNT_ARENA] ? ST_OK : ST_DIFFERS), "%s: %s", what, status_message());
    region_destroy(region);
}

/* The network with a fused update; parts: of linear layers in two parts. */
static const struct network *fused(const struct network *network, bool parts, struct region *region)
{
    struct network *copy = network_copy(network, region);
    const struct graph *graph = network->graph;
    for (int i = 0; i < graph->nodes; i++) copy->binding[i].footprint.gradients = 0;
    for (int p = 0; p < graph->parameters; p++)
        if (!graph->node[graph->parameter[p].node].frozen)
            copy->binding[graph->parameter[p].node].footprint.gradients += parameter_static_bytes(&graph->parameter[p]);
    for (int i = 0; i < graph->nodes && parts; i++) {
        struct footprint *f = &copy->binding[i].footprint;
        const struct parameter *weight = &graph->parameter[graph->node[i].first_parameter];
        if (!f->by_rows || graph->node[i].frozen) continue;
        const int64_t *dim = weight->definition.shape.dim;
        f->part_elements = (size_t)((dim[0] + 1) / 2 * dim[1]);
        f->gradients += round_up(f->part_elements * sizeof(float)) - parameter_static_bytes(weight);
        f->split = false;
    }
    return copy;
}

static void judge(const struct network *network, const struct schedule *schedule, const char *what)
{
    struct plan_data data;
    const struct plan_options options = {.lower = {judged % 3 > 0, (enum rng_mode)(judged % 4)},
                                         .state_per_parameter = judged % 3};
    struct region *region = region_create();
    const bool fuse = judged % 2 && !network->slice; /* the others may be already */
    struct plan *plan = plan_build(fuse ? fused(network, judged % 4 == 3, region) : network, schedule, &options);
    plan_to_data(plan, region, &data);
    cr_assert(simulate(&data) == ST_OK, "%s: %s", what, status_message());
    alter(&data, what, alterations, ALTERATIONS, made);
    alter(&data, what, aimed, AIMED_ALTERATIONS, made_aimed);
    move(&data, what);
    judged++;
    plan_destroy(plan);
    region_destroy(region);
}

Test(verify, every_alteration_of_every_policys_plans_is_noticed, .timeout = 1800)
{
    schedules_visit(judge);
    const int unsliced = judged;
    sliced_schedules_visit(judge);
    cr_assert(unsliced > 100 && judged - unsliced > 100);
    check_made(alterations, ALTERATIONS, made);
    check_made(aimed, AIMED_ALTERATIONS, made_aimed);
}

/* ---- plans in files ---- */

/* What is read is what was written. */
static void check_read(const struct fake *fake, const char *path)
{
    struct result *r;
    struct plan_data was, is;
    struct region *region = region_create();
    size_t row;
    cr_assert(result_open(path, &r) == ST_OK, "%s", status_message());
    cr_assert(record_plan_read(&r->h5, region, &is) == ST_OK, "%s", status_message());
    plan_to_data(fake->job.plan, region, &was);
    cr_assert(is.nodes == was.nodes && is.ops == was.ops && is.buffers == was.buffers &&
              is.parameters == was.parameters);
    cr_assert(!table_difference(record_settings, 1, &is, &was, sizeof is, &row));
    cr_assert(!table_difference(record_model_columns, (size_t)is.nodes, is.node, was.node, sizeof *is.node, &row));
    cr_assert(!table_difference(record_node_columns, (size_t)is.nodes, is.node, was.node, sizeof *is.node, &row));
    cr_assert(!table_difference(record_op_columns, (size_t)is.ops, is.op, was.op, sizeof *is.op, &row));
    cr_assert(
        !table_difference(record_buffer_columns, (size_t)is.buffers, is.buffer, was.buffer, sizeof *is.buffer, &row));
    cr_assert(!memcmp(is.live, was.live, (size_t)is.ops * sizeof *is.live) && !strcmp(is.schedule, was.schedule));
    cr_assert(!memcmp(is.count, was.count, sizeof is.count) && !memcmp(is.real, was.real, sizeof is.real));
    cr_assert(simulate(&is) == ST_OK, "%s", status_message());
    result_close(r);
    region_destroy(region);
}

Test(verify, a_file_has_all_that_verify_requires)
{
    for (const struct net *net = nets; net->name; net++) {
        struct fake fake;
        char folder[256], path[1024];
        folder_make(folder);
        fake_open(&fake, net, folder);
        fake_write(&fake, "variant", 2, NULL, path);
        check_read(&fake, path);
        fake_close(&fake);
        folder_remove(folder);
    }
}

/* One number of an array of the file. */
static const struct {
    const char *array;
    int64_t element, add;
    const char *says;
} changes[] = {
    {"/plan/buffers/offset", 0, 256, "plan      WRONG: op "},
    {"/plan/buffers/offset", 1, 1 << 20, "within the arena's"},
    {"/plan/buffers/death", 0, -1, "buffer 0 (flatten1.y)"},
    {"/plan/buffers/birth", 2, 1, "buffer 2 (two.y)"},
    {"/plan/buffers/bytes", 0, 256, "buffer 0 (flatten1.y) has 768 bytes; expected 512"},
    {"/plan/ops/y", 0, 1, "op 0 (F flatten1)"},
    {"/plan/ops/node", 3, 1, "op 3 (F three)"},
    {"/plan/ops/live", 5, 8, "op 5 ("},
    {"/plan/nodes/output_bytes", 0, 256, "op 0 (F flatten1): y: buffer 0 (flatten1.y) has 512 bytes; expected 768"},
    {"/plan/parameters/elements", 0, 64, "memory of parameters is"},
    {"/memory/predicted", 6, 256, "memory of activations is"},
    {"/plan/nodes/elements", 2, 1, "not of its spec: plan: "},
    {"/plan/nodes/elements", 2, 1, "of another network: node 2 (drop): elements is 25 in it (ref) and 24 here (ref)"},
    {"/plan/nodes/draws", 0, 3, "node 0 (flatten1): draws is 3 in it"},
};

/* One of its attributes. */
static const struct {
    const char *object, *name;
    uint64_t value;
    const char *says;
} attributes[] = {
    {"/plan", "batch", 9, "not of its spec: plan: "},
    {"/plan", "batch", 9, "batch is 9 in it and 8 here"},
    {"/plan", "drop_dead", 0, "drop_dead is 0 in it and 1 here"},
    {"/plan", "evaluation_arena_bytes", 256, "bounds    WRONG: evaluation_arena_bytes is 256; expected 0"},
};

static void check_wrong(struct cli *cli, const char *arguments, const char *says)
{
    cli_expect(cli, 1, arguments);
    cli_says(cli, says);
    cr_assert(*cli->err == 0, "%s", cli->err);
}

Test(verify, names_what_was_changed_in_a_file)
{
    struct cli cli;
    char whole[300], plan[300];
    cli_open(&cli);
    cli_expect(&cli, 0, "plan small.yaml --out whole.h5");
    cli_expect(&cli, 0, "verify whole.h5");
    cli_says(&cli, "plan      right: 15 ops, 10 buffers");
    cli_says(&cli, "steps     none");
    snprintf(whole, sizeof whole, "%.250s/whole.h5", cli.folder);
    snprintf(plan, sizeof plan, "%.250s/plan.h5", cli.folder);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        alter_copy(whole, plan);
        alter_element(plan, changes[i].array, changes[i].element, changes[i].add);
        check_wrong(&cli, i % 2 ? "verify plan.h5" : "verify plan.h5 --plan-only", changes[i].says);
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        alter_copy(whole, plan);
        alter_number(plan, attributes[i].object, attributes[i].name, attributes[i].value);
        check_wrong(&cli, i % 2 ? "verify plan.h5" : "verify plan.h5 --plan-only", attributes[i].says);
    }
    alter_copy(whole, plan);
    alter_text(plan, "/plan", "hash", "00000000000000000000000000000000");
    cli_expect(&cli, 1, "verify plan.h5");
    cli_says(&cli, "hash is 00000000000000000000000000000000; ops, buffers and offsets have ");
    alter_copy(whole, plan);
    alter_array_text(plan, "/spec/resolved", "x");
    cli_expect(&cli, 1, "verify plan.h5 --plan-only");
    cli_says(&cli, "plan      WRONG: it is not of its spec: /spec/resolved is refused");
    cli_complains(&cli, "plan.h5: /spec/resolved:1:1: ");
    cr_assert(!strstr(cli.err, "rematch-verify-"), "%s", cli.err);
    cli_close(&cli);
}

/* An offset at which the plan would be as right: of some buffer, how far from where it is. */
static bool another_place(const char *path, int *id, int64_t *away, size_t *at)
{
    struct result *r;
    struct plan_data a;
    bool found = false;
    struct region *region = region_create();
    cr_assert(result_open(path, &r) == ST_OK && record_plan_read(&r->h5, region, &a) == ST_OK, "%s", status_message());
    for (*id = 0; *id < a.buffers && !found; ++*id) {
        struct buffer *b = &a.buffer[*id];
        *at = b->offset;
        for (size_t to = 0; to < a.count[COUNT_ARENA] && !found; to += a.granularity) {
            if (to == *at) continue;
            b->offset = to;
            found = simulate(&a) == ST_DIFFERS && strstr(status_message(), "hash is");
            *away = (int64_t)to - (int64_t)*at;
        }
        b->offset = *at;
        if (found) break;
    }
    result_close(r);
    region_destroy(region);
    return found;
}

Test(verify, names_a_moved_buffer_and_a_wrong_bound)
{
    struct cli cli;
    char plan[300], says[128];
    int id;
    int64_t away;
    size_t at;
    cli_open(&cli);
    snprintf(plan, sizeof plan, "%.250s/plan.h5", cli.folder);
    cli_expect(&cli, 0, "plan small.yaml policy=optimal policy.budget=95% --out plan.h5");
    cli_expect(&cli, 0, "verify plan.h5");
    cli_says(&cli, "bounds    right");
    cr_assert(another_place(plan, &id, &away, &at));
    alter_element(plan, "/plan/buffers/offset", id, away);
    snprintf(says, sizeof says, "the hash is that of buffer %d (", id);
    cli_expect(&cli, 1, "verify plan.h5");
    cli_says(&cli, "plan      WRONG: hash is ");
    cli_says(&cli, says);
    json_t *all = cli_json(&cli, 1, "verify plan.h5 --json"), *moved;
    json_t *of_plan = json_object_get(all, "plan");
    cr_assert(json_is_false(json_object_get(all, "right")) && json_is_false(json_object_get(of_plan, "right")));
    moved = json_object_get(of_plan, "moved");
    cr_assert(json_integer_value(json_object_get(moved, "buffer")) == id);
    cr_assert(json_integer_value(json_object_get(moved, "expected")) == (json_int_t)at);
    cr_assert(json_integer_value(json_object_get(moved, "offset")) == (json_int_t)at + away);
    json_decref(all);
    alter_element(plan, "/plan/buffers/offset", id, -away);
    static const char *const bounds[] = {"knapsack_slowdown", "gap_percent", "budget_bound_slowdown"};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        cli_expect(&cli, 0, "plan small.yaml policy=optimal policy.budget=95% --out plan.h5");
        alter_real(plan, "/plan", bounds[i], 0.5);
        cli_expect(&cli, 1, "verify plan.h5 --plan-only");
        snprintf(says, sizeof says, "bounds    WRONG: %s is 0.5; expected ", bounds[i]);
        cli_says(&cli, says);
        all = cli_json(&cli, 1, "verify plan.h5 --json");
        cr_assert(strstr(json_string_value(json_object_get(json_object_get(all, "bounds"), "wrong")), bounds[i]));
        json_decref(all);
    }
    cli_close(&cli);
}

/* The plan of a spec with slices and a fused update. */
Test(verify, names_what_was_changed_in_a_sliced_file)
{
    static const struct {
        const char *array;
        int64_t element, add;
        const char *says;
    } sliced[] = {
        {"/plan/ops/slice", 0, 1, "plan      WRONG: op 0 (F flatten1/1): "},
        {"/plan/ops/slice", 0, -1, "plan      WRONG: op 0 (F flatten1): slice -1; expected a slice"},
        {"/plan/ops/slice", 0, 2, "op 0: slice is 2; expected -1..1"},
        {"/plan/buffers/slice", 0, 1, "is of slice 1; expected 0"},
        {"/plan/nodes/whole", 1, 1, "expected the whole batch"},
    };
    struct cli cli;
    char whole[300], plan[300];
    cli_open(&cli);
    cli_expect(&cli, 0, "plan small.yaml slices=2 update=fused policy=microbatch --out whole.h5");
    cli_expect(&cli, 0, "verify whole.h5");
    snprintf(whole, sizeof whole, "%.250s/whole.h5", cli.folder);
    snprintf(plan, sizeof plan, "%.250s/plan.h5", cli.folder);
    for (size_t i = 0; i < sizeof sliced / sizeof *sliced; i++) {
        alter_copy(whole, plan);
        alter_element(plan, sliced[i].array, sliced[i].element, sliced[i].add);
        check_wrong(&cli, i % 2 ? "verify plan.h5" : "verify plan.h5 --plan-only", sliced[i].says);
    }
    alter_copy(whole, plan);
    alter_number(plan, "/plan", "slices", 4);
    check_wrong(&cli, "verify plan.h5", "plan      WRONG: op ");
    cli_close(&cli);
}

static void cut(const char *path) { alter_length(path, 0.5); }
static void schema(const char *path) { alter_text(path, "/", "schema", "other"); }
static void planless(const char *path) { alter_away(path, "/plan"); }
static void without_offsets(const char *path) { alter_away(path, "/plan/buffers/offset"); }
static void without_word(const char *path) { alter_away(path, "/plan/schedule"); }
static void without_memory(const char *path) { alter_away(path, "/memory/predicted"); }

static const struct {
    void (*spoil)(const char *path);
    int code;
    const char *says;
} spoils[] = {
    {cut, 3, "plan.h5"},
    {schema, 2, "schema 'other'"},
    {planless, 3, "is missing"},
    {without_offsets, 3, "/plan/buffers/offset is missing"},
    {without_word, 3, "/plan/schedule is missing"},
    {without_memory, 3, "/memory/predicted is missing"},
};

Test(verify, refuses_what_cannot_be_read)
{
    struct cli cli;
    char whole[300], plan[300];
    cli_open(&cli);
    cli_expect(&cli, 0, "plan small.yaml --out whole.h5");
    snprintf(whole, sizeof whole, "%.250s/whole.h5", cli.folder);
    snprintf(plan, sizeof plan, "%.250s/plan.h5", cli.folder);
    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
        alter_copy(whole, plan);
        spoils[i].spoil(plan);
        cli_expect(&cli, spoils[i].code, "verify plan.h5");
        cli_complains(&cli, spoils[i].says);
        cr_assert(cli_complaints(&cli) == 1, "%s", cli.err);
    }
    cli_expect(&cli, 2, "verify small.yaml");
    cli_expect(&cli, 2, "verify nothing.h5");
    cli_expect(&cli, 2, "verify");
    cli_expect(&cli, 2, "verify whole.h5 --ops");
    cli_close(&cli);
}
