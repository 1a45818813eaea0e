/* The experiments' expectations are tight: a bound that no wrong run would exceed expects nothing. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "job/job.h"
#include "run/job_plans.h"
#include "spec/spec.h"
#include "spec/spec_settings.h"
#include "tests/support/spec_text.h"

/* NULL: it expects nothing, or its data are missing; then *missing grows by its expectations. */
static struct job *planned(const char *file, bool baseline, int *missing)
{
    struct spec *spec;
    struct job *job = NULL;
    cr_assert(spec_load(file, 0, NULL, &spec) == ST_OK, "%s: %s", file, messages());
    if (baseline) spec = spec->baseline;
    enum status status = spec->expectations || baseline ? job_create(spec, &job) : ST_MISSING;
    cr_assert(status == ST_OK || status == ST_MISSING, "%s: %s", file, messages());
    if (!job) {
        *missing += spec->expectations;
        spec_destroy(spec);
    }
    return job;
}

static void done(struct job *job)
{
    if (!job) return;
    struct spec *spec = job->spec;
    job_destroy(job);
    spec_destroy(spec);
}

static double peak(const struct job *job) { return (double)(plan_static(job->plan) + job->plan->arena_bytes); }

/* Bytes are within a tenth of the plan, a step takes at most twice the planned time, and every number is judged for
 * which the steps suffice. */
static void check(const char *file, const struct expectation *x, const struct job *baseline, const struct job *variant)
{
    const char *name = expectation_names[x->what];
    const struct plan *a = baseline->plan, *b = variant->plan;
    cr_expect(x->source && *x->source, "%s: %s has no source", file, name);
    if (x->what == EXPECT_TIME_RATIO) {
        cr_expect(x->below <= 2 * b->time / a->time, "%s: %s below %g, planned %g", file, name, x->below,
                  b->time / a->time);
        cr_expect(b->time / a->time < x->below && !(b->time / a->time <= x->above), "%s: %s", file, name);
        cr_expect(variant->steps > 1, "%s: a ratio of times needs a second step", file);
    }
    if (x->what != EXPECT_PEAK_RATIO && x->what != EXPECT_LIVE_RATIO) return;
    const double ratio =
        x->what == EXPECT_PEAK_RATIO ? peak(variant) / peak(baseline) : (double)b->live_peak / (double)a->live_peak;
    cr_expect(x->above < ratio && ratio < x->below, "%s: %s above %g below %g, planned %g", file, name, x->above,
              x->below, ratio);
    cr_expect(x->below - x->above <= 0.2 * ratio, "%s: %s above %g below %g", file, name, x->above, x->below);
}

TestSuite(expectations, .init = spec_text_begin, .fini = spec_text_end);

/* Checks the experiments whose data are here; returns how many expectations they have, *missing those of the others. */
static int check_all(int *missing)
{
    DIR *folder = opendir("experiments");
    int judged = 0;
    *missing = 0;
    cr_assert(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char file[512];
        snprintf(file, sizeof file, "experiments/%s", entry->d_name);
        struct job *variant = strstr(file, ".yaml") ? planned(file, false, missing) : NULL;
        struct job *baseline = variant ? planned(file, true, missing) : NULL;
        for (int i = 0; baseline && i < variant->spec->expectations; i++, judged++)
            check(file, &variant->spec->expectation[i], baseline, variant);
        done(variant);
        done(baseline);
    }
    closedir(folder);
    return judged;
}

Test(expectations, plans_meet_them_tightly)
{
    int missing;
    const int judged = check_all(&missing);
    cr_expect(judged >= 12 && judged + missing >= 20, "%d judged, %d of data that are missing", judged, missing);
}

Test(expectations, none_is_left_out_for_missing_data)
{
    int missing;
    const int judged = check_all(&missing);
    if (missing) cr_skip_test("%d of %d expectations need data that are missing", missing, judged + missing);
    cr_expect(judged >= 20);
}
