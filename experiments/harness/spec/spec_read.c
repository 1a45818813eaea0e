/* Contract: see yaml_read.h. Keys that contradict each other are errors too. */
#include "spec/spec_read.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "spec/model.h"

/* ---- sections ---- */

/* The row that map's name chooses; name NULL: an error was reported. */
static struct choice choose(struct yaml_reader *r, const struct section *section, const struct yaml_tree *map)
{
    const struct registry *registry = section->registry;
    const struct setting setting = registry_setting(registry, r->region);
    const struct yaml_tree *name = yaml_tree_get(map, "name");
    int index = -1;
    if (name)
        yaml_read_value(r, name, section->key, &setting, &index);
    else if (setting.preset)
        (void)setting_set(&setting, &index, setting.preset, r->region);
    else
        yaml_read_error(r, map, section->key, "name", "missing; expected %s", setting_expected(&setting, r->region));
    if (index < 0) return (struct choice){.name = NULL};
    return registry->choice(index);
}

/* The map at key; a bare word w stands for {word: w} unless word is NULL, no value for an empty map. */
static const struct yaml_tree *map_at(struct yaml_reader *r, const struct yaml_tree *parent, const char *key,
                                      const char *word)
{
    struct yaml_tree *value = yaml_tree_get(parent, key);
    if (value && (value->kind != YAML_TEXT || !word)) return value;
    struct yaml_tree *map = yaml_tree_make(YAML_MAP, NULL, value ? value->mark : parent->mark, r->region);
    if (value) yaml_tree_set(map, word, value->mark, value, r->region);
    return map;
}

void spec_read_section(struct yaml_reader *r, const struct section *section, const struct yaml_tree *root,
                       struct spec *spec)
{
    const struct registry *registry = section->registry;
    if (section->needed && !yaml_tree_get(root, section->key)) {
        yaml_read_error(r, root, NULL, section->key, "missing; expected %s", section->doc);
        return;
    }
    const struct yaml_tree *map = map_at(r, root, section->key, section->word);
    const struct setting *keys = section->keys;
    const char *of = section->key;
    char *object = (char *)spec;
    if (registry && map->kind == YAML_MAP) {
        const struct choice choice = choose(r, section, map);
        if (!choice.name) return;
        memcpy(object + registry->chosen, &choice.row, sizeof choice.row);
        keys = choice.keys;
        of = region_text(r->region, "%s %s", registry->what, choice.name);
        object += registry->settings;
    }
    yaml_read_map(r, map, section->key, of, keys, section->also, object);
}

/* ---- the model ---- */

/* A bare word stands for {name: word}. */
static void read_init(struct yaml_reader *r, const struct yaml_tree *model, struct spec *spec)
{
    const struct yaml_tree *map = map_at(r, model, "init", "name");
    yaml_read_map(r, map, "model.init", "init", init_keys, NULL, spec);
    static const char *const of_file[] = {"missing", "prefix"};
    for (size_t i = 0; i < sizeof of_file / sizeof *of_file; i++)
        if (yaml_tree_get(map, of_file[i]) && !yaml_tree_get(map, "file"))
            yaml_read_error(r, yaml_tree_get(map, of_file[i]), "model.init", of_file[i], "requires a file");
}

struct model_file {
    const char *path;
    const struct yaml_tree *tree; /* NULL: it could not be read, and the errors were reported */
    struct model_file *next;
};

/* The file at path; at is the node that names it. NULL: errors were added. */
static const struct yaml_tree *read_model_file(struct spec_reader *reader, const struct yaml_tree *at, const char *path)
{
    struct yaml_reader *r = &reader->yaml;
    struct source *source;
    struct model_file *file;
    for (struct model_file *f = reader->files; f; f = f->next)
        if (!strcmp(f->path, path)) return f->tree;
    if (access(path, F_OK) != 0) {
        yaml_read_error(r, at, "model", "file", "no file '%.*s' beside the spec or in experiments/",
                        text_shown(path, 100), path);
        return NULL;
    }
    NEW(r->region, file, 1);
    if (source_read(path, r->region, &source) == ST_OK)
        file->tree = yaml_tree_parse(source, 0, r->region, r->errors);
    else
        yaml_read_error(r, at, "model", "file", "%s", status_message());
    file->path = path;
    file->next = reader->files;
    reader->files = file;
    return file->tree;
}

