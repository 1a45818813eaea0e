#include "report/commands.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"
#include "analysis/result_row.h"
#include "base/work.h"
#include "console/work_line.h"
#include "policies/policy.h"
#include "report/report_tree.h"
#include "report/show.h"
#include "result/record.h"
#include "result/record_plan.h"
#include "yaml/yaml_write.h"

enum {
    RUNS_MOST = 1000,
    PLAN_BYTES = 3 << 20, /* of the plans' text, so that a page stays below 5 MB; that of a pair is always there */
    LOSSES = 20000,       /* of all pairs; of one at least the least and at most the most of these */
    LOSSES_LEAST = 50,
    LOSSES_MOST = 1000,
    SOON_PLANNED_NODES = 64 /* all policies plan such a network within a second */
};

struct report {
    const struct arguments *arguments;
    struct region *region;
    const char **path; /* of the files: baselines before variants, each by the settings in which they differ */
    json_t *rows, *settings, *published; /* of each file: result_row(), report_settings(), the points that it quotes */
    json_t *tree, *runs, *plans, *pairs, *notes;
    size_t plan_bytes;
    int most_nodes;
};

/* ---- runs ---- */

/* The number of an equal plan among plans; -1: the page would be too large. */
static int add_plan(struct report *r, json_t *plan)
{
    json_auto_t *own = plan;
    EACH (r->plans, i, known)
        if (json_equal(known, own)) return (int)i;
    const size_t bytes = json_dumpb(own, NULL, 0, JSON_COMPACT), count = json_array_size(r->plans);
    if (count >= 2 && r->plan_bytes + bytes > PLAN_BYTES) return -1;
    r->plan_bytes += bytes;
    json_array_append(r->plans, own);
    return (int)count;
}

/* null: no evaluation. */
static double last_accuracy(struct result *r)
{
    struct eval_record last = {.accuracy = NAN};
    if (h5_exists(&r->h5, "/eval/committed")) record_last_eval(r, &last);
    return (double)last.accuracy;
}

static enum status add_run(struct report *r, int number)
{
    const char *path = r->path[number];
    json_t *run, *plan = NULL, *groups, *row = json_array_get(r->rows, (size_t)number);
    result_auto *result = NULL;
    TRY(result_open(path, &result)); /* of an unreadable file the error of any command, or the program ends */
    if (json_string_at(row, "reason")) return fail(ST_FAILED, "%s", json_string_at(row, "reason"));
    const char *claimed_by = record_plan_claimed_by(&result->h5, result->region);
    if (!*claimed_by) TRY(report_plan(result, &plan));
    const int nodes = (int)json_array_size(json_object_get(plan, "nodes")), index = plan ? add_plan(r, plan) : -1;
    if (nodes > r->most_nodes) r->most_nodes = nodes;
    if (!plan) json_note(r->notes, "run %d: %s recorded it, without a plan", number + 1, claimed_by);
    if (plan && index < 0)
        json_note(r->notes, "run %d: its plan is left out, because the page would be too large", number + 1);
    ADD(r->runs, run = show_groups(result));
    groups = json_object_get(run, "/plan");
    json_object_del(groups, "schedule"); /* the plan has them */
    json_object_del(groups, "peak_tensors");
    PUT_ALL(run, KEY("path", json_of_plain(path)), KEY("side", result->variant),
            KEY("plan", index < 0 ? json_null() : json_integer(index)), KEY("expect", report_expectations(result)),
            KEY("accuracy", last_accuracy(result)), KEY("resumed", (int)json_number_at(row, "pieces") - 1));
    if (r->arguments->given[OPTION_TRACE]) TRY(show_table(result, "summary", false, run)); /* "op_least_ns" */
    ADD(r->published, report_list(result, "published"));
    PUT_ALL(row, KEY("experiment", json_incref(json_object_get(json_object_get(run, "/"), "experiment"))),
            KEY("number", number));
    return h5_status(&result->h5);
}

/* ---- the order of the files ---- */

struct ordered {
    const char *path;
    json_t *row, *settings;
    const json_t *axes; /* of all files */
    int number, rank;
};

static int by_value(const char *a, const char *b)
{
    const double x = report_number(a), y = report_number(b);
    if (!a || !b) return (a != NULL) - (b != NULL);
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : strcmp(a, b);
}

