/* rematch report: what a browser draws is what the files contain. */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/altered_files.h"
#include "tests/support/browser.h"
#include "tests/support/made_runs.h"

/* ---- reading files by plain calls ---- */

struct numbers {
    double *at;
    size_t count;
};

static struct numbers numbers_of(const char *path, const char *array)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen(file, array, H5P_DEFAULT);
    const hid_t space = H5Dget_space(set);
    struct numbers n = {.count = (size_t)H5Sget_simple_extent_npoints(space)};
    n.at = calloc(n.count + 1, sizeof *n.at);
    cr_assert(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, n.at) >= 0, "%s %s", path, array);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return n;
}

static double attribute_of(const char *path, const char *object, const char *name)
{
    double value = NAN;
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t attribute = H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) >= 0, "%s %s@%s", path, object, name);
    H5Aclose(attribute);
    H5Fclose(file);
    return value;
}

static bool is_variant(const char *path)
{
    char *text = NULL;
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), attribute = H5Aopen(file, "variant", H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute);
    cr_assert(H5Aread(attribute, type, &text) >= 0);
    const bool found = strcmp(text, "variant") == 0;
    H5free_memory(text);
    H5Tclose(type);
    H5Aclose(attribute);
    H5Fclose(file);
    return found;
}

enum { FILES = 64 };

/* The result files below the folder, baselines first; returns how many. */
static int find_files(const struct cli *cli, char path[FILES][512])
{
    int count = 0;
    for (int variant = 0; variant < 2; variant++) {
        char command[600];
        snprintf(command, sizeof command, "find '%s/results' -name '*.h5*' ! -name '*.csv' | sort", cli->folder);
        FILE *find = popen(command, "r");
        while (count < FILES && fgets(path[count], 512, find)) {
            path[count][strcspn(path[count], "\n")] = '\0';
            count += is_variant(path[count]) == (variant == 1);
        }
        pclose(find);
    }
    return count;
}

/* ---- the page beside the files ---- */

static json_t *chart_of(const json_t *seen, const char *id)
{
    json_t *chart = json_object_get(json_object_get(seen, "charts"), id);
    cr_assert(chart != NULL, "there is no chart %s", id);
    return chart;
}

static double plotted(const json_t *chart, size_t set, size_t point, int coordinate)
{
    return json_number_value(
        json_array_get(json_array_get(json_array_get(json_object_get(chart, "data"), set), point), (size_t)coordinate));
}

static size_t points_in(const json_t *chart, size_t set)
{
    return json_array_size(json_array_get(json_object_get(chart, "data"), set));
}

/* Bytes of the unit on an axis; 0: y, 1: x. */
static double unit_of(const json_t *chart, int coordinate)
{
    char text[256];
    snprintf(text, sizeof text, "%s", json_string_value(json_object_get(chart, "unit")));
    char *x = strstr(text, " / ");
    cr_assert(x != NULL);
    *x = '\0';
    const char *title = coordinate ? x + 3 : text;
    return strstr(title, "GiB") ? 0x1p30 : strstr(title, "MiB") ? 0x1p20 : 1024;
}

static void check_page(const json_t *seen, const char *name)
{
    const char *id;
    json_t *chart, *error = json_object_get(seen, "error");
    cr_assert(json_is_null(error), "%s: %s", name, json_string_value(error));
    cr_assert(json_is_false(json_object_get(seen, "scrolls")), "%s scrolls sideways", name);
    json_object_foreach (json_object_get(seen, "charts"), id, chart) {
        const char *described = json_string_value(json_object_get(chart, "described"));
        cr_assert(described && strlen(described) > 20, "%s: %s has no text", name, id);
    }
}

static void check_says(const json_t *seen, const char *member, const char *text)
{
    const char *found = json_string_value(json_object_get(seen, member));
    cr_assert(found && strstr(found, text), "'%s' is not in the %s, '%s'", text, member, found ? found : "");
}

