#include "analysis/result_row.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/compare.h"
#include "base/work.h"
#include "numerics/digest.h"
#include "result/result_read.h"
#include "spec/spec.h"
#include "spec/spec_settings.h"
#include "yaml/yaml_tree.h"

/* ---- processes that read ---- */

/* What is done for each of many files or pairs of files, and a number that says that one could not be read. */
struct result_reading {
    json_t *(*read)(const void *of, size_t i);
    bool (*failed)(const json_t *made);
    const void *of;
    size_t count;
    const char *progress;
};

/* A process and what it writes; pid -1: it could not be started. */
struct reader {
    pid_t pid;
    FILE *in;
};

/* The process: writes what it makes of every step-th one, and ends with one that failed, since a damaged file may have
 * left the library in any state. */
static _Noreturn void read_on(const struct result_reading *r, size_t first, size_t step, int to)
{
    FILE *out = fdopen(to, "w");
    bool going = out;
    for (size_t i = first; going && i < r->count; i += step) {
        json_auto_t *made = r->read(r->of, i);
        going = json_dumpf(made, out, JSON_ENCODE_ANY) == 0 && fflush(out) == 0 && !r->failed(made);
    }
    _exit(out ? 0 : ST_FAILED);
}

static struct reader reader_start(const struct result_reading *r, size_t first, size_t step)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return (struct reader){-1, NULL};
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) read_on(r, first, step, ends[1]);
    close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    if (!in) close(ends[0]);
    return (struct reader){pid, in};
}

/* How it ended: its exit code, 128 + n for signal n, -1: it could not be started. */
static int reader_end(const struct reader *reader)
{
    int state = 0;
    pid_t waited = reader->pid;
    if (reader->in) fclose(reader->in);
    while (reader->pid > 0 && (waited = waitpid(reader->pid, &state, 0)) < 0 && errno == EINTR) {
    }
    if (waited < 0) return -1;
    return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

/* Appends to made what processes make of the next ones, in turn, to the first that one of them does not make. Returns
 * how that process ended. */
static int read_some(const struct result_reading *r, json_t *made)
{
    enum { READERS = 16 };
    struct reader reader[READERS] = {{-1, NULL}};
    const size_t first = json_array_size(made), left = r->count - first, cores = (size_t)omp_get_num_procs(),
                 most = cores < READERS ? cores : READERS, readers = left < most ? left : most;
    size_t at = 0;
    int ended = 0;
    for (size_t i = 0; i < readers; i++) reader[i] = reader_start(r, first + i, readers);
    for (json_t *one;; at = (at + 1) % readers) {
        one = reader[at].in ? json_loadf(reader[at].in, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL) : NULL;
        if (!one) break;
        ADD(made, one);
        work_report(r->progress, (double)json_array_size(made), (double)r->count);
    }
    for (size_t i = 0; i < readers; i++) {
        if (i != at && reader[i].pid > 0) kill(reader[i].pid, SIGKILL);
        const int code = reader_end(&reader[i]);
        if (i == at) ended = code;
    }
    return ended;
}

/* An array of what is made of each; of one that ends its process, what lost() makes. Where not all processes could be
 * started, the others went on as far as they could. */
static json_t *read_apart(const struct result_reading *r, json_t *(*lost)(const void *of, size_t i, int ended))
{
    json_t *made = json_array();
    for (size_t i; (i = json_array_size(made)) < r->count;) {
        const int ended = read_some(r, made);
        if (ended > 0 || i == json_array_size(made)) ADD(made, lost(r->of, json_array_size(made), ended));
    }
    return made;
}

/* ---- rows ---- */

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
    PUT_ALL(match, KEY("trains", DIGEST_TEXT(digest_bytes(trains, strlen(trains)))),
            KEY("how", DIGEST_TEXT(digest_bytes(how, strlen(how)))));
    if (batch && batch->kind == YAML_TEXT) PUT(row, "batch", json_of_plain(batch->text));
}

/* Lines such as "batch: 8 -> 4". "set" and "was": the values of each key. */
static void add_overrides(json_t *row, json_t *match, struct result *r)
{
    size_t count = 0;
    const char **lines = h5_read_texts(&r->h5, "/spec/overrides", r->region, &count), *text = "";
    json_t *set = json_object(), *was = json_object();
    for (size_t i = 0; lines && i < count; i++) {
        const char *colon = strstr(lines[i], ": "), *arrow = colon ? strstr(colon, " -> ") : NULL;
        text = region_text(r->region, "%s%s%s", text, i ? "; " : "", lines[i]);
        if (!arrow) continue;
        const char *key = region_text(r->region, "%.*s", (int)(colon - lines[i]), lines[i]);
        PUT(set, key, arrow + 4);
        PUT(was, key, region_text(r->region, "%.*s", (int)(arrow - colon - 2), colon + 2));
    }
    PUT(row, "overrides", text);
    PUT_ALL(match, KEY("set", set), KEY("was", was));
}

