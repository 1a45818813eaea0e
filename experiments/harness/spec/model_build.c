/* From the list of layers to a graph. Contract: names are unique. Within a repetition they begin with its group
 * ("block[2].conv1"); elsewhere a name is the given one or the layer and a number. from: is looked up among the given
 * names as plans print them, first within the innermost group that it is in, then outwards. */
#include "spec/model.h"

#include "model/slicing.h"

#include <inttypes.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"

enum { LAYERS_MAX = 64, NAMES_SHOWN = 8, NAME_SHOWN = 80, OPEN = -1 };

/* A layer or group that from: may name. */
struct named {
    const char *name; /* in full */
    int value;        /* its output; OPEN: it is not complete */
};

/* The range of node numbers: the whole model, or one repetition. */
struct scope {
    const char *group; /* full name of the innermost group; "" */
    const char *nodes; /* prefix of node names; "" */
    int *number;       /* by layer: nodes numbered so far in this scope */
    bool frozen;       /* a group around it is not trainable */
};

struct building {
    const struct spec *spec;
    struct graph *graph;
    struct region *region;
    const struct dataset *data;
    const struct layer_list *model;
    const struct item *chunked; /* the linear layer that is computed in chunks with the loss; NULL: none */
    struct named *named;        /* in the order of their starts */
    int names;
    struct names *by_name;            /* numbers in named */
    const struct yaml_tree **node_at; /* by node: its item */
    const struct yaml_tree *at;       /* the item being added, or its from; errors are reported there */
    const char *key;                  /* "from" */
};

typedef enum status build_item(struct building *b, struct scope scope, const struct item *item, int *value);
static enum status build_list(struct building *b, struct scope scope, const struct layer_list *list, int *value);

/* ---- names ---- */

static struct named *find_name(const struct building *b, const char *name)
{
    const int i = names_find(b->by_name, name);
    return i < 0 ? NULL : &b->named[i];
}

static enum status add_name(struct building *b, const char *name, int value)
{
    if (find_name(b, name)) return fail(ST_SPEC, "a layer and a group are called '%s'; give one another name", name);
    region_grow(b->region, &b->named, b->names, sizeof *b->named);
    b->named[b->names] = (struct named){name, value};
    names_add(b->by_name, name, b->names++);
    return ST_OK;
}

/* Whether an item is called name, wherever it is. */
static bool is_called(const struct layer_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++) {
        const struct item *item = &list->item[i];
        if (item->name && !strcmp(item->name, name)) return true;
        for (int k = 0; k < LISTS; k++)
            if (is_called(&item->list[k], name)) return true;
    }
    return false;
}

/* The end of an error: the name that is like name, and the newest complete ones, as they are written in this scope. */
static const char *known_names(struct building *b, const struct scope *scope, const char *name)
{
    const char **words, *text = "";
    char suggestion[TEXT_SUGGESTION];
    const size_t prefix = strlen(scope->nodes);
    int count = 0;
    NEW(b->region, words, (size_t)b->names + 1);
    for (int i = b->names; i-- > 0;) {
        const char *full = b->named[i].name;
        if (b->named[i].value != OPEN) words[count++] = full + (strncmp(full, scope->nodes, prefix) ? 0 : prefix);
    }
    if (!count) return "; nothing before it has a name";
    for (int i = 0; i < count && i < NAMES_SHOWN; i++)
        text = region_text(b->region, "%s%s%s", text, i ? "|" : "", words[i]);
    return region_text(b->region, "%s; expected one of %s%s", text_suggestion(name, words, suggestion), text,
                       count > NAMES_SHOWN ? "|..." : "");
}

static const struct named *look_up(struct building *b, const struct scope *scope, const char *name)
{
    char *group = region_text(b->region, "%s", scope->group);
    for (;;) {
        const struct named *found = find_name(b, region_text(b->region, "%s%s%s", group, *group ? "." : "", name));
        char *end = strrchr(group, '.');
        if (found || !*group) return found;
        *(end ? end : group) = '\0';
    }
}

