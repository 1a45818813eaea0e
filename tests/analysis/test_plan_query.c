/* Questions that planning answers: every number of an answer again, from a plan of its own. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/policy_grid.h"
#include "policies/rivals.h"
#include "run/job_plans.h"
#include "spec/spec.h"
#include "tests/support/cli.h"

static const char cnn[] =
    "rematch: 1\n"
    "name: cnn\n"
    "model:\n"
    "  layers:\n"
    "    - group: {name: a, layers: [conv: {channels: 8, kernel: 3, padding: 1, activation: relu}, "
    "conv: {channels: 12, kernel: 3, padding: 1, activation: relu}, max_pool: {kernel: 2}]}\n"
    "    - group: {name: b, layers: [conv: {channels: 16, kernel: 3, padding: 1, activation: relu}, "
    "dropout: {rate: 0.5}, conv: {channels: 8, kernel: 3, padding: 1}]}\n"
    "    - relu\n"
    "    - group: {name: c, layers: [conv: {channels: 24, kernel: 3, padding: 1, activation: relu}, "
    "max_pool: {kernel: 2}]}\n"
    "    - flatten\n"
    "    - linear: {units: classes}\n"
    "data: {name: synthetic, shape: [16, 16, 3], classes: 5, samples: 4000}\n"
    "batch: 8\n"
    "steps: 1\n"
    "backend: {name: ref, threads: 1}\n"
    "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
    "policy: {name: segments, segments: 3}\n";

static void open_cnn(struct cli *cli)
{
    cli_open(cli);
    cli_file(cli, "cnn.yaml", cnn);
}

static json_t *ask(struct cli *cli, const char *arguments)
{
    char command[512];
    snprintf(command, sizeof command, "plan cnn.yaml --json %s", arguments);
    return cli_json(cli, 0, command);
}

static size_t bytes_of(const json_t *object, const char *key)
{
    cr_assert(json_is_integer(json_object_get(object, key)), "%s", key);
    return (size_t)json_integer_value(json_object_get(object, key));
}

static double real_of(const json_t *object, const char *key) { return json_number_value(json_object_get(object, key)); }

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

struct own {
    struct spec *spec;
    struct job *job;
};

/* The job of cnn.yaml with a batch, the policy and its settings as an answer names them; false: it is refused. */
static bool plan_own(const struct cli *cli, int64_t batch, const json_t *row, struct own *own)
{
    char path[512], words[512] = "", override[8][80];
    const char *overrides[8], *settings = row ? text_of(row, "settings") : NULL;
    int count = 0;
    snprintf(path, sizeof path, "%s/cnn.yaml", cli->folder);
    snprintf(override[count++], sizeof *override, "batch=%lld", (long long)batch);
    if (settings) {
        snprintf(override[count++], sizeof *override, "policy=%s", text_of(row, "policy"));
        snprintf(words, sizeof words, "%s", settings);
        for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
            snprintf(override[count++], sizeof *override, "policy.%s", w);
    }
    for (int i = 0; i < count; i++) overrides[i] = override[i];
    cr_assert(spec_load(path, count, overrides, &own->spec) == ST_OK);
    enum status status = job_create(own->spec, &own->job);
    cr_assert(status == ST_OK || status == ST_SPEC, "%s", status_message());
    if (status != ST_OK) spec_destroy(own->spec);
    return status == ST_OK;
}

static void close_own(struct own *own)
{
    job_destroy(own->job);
    spec_destroy(own->spec);
}

/* The numbers of an answer's row are those of a plan with its settings. */
static void check_row(const struct cli *cli, int64_t batch, const json_t *row)
{
    struct own own;
    cr_assert(plan_own(cli, batch, row, &own), "%s", status_message());
    const struct plan *plan = own.job->plan;
    cr_assert(bytes_of(row, "live_peak_bytes") == plan->live_peak &&
                  bytes_of(row, "arena_bytes") == plan->arena_bytes && bytes_of(row, "peak_bytes") == plan_peak(plan),
              "%s %s: %zu", text_of(row, "policy"), text_of(row, "settings"), plan_peak(plan));
    cr_assert(real_of(row, "slowdown") == plan->slowdown);
    if (json_object_get(row, "gap_percent"))
        cr_assert(real_of(row, "gap_percent") == bounds_gap(&own.job->bounds, plan->time));
    close_own(&own);
}