/* The row of a file that cannot be read. */
static json_t *unreadable(const char *reason)
{
    return json_pack("{s:s, s:s, s:s, s:n, s:i, s:n, s:n, s:n, s:s, s:s, s:s, s:s, s:s, s:o}", "side", "", "policy", "",
                     "batch", "", "steps", "pieces", 1, "peak_bytes", "live_peak_bytes", "step_ns", "status",
                     "unreadable", "verdict", "-", "baseline", "", "overrides", "", "created", "", "reason",
                     json_of_plain(reason));
}

static json_t *read_row(const void *paths, size_t i)
{
    const char *const *path = paths;
    result_auto *r = NULL;
    if (result_open(path[i], &r) != ST_OK) return unreadable(status_message());
    json_t *row = unreadable(""), *match = json_object();
    PUT_ALL(row, KEY("side", r->variant), KEY("policy", r->policy), KEY("created", r->created));
    if (r->steps) PUT(row, "steps", r->steps);
    if (h5_exists(&r->h5, "/pieces/step")) PUT(row, "pieces", h5_rows(&r->h5, "/pieces/step"));
    if (r->peak_bytes) PUT(row, "peak_bytes", r->peak_bytes);
    if (r->live_peak) PUT(row, "live_peak_bytes", r->live_peak);
    if (r->timing.median_ns > 0) PUT(row, "step_ns", (int64_t)r->timing.median_ns);
    PUT_ALL(match, KEY("invocation", r->invocation), KEY("whole", json_boolean(r->whole)));
    add_spec(row, match, r);
    add_overrides(row, match, r);
    PUT(row, "match", match);
    const bool readable = h5_status(&r->h5) == ST_OK;
    PUT_ALL(row, KEY("status", readable ? r->now : "unreadable"),
            KEY("reason", readable ? json_null() : json_of_plain(status_message())));
    return row;
}

static bool is_unreadable(const json_t *row) { return json_string_at(row, "reason"); }

static json_t *lost_row(const void *paths, size_t i, int ended)
{
    const char *const *path = paths;
    char reason[4200];
    snprintf(reason, sizeof reason, "%s: cannot read: reading it ended with exit code %d", path[i], ended);
    return unreadable(reason);
}

json_t *result_rows(const char *const *path, size_t count)
{
    return read_apart(&(struct result_reading){read_row, is_unreadable, path, count, "reading files"}, lost_row);
}

json_t *result_row(const char *path)
{
    json_auto_t *rows = result_rows(&path, 1);
    return json_incref(json_array_get(rows, 0));
}

/* ---- verdicts ---- */

static json_t *compare_pair(const void *pairs, size_t i)
{
    const struct result_pair *pair = (const struct result_pair *)pairs + i;
    struct comparison comparison;
    const enum status compared = compare_files(pair->baseline, pair->variant, &comparison),
                      status = compared == ST_OK ? comparison_status(&comparison) : ST_OK;
    json_decref(comparison.json);
    if (compared != ST_OK) return json_string("-");
    return json_string(status == ST_OK ? "equal" : status == ST_DIFFERS ? "DIFFERS" : "unproven");
}

static bool is_none(const json_t *verdict) { return !strcmp(json_string_value(verdict), "-"); }

static json_t *lost_verdict(const void *pairs, size_t i, int ended)
{
    (void)pairs, (void)i, (void)ended;
    return json_string("-");
}

json_t *result_verdicts(const struct result_pair *pair, size_t count)
{
    return read_apart(&(struct result_reading){compare_pair, is_none, pair, count, "comparing files"}, lost_verdict);
}

/* ---- baselines ---- */

static bool same(const json_t *a, const json_t *b, const char *key)
{
    return json_equal(json_object_get(a, key), json_object_get(b, key));
}

bool result_row_is_whole(const json_t *row)
{
    return !json_string_at(row, "reason") && json_is_true(json_object_get(json_object_get(row, "match"), "whole"));
}

json_t *result_baselines(const json_t *rows)
{
    json_t *all = json_object();
    EACH (rows, i, row) {
        const json_t *match = json_object_get(row, "match");
        if (!result_row_is_whole(row) || strcmp(json_string_at(row, "side"), "baseline") != 0) continue;
        const char *trains = json_string_at(match, "trains");
        json_t *same = json_object_get(all, trains);
        if (!same) PUT(all, trains, same = json_array());
        json_array_append(same, row);
    }
    return all;
}

const json_t *result_row_baseline(const json_t *baselines, const json_t *run)
{
    int best = -1;
    const json_t *baseline = NULL, *of = json_object_get(run, "match");
    EACH (json_object_get(baselines, json_string_at(of, "trains")), i, row) {
        const json_t *its = json_object_get(row, "match");
        const int matches = 2 * same(of, its, "invocation") + same(of, its, "how");
        const bool newer = baseline && strcmp(json_string_at(row, "created"), json_string_at(baseline, "created")) >= 0;
        if (!same(run, row, "experiment") || matches < best || (matches == best && !newer)) continue;
        best = matches;
        baseline = row;
    }
    return baseline;
}
