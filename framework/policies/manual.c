/* The user decides: the named groups are recomputed, everything else is stored; or a schedule is read from a file. */
#include "base/file.h"
#include "policies/policy.h"

enum { SCHEDULE_FILE_MAX = 1 << 24 };

struct manual_settings {
    struct segment_settings segment;
    struct setting_list groups; /* names of the groups to recompute */
    const char *schedule;       /* path of a schedule file */
};
POLICY_SETTINGS_FIT(struct manual_settings);

/* A schedule that cannot run is refused here, where its file is known. */
static enum status read_schedule(const char *path, const struct graph *graph, struct schedule *schedule)
{
    const struct slicing slicing = graph_slicing(graph);
    char *text;
    if (file_read_text(path, SCHEDULE_FILE_MAX, schedule->region, &text) != ST_OK)
        return fail(ST_SPEC, "policy.schedule: %s", status_message());
    enum status status = schedule_parse(text, schedule->region, schedule);
    if (status == ST_OK) status = schedule_check(schedule, &slicing, false);
    return status == ST_OK ? ST_OK : fail(status, "%s: %s", path, status_message());
}

/* Marks the chosen group that begins at each node; refuses groups that overlap. */
static enum status choose(const struct graph *graph, const struct setting_list *names, int *group_of)
{
    for (int i = 0; i < graph->nodes; i++) group_of[i] = -1;
    for (size_t i = 0; i < names->count; i++) {
        int g;
        TRY(policy_group(graph, names->texts[i], &g));
        for (int n = graph->group[g].from; n < graph->group[g].to; n++) {
            if (group_of[n] >= 0)
                return fail(ST_SPEC, "policy.groups: '%s' and '%s' overlap", names->texts[i],
                            graph->group[group_of[n]].name);
            group_of[n] = g;
        }
    }
    return ST_OK;
}

static enum status emit(const struct policy_input *input, struct schedule *schedule)
{
    const struct manual_settings *settings = (const void *)input->settings;
    const struct network *network = input->network;
    struct region *region = schedule->region;
    const struct graph *graph = network->graph;
    if ((settings->schedule != NULL) == (settings->groups.count > 0))
        return fail(ST_SPEC, "policy.groups or policy.schedule must be set, and not both");
    if (settings->schedule) return read_schedule(settings->schedule, graph, schedule);

    int *group_of;
    struct node_range *segment;
    bool *recompute;
    NEW(region, group_of, (size_t)graph->nodes);
    NEW(region, segment, (size_t)graph->nodes);
    NEW(region, recompute, (size_t)graph->nodes);
    TRY(choose(graph, &settings->groups, group_of));
    int segments = 0;
    for (int from = 0, to; from < graph->nodes; from = to) {
        for (to = from + 1; to < graph->nodes && group_of[to] == group_of[from];) to++;
        segment[segments] = (struct node_range){from, to};
        recompute[segments++] = group_of[from] >= 0;
    }
    policy_segments_emit(network, segment, recompute, segments, settings->segment.keep_saved, schedule);
    return ST_OK;
}

static const struct setting keys[] = {{"groups", SETTING_TEXTS, offsetof(struct manual_settings, groups), 0, 1e6, "",
                                       NULL, "names of the groups to recompute; everything else is stored"},
                                      {"schedule", SETTING_PATH, offsetof(struct manual_settings, schedule), 0, 0, "",
                                       NULL,
                                       "a file with the schedule itself: steps F[from,to) and B[from,to) over nodes"},
                                      POLICY_SETTING_KEEP_SAVED,
                                      {.key = NULL}};

const struct policy policy_manual = {.name = "manual",
                                     .doc = "the named groups are recomputed, or a schedule is taken",
                                     .keys = keys,
                                     .emit = emit,
                                     .takes_slices = true};