/* Better in one of peak and time, and no worse in the other. */
static bool beats(const json_t *a, const json_t *b)
{
    size_t x = bytes_of(a, "peak_bytes"), y = bytes_of(b, "peak_bytes");
    double s = real_of(a, "slowdown"), t = real_of(b, "slowdown");
    return (x < y && s <= t) || (x <= y && s < t);
}

/* A plan in slices names the layers that compute the whole batch, and the rule, in a line of a terminal. */
Test(query, layers_that_are_not_sliced_are_named)
{
    struct cli cli;
    cli_open(&cli);
    cli_file(&cli, "sliced.yaml",
             "rematch: 1\nname: sliced\nmodel: {layers: [{conv: {channels: 4, kernel: 3}}, global_avg_pool, {linear: "
             "{units: 4, slices: 1}}]}\ndata: {name: synthetic, shape: [8, 8, 1], classes: 4}\nbatch: 8\n"
             "slices: 2\nsteps: 1\noptimizer: {name: sgd, lr: 0.1}\nbackend: ref\n");
    cr_expect(cli_on_screen(&cli, 80, "", "plan sliced.yaml") == 0, "%s", cli.out);
    cli_says(&cli, "\n  except, at once: linear1\n  (linear over 8 MiB, under 32 rows a slice; slices: 1;");
    cli_close(&cli);
}

/* Text and JSON of the plan name the nodes; the run and verify prove equal bits. */
static void check_moved(const char *key, const char *says, const char *list)
{
    struct cli cli;
    char command[256], off[64];
    open_cnn(&cli);
    snprintf(command, sizeof command, "plan cnn.yaml %s=true", key);
    cli_expect(&cli, 0, command);
    cli_says(&cli, says);
    snprintf(command, sizeof command, "policy=store_all %s=true", key);
    json_t *written = ask(&cli, "policy=store_all"), *moved = ask(&cli, command);
    cr_expect(json_array_size(json_object_get(written, list)) == 0);
    cr_expect(json_array_size(json_object_get(moved, list)) == 2);
    cr_expect(bytes_of(moved, "live_peak_bytes") < bytes_of(written, "live_peak_bytes"));
    json_decref(written), json_decref(moved);
    for (int slices = 1; slices <= 2; slices++) {
        snprintf(off, sizeof off, "baseline.%s=false slices=%d", key, slices);
        snprintf(command, sizeof command, "run cnn.yaml steps=3 %s=true %s", key, off);
        cli_expect(&cli, 0, command);
        cli_says(&cli, "EQUAL IN EVERY BIT");
    }
    for (int file = 1; file <= 4; file++) {
        snprintf(command, sizeof command, "verify $%d", file);
        cli_run(&cli, "export TMPDIR=$PWD; set -- results/cnn/*.h5", command);
        cli_says(&cli, "same bits");
    }
    cli_close(&cli);
}

Test(query, relus_after_pools_give_equal_runs)
{
    check_moved("relu_after_pool", "\nrelus taken after their pools: max_pool1, max_pool2\n", "relus_after_pools");
}

Test(query, pools_in_convolutions_give_equal_runs)
{
    check_moved("pool_in_conv", "\nconvolutions that compute their pools: conv2, conv5\n", "pools_in_convs");
}