/* The four categories' layers, each on those below, are sums over the buffers that live at an op: two points an op.
 * outlined: the total of another run comes first. */
static void check_memory(const json_t *chart, const char *path, bool outlined)
{
    const struct numbers category = numbers_of(path, "/plan/buffers/category"),
                         bytes = numbers_of(path, "/plan/buffers/bytes"),
                         birth = numbers_of(path, "/plan/buffers/birth"),
                         death = numbers_of(path, "/plan/buffers/death"), live = numbers_of(path, "/plan/ops/live");
    const double unit = unit_of(chart, 0);
    cr_assert(json_array_size(json_object_get(chart, "data")) == (outlined ? 5 : 4));
    for (size_t op = 0; op < live.count; op++) {
        double below = 0;
        for (size_t c = 0; c < 4; c++) {
            for (size_t b = 0; b < bytes.count; b++)
                if ((size_t)category.at[b] == c && birth.at[b] <= (double)op && (double)op <= death.at[b])
                    below += bytes.at[b];
            for (size_t side = 0; side < 2; side++) {
                const size_t set = c + outlined, point = 2 * op + side;
                cr_assert(points_in(chart, set) == 2 * live.count);
                cr_assert(plotted(chart, set, point, 0) == (double)(op + side));
                cr_assert(plotted(chart, set, point, 1) * unit == below, "%s: op %zu, category %zu: %g, expected %g",
                          path, op, c, plotted(chart, set, point, 1) * unit, below);
            }
        }
        cr_assert(below == live.at[op]);
    }
    free(category.at), free(bytes.at), free(birth.at), free(death.at), free(live.at);
}

static void check_losses(const json_t *seen, const char *baseline, const char *variant)
{
    const json_t *losses = chart_of(seen, "losses"), *difference = chart_of(seen, "difference");
    const struct numbers a = numbers_of(baseline, "/steps/loss"), b = numbers_of(variant, "/steps/loss");
    const size_t steps = a.count < b.count ? a.count : b.count;
    cr_assert(points_in(losses, 0) == steps && points_in(losses, 1) == steps && points_in(difference, 0) == steps);
    for (size_t i = 0; i < steps; i++) {
        cr_assert(plotted(losses, 0, i, 0) == (double)i);
        cr_assert(plotted(losses, 0, i, 1) == a.at[i] && plotted(losses, 1, i, 1) == b.at[i]);
        cr_assert(plotted(difference, 0, i, 1) == b.at[i] - a.at[i], "step %zu", i);
    }
    free(a.at), free(b.at);
}

/* The runs, the plans that `rematch plan --pareto` finds, the bound, and the point that the spec quotes: half the
 * baseline's memory in 1.25 times the time. */
static void check_choices(struct cli *cli, const json_t *seen, char path[][512], int files)
{
    json_t *answer = cli_json(cli, 0, "plan small.yaml --pareto --json"), *plan;
    const json_t *chart = chart_of(seen, "choices"), *plans = json_object_get(answer, "plans");
    const size_t sets = json_array_size(json_object_get(chart, "data"));
    const double unit = unit_of(chart, 1);
    size_t i, found = 0;
    cr_assert(points_in(chart, sets - 1) == 1 && plotted(chart, sets - 1, 0, 1) == 1.25);
    cr_assert(plotted(chart, sets - 1, 0, 0) * unit == 0.5 * attribute_of(path[0], "/plan", "live_peak_bytes"));
    for (int k = 0; k < files; k++) {
        cr_assert(plotted(chart, 0, (size_t)k, 0) * unit == attribute_of(path[k], "/plan", "live_peak_bytes"));
        cr_assert(plotted(chart, 0, (size_t)k, 1) == attribute_of(path[k], "/plan", "slowdown"));
    }
    json_array_foreach (plans, i, plan) {
        const double live = json_number_value(json_object_get(plan, "live_peak_bytes")),
                     slowdown = json_number_value(json_object_get(plan, "slowdown"));
        bool there = false;
        for (size_t set = 1; set < sets - 2; set++)
            for (size_t p = 0; p < points_in(chart, set); p++)
                there |= plotted(chart, set, p, 0) * unit == live && plotted(chart, set, p, 1) == slowdown;
        cr_assert(there, "plan %zu is not plotted", i);
    }
    for (size_t set = 1; set < sets - 2; set++) found += points_in(chart, set);
    cr_assert(found == json_array_size(plans), "%zu plans are plotted, expected %zu", found, json_array_size(plans));
    json_decref(answer);
}