/* Whether the model has such an item, but none that was built. */
static bool comes_later(struct building *b, const char *name)
{
    const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;
    for (int i = 0; i < b->names; i++)
        if (text_ends(b->named[i].name, region_text(b->region, ".%s", last))) return false;
    return is_called(b->model, last);
}

/* The value that item's key names, if it has that key. */
static enum status resolve_key(struct building *b, const struct scope *scope, const struct item *item, const char *key,
                               const char *name, const struct yaml_tree *at, int *value)
{
    const struct named *found = name ? look_up(b, scope, name) : NULL;
    if (!name) return ST_OK;
    if (found && found->value != OPEN) return *value = found->value, ST_OK;
    const bool inside = item->name && !strcmp(item->name, name); /* its own name */
    b->at = at;
    b->key = key;
    return fail(ST_SPEC,
                found || inside        ? "'%.*s' is not complete here%s"
                : comes_later(b, name) ? "'%.*s' comes later%s"
                                       : "nothing before it is called '%.*s'%s",
                text_shown(name, NAME_SHOWN), name, known_names(b, scope, name));
}

static enum status resolve(struct building *b, const struct scope *scope, const struct item *item, int *value)
{
    return resolve_key(b, scope, item, "from", item->from, item->from_at, value);
}

/* ---- nodes ---- */

static int layer_index(const struct layer *layer)
{
    int i = 0;
    while (i < LAYERS_MAX - 1 && layer_table[i] && layer_table[i] != layer) i++;
    return i;
}

static const char *node_name(struct building *b, const struct scope *scope, const struct layer *layer, const char *name)
{
    if (name) return region_text(b->region, "%s%s", scope->nodes, name);
    return region_text(b->region, "%s%s%d", scope->nodes, layer->name, ++scope->number[layer_index(layer)]);
}

static enum status add(struct building *b, const struct scope *scope, const struct layer *layer, const void *settings,
                       const char *name, const int *inputs, int *value)
{
    TRY(graph_add(b->graph, layer, settings, node_name(b, scope, layer, name), inputs, value));
    const int node = b->graph->nodes - 1;
    b->graph->node[node].relu_save = (enum relu_save)b->spec->relu_save;
    region_grow(b->region, &b->node_at, node, sizeof *b->node_at);
    b->node_at[node] = b->at;
    return ST_OK;
}

/* Of a node that an item became. */
static void mark_node(struct building *b, const struct item *item, bool frozen)
{
    struct node *node = &b->graph->node[b->graph->nodes - 1];
    node->keep_whole = item->slices == 1;
    node->frozen = frozen && node_parameters(node) > 0;
}

/* The layer's integer setting called key, NULL: it has none. */
static int64_t *integer(const struct item *item, const char *key)
{
    const struct setting *setting = setting_find(item->layer->keys, key);
    return setting ? (int64_t *)(void *)((char *)item->settings + setting->offset) : NULL;
}

/* The newest node has the weight of the layer that the item's key names. Both are trained, or none. */
static enum status tie(struct building *b, const struct scope *scope, const struct item *item)
{
    int value = 0;
    if (!item->tied) return ST_OK;
    TRY(resolve_key(b, scope, item, "tied", item->tied, item->at, &value));
    const struct node *owner = &b->graph->node[value - 1];
    if (!owner->layer->reference.adds)
        return fail(ST_SPEC, "tied: '%s' is a %s; expected an embedding or a linear layer", item->tied,
                    owner->layer->name);
    if (owner->frozen != (scope->frozen || !item->trainable || item->lora.rank))
        return fail(ST_SPEC, "tied: one of '%s' and this layer is trained, the other is not; expected both or none",
                    item->tied);
    return graph_tie(b->graph, value - 1);
}

/* ---- products of a low rank beside a frozen linear (Hu et al., "LoRA", 2021) ---- */