/* Pools of 2x2 and stride 2 alone, of the only output that reads a convolution; on cpu, of one by Winograd. */
Test(query, pools_in_convolutions_are_those_that_a_kernel_takes)
{
    static const char layers[] = "rematch: 1\nname: pools\nmodel:\n  layers:\n"
                                 "    - conv: {name: plain, channels: 16, kernel: 3, padding: 1, activation: relu}\n"
                                 "    - max_pool: {kernel: 2}\n"
                                 "    - conv: {name: odd, channels: 16, kernel: 5, padding: 1}\n"
                                 "    - max_pool: {kernel: 2, stride: 2, activation: relu}\n"
                                 "    - conv: {name: large, channels: 16, kernel: 7, padding: 4}\n"
                                 "    - max_pool: {kernel: 2}\n"
                                 "    - conv: {name: strided, channels: 16, kernel: 3, padding: 2, stride: 2}\n"
                                 "    - max_pool: {kernel: 2}\n"
                                 "    - upsample: {factor: 8}\n"
                                 "    - conv: {channels: 64, kernel: 3, padding: 1}\n"
                                 "    - conv: {name: groups, channels: 64, kernel: 3, padding: 1, groups: 2}\n"
                                 "    - max_pool: {kernel: 2}\n"
                                 "    - conv: {channels: 16, kernel: 3, padding: 1}\n    - avg_pool: {kernel: 2}\n"
                                 "    - upsample: {factor: 8}\n"
                                 "    - conv: {channels: 16, kernel: 3, padding: 1}\n"
                                 "    - max_pool: {kernel: 3, stride: 2}\n"
                                 "    - conv: {channels: 16, kernel: 3, padding: 1}\n"
                                 "    - max_pool: {kernel: 2, stride: 1}\n"
                                 "    - conv: {channels: 16, kernel: 3, padding: 1}\n"
                                 "    - max_pool: {kernel: 2, padding: 1}\n"
                                 "    - conv: {channels: 16, kernel: 3, padding: 1}\n"
                                 "    - max_pool: {kernel: 2, ceil_mode: true}\n"
                                 "    - conv: {channels: 16, kernel: 3, padding: 1}\n"
                                 "    - residual: {layers: [max_pool: {kernel: 2}, upsample: {factor: 2}]}\n"
                                 "    - conv: {channels: 16, kernel: 3, padding: 1}\n    - batch_norm\n"
                                 "    - max_pool: {kernel: 2}\n    - max_pool: {kernel: 2}\n"
                                 "    - flatten\n    - linear: {units: classes}\n"
                                 "data: {name: synthetic, shape: [61, 61, 3], classes: 5}\nbatch: 32\nsteps: 1\n"
                                 "pool_in_conv: true\noptimizer: {name: sgd, lr: 0.1}\n";
    static const char *const cases[][2] = {{"backend=cpu", "plain, odd\n"},
                                           {"backend=cpu conv.algorithm=winograd", "plain, odd\n"},
                                           {"backend=cpu conv.algorithm=direct", NULL},
                                           {"backend=cpu pool_in_conv=false", NULL},
                                           {"backend=ref", "plain, odd, large, strided, groups\n"}};
    struct cli cli;
    cli_open(&cli);
    cli_file(&cli, "pools.yaml", layers);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[128], says[128];
        snprintf(command, sizeof command, "plan pools.yaml %s", cases[i][0]);
        snprintf(says, sizeof says, "\nconvolutions that compute their pools: %s", cases[i][1] ? cases[i][1] : "");
        cli_expect(&cli, 0, command);
        cr_expect((strstr(cli.out, says) != NULL) == (cases[i][1] != NULL), "%s: %s", command, cli.out);
    }
    cli_close(&cli);
}

Test(query, pareto_has_the_figures_of_each_plan)
{
    static const char *const policies[] = {"store_all", "every", "segments", "sqrt", "optimal"};
    struct cli cli;
    open_cnn(&cli);
    json_t *all = ask(&cli, "--pareto"), *plans = json_object_get(all, "plans"), *row, *other;
    size_t i, j, seen[sizeof policies / sizeof *policies] = {0}, own = 0;
    json_array_foreach (plans, i, row) {
        bool beaten = false;
        check_row(&cli, 8, row);
        json_array_foreach (plans, j, other) beaten |= beats(other, row);
        cr_assert(json_is_true(json_object_get(row, "pareto")) == !beaten);
        for (j = 0; j < sizeof policies / sizeof *policies; j++)
            seen[j] += !strcmp(text_of(row, "policy"), policies[j]);
        own += json_is_true(json_object_get(row, "own"));
        cr_assert(real_of(row, "share_percent") ==
                  100 * (double)bytes_of(row, "arena_bytes") / (double)bytes_of(all, "share_of_bytes"));
        if (!strcmp(text_of(row, "policy"), "store_all"))
            cr_assert(bytes_of(row, "live_peak_bytes") == bytes_of(all, "share_of_bytes"));
        cr_assert(!i || bytes_of(json_array_get(plans, i - 1), "peak_bytes") <= bytes_of(row, "peak_bytes"));
    }
    for (j = 0; j < sizeof policies / sizeof *policies; j++) cr_assert(seen[j] > 0, "no plan of %s", policies[j]);
    cr_assert(own == 1 && seen[2] > 5 && seen[4] > 5, "%zu %zu %zu", own, seen[2], seen[4]);
    cr_assert(!strcmp(text_of(json_array_get(json_object_get(all, "left_out"), 0), "policy"), "manual"));
    json_decref(all);
    cli_close(&cli);
}

