/* Contract: see yaml_read.h; every error is told, and what no key can mean together is an error too. */
#include "spec/spec_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "spec/model.h"

enum { VERSION = 1, NAME_LENGTH = 100, POINTS_MAX = 1000 };

/* ---- sections ---- */

/* Index in registry of what map's name says, -1 where it is not there (which is told). */
static int choose(struct reading *r, const struct section *section, const struct tree *map)
{
    const struct registry *registry = section->registry;
    const struct tree *name = tree_get(map, "name");
    const char **words;
    int count = 0;
    while (registry->name(count)) count++;
    if (NEW(r->region, words, (size_t)count + 1) != ST_OK) return -1;
    for (int i = 0; i < count; i++) words[i] = registry->name(i);
    struct field any = {.key = "name", .type = FIELD_CHOICE, .preset = registry->preset, .values = words};
    int index = -1;
    if (name)
        reading_value(r, name, section->key, &any, &index);
    else if (!any.preset)
        reading_error(r, map, section->key, "name", "missing; expected %s", field_expected(&any, r->region));
    else if (field_defaults((struct field[]){any, {.key = NULL}}, &index, r->region) != ST_OK)
        reading_error(r, map, section->key, "name", "%s", status_message());
    return index;
}

/* The map that value stands for: itself, or {word: value}. */
static const struct tree *as_map(struct reading *r, const struct section *section, struct tree *value)
{
    if (value->kind != TREE_TEXT || !section->word) return value;
    struct tree *map = tree_make(TREE_MAP, NULL, value->mark, r->region);
    struct tree *key = tree_make(TREE_TEXT, section->word, value->mark, r->region);
    return map && key && tree_set(map, key, value, r->region) == ST_OK ? map : value;
}

void spec_read_section(struct reading *r, const struct section *section, const struct tree *root, struct spec *spec)
{
    const struct registry *registry = section->registry;
    struct tree *value = tree_get(root, section->key);
    if (!value && section->needed) {
        reading_error(r, root, NULL, section->key, "missing");
        return;
    }
    if (!value) value = tree_make(TREE_MAP, NULL, root->mark, r->region);
    const struct tree *map = value ? as_map(r, section, value) : NULL;
    if (!map) return;
    const struct field *fields = section->fields;
    const char *of = section->key;
    if (registry && map->kind == TREE_MAP) {
        int index = choose(r, section, map);
        if (index < 0) return;
        registry->choose(spec, index);
        fields = registry->fields ? registry->fields(index) : NULL;
        of = region_text(r->region, "%s %s", registry->what, registry->name(index));
    }
    reading_map(r, map, section->key, of ? of : "it", fields, section->also,
                registry ? (char *)spec + registry->settings : (char *)spec);
}

/* ---- the model ---- */

/* A bare word stands for {name: word}. */
static void read_init(struct reading *r, const struct tree *model, struct spec *spec)
{
    static const struct section init = {.word = "name"};
    struct tree *value = tree_get(model, "init");
    if (!value) value = tree_make(TREE_MAP, NULL, model->mark, r->region);
    const struct tree *map = value ? as_map(r, &init, value) : NULL;
    if (!map) return;
    reading_map(r, map, "model.init", "init", init_fields, NULL, spec);
    if (tree_get(map, "missing") && !tree_get(map, "file"))
        reading_error(r, tree_get(map, "missing"), "model.init", "missing", "means nothing without a file");
}

static void read_model(struct spec_reader *reader, const struct tree *root, struct spec *spec)
{
    struct reading *r = &reader->reading;
    struct tree *model = tree_get(root, "model");
    const struct tree *list = tree_get(model, "layers"), *file = model && model->kind == TREE_TEXT ? model : NULL;
    if (!file) file = tree_get(model, "file");
    if (!model || (model->kind != TREE_MAP && !file)) return; /* told by its section */
    read_init(r, model, spec);
    if (list && file)
        reading_error(r, file, "model", "file", "either a file or layers, not both");
    else if (!list && !file)
        reading_error(r, model, "model", NULL, "neither a file nor layers; expected one of them");
    else if (!list && spec->model_path)
        list = spec_model_file(reader, file, spec->model_path);
    if (list) spec->layers = model_read(r, list, spec->init);
}

/* ---- lists of their own ---- */