/* The settings of one of the two products: those of the linear but for these. */
static enum status product_settings(struct building *b, const struct item *item, int64_t units, const char *init,
                                    void **settings)
{
    const struct layer *layer = item->layer;
    const char *const own[][2] = {
        {"units", region_text(b->region, "%" PRId64, units)}, {"bias", "false"}, {"init", init}};
    *settings = region_array(b->region, 1, layer->settings_size);
    memcpy(*settings, item->settings, layer->settings_size);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        TRY(setting_set(setting_find(layer->keys, own[i][0]), *settings, own[i][1], b->region));
    return ST_OK;
}

/* value becomes the product of value's rows with a matrix of {units, width}, without bias. */
static enum status add_product(struct building *b, const struct scope *scope, const struct item *item, const char *name,
                               int64_t units, const char *init, int *value)
{
    void *settings;
    const int inputs[NODE_INPUTS_MAX] = {*value};
    TRY(product_settings(b, item, units, init, &settings));
    TRY(add(b, scope, item->layer, settings, name, inputs, value));
    mark_node(b, item, false);
    return ST_OK;
}

/* value becomes value times alpha / rank. It has the rank's width, so that the factor costs least here. */
static enum status add_scale(struct building *b, const struct scope *scope, const struct item *item, const char *name,
                             int *value)
{
    const struct layer *scale = layer_find("scale");
    const double factor = item->lora.alpha / (double)item->lora.rank;
    const int inputs[NODE_INPUTS_MAX] = {*value};
    void *settings = region_array(b->region, 1, scale->settings_size);
    if (item->lora.alpha == (double)item->lora.rank) return ST_OK;
    TRY(setting_set(setting_find(scale->keys, "by"), settings, region_text(b->region, "%.17g", factor), b->region));
    TRY(add(b, scope, scale, settings, name, inputs, value));
    mark_node(b, item, false);
    return ST_OK;
}

/* value, the output of the newest node, which reads x, becomes value + (alpha / rank) (x A^T) B^T. At first A is random
 * and B is 0, so that the sum is value. */
static enum status add_lora(struct building *b, const struct scope *scope, const struct item *item, int x, int *value)
{
    const char *base = b->graph->node[b->graph->nodes - 1].name + strlen(scope->nodes);
    const char *const name[] = {region_text(b->region, "%s.lora_a", base),
                                region_text(b->region, "%s.lora_scale", base),
                                region_text(b->region, "%s.lora_b", base), region_text(b->region, "%s.lora", base)};
    const struct setting *activation = setting_find(item->layer->keys, "activation");
    if (strcmp(setting_print(activation, item->settings, b->region), "none") != 0)
        return fail(ST_SPEC, "%s: lora is added before the activation; write that as a layer of its own behind it",
                    item->layer->name);
    TRY(add_product(b, scope, item, name[0], item->lora.rank, "normal", &x));
    TRY(add_scale(b, scope, item, name[1], &x));
    TRY(add_product(b, scope, item, name[2], *integer(item, "units"), "zeros", &x));
    const int arms[NODE_INPUTS_MAX] = {*value, x};
    TRY(add(b, scope, layer_find("add"), NULL, name[3], arms, value));
    mark_node(b, item, false);
    return ST_OK;
}

/* ---- the last linear layer and the loss in one node ---- */

static int64_t loss_chunks(const struct spec *spec)
{
    const struct setting *chunks = setting_find(spec->loss->keys, "chunks");
    return chunks ? *(const int64_t *)(const void *)(spec->loss_settings.bytes + chunks->offset) : 0;
}

static const struct item *last_item(const struct layer_list *list)
{
    const struct item *item = &list->item[list->count - 1];
    return item->form == FORM_GROUP ? last_item(&item->list[LIST_LAYERS]) : item;
}

static enum status find_chunked(struct building *b)
{
    const struct item *item = last_item(b->model);
    const struct setting *activation = item->layer ? setting_find(item->layer->keys, "activation") : NULL;
    if (!loss_chunks(b->spec)) return ST_OK;
    const char *is =
        item->layer != layer_find("linear") ? item->layer ? item->layer->name : model_forms[item->form].name
        : item->lora.rank                   ? "linear with lora"
        : strcmp(setting_print(activation, item->settings, b->region), "none") != 0 ? "linear with an activation"
                                                                                    : NULL;
    if (is)
        return fail(ST_SPEC,
                    "loss.chunks: the last layer of the model is a %s; expected a linear layer, without "
                    "activation and lora",
                    is);
    b->chunked = item;
    return ST_OK;
}