static int by_settings(const void *left, const void *right)
{
    const struct ordered *a = left, *b = right;
    int order = a->rank - b->rank;
    EACH (order ? NULL : a->axes, i, axis) {
        const char *key = json_string_at(axis, "key");
        if (!order) order = by_value(json_string_at(a->settings, key), json_string_at(b->settings, key));
    }
    return order ? order : a->number - b->number;
}

/* Reads rows and settings, and puts the files into their order. */
static enum status order_files(struct report *r)
{
    static const char *const sides[] = {"baseline", "variant", NULL};
    const int files = r->arguments->operands;
    struct ordered *file;
    json_auto_t *rows = result_rows(r->arguments->operand, (size_t)files), *settings = json_array();
    NEW(r->region, file, (size_t)files);
    NEW(r->region, r->path, (size_t)files);
    for (int i = 0; i < files; i++) {
        result_auto *result = NULL;
        TRY(result_open(r->arguments->operand[i], &result)); /* the error of any command */
        file[i] = (struct ordered){r->arguments->operand[i], json_array_get(rows, (size_t)i), .number = i};
        ADD(settings, file[i].settings = report_settings(result));
        while (sides[file[i].rank] && strcmp(sides[file[i].rank], result->variant) != 0) file[i].rank++;
        file[i].rank = 2 * file[i].rank + (strcmp(result->policy, "store_all") != 0); /* of plans, too, first */
    }
    json_auto_t *axes = report_axes(settings, r->region);
    for (int i = 0; i < files; i++) file[i].axes = axes;
    qsort(file, (size_t)files, sizeof *file, by_settings);
    for (int i = 0; i < files; i++) {
        r->path[i] = file[i].path;
        json_array_append(r->rows, file[i].row);
        json_array_append(r->settings, file[i].settings);
    }
    return ST_OK;
}

/* ---- losses: of each of many equal parts of the steps the largest difference, the least and the greatest loss ---- */

static double difference_of(const struct result *a, const struct result *b, size_t i, size_t j)
{
    return b ? (double)b->loss[j] - (double)a->loss[i] : 0;
}

static bool is_larger(double x, double y) { return isnan(x) ? !isnan(y) : fabs(x) > fabs(y); }

/* The steps of a, or those that b has too. */
static size_t common_steps(const struct result *a, const struct result *b, size_t *in_a, size_t *in_b)
{
    size_t count = 0;
    for (size_t i = 0, j = 0; i < a->steps; i++) {
        while (b && j < b->steps && b->step[j] < a->step[i]) j++;
        if (b && (j == b->steps || b->step[j] != a->step[i])) continue;
        in_a[count] = i;
        in_b[count++] = j;
    }
    return count;
}

static json_t *json_of_losses(struct result *a, const struct result *b, size_t most)
{
    static const char *const keys[] = {"step", "a", "b", "difference"};
    json_t *all = json_object(), *column[4];
    size_t *in_a, *in_b;
    NEW(a->region, in_a, a->steps);
    NEW(a->region, in_b, a->steps);
    const size_t count = common_steps(a, b, in_a, in_b), parts = count < most ? count : most / 3;
    for (int k = 0; k < 4; k++) PUT(all, keys[k], column[k] = json_array());
    PUT(all, "steps", count);
    double largest = 0;
    for (size_t part = 0; part < parts; part++) {
        const size_t first = part * count / parts, end = (part + 1) * count / parts;
        size_t far = first, low = first, high = first;
        for (size_t i = first; i < end; i++) {
            if (is_larger(difference_of(a, b, in_a[i], in_b[i]), difference_of(a, b, in_a[far], in_b[far]))) far = i;
            if (!(a->loss[in_a[i]] >= a->loss[in_a[low]])) low = i;
            if (!(a->loss[in_a[i]] <= a->loss[in_a[high]])) high = i;
        }
        for (size_t i = first; i < end; i++) {
            if (i != far && i != low && i != high) continue;
            const double difference = difference_of(a, b, in_a[i], in_b[i]);
            ADD(column[0], a->step[in_a[i]]);
            ADD(column[1], (double)a->loss[in_a[i]]);
            ADD(column[2], b ? json_of_real((double)b->loss[in_b[i]]) : json_null());
            ADD(column[3], difference);
            if (is_larger(difference, largest)) largest = fabs(difference);
        }
    }
    PUT(all, "largest_difference", largest);
    return all;
}

/* ---- pairs ---- */

static bool is_variant(const struct report *r, int file)
{
    return !strcmp(json_string_at(json_array_get(r->runs, (size_t)file), "side"), "variant");
}