/* The list of layers of a model file, which is the list or a map of it and of presets; NULL: errors were reported. */
static const struct yaml_tree *read_presets(struct yaml_reader *r, const struct yaml_tree *file,
                                            const struct yaml_tree **presets)
{
    static const struct setting keys[] = {{.key = NULL}};
    static const char *const also[] = {"parameters", "layers", NULL};
    const struct yaml_tree *list = yaml_tree_get(file, "layers");
    if (!file || file->kind != YAML_MAP) return file;
    yaml_read_map(r, file, NULL, "a model file", keys, also, NULL);
    if (!list) yaml_read_error(r, file, NULL, "layers", "missing; expected a list of layers");
    *presets = yaml_tree_get(file, "parameters");
    return list;
}

static void read_model(struct spec_reader *reader, const struct yaml_tree *root, struct spec *spec)
{
    struct yaml_reader *r = &reader->yaml;
    struct yaml_tree *model = yaml_tree_get(root, "model");
    const struct yaml_tree *list = yaml_tree_get(model, "layers"), *parameters = yaml_tree_get(model, "parameters"),
                           *file = model && model->kind == YAML_TEXT ? model : NULL, *presets = NULL;
    if (!file) file = yaml_tree_get(model, "file");
    if (!model || (model->kind != YAML_MAP && !file)) return; /* its section reported the error */
    read_init(r, model, spec);
    if (list && file)
        yaml_read_error(r, file, "model", "file", "either a file or layers, not both");
    else if (!list && !file)
        yaml_read_error(r, model, "model", NULL, "neither a file nor layers; expected one of them");
    else if (!list && spec->model_path)
        list = read_presets(r, read_model_file(reader, file, spec->model_path), &presets);
    spec->model_presets = presets;
    if (list) spec->layers = model_read(r, model_parameters(r, presets, parameters, list), spec->init);
}

/* ---- lists of their own ---- */

/* Why a number is always or never within its bounds, of which one may be NaN; NULL: neither. */
static const char *decided(const struct expectation *e)
{
    const bool accuracy = e->what == EXPECT_ACCURACY;
    if (e->what <= EXPECT_TIME_RATIO && isnan(e->below) && e->above == 0) return "fail: a ratio is always above 0";
    if (accuracy && isnan(e->above) && e->below > 1) return "fail: an accuracy is at most 1";
    if (accuracy && e->above >= 1) return "be met: an accuracy is at most 1";
    if (e->below <= 0) return "be met: the figure is never below 0";
    return e->above >= e->below ? "be met: above is not less than below" : NULL;
}

static void read_expectations(struct yaml_reader *r, const struct yaml_tree *root, struct spec *spec)
{
    static const char *const also[] = {"at", NULL};
    const struct yaml_tree *list = yaml_tree_get(root, "expect");
    if (!list) return;
    if (list->kind != YAML_LIST) {
        yaml_read_error(r, list, NULL, "expect", "expected a list of {what, below or above, source}");
        return;
    }
    NEW(r->region, spec->expectation, (size_t)list->count);
    spec->expectations = list->count;
    for (int i = 0; i < list->count; i++) {
        struct expectation *e = &spec->expectation[i];
        const char *path = region_text(r->region, "expect[%d]", i), **value;
        yaml_read_map(r, list->item[i], path, "an expectation", expectation_keys, also, e);
        NEW(r->region, value, (size_t)spec->axes);
        e->at = yaml_tree_get(list->item[i], "at");
        e->value = value;
        if (e->at) sweep_condition(r, e->at, region_text(r->region, "%s.at", path), spec, value);
        if (yaml_tree_find(list->item[i], "below") < 0 && yaml_tree_find(list->item[i], "above") < 0)
            yaml_read_error(r, list->item[i], path, NULL, "neither below nor above; expected a bound");
        else if (decided(e))
            yaml_read_error(r, list->item[i], path, NULL, "cannot %s; expected another bound", decided(e));
    }
}