static void read_expectations(struct reading *r, const struct tree *root, struct spec *spec)
{
    const struct tree *list = tree_get(root, "expect");
    if (!list) return;
    if (tree_get(root, "sweep"))
        reading_error(r, list, NULL, "expect",
                      "the points of a sweep are not judged; expected one of expect and sweep");
    if (list->kind != TREE_LIST) {
        reading_error(r, list, NULL, "expect", "expected a list of {what, below or above, source}");
        return;
    }
    if (NEW(r->region, spec->expectation, (size_t)list->count) != ST_OK) return;
    spec->expectations = list->count;
    for (int i = 0; i < list->count; i++) {
        struct expectation *e = &spec->expectation[i];
        const char *path = region_text(r->region, "expect[%d]", i);
        reading_map(r, list->item[i], path, "an expectation", expectation_fields, NULL, e);
        if (tree_find(list->item[i], "below") < 0 && tree_find(list->item[i], "above") < 0)
            reading_error(r, list->item[i], path, NULL, "neither below nor above; expected a bound");
    }
}

/* What a run is called, where it goes and what is asked of it: its points would be one and the same. */
static const char *const no_axes[] = {"rematch", "name", "title", "results", "expect", "sweep", NULL};

static void read_axis(struct reading *r, const struct tree *key, const struct tree *values, struct sweep_axis *axis)
{
    const char **texts;
    int count = values->kind == TREE_LIST ? values->count : 0;
    const char *section = region_text(r->region, "%.*s", (int)strcspn(key->text, "."), key->text);
    axis->key = key->text;
    for (int i = 0; section && no_axes[i]; i++)
        if (!strcmp(section, no_axes[i]))
            reading_error(r, key, "sweep", key->text, "cannot be swept: it changes nothing that is computed");
    if (!count) reading_error(r, values, "sweep", key->text, "expected a list of the values it takes");
    if (NEW(r->region, texts, (size_t)count) != ST_OK) return;
    for (int i = 0; i < count; i++) texts[i] = tree_print(values->item[i], r->region);
    axis->values.count = (size_t)count;
    axis->values.texts = texts;
}

static void read_sweep(struct reading *r, const struct tree *sweep, struct spec *spec)
{
    double points = 1;
    if (!sweep) return;
    if (sweep->kind != TREE_MAP) {
        reading_error(r, sweep, NULL, "sweep", "expected a map of keys to lists, as in {policy.segments: [1, 2]}");
        return;
    }
    if (NEW(r->region, spec->axis, (size_t)sweep->count) != ST_OK) return;
    spec->axes = sweep->count;
    for (int i = 0; i < sweep->count; i++) {
        read_axis(r, sweep->key[i], sweep->item[i], &spec->axis[i]);
        points *= (double)spec->axis[i].values.count;
    }
    if (points > POINTS_MAX) reading_error(r, sweep, NULL, "sweep", "%.0f points; at most %d", points, POINTS_MAX);
}

/* ---- what the keys mean together ---- */