/* What cannot be compared, such as plans, stands side by side. */
static void add_pair(struct report *r, int a, int b)
{
    struct comparison comparison;
    const enum status status = compare_files(r->path[a], r->path[b], &comparison);
    json_t *pair = status == ST_OK ? comparison_json(&comparison) : json_object();
    json_decref(comparison.json);
    if (status != ST_OK) PUT(pair, "sentence", json_of_plain(status_message()));
    if (status == ST_OK) PUT(pair, "names", json_pack("[s, s]", comparison.name[0], comparison.name[1]));
    PUT_ALL(pair, KEY("compared", status == ST_OK ? json_true() : json_false()), KEY("a", a), KEY("b", b));
    ADD(r->pairs, pair);
}

/* Each variant with its baseline among the files; two files are a pair in any case. A run that was stopped, or ended at
 * a number that is not finite, is compared as far as it went. */
static void find_pairs(struct report *r)
{
    const int files = r->arguments->operands;
    json_auto_t *baselines = result_baselines(r->rows);
    for (int i = 0; i < files; i++) {
        if (!is_variant(r, i)) continue;
        const json_t *baseline = result_row_baseline(baselines, json_array_get(r->rows, (size_t)i));
        if (baseline) add_pair(r, (int)json_number_at(baseline, "number"), i);
        work_report("comparing runs", i + 1, files);
    }
    if (files == 2 && !json_array_size(r->pairs)) add_pair(r, 0, 1);
}

/* Of a file, or of a pair's two. */
static enum status add_loss(struct report *r, json_t *of, int file, int beside, size_t most)
{
    result_auto *a = NULL, *b = NULL;
    TRY(result_open(r->path[file], &a));
    if (beside >= 0) TRY(result_open(r->path[beside], &b));
    PUT(of, "losses", json_of_losses(a, b, most));
    return ST_OK;
}

static enum status add_losses(struct report *r)
{
    const size_t pairs = json_array_size(r->pairs), share = LOSSES / (pairs ? pairs : (size_t)r->arguments->operands);
    const size_t most = share > LOSSES_MOST ? LOSSES_MOST : share < LOSSES_LEAST ? LOSSES_LEAST : share;
    EACH (r->pairs, i, pair)
        TRY(add_loss(r, pair, (int)json_number_at(pair, "a"), (int)json_number_at(pair, "b"), most));
    EACH (pairs ? NULL : r->runs, k, run) TRY(add_loss(r, run, (int)k, -1, most));
    return ST_OK;
}

/* ---- the whole ---- */

/* The variants and the settings in which they differ; without variants, those of all files, but not of a pair. */
static void add_sweep(struct report *r)
{
    const int files = r->arguments->operands;
    json_auto_t *settings = json_array();
    json_t *runs = json_array();
    for (int only = 1; only >= 0 && !json_array_size(runs); only--)
        for (int i = 0; i < files && (only || files > 2); i++) {
            if (only && !is_variant(r, i)) continue;
            json_array_append(settings, json_array_get(r->settings, (size_t)i));
            ADD(runs, i);
        }
    PUT(r->tree, "sweep", OBJECT(KEY("runs", runs), KEY("axes", report_axes(settings, r->region))));
}

/* The points that the run's spec quotes, at their shares of the live peak of its baseline; without one, none. */
static json_t *published_points(const struct report *r, int run)
{
    json_t *points = json_array();
    const json_t *quoted = json_array_get(r->published, (size_t)run);
    EACH (r->pairs, i, pair) {
        if (run != (int)json_number_at(pair, "b")) continue;
        const json_t *baseline = json_array_get(r->runs, (size_t)json_number_at(pair, "a"));
        const double whole = json_number_at(json_object_get(baseline, "/plan"), "live_peak_bytes");
        EACH (quoted, k, point) {
            const char *memory = json_string_at(point, "memory"), *slowdown = json_string_at(point, "slowdown");
            if (!memory || !slowdown || !json_string_at(point, "label")) continue; /* no spec has such a point */
            PUT_ALL(point, KEY("live_peak_bytes", strtod(memory, NULL) * whole),
                    KEY("slowdown", strtod(slowdown, NULL)));
            json_array_append(points, point);
        }
    }
    return points;
}

