#include "analysis/finished_run.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "analysis/result_row.h"
#include "console/terminal.h"

/* Whether reading it neither fails nor ends the process that reads. */
static bool is_sound(const char *path)
{
    json_auto_t *row = result_row(path);
    const char *reason = json_string_at(row, "reason");
    char warning[4400];
    if (!reason) return true;
    snprintf(warning, sizeof warning, "cannot be used, so the run is repeated: %s", reason);
    report_warning(warning);
    return false;
}

static void fill_report(struct result *r, const char *path, struct run_report *report)
{
    struct eval_record last = {.accuracy = NAN};
    record_last_eval(r, &last);
    *report = (struct run_report){.finished = true,
                                  .steps = (int64_t)r->steps,
                                  .accuracy = last.accuracy,
                                  .step_ns = (uint64_t)r->timing.median_ns,
                                  .best_case_ns = r->best_case_ns};
    snprintf(report->path, sizeof report->path, "%s", path);
    for (size_t i = 0; i < r->steps && i < REPORT_LOSSES; i++) report->loss[i] = r->loss[i];
    if (r->steps) report->last_loss = r->loss[r->steps - 1];
    if (r->steps == 1) report->step_ns = r->total_ns[0];
    report->summary = record_summary_read(r);
}

bool finished_run(const char *folder, const char *id, const char *variant, const char *invocation,
                  struct run_report *report)
{
    static const char *const ends[] = {"", "-repeat"}; /* the latter: of a variant with its baseline's id */
    bool found = false;
    for (int i = 0; i < 2 && !found; i++) {
        char path[REPORT_PATH];
        result_auto *r = NULL;
        snprintf(path, sizeof path, "%s/%s%s.h5", folder, id, ends[i]);
        if (access(path, F_OK) != 0 || !is_sound(path) || result_open(path, &r) != ST_OK) continue;
        found = !strcmp(r->status, "completed") && !strcmp(r->run_id, id) && !strcmp(r->variant, variant) &&
                (!invocation || !strcmp(r->invocation, invocation));
        if (found) fill_report(r, path, report);
        found = found && h5_status(&r->h5) == ST_OK;
    }
    return found;
}
