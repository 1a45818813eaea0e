#include "analysis/result_row.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/compare.h"
#include "result/result.h"
#include "spec/spec.h"
#include "spec/spec_settings.h"
#include "yaml/yaml_tree.h"

/* The figures that work(of) makes in a process of its own, because some damaged files crash the process that reads
 * them. NULL: it made none; *ended: its exit code, 128 + n for signal n, -1: no process could be started. */
static json_t *apart(json_t *(*work)(const void *of), const void *of, int *ended)
{
    int ends[2], state = 0;
    *ended = -1;
    if (pipe2(ends, O_CLOEXEC) != 0) return NULL;
    fflush(NULL);
    const pid_t worker = fork();
    if (worker == 0) _exit(json_dumpfd(work(of), ends[1], JSON_ENCODE_ANY));
    close(ends[1]);
    json_t *made = json_loadfd(ends[0], JSON_DECODE_ANY, NULL);
    close(ends[0]);
    pid_t waited = worker;
    while (worker > 0 && (waited = waitpid(worker, &state, 0)) < 0 && errno == EINTR) {
    }
    if (waited > 0) *ended = WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
    return made;
}

/* Appends "key: value" of a resolved spec's key. */
static const char *append(const char *text, const struct yaml_tree *root, const char *key, struct region *region)
{
    const struct yaml_tree *value = yaml_tree_get(root, key);
    const char *printed = value ? yaml_tree_print(value, region) : "";
    for (const struct wrong_value *w = spec_wrong_values; w->key; w++)
        if (!strcmp(key, w->key) && !strcmp(printed, w->value)) printed = w->of_baseline;
    return region_text(region, "%s%s: %s\n", text, key, printed);
}

/* A variant and its baseline agree in every key that changes the loss (trains), except those that a baseline may set
 * (how). */
static void add_spec(json_t *row, json_t *match, struct result *r)
{
    const char *text = h5_read_text(&r->h5, "/spec/resolved", r->region), *trains = "", *how = "";
    const struct yaml_tree *root = text ? yaml_tree_of_text(text, r->region) : NULL,
                           *batch = yaml_tree_get(root, "batch");
    for (int i = 0; root && spec_order[i]; i++) {
        const char *key = spec_order[i], **keys = spec_is_own(key) ? &how : &trains;
        if (spec_changes(key) >> EXPECT_LOSS & 1 && strcmp(key, "fault") != 0)
            *keys = append(*keys, root, key, r->region);
    }
    PUT_ALL(match, KEY("trains", trains), KEY("how", how));
    if (batch && batch->kind == YAML_TEXT) PUT(row, "batch", figure_plain(batch->text));
}

static void add_overrides(json_t *row, struct result *r)
{
    size_t count = 0;
    const char **lines = h5_read_texts(&r->h5, "/spec/overrides", r->region, &count), *text = "";
    for (size_t i = 0; lines && i < count; i++) text = region_text(r->region, "%s%s%s", text, i ? "; " : "", lines[i]);
    PUT(row, "overrides", text);
}

/* The row of a file that cannot be read. */
static json_t *unreadable(const char *reason)
{
    return json_pack("{s:s, s:s, s:s, s:n, s:n, s:n, s:n, s:s, s:s, s:s, s:s, s:s, s:o}", "side", "", "policy", "",
                     "batch", "", "steps", "peak_bytes", "live_peak_bytes", "step_ns", "status", "unreadable",
                     "verdict", "-", "baseline", "", "overrides", "", "created", "", "reason", figure_plain(reason));
}

static json_t *read_row(const void *path)
{
    result_auto *r = NULL;
    if (result_open(path, &r) != ST_OK) return unreadable(status_message());
    json_t *row = unreadable(""), *match = json_object();
    PUT_ALL(row, KEY("side", r->variant), KEY("policy", r->policy), KEY("created", r->created));
    if (r->steps) PUT(row, "steps", r->steps);
    if (r->peak_bytes) PUT(row, "peak_bytes", r->peak_bytes);
    if (r->live_peak) PUT(row, "live_peak_bytes", r->live_peak);
    if (r->timing.median_ns > 0) PUT(row, "step_ns", (int64_t)r->timing.median_ns);
    PUT_ALL(match, KEY("invocation", r->invocation), KEY("whole", json_boolean(r->whole)));
    add_spec(row, match, r);
    add_overrides(row, r);
    PUT(row, "match", match);
    const bool readable = h5_status(&r->h5) == ST_OK;
    PUT_ALL(row, KEY("status", readable ? r->now : "unreadable"),
            KEY("reason", readable ? json_null() : figure_plain(status_message())));
    return row;
}

json_t *result_row(const char *path)
{
    char reason[4200];
    int ended;
    json_auto_t *row = apart(read_row, path, &ended);
    if (row && !ended) return json_incref(row);
    snprintf(reason, sizeof reason, "%s: cannot read: reading it ended with exit code %d", path, ended);
    return unreadable(reason);
}

static json_t *compare_pair(const void *of)
{
    const char *const *pair = of;
    struct comparison comparison;
    if (compare_files(pair[0], pair[1], &comparison) != ST_OK) return json_string("-");
    const enum status status = comparison_status(&comparison);
    return json_string(status == ST_OK ? "equal" : status == ST_DIFFERS ? "DIFFERS" : "unproven");
}

json_t *result_row_verdict(const char *baseline, const char *variant)
{
    const char *const pair[] = {baseline, variant};
    int ended;
    json_t *verdict = apart(compare_pair, pair, &ended);
    return verdict ? verdict : json_string("-");
}

/* ---- baselines ---- */

static bool same(const json_t *a, const json_t *b, const char *key)
{
    return json_equal(json_object_get(a, key), json_object_get(b, key));
}

bool result_row_is_whole(const json_t *row)
{
    return !figure_string(row, "reason") && json_is_true(json_object_get(json_object_get(row, "match"), "whole"));
}

/* How well a baseline matches a run; -1: it does not. */
static int match(const json_t *run, const json_t *baseline)
{
    const json_t *a = json_object_get(run, "match"), *b = json_object_get(baseline, "match");
    const bool is = result_row_is_whole(baseline) && !strcmp(figure_string(baseline, "side"), "baseline");
    if (!is || !same(run, baseline, "experiment") || !same(a, b, "trains")) return -1;
    return 2 * same(a, b, "invocation") + same(a, b, "how");
}

const json_t *result_row_baseline(const json_t *rows, const json_t *run)
{
    int best = -1;
    const json_t *baseline = NULL;
    EACH (rows, i, row) {
        const int matches = match(run, row);
        const bool newer = baseline && strcmp(figure_string(row, "created"), figure_string(baseline, "created")) >= 0;
        if (matches < best || (matches == best && !newer)) continue;
        best = matches;
        baseline = row;
    }
    return best < 0 ? NULL : baseline;
}