static void read_published(struct yaml_reader *r, const struct yaml_tree *list)
{
    struct published point;
    if (list && list->kind != YAML_LIST)
        yaml_read_error(r, list, NULL, "published", "expected a list of {label, memory, slowdown, source}");
    for (int i = 0; list && list->kind == YAML_LIST && i < list->count; i++)
        yaml_read_map(r, list->item[i], region_text(r->region, "published[%d]", i), "a published point", published_keys,
                      NULL, &point);
}

/* ---- keys that depend on each other ---- */

static void check_length(struct yaml_reader *r, const struct yaml_tree *root, const struct spec *spec)
{
    const struct yaml_tree *steps = yaml_tree_get(root, "steps"), *epochs = yaml_tree_get(root, "epochs");
    if (steps && epochs)
        yaml_read_error(r, steps->mark.line > epochs->mark.line ? steps : epochs, NULL,
                        steps->mark.line > epochs->mark.line ? "steps" : "epochs",
                        "both steps and epochs; expected one of them");
    else if (!steps && !epochs)
        yaml_read_error(r, root, NULL, "steps", "missing; expected steps or epochs");
    if (!steps && epochs && spec->data && !spec->data->sized)
        yaml_read_error(r, epochs, NULL, "epochs", "data set %s is endless; expected steps", spec->data->name);
}

/* An error at the value of key ("optimizer.clip"), where the file has it. */
static void wrong_key(struct yaml_reader *r, const struct yaml_tree *root, const char *key, const char *what)
{
    const struct yaml_tree *at = yaml_tree_follow(root, key);
    if (at) yaml_read_error(r, at, NULL, key, "%s", what);
}

/* Keys without which others say nothing. */
static void check_missing(struct yaml_reader *r, const struct yaml_tree *root, const struct spec *spec)
{
    const struct yaml_tree *fault = yaml_tree_get(root, "fault"), *costs = yaml_tree_get(root, "costs");
    if (spec->fault_kind != FAULT_NONE && !yaml_tree_get(fault, "node"))
        yaml_read_error(r, fault, "fault", "node", "missing; expected the name of a node");
    if (spec->costs == COSTS_MEASURED && !yaml_tree_get(costs, "file"))
        yaml_read_error(r, costs, "costs", "file", "missing; expected the result file of a run of this model");
}

/* Keys that contradict others. A fused update moves parameters before the last gradient is known, and its gradients do
 * not outlive it. Every resolved spec contains keep_saved: auto, and older ones true. */