/* In place of the item, a node of the same name and parameters, which ends with the loss. */
static enum status add_chunked(struct building *b, const struct scope *scope, const struct item *item,
                               const int *inputs, int *value)
{
    const struct layer *layer = b->spec->loss->chunked;
    const char *name = node_name(b, scope, item->layer, item->name) + strlen(scope->nodes);
    void *settings = region_array(b->region, 1, layer->settings_size);
    for (const struct setting *f = layer->keys; f->key; f++) {
        const struct setting *own = setting_find(item->layer->keys, f->key);
        const struct setting *from = own ? own : setting_find(b->spec->loss->keys, f->key);
        const void *object = own ? item->settings : b->spec->loss_settings.bytes;
        if (!setting_unset(from, object)) setting_share(f, settings, from, object);
    }
    return add(b, scope, layer, settings, name, inputs, value);
}

/* Each call of the loss has a row for each chunk. */
static enum status check_chunks(struct building *b)
{
    const struct graph *graph = b->graph;
    const struct slicing slicing = graph_slicing(graph);
    const int64_t chunks = loss_chunks(b->spec);
    const int64_t rows = graph->batch / slicing_calls(&slicing, graph->nodes - 1) * graph_labels(graph);
    if (chunks <= rows) return ST_OK;
    b->at = NULL;
    return fail(ST_SPEC, "loss.chunks: %" PRId64 " chunks of %" PRId64 " rows; expected at most %" PRId64, chunks, rows,
                rows);
}

static enum status add_named(struct building *b, const struct scope *scope, const struct item *item, const int *inputs,
                             int *value)
{
    TRY(item == b->chunked ? add_chunked(b, scope, item, inputs, value)
                           : add(b, scope, item->layer, item->settings, item->name, inputs, value));
    TRY(tie(b, scope, item));
    mark_node(b, item, scope->frozen || !item->trainable || item->lora.rank);
    if (!item->trainable && !b->graph->node[b->graph->nodes - 1].frozen)
        return fail(ST_SPEC, "%s: trainable: false, but the layer has no parameters; leave it out", item->layer->name);
    if (item->lora.rank) TRY(add_lora(b, scope, item, inputs[0], value));
    return item->name ? add_name(b, node_name(b, scope, item->layer, item->name), *value) : ST_OK;
}

/* Every token of the data needs a row of the embedding. */
static enum status check_vocabulary(const struct building *b, const struct item *item)
{
    const int64_t *rows = integer(item, "vocabulary"), tokens = b->data->tokens;
    if (!rows || tokens <= *rows) return ST_OK;
    return fail(ST_SPEC,
                "%s: a vocabulary of %" PRId64 ", but data set %s has %" PRId64 " tokens; expected: at least as many",
                item->layer->name, *rows, b->spec->data->name, tokens);
}

/* Sets a width that is the number of classes. */
static enum status set_classes(const struct building *b, const struct item *item)
{
    const char *key = model_width_key(item->layer->keys);
    if (!item->classes) return ST_OK;
    if (b->data->classes < 1) return fail(ST_SPEC, "%s: classes, but the data set does not say how many it has", key);
    *integer(item, key) = b->data->classes;
    return ST_OK;
}

/* Numbers of tokens are names: an embedding alone reads them. */
static enum status check_tokens(const struct building *b, const struct item *item, int value)
{
    if (value || !b->data->tokens || integer(item, "vocabulary")) return ST_OK;
    return fail(ST_SPEC, "%s: reads the numbers of tokens as if they measured something; expected: an embedding first",
                item->layer->name);
}