/* The plans of all policies for the first variant. */
static void add_choices(struct report *r)
{
    int first = 0;
    json_t *choices = NULL;
    while (first < r->arguments->operands - 1 && !is_variant(r, first)) first++;
    if (r->most_nodes && (r->arguments->given[OPTION_PARETO] || r->most_nodes <= SOON_PLANNED_NODES))
        choices = report_choices(r->path[first], r->notes);
    else if (r->most_nodes)
        json_note(r->notes,
                  "without the plans of other policies, because the network has more than %d nodes; --pareto "
                  "plans them",
                  SOON_PLANNED_NODES);
    if (choices) PUT(choices, "run", first);
    PUT_ALL(r->tree, KEY("choices", choices ? choices : json_null()), KEY("published", published_points(r, first)));
}

static enum status gather(struct report *r)
{
    const int files = r->arguments->operands;
    TRY(order_files(r));
    for (int i = 0; i < files; i++) {
        TRY(add_run(r, i));
        work_report("reading plans", i + 1, files);
    }
    json_t *phases = json_array();
    for (const char *const *phase = report_phases; *phase; phase++) ADD(phases, *phase);
    json_t *policies = json_array();
    for (const struct policy *const *policy = policy_table; *policy; policy++) ADD(policies, (*policy)->name);
    PUT_ALL(r->tree, KEY("phases", phases), KEY("policies", policies));
    find_pairs(r);
    TRY(add_losses(r));
    add_sweep(r);
    add_choices(r);
    return ST_OK;
}

/* One of page and trace, which are files; where NULL: it is not asked for. */
struct output {
    const char *what, *where, *begins;
    void (*print)(const void *tree, FILE *out);
};

/* Everything that is written, checked before the files are read. */
static enum status check_outputs(const struct report *r, const struct output output[2])
{
    for (int i = 0; i < 2; i++)
        TRY(yaml_write_check(output[i].where, output[i].begins,
                             i ? "trace of rematch report" : "page of rematch report"));
    const char *folder = r->arguments->value[OPTION_FIGURES];
    return folder ? report_check_drawings(folder) : ST_OK;
}

/* --width single: drawings as wide as one of a paper's two columns. */
static bool single_column(const struct report *r)
{
    const char *width = r->arguments->given[OPTION_WIDTH] ? r->arguments->value[OPTION_WIDTH] : "double";
    return strcmp(width, "single") == 0;
}

static enum status write_outputs(const struct report *r, const struct output output[2])
{
    const char *folder = r->arguments->value[OPTION_FIGURES];
    for (int i = 0; i < 2; i++) {
        if (!output[i].where) continue;
        TRY(yaml_write_whole(output[i].where, output[i].print, r->tree));
        printf("%-9s %s\n", output[i].what, output[i].where);
    }
    if (!folder) return ST_OK;
    TRY(report_write_drawings(r->tree, folder, single_column(r)));
    printf("%-9s %s\n", "figures", folder);
    return ST_OK;
}

enum status report_make(struct arguments *arguments)
{
    region_auto *region = region_create();
    json_auto_t *rows = json_array(), *settings = json_array(), *published = json_array(), *tree = json_object();
    struct report r = {.arguments = arguments,
                       .region = region,
                       .rows = rows,
                       .settings = settings,
                       .published = published,
                       .tree = tree};
    if (arguments->operands > RUNS_MOST)
        return fail(ST_SPEC,
                    "report: %d files; expected at most %d, as a page of more cannot be read: rematch list FOLDER "
                    "[--json] has a row for each of any number",
                    arguments->operands, RUNS_MOST);
    if (arguments->given[OPTION_WIDTH] && !arguments->given[OPTION_FIGURES])
        return fail(ST_SPEC, "report: --width is of figures; expected --figures FOLDER, too");
    const char *page = arguments->value[OPTION_OUT], *trace = arguments->value[OPTION_TRACE];
    if (!page && !trace && !arguments->given[OPTION_FIGURES]) page = "report.html";
    const struct output output[] = {{"page", page, report_page_begins, report_print_page},
                                    {"trace", trace, report_trace_begins, report_print_trace}};
    signal(SIGXFSZ, SIG_IGN); /* a file-size limit, or the end of gnuplot, becomes an error of writing */
    signal(SIGPIPE, SIG_IGN);
    PUT_ALL(r.tree, KEY("schema", "rematch/report/2"), KEY("runs", r.runs = json_array()),
            KEY("plans", r.plans = json_array()), KEY("pairs", r.pairs = json_array()),
            KEY("notes", r.notes = json_array()));
    enum status status = check_outputs(&r, output);
    work_line_begin();
    if (status == ST_OK) status = gather(&r);
    work_line_end();
    return status == ST_OK ? write_outputs(&r, output) : status;
}