/* ---- pages ---- */

/* A run of small.yaml whose verdict has that text; on a page as wide as a phone. */
static const struct pair_case {
    const char *run, *verdict;
    int code;
} pair_cases[] = {
    {"run small.yaml --quiet", "EQUAL IN EVERY BIT", 0},
    {"run small.yaml --quiet fault.kind=skip_recompute fault.step=2 fault.node=one", "DIFFERS at step 2, ", 1},
    {"run small.yaml --quiet policy=store_all", "EQUAL IN EVERY BIT, BUT NOT A PROOF", 4},
};

Test(report, pages_of_pairs_plot_what_their_files_hold)
{
    browser_require();
    for (size_t i = 0; i < sizeof pair_cases / sizeof *pair_cases; i++) {
        const struct pair_case *c = &pair_cases[i];
        struct cli cli;
        char path[FILES][512], arguments[1200];
        cli_open(&cli);
        cli_run(&cli,
                "echo 'expect: [{what: live_ratio, below: 9, source: a guess}]\n"
                "published: [{label: theirs, memory: 0.5, slowdown: 1.25, source: a paper}]' >>small.yaml",
                c->run);
        cr_assert(cli.code == c->code && find_files(&cli, path) == 2, "%s", cli.err);
        snprintf(arguments, sizeof arguments, "report %s %s", path[1], path[0]);
        cli_expect(&cli, 0, arguments);
        cli_says(&cli, "page      report.html\n");
        json_t *seen = browser_show(&cli, "report.html", 360);
        check_page(seen, c->run);
        check_says(seen, "verdict", c->verdict);
        check_says(seen, "title", "a small MLP");
        check_memory(chart_of(seen, "memory-0"), path[0], true);
        check_memory(chart_of(seen, "memory-1"), path[1], true);
        check_losses(seen, path[0], path[1]);
        check_choices(&cli, seen, path, 2); /* the baseline first */
        json_decref(seen);
        cli_close(&cli);
    }
}

Test(report, a_sweep_has_a_curve_for_every_measure)
{
    struct cli cli;
    char path[FILES][512];
    browser_require();
    cli_open(&cli);
    cli_run(&cli, "", "run small.yaml --quiet 'sweep={batch: [4, 8, 12], policy.groups: [[front]]}'");
    const int files = find_files(&cli, path);
    cr_assert(files == 6, "%d files\n%s", files, cli.err);
    cli_expect(&cli, 0, "report results/small/*.h5 -o sweep.html");
    json_t *seen = browser_show(&cli, "sweep.html", 1200);
    check_page(seen, "sweep");
    check_says(seen, "verdict", "3 of 3 variants equal in every bit");
    const json_t *peak = chart_of(seen, "sweep-0"), *slowdown = chart_of(seen, "sweep-1"),
                 *loss = chart_of(seen, "sweep-3");
    cr_assert(points_in(peak, 0) == 3 && json_array_size(json_object_get(peak, "data")) == 1);
    for (int i = 3; i < 6; i++) {
        const double batch = attribute_of(path[i], "/plan", "batch");
        const size_t point = (size_t)batch / 4 - 1;
        cr_assert(plotted(peak, 0, point, 0) == batch);
        cr_assert(plotted(peak, 0, point, 1) * unit_of(peak, 0) == attribute_of(path[i], "/plan", "live_peak_bytes"));
        cr_assert(plotted(slowdown, 0, point, 1) == attribute_of(path[i], "/plan", "slowdown"));
        cr_assert(plotted(loss, 0, point, 1) == attribute_of(path[i], "/summary", "final_loss"));
    }
    json_decref(seen);
    cli_close(&cli);
}