static enum status build_layer(struct building *b, struct scope scope, const struct item *item, int *value)
{
    TRY(set_classes(b, item));
    TRY(check_vocabulary(b, item));
    TRY(resolve(b, &scope, item, value));
    const bool batch = item->layer->reads_batch && item->layer->inputs == 1 && !item->from;
    if (!batch) TRY(check_tokens(b, item, *value));
    const int inputs[NODE_INPUTS_MAX] = {batch ? 0 : *value}; /* a second one is the batch, value 0 */
    return add_named(b, &scope, item, inputs, value);
}

/* scope within the group called name. */
static enum status enter(struct building *b, struct scope *scope, const char *name)
{
    scope->group = region_text(b->region, "%s%s%s", scope->group, *scope->group ? "." : "", name);
    TRY(graph_group_begin(b->graph, scope->group));
    return add_name(b, scope->group, OPEN);
}

static void leave(struct building *b, const struct scope *scope, int value)
{
    find_name(b, scope->group)->value = value;
    graph_group_end(b->graph);
}

/* A group that is not trained has parameters, above so many of the graph's. */
static enum status check_frozen(struct building *b, const struct item *item, int parameters)
{
    if (item->trainable || b->graph->parameters > parameters) return ST_OK;
    b->at = item->at;
    return fail(ST_SPEC, "%s: trainable: false, but no layer in it has parameters; leave it out", item->name);
}

static enum status build_group(struct building *b, struct scope scope, const struct item *item, int *value)
{
    const int parameters = b->graph->parameters;
    TRY(enter(b, &scope, item->name));
    scope.frozen |= !item->trainable;
    TRY(build_list(b, scope, &item->list[0], value));
    leave(b, &scope, *value);
    return check_frozen(b, item, parameters);
}

static enum status build_repeat(struct building *b, struct scope scope, const struct item *item, int *value)
{
    const char *last = region_text(b->region, "%s%s%s", scope.group, *scope.group ? "." : "", item->name);
    const int parameters = b->graph->parameters;
    scope.frozen |= !item->trainable;
    TRY(add_name(b, last, OPEN));
    for (int64_t turn = 0; turn < item->times; turn++) {
        struct scope inner = scope;
        TRY(enter(b, &inner, region_text(b->region, "%s[%" PRId64 "]", item->name, turn)));
        inner.nodes = region_text(b->region, "%s.", inner.group);
        NEW(b->region, inner.number, LAYERS_MAX);
        TRY(build_list(b, inner, &item->list[0], value));
        leave(b, &inner, *value);
    }
    find_name(b, last)->value = *value;
    return check_frozen(b, item, parameters);
}

/* Two lists and what joins them. */
static enum status build_join(struct building *b, struct scope scope, const struct item *item, int *value)
{
    const struct item *join = item->list[LIST_JOIN].count ? &item->list[LIST_JOIN].item[0] : NULL;
    int arms[2] = {*value, *value};
    TRY(resolve(b, &scope, item, &arms[1]));
    if (item->name) TRY(enter(b, &scope, item->name));
    for (int k = 0; k < 2; k++) TRY(build_list(b, scope, &item->list[k], &arms[k]));
    b->at = join ? join->at : item->at;
    const struct form_rows *form = &model_forms[item->form];
    if (join)
        TRY(add_named(b, &scope, join, arms, value));
    else if (add(b, &scope, layer_find(form->joins), item->settings, NULL, arms, value) != ST_OK)
        return fail(ST_SPEC, "%s: %s", form->name, status_message());
    if (item->name) leave(b, &scope, *value);
    return ST_OK;
}

/* A head that ends with the spec's loss; value stays what it was. */
static enum status build_auxiliary(struct building *b, struct scope scope, const struct item *item, int *value)
{
    const struct layer *loss = b->spec->loss;
    const struct setting *chunks = setting_find(loss->keys, "chunks");
    struct loss_settings settings = b->spec->loss_settings;
    if (chunks) memset(settings.bytes + chunks->offset, 0, sizeof(int64_t)); /* of the last linear layer's loss */
    int head = *value, end;
    TRY(resolve(b, &scope, item, &head));
    if (item->name) TRY(enter(b, &scope, item->name));
    TRY(build_list(b, scope, &item->list[LIST_LAYERS], &head));
    b->at = item->at;
    TRY(add(b, &scope, loss, settings.bytes, NULL, &head, &end));
    b->graph->node[b->graph->nodes - 1].weight = item->weight;
    if (item->name) leave(b, &scope, head);
    return ST_OK;
}