/* The least arena of any point of the front that takes at most a slowdown. */
static size_t least_arena(const struct job *job, double slowdown)
{
    const struct plan_options options = {.lower = {.drop_dead = true}, .state_per_parameter = 1};
    size_t least = SIZE_MAX;
    struct pool *pool = rivals_pool(job->network, &options, NULL);
    optimum_within(pool->chain, SIZE_MAX);
    pool_add_chain(pool);
    for (int i = 0; i < pool->members; i++) {
        struct region *region = region_create();
        struct schedule schedule = schedule_empty(region);
        pool_schedule(pool, &pool->member[i], &schedule);
        struct plan *plan = plan_build(job->network, &schedule, &options);
        if (plan->slowdown <= slowdown && plan->arena_bytes < least) least = plan->arena_bytes;
        plan_destroy(plan);
        region_destroy(region);
    }
    pool_destroy(pool);
    return least;
}

Test(query, min_memory_is_the_least_of_the_front)
{
    static const double slowdowns[] = {1, 1.01, 1.05, 1.1, 1.2, 1.5, 3};
    struct cli cli;
    struct own own;
    size_t before = SIZE_MAX;
    int distinct = 0;
    open_cnn(&cli);
    cr_assert(plan_own(&cli, 8, NULL, &own));
    for (size_t s = 0; s < sizeof slowdowns / sizeof *slowdowns; s++) {
        char arguments[64];
        size_t i, least = 0;
        json_t *row;
        snprintf(arguments, sizeof arguments, "--min-memory --slowdown %g", slowdowns[s]);
        json_t *all = ask(&cli, arguments);
        json_array_foreach (json_object_get(all, "plans"), i, row) {
            check_row(&cli, 8, row);
            cr_assert(real_of(row, "slowdown") <= slowdowns[s]);
            if (!strcmp(text_of(row, "policy"), "optimal")) least = bytes_of(row, "arena_bytes");
        }
        cr_assert(least == least_arena(own.job, slowdowns[s]) && least <= before, "slowdown %g: %zu", slowdowns[s],
                  least);
        distinct += least < before;
        before = least;
        json_decref(all);
    }
    cr_assert(distinct > 2, "%d", distinct);
    close_own(&own);
    cli_close(&cli);
}

static size_t peak_at(const struct cli *cli, int64_t batch, const json_t *row)
{
    struct own own;
    if (!plan_own(cli, batch, row, &own)) return SIZE_MAX;
    size_t peak = plan_peak(own.job->plan);
    close_own(&own);
    return peak;
}

/* Whether some number of segments keeps the memory, by either unit. */
static bool any_segments_fit(const struct cli *cli, int64_t batch, size_t memory)
{
    bool fit = false;
    for (int unit = 0; unit < 2; unit++)
        for (int segments = 1; segments <= 12; segments++) {
            char settings[64];
            snprintf(settings, sizeof settings, "segments=%d unit=%s", segments, unit ? "stage" : "group");
            json_t *row = json_pack("{ssss}", "policy", "segments", "settings", settings);
            fit |= peak_at(cli, batch, row) <= memory;
            json_decref(row);
        }
    return fit;
}

Test(query, the_largest_batch_fits_and_no_larger_one)
{
    static const size_t memories[] = {1 << 20, 3000000, 10000000};
    struct cli cli;
    open_cnn(&cli);
    for (size_t m = 0; m < sizeof memories / sizeof *memories; m++) {
        char arguments[64];
        size_t i;
        json_t *row;
        snprintf(arguments, sizeof arguments, "--max-batch --memory %zuB", memories[m]);
        json_t *all = ask(&cli, arguments);
        cr_assert(real_of(all, "largest_batch") ==
                  real_of(json_array_get(json_object_get(all, "policies"), 0), "largest_batch"));
        json_array_foreach (json_object_get(all, "policies"), i, row) {
            int64_t batch = (int64_t)bytes_of(row, "largest_batch");
            if (!strcmp(text_of(row, "policy"), "manual")) continue;
            cr_assert(batch > 0, "%s", cli.out);
            check_row(&cli, batch, row);
            cr_assert(peak_at(&cli, batch, row) <= memories[m] && peak_at(&cli, batch + 1, row) > memories[m]);
            for (int64_t above = batch + 2; above <= batch + 8 && !json_is_integer(json_object_get(row, "odd_batch"));
                 above++)
                cr_assert(peak_at(&cli, above, row) > memories[m], "batch %lld fits", (long long)above);
            if (!strcmp(text_of(row, "policy"), "segments") && !json_is_true(json_object_get(row, "own")))
                cr_assert(!any_segments_fit(&cli, batch + 1, memories[m]));
        }
        json_decref(all);
    }
    json_t *all = ask(&cli, "--max-batch --memory 10MB --slowdown 1"), *row;
    size_t i;
    json_array_foreach (json_object_get(all, "policies"), i, row)
        cr_assert(!bytes_of(row, "largest_batch") || real_of(row, "slowdown") == 1);
    cr_assert(bytes_of(all, "largest_batch") == 0); /* three segments are slower */
    json_decref(all);
    cli_close(&cli);
}