/* Texts of a file are shown, never run; plans and single runs have pages, too. */
Test(report, other_files_have_pages)
{
    static const char title[] = "</script><script>throw 1</script><b>&amp;";
    static const struct {
        const char *files, *verdict;
        int charts;
    } cases[] = {
        {"results/small/*.h5", "EQUAL", 5}, {"one.h5", "Not compared", 3}, {"a.plan b.plan", "Not compared", 3}};
    struct cli cli;
    char path[FILES][512], arguments[600];
    browser_require();
    cli_open(&cli);
    cli_run(&cli, "sed -i 's|a small MLP|\"</script><script>throw 1</script><b>\\&amp;\"|' small.yaml",
            "run small.yaml --quiet");
    cli_expect(&cli, 0, "plan small.yaml --out a.plan");
    cli_expect(&cli, 0, "plan small.yaml policy=store_all --out b.plan");
    cr_assert(find_files(&cli, path) == 2);
    snprintf(arguments, sizeof arguments, "%s/one.h5", cli.folder);
    alter_copy(path[1], arguments);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(arguments, sizeof arguments, "report %s -o page.html", cases[i].files);
        cli_expect(&cli, 0, arguments);
        json_t *seen = browser_show(&cli, "page.html", 800);
        check_page(seen, cases[i].files);
        check_says(seen, "title", title);
        check_says(seen, "verdict", cases[i].verdict);
        cr_assert((int)json_object_size(json_object_get(seen, "charts")) == cases[i].charts, "%s: %zu charts",
                  cases[i].files, json_object_size(json_object_get(seen, "charts")));
        json_decref(seen);
    }
    cli_close(&cli);
}

/* Fifty runs fit a page of 5 MB. */
Test(report, fifty_runs_are_a_small_page)
{
    struct cli cli;
    char path[FILES][512];
    char sweep[600] = "run small.yaml --quiet 'sweep={seed: [";
    browser_require();
    cli_open(&cli);
    for (int i = 0; i < 25; i++)
        snprintf(sweep + strlen(sweep), sizeof sweep - strlen(sweep), "%s%d", i ? ", " : "", i + 1);
    snprintf(sweep + strlen(sweep), sizeof sweep - strlen(sweep), "]}'");
    cli_expect(&cli, 0, sweep);
    cr_assert(find_files(&cli, path) == 50);
    cli_run(&cli, "", "report results/small/*.h5");
    cr_assert(cli.code == 0, "%s", cli.err);
    cli_run(&cli, "test $(stat -c %s report.html) -lt 5000000", "--version");
    cr_assert(cli.code == 0);
    json_t *seen = browser_show(&cli, "report.html", 1200);
    check_page(seen, "fifty runs");
    check_says(seen, "verdict", "25 of 25 variants equal in every bit");
    json_decref(seen);
    cli_close(&cli);
}

/* ---- traces ---- */