static enum status build_list(struct building *b, struct scope scope, const struct layer_list *list, int *value)
{
    static build_item *const build[FORMS] = {
        [FORM_LAYER] = build_layer,   [FORM_GROUP] = build_group,        [FORM_REPEAT] = build_repeat,
        [FORM_RESIDUAL] = build_join, [FORM_CONCAT] = build_join,        [FORM_MULTIPLY] = build_join,
        [FORM_CROSS] = build_join,    [FORM_AUXILIARY] = build_auxiliary};
    for (int i = 0; i < list->count; i++) {
        b->at = list->item[i].at;
        TRY(build[list->item[i].form](b, scope, &list->item[i], value));
    }
    return ST_OK;
}

/* What the loss cannot read is an error at its key. */
static enum status add_loss(struct building *b, const struct scope *scope, int *value)
{
    const struct layer *loss = b->spec->loss;
    if (b->chunked || add(b, scope, loss, b->spec->loss_settings.bytes, loss->name, value, value) == ST_OK)
        return ST_OK;
    b->at = NULL;
    return fail(ST_SPEC, "loss: %s", status_message());
}

/* An output that nothing reads is an error at its layer, else a loss that is not numbered. */
static enum status finish(struct building *b)
{
    const struct graph *graph = b->graph;
    const enum status status = graph_finish(b->graph);
    const struct node *wrong = NULL;
    for (int i = 0; status != ST_OK && graph->trained && i + 1 < graph->nodes; i++) {
        const struct node *node = &graph->node[i];
        if (graph->value[node->output].consumers || node->auxiliary) continue;
        if (!wrong || (wrong->layer->loss && !node->layer->loss)) wrong = node;
    }
    if (wrong) b->at = b->node_at[wrong->index];
    return status;
}

static enum status build_model(struct building *b, const struct layer_list *model)
{
    struct scope scope = {.group = "", .nodes = ""};
    int value = 0;
    NEW(b->region, scope.number, LAYERS_MAX);
    b->model = model;
    TRY(find_chunked(b));
    TRY(build_list(b, scope, model, &value));
    TRY(add_loss(b, &scope, &value));
    TRY(finish(b));
    if (b->spec->relu_after_pool) graph_select_first(b->graph);
    int mixing;
    const enum status status = graph_slice(b->graph, b->spec->slices, b->spec->whole_layers == 0, &mixing);
    b->at = mixing < 0 ? NULL : b->node_at[mixing];
    return status == ST_OK ? check_chunks(b) : status;
}

/* Reports the failure as an error at the layer that was being added. */
static enum status report(struct building *b)
{
    struct errors *errors = errors_create(b->region);
    if (!b->at) return ST_SPEC; /* the caller finds the key that the message begins with */
    errors_add(errors, b->at->mark, b->key, "%s", status_message());
    return errors_report(errors, stderr);
}

enum status model_build(struct spec *spec, const struct dataset *data, struct graph **graph)
{
    struct building b = {.spec = spec, .data = data};
    *graph = NULL;
    TRY(graph_create(&data->shape, spec->batch, &b.graph));
    b.graph->pool_in_conv = spec->pool_in_conv;
    b.graph->fused_update = spec->update == UPDATE_FUSED;
    b.graph->update_part = spec->update_part;
    region_auto *region = b.region = region_create();
    b.by_name = names_create(region);
    enum status status = build_model(&b, spec->layers);
    if (status == ST_SPEC) status = report(&b);
    if (status == ST_OK)
        *graph = b.graph;
    else
        graph_destroy(b.graph);
    return status;
}
