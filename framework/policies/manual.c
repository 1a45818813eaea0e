/* What a person decides: the named groups are replayed, everything else is stored; or a word, read from a file. */
#include "base/file.h"
#include "policies/policy.h"

enum { WORD_FILE_MAX = 1 << 24 };

/* One that cannot be run is refused here, where its file is known. */
static enum status read_word(const char *path, int nodes, struct region *region, struct word *word)
{
    char *text;
    if (file_read_text(path, WORD_FILE_MAX, region, &text) != ST_OK)
        return fail(ST_SPEC, "policy.word: %s", status_message());
    enum status status = word_parse(text, region, word);
    if (status == ST_OK) status = word_check(word, nodes, false);
    return status == ST_OK ? ST_OK : fail(status, "%s: %s", path, status_message());
}

/* Marks the chosen group that begins at each node; refuses groups that overlap. */
static enum status choose(const struct graph *graph, const struct field_list *names, int *group_of)
{
    for (int i = 0; i < graph->nodes; i++) group_of[i] = -1;
    for (size_t i = 0; i < names->count; i++) {
        int g = graph_find_group(graph, names->texts[i]);
        if (g < 0)
            return fail(ST_SPEC, "policy.groups: the model has no group '%s'%s%s", names->texts[i],
                        graph->groups ? "; its first is " : ", nor any other",
                        graph->groups ? graph->group[0].name : "");
        for (int n = graph->group[g].from; n < graph->group[g].to; n++) {
            if (group_of[n] >= 0)
                return fail(ST_SPEC, "policy.groups: '%s' and '%s' overlap", names->texts[i],
                            graph->group[group_of[n]].name);
            group_of[n] = g;
        }
    }
    return ST_OK;
}

static enum status emit(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct word *word)
{
    const struct graph *graph = network->graph;
    if ((settings->word != NULL) == (settings->groups.count > 0))
        return fail(ST_SPEC, "policy.groups or policy.word must be set, and not both");
    if (settings->word) return read_word(settings->word, graph->nodes, region, word);

    int *group_of;
    struct range *segment;
    bool *replay;
    TRY(NEW(region, group_of, (size_t)graph->nodes));
    TRY(NEW(region, segment, (size_t)graph->nodes));
    TRY(NEW(region, replay, (size_t)graph->nodes));
    TRY(choose(graph, &settings->groups, group_of));
    int segments = 0;
    for (int from = 0, to; from < graph->nodes; from = to) {
        for (to = from + 1; to < graph->nodes && group_of[to] == group_of[from];) to++;
        segment[segments] = (struct range){from, to};
        replay[segments++] = group_of[from] >= 0;
    }
    return policy_segments_emit(network, segment, replay, segments, settings->keep_saved, word);
}

static const struct field fields[] = {{"groups", FIELD_TEXTS, offsetof(struct policy_settings, groups), 0, 1e6, "",
                                       NULL, "names of the groups to replay; everything else is stored"},
                                      {"word", FIELD_PATH, offsetof(struct policy_settings, word), 0, 0, "", NULL,
                                       "a file with the word itself: steps F[from,to) and B[from,to) over nodes"},
                                      POLICY_FIELD_KEEP_SAVED,
                                      {.key = NULL}};

const struct policy policy_manual = {
    .name = "manual", .doc = "the named groups are replayed, or a word is taken", .fields = fields, .emit = emit};