Test(query, explain_has_the_figures_of_each_plan)
{
    struct cli cli;
    open_cnn(&cli);
    json_t *all = ask(&cli, "--explain"), *row;
    size_t i;
    struct own own;
    char op[128];
    cr_assert(plan_own(&cli, 8, NULL, &own));
    const struct plan *plan = own.job->plan;
    cr_assert(!strcmp(text_of(all, "peak_op"), plan_op_text(plan, plan->peak_op, op)));
    cr_assert(bytes_of(all, "peak_bytes") == plan_peak(plan));
    cr_assert(bytes_of(all, "memory_floor_bytes") == own.job->bounds.memory);
    json_array_foreach (json_object_get(all, "plans"), i, row) check_row(&cli, 8, row);
    close_own(&own);
    json_decref(all);
    cli_close(&cli);
}

static int lines(const char *text)
{
    int count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

/* The same rows for people and for spreadsheets. */
Test(query, text_and_csv_have_the_same_rows)
{
    struct cli cli;
    open_cnn(&cli);
    json_t *all = ask(&cli, "--pareto");
    int plans = (int)json_array_size(json_object_get(all, "plans"));
    cli_expect(&cli, 0, "plan cnn.yaml --pareto --csv");
    cr_assert(lines(cli.out) == plans + 1, "%s", cli.out);
    cli_says(&cli, "\noptimal,budget=");
    cli_expect(&cli, 0, "plan cnn.yaml --pareto");
    cli_says(&cli, "\nthe front of optimal, ");
    cli_says(&cli, ", was found in ");
    cr_assert(json_real_value(json_object_get(all, "front_planning_ms")) > 0);
    cli_says(&cli, "*  optimal    budget=");
    cli_says(&cli, "left out: manual, ");
    cli_expect(&cli, 0, "plan cnn.yaml --max-batch --memory 1GB batch=3");
    cli_says(&cli, "override batch");
    cli_says(&cli, "at most 953.7 MiB (1000000000 bytes)");
    cli_says(&cli, "as the spec sets it");
    cli_says(&cli, "too much\n");
    cli_expect(&cli, 0, "plan cnn.yaml --min-memory --slowdown=1.2");
    cli_says(&cli, "slowdown of at most 1.2");
    cli_expect(&cli, 0, "plan cnn.yaml --explain policy=every");
    cli_says(&cli, "policy every takes");
    cli_says(&cli, "no schedule has less than");
    json_decref(all);
    cli_close(&cli);
}

/* What a command in the folder prints on stderr, which is a terminal. */
static void on_terminal(const struct cli *cli, const char *arguments, char *said, size_t room)
{
    char command[1024];
    size_t length = 0;
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    cr_assert(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    snprintf(command, sizeof command, "cd '%s' && '%s' %s >stdout 2>'%s'", cli->folder, cli_program(), arguments,
             ptsname(master));
    FILE *shell = popen(command, "r"); /* does not wait: what it says must be read for it to go on */
    cr_assert(shell != NULL);
    for (ssize_t got; length < room - 1 && (got = read(master, said + length, room - 1 - length)) > 0;)
        length += (size_t)got;
    said[length] = '\0';
    cr_assert(pclose(shell) == 0, "%s", said);
    close(master);
}

/* On a terminal a long search shows its progress and erases it at its end; elsewhere it prints none. */
Test(query, a_terminal_shows_what_is_being_planned)
{
    static const char question[] = "plan cnn.yaml --max-batch --memory 1MB", end[] = "\r\033[K";
    static char said[1 << 20];
    struct cli cli;
    open_cnn(&cli);
    on_terminal(&cli, question, said, sizeof said);
    cr_assert(strstr(said, "\r\033[K  planning batch 8: segments ") && strstr(said, ": dtr budget=1000000\r"), "%s",
              said);
    cr_assert(strlen(said) > sizeof end && !strcmp(said + strlen(said) - strlen(end), end), "%s", said);
    cli_expect(&cli, 0, question);
    cr_assert_str_empty(cli.err);
    cli_close(&cli);
}