static void check_contradictions(struct yaml_reader *r, const struct yaml_tree *root, const struct spec *spec)
{
    const bool fused = spec->update == UPDATE_FUSED, faulty = spec->fault_kind != FAULT_NONE;
    const struct optimizer_settings *optimizer = &spec->optimizer_settings;
    const struct yaml_tree *kept = yaml_tree_follow(root, "policy.keep_saved");
    const bool drops = kept && kept->kind == YAML_TEXT && !strcmp(kept->text, "false");
    const struct learning_rate *rate = spec->learning_rate;
    const char *key = NULL, *what = rate && rate->wrong ? rate->wrong(&spec->learning_rate_settings, &key) : NULL;
    const struct {
        bool is;
        const char *key, *what;
    } wrong[] = {
        {!faulty, "fault.step", "requires a kind of fault"},
        {!faulty, "fault.node", "requires a kind of fault"},
        {faulty && spec->steps > 0 && spec->fault_step >= spec->steps, "fault.step",
         region_text(r->region, "the run has %" PRId64 " steps; expected 0..%" PRId64, spec->steps, spec->steps - 1)},
        {!fused && spec->update_part, "update_part", "requires update: fused"},
        {fused && optimizer->clip > 0, "optimizer.clip",
         "with update: fused, parameters are updated before the norm of all gradients is known; expected 0, or update: "
         "separate"},
        {fused && spec->record_state, "record.state",
         "with update: fused, no gradient outlives its update; expected false, or update: separate"},
        {spec->costs != COSTS_MEASURED, "costs.file", "applies to measured costs alone"},
        {drops && yaml_tree_follow(root, "policy.schedule"), "policy.keep_saved",
         "does not apply to a schedule, which names what is recomputed"},
        {optimizer->nesterov && !(optimizer->momentum > 0), "optimizer.nesterov", "requires a momentum greater than 0"},
        {what, key, what},
        {spec->loss && !spec->loss->predicts, "eval",
         region_text(r->region, "loss %s has no predictions to evaluate", spec->loss ? spec->loss->name : "")},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (wrong[i].is) wrong_key(r, root, wrong[i].key, wrong[i].what);
}

/* bits: those of an option's names that the backend supports. */
static void check_option(struct yaml_reader *r, const struct yaml_tree *root, const char *key, const struct spec *spec,
                         const char *const *words, unsigned bits, int value)
{
    const char *can = "";
    if (bits >> value & 1) return;
    for (int i = 0; words[i]; i++)
        if (bits >> i & 1) can = region_text(r->region, "%s%s%s", can, *can ? "|" : "", words[i]);
    wrong_key(r, root, key,
              region_text(r->region, "backend %s has no %s; expected one of %s", spec->backend, words[value], can));
}

void spec_read(struct spec_reader *reader, const struct yaml_tree *root, struct spec *spec)
{
    struct yaml_reader *r = &reader->yaml;
    static const char *const of_graphs[] = {"stages", "nodes"};
    for (int i = 0; i < 2; i++) {
        const struct yaml_tree *list = yaml_tree_get(root, of_graphs[i]);
        if (!list) continue;
        yaml_read_error(r, list, NULL, of_graphs[i],
                        "a spec has no such key; a graph file is planned by rematch plan --graph");
        return;
    }
    yaml_read_map(r, root, NULL, "a spec", spec_keys, spec_order, spec);
    if (root->kind != YAML_MAP) return;
    if (!spec->title) spec->title = spec->name;
    yaml_read_version(r, root, "rematch", SPEC_VERSION, "a spec");
    for (const struct section *s = spec_sections; s->key; s++) spec_read_section(r, s, root, spec);
    if (!yaml_tree_get(root, "eval"))
        spec->eval_every = 0;
    else if (!spec->eval_every)
        spec->eval_every = spec->epochs > 0 ? 1 : spec->steps;
    if (!yaml_tree_follow(root, "costs.name") && yaml_tree_follow(root, "costs.file")) spec->costs = COSTS_MEASURED;
    read_model(reader, root, spec);
    sweep_read(r, yaml_tree_get(root, "sweep"), spec);
    read_expectations(r, root, spec);
    read_published(r, yaml_tree_get(root, "published"));
    check_length(r, root, spec);
    check_missing(r, root, spec);
    check_contradictions(r, root, spec);
    const struct backend_kind *kind = spec->backend ? backend_find(spec->backend) : NULL;
    const struct backend_options *options = &spec->backend_options;
    if (!kind) return; /* one that was not built is reported where it is opened */
    check_option(r, root, "backend.layout", spec, layout_names, kind->layouts, options->layout);
    check_option(r, root, "precision", spec, precision_names, kind->precisions, options->precision);
}
