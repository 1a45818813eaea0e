#include "layer_settings.h"

#include "base/region.h"

#include <criterion/criterion.h>
#include <string.h>

#define MEMBER(name)                                                                                                   \
    {                                                                                                                  \
#name, offsetof(struct settings, name), sizeof(((struct settings *)0)->name)                                   \
    }

static const struct member {
    const char *key;
    size_t offset, size;
} members[] = {MEMBER(channels),      MEMBER(units),          MEMBER(kernel),    MEMBER(stride),
               MEMBER(padding),       MEMBER(activation),     MEMBER(init),      MEMBER(bias),
               MEMBER(rate),          MEMBER(epsilon),        MEMBER(token),     MEMBER(heads),
               MEMBER(save),          MEMBER(vocabulary),     MEMBER(positions), MEMBER(segments),
               MEMBER(momentum),      MEMBER(variance),       MEMBER(affine),    MEMBER(groups),
               MEMBER(factor),        MEMBER(count_padding),  MEMBER(causal),    MEMBER(kv_heads),
               MEMBER(rope),          MEMBER(slope),          MEMBER(by),        MEMBER(height),
               MEMBER(ceil_mode),     MEMBER(output_padding), MEMBER(top),       MEMBER(bottom),
               MEMBER(left),          MEMBER(right),          MEMBER(chunks),    MEMBER(label_smoothing),
               MEMBER(class_weights), MEMBER(smooth),         MEMBER(dilation),  MEMBER(statistics),
               MEMBER(tokens)};

static _Thread_local max_align_t own[64];

static void fill_plain(const struct layer *layer)
{
    struct region *region = region_create();
    cr_assert(setting_defaults(layer->keys, own, region) == ST_OK, "%s", status_message());
    for (const struct setting *f = layer->keys; f && f->key; f++) {
        void *member = (char *)own + f->offset;
        if (!f->preset && f->type == SETTING_INT) *(int64_t *)member = 2;
        if (!f->preset && f->type == SETTING_REAL) *(double *)member = 0.5;
    }
    region_destroy(region);
}

const void *settings_of(const struct layer *layer, const struct settings *settings)
{
    memset(own, 0, sizeof own);
    cr_assert(layer->settings_size <= sizeof own);
    if (!settings) fill_plain(layer);
    struct settings given = settings ? *settings : (struct settings){0};
    given.groups = given.groups == 0 ? 1 : given.groups == GROUPS_OF_ONE ? 0 : given.groups;
    if (given.dilation == 0) given.dilation = 1;
    for (size_t i = 0; settings && i < sizeof members / sizeof *members; i++) {
        const struct setting *f = setting_find(layer->keys, members[i].key);
        if (f) memcpy((char *)own + f->offset, (const char *)&given + members[i].offset, members[i].size);
    }
    return own;
}

bool backend_refuses(const char *backend, const struct settings *settings)
{
    return strcmp(backend, "cuda") == 0 &&
           (settings->rope || settings->kv_heads || settings->label_smoothing > 0 || settings->class_weights.count ||
            settings->dilation > 1 || (settings->vocabulary && (!settings->positions || !settings->segments)));
}

float range_of(const struct layer *layer)
{
    static const char *const wide[] = {"relu6", "hardswish", "sigmoid", "silu", "tanh"};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (!strcmp(layer->name, wide[i])) return 12;
    return 1;
}

static int added(struct graph *graph, const char *name, const struct settings *settings, int input)
{
    int output;
    const struct layer *layer = layer_find(name);
    enum status status = graph_add(graph, layer, settings_of(layer, settings), NULL, &input, &output);
    cr_assert(status == ST_OK, "%s", status_message());
    return output;
}

int value_of_width(struct graph *graph, int64_t width)
{
    const struct settings s = {.kernel = 1, .stride = 1, .channels = width, .units = width};
    return added(graph, graph->value[0].shape.rank == 3 ? "conv" : "linear", &s, 0);
}

struct shape batch_shape(const struct shape *sequence, bool image)
{
    return image ? (struct shape){3, {sequence->dim[0], 1, 3}} : (struct shape){2, {3, sequence->dim[0]}};
}

int sequence_of_batch(struct graph *graph, const struct shape *sequence, int64_t words)
{
    const struct settings s = {
        .units = sequence->dim[1], .vocabulary = words, .positions = sequence->dim[0], .segments = 2};
    if (graph->value[0].shape.rank == 2) return added(graph, "embedding", &s, 0);
    return added(graph, "tokens", &s, value_of_width(graph, sequence->dim[1]));
}

/* A pixel of channels is the mean of a square image. */
static int mean_of(struct graph *graph, const struct settings *settings, int first)
{
    const struct shape *x = &graph->value[first].shape;
    const struct settings s = {.kernel = x->dim[0]};
    const char *name = x->rank == 2 ? "select" : settings->second == SECOND_PIXEL ? "avg_pool" : "global_avg_pool";
    return added(graph, name, &s, first);
}

int second_input(struct graph *graph, const struct settings *settings, int first)
{
    if (settings && settings->other) {
        const int value = value_of_width(graph, settings->other);
        return settings->second == SECOND_LONGER ? added(graph, "class_token", settings, value) : value;
    }
    return settings && settings->second ? mean_of(graph, settings, first) : first;
}