static void check_name(struct reading *r, const struct tree *root, struct spec *spec)
{
    const struct tree *at = tree_get(root, "name");
    if (!at || !spec->name) return;
    size_t plain = strspn(spec->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
    if (spec->name[plain] || plain > NAME_LENGTH || *spec->name == '.')
        reading_error(r, at, NULL, "name", "names a folder; expected up to %d letters, digits, _ - and .", NAME_LENGTH);
    if (!spec->title) spec->title = spec->name;
}

static void check_length(struct reading *r, const struct tree *root, const struct spec *spec)
{
    const struct tree *steps = tree_get(root, "steps"), *epochs = tree_get(root, "epochs");
    if (steps && epochs)
        reading_error(r, steps->mark.line > epochs->mark.line ? steps : epochs, NULL,
                      steps->mark.line > epochs->mark.line ? "steps" : "epochs",
                      "both steps and epochs; expected one of them");
    else if (!steps && !epochs)
        reading_error(r, root, NULL, "steps", "missing; expected steps or epochs");
    if (!steps && epochs && spec->data && !spec->data->sized)
        reading_error(r, epochs, NULL, "epochs", "data set %s has no end; give steps", spec->data->name);
}

static void check_fault(struct reading *r, const struct tree *root, const struct spec *spec)
{
    const struct tree *fault = tree_get(root, "fault"), *step = tree_get(fault, "step"),
                      *node = tree_get(fault, "node");
    bool none = spec->fault_kind == FAULT_NONE;
    if (!fault) return;
    if (none && step) reading_error(r, step, "fault", "step", "means nothing without a kind of fault");
    if (none && node) reading_error(r, node, "fault", "node", "means nothing without a kind of fault");
    if (!none && !node) reading_error(r, fault, "fault", "node", "missing; expected the name of a node");
    if (!none && step && spec->steps > 0 && spec->fault_step >= spec->steps)
        reading_error(r, step, "fault", "step", "the run has %" PRId64 " steps; expected 0..%" PRId64, spec->steps,
                      spec->steps - 1);
}

static void check_costs(struct reading *r, const struct tree *root, const struct spec *spec)
{
    const struct tree *costs = tree_get(root, "costs"), *file = tree_get(costs, "file");
    if (file && spec->costs != COSTS_MEASURED)
        reading_error(r, file, "costs", "file", "means nothing but for measured costs");
    if (costs && !file && spec->costs == COSTS_MEASURED)
        reading_error(r, costs, "costs", "file", "missing; expected a file written by rematch bench --costs");
}

static void check_wisdom(struct reading *r, const struct tree *root, const struct spec *spec)
{
    const struct tree *conv = tree_get(root, "conv"), *file = tree_get(conv, "wisdom");
    const bool measured = spec->backend_options.conv_algorithm == CONV_MEASURED;
    const struct backend_kind *kind = spec->backend ? backend_find(spec->backend) : NULL;
    if (file && !measured) reading_error(r, file, "conv", "wisdom", "means nothing but for algorithm: measured");
    if (!file && measured && (!kind || kind->conv_algorithms >> CONV_MEASURED & 1)) /* else check_backend() tells */
        reading_error(r, conv, "conv", "wisdom", "missing; expected a file written by rematch bench --convolutions");
}

/* What it says otherwise than by default: a resolved spec says everything. */
static void check_word(struct reading *r, const struct tree *root, const struct spec *spec)
{
    const struct tree *policy = tree_get(root, "policy"), *kept = tree_get(policy, "keep_saved");
    if (kept && tree_get(policy, "word") && !spec->policy_settings.keep_saved)
        reading_error(r, kept, "policy", "keep_saved", "means nothing beside a word, which names what is replayed");
}

static void check_evaluation(struct reading *r, const struct tree *root, const struct spec *spec)
{
    const struct tree *eval = tree_get(root, "eval");
    if (eval && spec->loss && !spec->loss->predicts)
        reading_error(r, eval, NULL, "eval", "loss %s predicts nothing that could be evaluated", spec->loss->name);
}

/* A backend takes only those of an option's words whose bits are set. */
static void check_option(struct reading *r, const struct tree *at, const char *path, const char *key,
                         const struct spec *spec, const char *const *words, unsigned bits, int value)
{
    const char *can = "";
    if (!at || bits >> value & 1) return;
    for (int i = 0; can && words[i]; i++)
        if (bits >> i & 1) can = region_text(r->region, "%s%s%s", can, *can ? "|" : "", words[i]);
    reading_error(r, at, path, key, "backend %s has no %s; expected one of %s", spec->backend, words[value],
                  can ? can : "others");
}

/* A backend that was not built is told of where it is opened. */
static void check_backend(struct reading *r, const struct tree *root, const struct spec *spec)
{
    const struct backend_kind *kind = spec->backend ? backend_find(spec->backend) : NULL;
    if (!kind) return;
    check_option(r, tree_get(tree_get(root, "backend"), "layout"), "backend", "layout", spec, layout_words,
                 kind->layouts, spec->backend_options.layout);
    check_option(r, tree_get(root, "precision"), NULL, "precision", spec, precision_words, kind->precisions,
                 spec->backend_options.precision);
    check_option(r, tree_get(tree_get(root, "conv"), "algorithm"), "conv", "algorithm", spec, algorithm_words,
                 kind->conv_algorithms, spec->backend_options.conv_algorithm);
}

void spec_read_version(struct reading *r, const struct tree *root)
{
    reading_version(r, root, "rematch", VERSION, "a spec");
}

void spec_read(struct spec_reader *reader, const struct tree *root, struct spec *spec)
{
    struct reading *r = &reader->reading;
    const struct tree *chain = tree_get(root, "chain");
    if (chain) {
        reading_error(r, chain, NULL, "chain",
                      "a spec has no such key; a chain file is planned by rematch plan --chain");
        return;
    }
    reading_map(r, root, NULL, "a spec", spec_fields, spec_order, spec);
    if (root->kind != TREE_MAP) return;
    spec_read_version(r, root);
    for (const struct section *s = spec_sections; s->key; s++) spec_read_section(r, s, root, spec);
    if (!tree_get(root, "eval"))
        spec->eval_every = 0;
    else if (!spec->eval_every)
        spec->eval_every = spec->epochs > 0 ? 1 : spec->steps;
    read_model(reader, root, spec);
    read_expectations(r, root, spec);
    read_sweep(r, tree_get(root, "sweep"), spec);
    check_name(r, root, spec);
    check_length(r, root, spec);
    check_fault(r, root, spec);
    check_costs(r, root, spec);
    check_wisdom(r, root, spec);
    check_word(r, root, spec);
    check_evaluation(r, root, spec);
    check_backend(r, root, spec);
}
