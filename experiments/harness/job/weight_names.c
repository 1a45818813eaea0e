#include "job/weight_names.h"

#include <stdbool.h>
#include <string.h>

/* BERT's names in models/bert-*.yaml and in Hugging Face's transformers (models/bert/modeling_bert.py). A row is a
 * parameter, or a node with all of its parameters; # is a block's number. */
#define LAYER "encoder.layer.#."
static const struct {
    const char *ours, *theirs[WEIGHT_SOURCES_MAX];
} rows[] = {
    {"embedding.word", {"embeddings.word_embeddings.weight"}},
    {"embedding.position", {"embeddings.position_embeddings.weight"}},
    {"embedding.segment", {"embeddings.token_type_embeddings.weight"}},
    {"embedding_norm", {"embeddings.LayerNorm"}},
    {"block[#].qkv", {LAYER "attention.self.query", LAYER "attention.self.key", LAYER "attention.self.value"}},
    {"block[#].projection", {LAYER "attention.output.dense"}},
    {"block[#].attention_norm", {LAYER "attention.output.LayerNorm"}},
    {"block[#].up", {LAYER "intermediate.dense"}},
    {"block[#].down", {LAYER "output.dense"}},
    {"block[#].norm", {LAYER "output.LayerNorm"}},
    {"pooler", {"pooler.dense"}},
};

/* Whether name begins with pattern, where # matches the digits *number of length *digits; *rest: what follows. */
static bool matches(const char *pattern, const char *name, const char **number, int *digits, const char **rest)
{
    *number = "";
    *digits = 0;
    for (; *pattern; pattern++) {
        if (*pattern == '#') {
            *number = name;
            *digits = (int)strspn(name, "0123456789");
            if (!*digits) return false;
            name += *digits;
        } else if (*name++ != *pattern) {
            return false;
        }
    }
    *rest = name;
    return !*name || *name == '.';
}

int weight_names(const char *parameter, struct region *region, const char *names[WEIGHT_SOURCES_MAX])
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *number, *rest;
        int digits, count = 0;
        if (!matches(rows[i].ours, parameter, &number, &digits, &rest)) continue;
        for (; count < WEIGHT_SOURCES_MAX && rows[i].theirs[count]; count++) {
            const char *theirs = rows[i].theirs[count], *mark = strchr(theirs, '#');
            const int before = mark ? (int)(mark - theirs) : (int)strlen(theirs);
            names[count] =
                region_text(region, "%.*s%.*s%s%s", before, theirs, digits, number, mark ? mark + 1 : "", rest);
        }
        return count;
    }
    return 0;
}

const char *weight_alias(const char *name, int index, struct region *region)
{
    static const char *const old[][2] = {{".weight", ".gamma"}, {".bias", ".beta"}};
    const char *prefix = index % 2 ? "bert." : "", *end = strrchr(name, '.');
    if (index < 2) return region_text(region, "%s%s", prefix, name);
    for (size_t i = 0; index < 4 && end && i < sizeof old / sizeof *old; i++)
        if (!strcmp(end, old[i][0])) return region_text(region, "%s%.*s%s", prefix, (int)(end - name), name, old[i][1]);
    return NULL;
}
