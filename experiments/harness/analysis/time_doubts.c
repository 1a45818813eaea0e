#include "analysis/time_doubts.h"

#include <math.h>
#include <string.h>

/* The least and the most of a planned ratio, and of the time of all threads, that is measured undisturbed. */
static const double ratio_least = 0.95, ratio_most = 2, share_least = 0.7, share_most = 1.3;

static double number_at(struct result *r, const char *group, const char *name)
{
    return (double)h5_read_attribute_u64(&r->h5, group, name, 0);
}

static double planned_time(struct result *r)
{
    double time = 0;
    h5_read_value(&r->h5, "/plan", "time", NUMBER_F64, false, &time, NULL);
    return time;
}

static const char *costs_of(struct result *r, struct region *region)
{
    return h5_read_attribute_text(&r->h5, "/plan", "costs", "", region);
}

/* Of best-case steps, beside the plans' ratio, which is in the same unit. */
static const char *doubt_ratio(struct result *a, struct result *b, const char *const name[2])
{
    struct region *region = a->region;
    const double x = planned_time(a), y = planned_time(b);
    if (!(x > 0) || !(y > 0) || !a->best_case_ns || !b->best_case_ns) return "";
    if (strcmp(costs_of(a, region), costs_of(b, region)) != 0) return "";
    const int longer = y >= x;
    const double planned = longer ? y / x : x / y, best = (double)b->best_case_ns / (double)a->best_case_ns,
                 found = longer ? best : 1 / best;
    if (found >= ratio_least && found <= ratio_most * planned) return "";
    return region_text(region, "the best case of %s is x%.3f of that of %s, planned x%.3f", name[longer], found,
                       name[1 - longer], planned);
}

/* The time that processors worked after the set-up, of all that a run's threads had; NaN: it is not known. */
static double share_of(struct result *r)
{
    const double worked = number_at(r, "/summary", "processor_ns"),
                 threads = number_at(r, "/provenance/host", "threads"),
                 wall = number_at(r, "/summary", "wall_ns") - number_at(r, "/summary", "setup_ns");
    if (!(worked > 0) || !(wall > 0) || !(threads > 0) || h5_exists(&r->h5, "/provenance/gpu")) return NAN;
    return h5_rows(&r->h5, "/pieces/piece") > 1 ? NAN : worked / (wall * threads); /* a process may have been killed */
}

static const char *doubt_share(struct result *r, const char *name, struct region *region)
{
    const double share = share_of(r), threads = number_at(r, "/provenance/host", "threads");
    if (!(share < share_least) && !(share > share_most)) return "";
    return region_text(region, "the processors worked %.0f %% of the time of %s's %.0f thread%s", 100 * share, name,
                       threads, threads == 1 ? "" : "s");
}

bool time_was_disturbed(struct result *result) { return share_of(result) < share_least; }

const char *time_doubts(struct result *a, struct result *b, const char *const name[2])
{
    const char *all = NULL, *doubts[] = {doubt_ratio(a, b, name), doubt_share(a, name[0], a->region),
                                         doubt_share(b, name[1], a->region)};
    for (size_t i = 0; i < sizeof doubts / sizeof *doubts; i++)
        if (*doubts[i])
            all = region_text(a->region, "%s%s",
                              all ? region_text(a->region, "%s; ", all) : "times may mislead: ", doubts[i]);
    return all;
}
