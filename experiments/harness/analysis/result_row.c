#include "analysis/result_row.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/compare.h"
#include "console/utf8.h"
#include "spec/spec_load.h"
#include "spec/spec_settings.h"
#include "yaml/yaml_tree.h"

/* Runs work(of, result) in a process of its own, because some damaged files crash the process that reads them. result,
 * of that many plain bytes, keeps what work wrote before it ended. Returns 0 if work returned, else the exit code of
 * the process, 128 + n for signal n, -1: no process could be started. */
static int apart(void (*work)(const void *of, void *result), const void *of, void *result, size_t bytes)
{
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int state = 0;
    if (shared == MAP_FAILED) return -1;
    memcpy(shared, result, bytes);
    fflush(NULL);
    const pid_t worker = fork();
    if (worker == 0) {
        work(of, shared);
        _exit(0);
    }
    pid_t ended = worker;
    while (worker > 0 && (ended = waitpid(worker, &state, 0)) < 0 && errno == EINTR) {
    }
    memcpy(result, shared, bytes);
    munmap(shared, bytes);
    return ended < 0 ? -1 : WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

/* Appends "key: value" of a resolved spec's key. */
static const char *append(const char *text, const struct yaml_tree *root, const char *key, struct region *region)
{
    const struct yaml_tree *value = yaml_tree_get(root, key);
    const char *printed = value ? yaml_tree_print(value, region) : "";
    /* the baseline of rng: unsafe has stash */
    if (!strcmp(key, "rng") && !strcmp(printed, "unsafe")) printed = "stash";
    return region_text(region, "%s%s: %s\n", text, key, printed);
}

/* A variant and its baseline agree in every key that changes the loss, except those that a baseline may set. */
static void read_spec(struct result *r, struct result_row *row)
{
    const char *text = h5_read_text(&r->h5, "/spec/resolved", r->region), *trains = "", *how = "";
    if (!text) return;
    const struct yaml_tree *root = yaml_tree_of_text(text, r->region), *batch = yaml_tree_get(root, "batch");
    for (int i = 0; root && spec_order[i]; i++) {
        const char *key = spec_order[i];
        if (!(spec_changes(key) >> EXPECT_LOSS & 1) || !strcmp(key, "fault")) continue;
        if (spec_is_own(key))
            how = append(how, root, key, r->region);
        else
            trains = append(trains, root, key, r->region);
    }
    row->how = digest_bytes(how, strlen(how));
    row->trains = digest_bytes(trains, strlen(trains));
    if (batch && batch->kind == YAML_TEXT) snprintf(row->batch, sizeof row->batch, "%s", batch->text);
}

static void read_overrides(struct result *r, struct result_row *row)
{
    size_t count = 0, used = 0;
    const char **lines = h5_read_texts(&r->h5, "/spec/overrides", r->region, &count);
    for (size_t i = 0; lines && i < count && used < sizeof row->overrides; i++)
        used += (size_t)snprintf(row->overrides + used, sizeof row->overrides - used, "%s%s", i ? "; " : "", lines[i]);
}

static void read_row(const void *path, void *to)
{
    struct result_row *row = to;
    struct result *result;
    if (result_open(path, &result) != ST_OK) {
        snprintf(row->status, sizeof row->status, "%s", status_message());
        return;
    }
    result_status(result, row->status);
    snprintf(row->variant, sizeof row->variant, "%s", result->variant);
    snprintf(row->policy, sizeof row->policy, "%s", result->policy);
    snprintf(row->created, sizeof row->created, "%s", result->created);
    snprintf(row->invocation, sizeof row->invocation, "%s", result->invocation);
    char *const texts[] = {row->status, row->variant, row->policy, row->created};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) utf8_clean(texts[i], "");
    row->whole = result->whole;
    row->steps = result->steps;
    row->peak = result->peak_bytes;
    row->live_peak = result->live_peak;
    row->step_ns = result->timing.median_ns;
    read_spec(result, row);
    read_overrides(result, row);
    utf8_clean(row->overrides, "");
    utf8_clean(row->batch, "");
    row->readable = h5_status(&result->h5) == ST_OK;
    if (!row->readable) snprintf(row->status, sizeof row->status, "%s", status_message());
    result_close(result);
}

void result_row_read(const char *path, struct result_row *row)
{
    *row = (struct result_row){.readable = false};
    const int ended = apart(read_row, path, row, sizeof *row);
    if (!ended) return;
    row->readable = false;
    snprintf(row->status, sizeof row->status, "%s: cannot read: reading it ended with exit code %d", path, ended);
}

static void compare_pair(const void *of, void *to)
{
    const char *const *pair = of;
    struct comparison comparison;
    if (compare_files(pair[0], pair[1], &comparison) != ST_OK) return;
    const enum status status = comparison_status(&comparison);
    *(const char **)to = status == ST_OK ? "equal" : status == ST_DIFFERS ? "DIFFERS" : "unproven";
}

const char *result_row_verdict(const char *baseline, const char *variant)
{
    const char *const pair[] = {baseline, variant},
                      *verdict = "-"; /* a child has the program's constant texts at the same addresses */
    return apart(compare_pair, pair, &verdict, sizeof verdict) ? "-" : verdict;
}
