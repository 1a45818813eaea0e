#include "report/commands.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "result/record_file.h"
#include "result/result_read.h"
#include "run/progress.h"
#include "spec/spec.h"
#include "yaml/yaml_tree.h"

enum { POLL_US = 200000, WAITS = 50 }; /* between two looks at a file; looks for the next run */

static struct progress begin(struct result *r, FILE *out)
{
    const char *resolved = h5_read_text(&r->h5, "/spec/resolved", r->region);
    const uint64_t asked = result_steps_asked(r, yaml_tree_of_text(resolved, r->region));
    struct progress progress = progress_begin(out, (int64_t)asked);
    fprintf(out, "%s: %s, policy %s\n", r->h5.path, r->variant, r->policy);
    return progress;
}

/* The steps that have been committed since; a terminal gets the last one. The time left is estimated from the times of
 * the steps, not from when they are read. */
static void print_new(const struct result *r, struct progress *progress)
{
    if (progress->steps < (int64_t)r->steps) progress->steps = (int64_t)r->steps;
    if (progress->terminal && progress->done < (int64_t)r->steps) progress->done = (int64_t)r->steps - 1;
    uint64_t spent = 0;
    for (size_t i = 0; i < r->steps; i++) {
        spent += r->total_ns[i];
        if ((int64_t)i < progress->done) continue;
        const struct step_record step = {
            .step = r->step[i], .result.loss = r->loss[i], .total_ns = r->total_ns[i], .live_peak = r->live[i]};
        if (!progress->terminal) progress->last_line = 0;
        progress->start = clock_now_ns() - spent;
        progress_step(progress, &step);
    }
}

/* At the end of its run the file is renamed, maybe just now. */
static enum status open_either(const char *path, const char *part, struct result **r)
{
    if (access(part, F_OK) != 0) return result_open(path, r);
    const enum status status = result_open(part, r);
    return status != ST_OK && access(part, F_OK) != 0 ? result_open(path, r) : status;
}

/* Reading a file first finds whether a process writes it, so the last look sees every step. */
static enum status follow(const char *path, const char *part, struct region *region, FILE *out)
{
    struct progress progress = {.out = NULL};
    const char *now = "";
    for (bool ended = false; !ended;) {
        result_auto *r = NULL;
        TRY(open_either(path, part, &r));
        if (!progress.out) progress = begin(r, out);
        print_new(r, &progress);
        ended = !r->written;
        if (ended) now = region_text(region, "%s", r->now);
        if (!ended) usleep(POLL_US);
    }
    progress_end(&progress);
    fprintf(out, "%s\n", now);
    return strcmp(now, "completed") == 0 ? ST_OK : fail(ST_FAILED, "%s: %s", path, now);
}

enum status follow_file(const char *path, FILE *out)
{
    static const char tail[] = ".part";
    region_auto *region = region_create();
    const int length = (int)strlen(path) - (text_ends(path, tail) ? (int)strlen(tail) : 0);
    const char *whole = region_text(region, "%.*s", length, path);
    return follow(whole, region_text(region, "%s%s", whole, tail), region, out);
}

enum status follow_experiment(const struct spec *spec, FILE *out)
{
    const char *folder = region_text(spec->region, "%s/%s", spec->results, spec->name);
    const char *path = record_file_find(folder, ".part", true, spec->region);
    if (!*path) return fail(ST_SPEC, "run: nothing to follow: no run of %s is being written in %s", spec->name, folder);
    while (*path) {
        TRY(follow_file(path, out));
        for (int i = 0; i < WAITS && !*(path = record_file_find(folder, ".part", true, spec->region)); i++)
            usleep(POLL_US);
    }
    return ST_OK;
}