/* The events of each run follow each other, and its counters are the live bytes. */
Test(report, a_trace_has_every_op)
{
    struct cli cli;
    char path[FILES][512], file[600];
    json_error_t error;
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet");
    cr_assert(find_files(&cli, path) == 2);
    cli_expect(&cli, 0, "report results/small/*.h5 --trace trace.json");
    cli_says(&cli, "trace     trace.json\n");
    cr_assert(strstr(cli.out, "page") == NULL);
    snprintf(file, sizeof file, "%s/trace.json", cli.folder);
    json_t *trace = json_load_file(file, 0, &error), *events = json_object_get(trace, "traceEvents"), *event, *bytes;
    size_t i, ops = 0, expected = 0;
    double end[3] = {0}, total[3] = {0};
    const char *category;
    cr_assert(trace != NULL, "%s", error.text);
    json_array_foreach (events, i, event) {
        const int run = (int)json_integer_value(json_object_get(event, "pid"));
        const double at = json_number_value(json_object_get(event, "ts"));
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) continue;
        cr_assert(run >= 1 && run <= 2 && fabs(at - end[run]) < 1e-6 * (1 + at));
        end[run] = at + json_number_value(json_object_get(event, "dur"));
        json_object_foreach (json_object_get(event, "args"), category, bytes) total[run] += json_number_value(bytes);
        ops++;
    }
    for (int k = 0; k < 2; k++) {
        const struct numbers live = numbers_of(path[k], "/plan/ops/live"),
                             ns = numbers_of(path[k], "/summary/op_least_ns");
        double sum = 0, time = 0;
        for (size_t op = 0; op < live.count; op++) sum += live.at[op], time += ns.at[op] * 1e-3;
        cr_assert((sum == total[1] && fabs(time - end[1]) < 1e-6 * time) ||
                  (sum == total[2] && fabs(time - end[2]) < 1e-6 * time));
        expected += live.count;
        free(live.at), free(ns.at);
    }
    cr_assert(ops == expected);
    json_decref(trace);
    cli_close(&cli);
}

/* ---- errors: nothing is written ---- */

Test(report, what_cannot_be_shown_or_written_is_refused)
{
    static const struct {
        const char *before, *arguments, *says;
        int code;
    } cases[] = {
        {"", "report", "report: too few arguments", 2},
        {"", "report none.h5", "none.h5: cannot read: No such file", 2},
        {"", "report small.yaml", "small.yaml: not an HDF5 file", 2},
        {"", "report cut.h5", "cut.h5: ", 3},
        {"", "report live.h5", "live.h5: op 3 has ", 2},
        {"", "report results/small/*.h5 -o small.yaml",
         "small.yaml: exists and is no page of rematch report; nothing was written", 2},
        {"", "report results/small/*.h5 --trace small.yaml", "small.yaml: exists and is no trace of rematch report", 2},
        {"mkfifo pipe", "report results/small/*.h5 -o pipe", "pipe: exists and is not a plain file", 2},
        {"", "report results/small/*.h5 --trace pipe", "pipe: exists and is not a plain file", 2},
        {"", "report results/small/*.h5 -o results", "results: exists and is not a plain file", 2},
        {"", "report results/small/*.h5 -o none/page.html", "none/page.html", 3},
        {"", "report results/small/*.h5 -o", "--out has no value; expected FILE", 2},
        {"mkdir -p bin; PATH=$PWD/bin", "report results/small/*.h5 --figures drawn", "install gnuplot-nox", 77},
        {"ulimit -f 100", "report results/small/*.h5", "report.html: cannot be written", 3},
    };
    struct cli cli;
    char path[FILES][512], copy[600];
    cli_open(&cli);
    cli_expect(&cli, 0, "run small.yaml --quiet");
    cr_assert(find_files(&cli, path) == 2);
    snprintf(copy, sizeof copy, "%s/cut.h5", cli.folder);
    alter_copy(path[1], copy);
    alter_length(copy, 0.5);
    snprintf(copy, sizeof copy, "%s/live.h5", cli.folder);
    alter_copy(path[1], copy);
    alter_element(copy, "/plan/ops/live", 3, 256);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_run(&cli, cases[i].before, cases[i].arguments);
        cr_assert(cli.code == cases[i].code, "rematch %s: exit code %d\n%s", cases[i].arguments, cli.code, cli.err);
        cli_complains(&cli, cases[i].says);
        cr_assert(cli_complaints(&cli) == 1, "%s", cli.err);
        cr_assert(folder_count(cli.folder, ".html") + folder_count(cli.folder, ".svg") == 0);
        cli_run(&cli, "ls | grep -E 'report.html|drawn|page.html' && exit 9", "--version");
        cr_assert(cli.code == 0, "rematch %s left something", cases[i].arguments);
    }
    cli_close(&cli);
}
