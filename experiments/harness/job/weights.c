#include "job/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "datasets/files.h"

enum { SLICE = 1 << 18, NAMES_SHOWN = 12, NAME_SHOWN = 80, MISFIT_SHOWN = 400, PREFIXES_MAX = 64 };

/* ---- names in files of other programs ---- */

/* BERT's names in models/bert-*.yaml and in Hugging Face's transformers (models/bert/modeling_bert.py); those of
 * models/resnet18.yaml, resnet50.yaml and densenet121.yaml in torchvision (models/resnet.py, densenet.py) where they
 * differ. A row is a parameter, or a node or group with all its tensors; # is a number, in theirs the next of ours, and
 * + the next plus 1. */
#define LAYER "encoder.layer.#."
enum { NUMBERS_MAX = 2 };
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
    {"layer#_first[0].projection", {"layer#.0.downsample.0"}},
    {"layer#_first[0].projection_bn", {"layer#.0.downsample.1"}},
    {"layer#_first[0]", {"layer#.0"}},
    {"layer#[#]", {"layer#.+"}},
    {"conv0", {"features.conv0"}},
    {"norm0", {"features.norm0"}},
    {"dense#[#]", {"features.denseblock#.denselayer+"}},
    {"transition#_norm", {"features.transition#.norm"}},
    {"transition#_conv", {"features.transition#.conv"}},
    {"norm5", {"features.norm5"}},
    {"fc", {"classifier"}},
};

/* What follows pattern, a whole part of a dotted name, where name begins with it; else NULL. number: what each # is. */
static const char *matched(const char *pattern, const char *name, int number[NUMBERS_MAX])
{
    for (; *pattern; pattern++) {
        if (*pattern == '#') {
            const size_t digits = strspn(name, "0123456789");
            if (!digits) return NULL;
            *number++ = (int)strtol(name, NULL, 10);
            name += digits;
        } else if (*name++ != *pattern) {
            return NULL;
        }
    }
    return !*name || *name == '.' ? name : NULL;
}

/* Their name for these numbers, then rest. */
static const char *with_numbers(const char *theirs, const int *number, const char *rest, struct region *region)
{
    const char *text = "";
    for (;;) {
        const size_t plain = strcspn(theirs, "#+");
        text = region_text(region, "%s%.*s", text, (int)plain, theirs);
        theirs += plain;
        if (!*theirs) return region_text(region, "%s%s", text, rest);
        text = region_text(region, "%s%d", text, *number++ + (*theirs++ == '+'));
    }
}

/* The other program's names of the tensors whose rows, one tensor after the other, are ours; returns how many, 0: it is
 * in no row. */
static int weight_names(const char *ours, struct region *region, const char *names[WEIGHT_SOURCES_MAX])
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int number[NUMBERS_MAX] = {0}, count = 0;
        const char *rest = matched(rows[i].ours, ours, number);
        for (; rest && count < WEIGHT_SOURCES_MAX && rows[i].theirs[count]; count++)
            names[count] = with_numbers(rows[i].theirs[count], number, rest, region);
        if (rest) return count;
    }
    return 0;
}

/* The index-th alias of a tensor's name: the name itself; as part of a larger model ("bert."); a norm's gain and shift
 * by their old names (gamma, beta). NULL: there are no more. */
static const char *weight_alias(const char *name, int index, struct region *region)
{
    static const char *const old[][2] = {{".weight", ".gamma"}, {".bias", ".beta"}};
    const char *prefix = index % 2 ? "bert." : "", *end = strrchr(name, '.');
    if (index < 2) return region_text(region, "%s%s", prefix, name);
    for (size_t i = 0; index < 4 && end && i < sizeof old / sizeof *old; i++)
        if (!strcmp(end, old[i][0])) return region_text(region, "%s%.*s%s", prefix, (int)(end - name), name, old[i][1]);
    return NULL;
}

/* ---- names in messages ---- */

/* The first of count texts, each cut to at most so many bytes, and how many more there are; "": none. */
static const char *joined(int count, const char *const *texts, const char *gap, int most, struct region *region)
{
    const char *all = "";
    for (int i = 0; i < count && i < NAMES_SHOWN; i++)
        all = region_text(region, "%s%s%.*s", all, i ? gap : "", text_shown(texts[i], most), texts[i]);
    return count > NAMES_SHOWN ? region_text(region, "%s and %d more", all, count - NAMES_SHOWN) : all;
}

/* The names of a file's tensors or of the model's after the words before; "": there are none. */
static const char *names_text(const char *before, int count, const char *const *names, struct region *region)
{
    return count ? region_text(region, "%s%s", before, joined(count, names, ", ", NAME_SHOWN, region)) : "";
}

/* ---- finding ---- */

static int tensors_of(const struct graph *graph) { return graph->parameters + graph->states; }

/* A parameter, or after them a tensor of running state. */
static const struct parameter *tensor_of(const struct graph *graph, int index)
{
    return index < graph->parameters ? &graph->parameter[index] : &graph->state[index - graph->parameters];
}

struct matching {
    struct weights *weights;
    const char *prefix; /* of the file's names */
    struct region *region;
    bool *used; /* by tensor of the file */
    int misfits;
    const char **missing, **misfit; /* missing: as many as are initialised */
};

static void add_misfit(struct matching *s, const char *text)
{
    region_grow(s->region, &s->misfit, s->misfits, sizeof *s->misfit);
    s->misfit[s->misfits++] = text;
}

static const struct safetensor *find_name(const struct matching *s, const char *name)
{
    return safetensors_find(s->weights->file, region_text(s->region, "%s%s", s->prefix, name));
}

/* The tensor of that name or of one of its aliases. */
static const struct safetensor *find(const struct matching *s, const char *name)
{
    const struct safetensor *found = NULL;
    const char *alias;
    for (int i = 0; !found && (alias = weight_alias(name, i, s->region)); i++) found = find_name(s, alias);
    return found;
}

/* "[2, 3]" */
static const char *shape_text(const int64_t *dim, int rank, struct region *region)
{
    const char *text = region_text(region, "[");
    for (int i = 0; i < rank; i++) text = region_text(region, "%s%s%lld", text, i ? ", " : "", (long long)dim[i]);
    return region_text(region, "%s]", text);
}

/* Sources have the tensor's shape, except that they divide its first dimension equally. */
static bool fits(const struct safetensor *t, const struct shape *shape, int count)
{
    if (t->rank != shape->rank || !safetensors_is_float(t)) return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != shape->dim[i] / (i ? 1 : count)) return false;
    return shape->dim[0] % count == 0;
}

static void check_fit(struct matching *s, const struct parameter *p, const struct weight *w)
{
    for (int i = 0; i < w->count; i++) {
        const struct safetensor *t = w->source[i];
        if (fits(t, &p->definition.shape, w->count)) continue;
        const char *found = shape_text(t->dim, t->rank, s->region);
        const char *wanted = shape_text(p->definition.shape.dim, p->definition.shape.rank, s->region);
        const char *share = w->count > 1 ? region_text(s->region, "a %d-th of ", w->count) : "";
        add_misfit(s, region_text(s->region, "%.*s is %s %s, expected F32, F16 or BF16 of %s%s",
                                  text_shown(t->name, NAME_SHOWN), t->name, t->dtype, found, share, wanted));
    }
}

/* The sources of a tensor. If only some of them exist, that is a misfit. */
static void find_weight(struct matching *s, int index)
{
    struct weights *weights = s->weights;
    const struct parameter *p = tensor_of(weights->graph, index);
    struct weight *w = &weights->weight[index];
    const char *name[WEIGHT_SOURCES_MAX] = {p->name}, *lacks = NULL;
    w->source[0] = find_name(s, p->name);
    const int named = w->source[0] ? 0 : weight_names(p->name, s->region, name), wanted = named ? named : 1;
    for (int i = 0; i < named; i++) w->source[i] = find(s, name[i]);
    for (int i = 0; i < wanted; i++) {
        if (!w->source[i] && !lacks) lacks = name[i];
        w->count += w->source[i] != NULL;
    }
    if (!lacks) {
        for (int i = 0; i < w->count; i++) s->used[w->source[i] - weights->file->tensor] = true;
        check_fit(s, p, w);
        weights->given[index] = true;
        return;
    }
    const char *text = lacks == p->name ? p->name : region_text(s->region, "%s (%s)", p->name, lacks);
    if (w->count) {
        add_misfit(s, region_text(s->region, "%s is incomplete", text));
        return;
    }
    s->missing[weights->initialised] = text;
    weights->initialised_name[weights->initialised++] = p->name;
}

/* Finds every tensor of the graph in the file, whose names begin with prefix. */
static struct matching match(struct weights *w, const char *prefix)
{
    struct region *region = w->file->region;
    struct matching s = {.weights = w, .prefix = prefix, .region = region};
    const int tensors = tensors_of(w->graph);
    NEW(region, w->weight, (size_t)tensors);
    NEW(region, w->given, (size_t)tensors);
    NEW(region, w->initialised_name, (size_t)tensors);
    NEW(region, w->unused_name, (size_t)w->file->count);
    NEW(region, s.used, (size_t)w->file->count);
    NEW(region, s.missing, (size_t)tensors);
    w->given_state = w->given + w->graph->parameters;
    for (int i = 0; i < tensors; i++) find_weight(&s, i);
    for (int i = 0; i < w->file->count; i++) {
        const char *name = w->file->tensor[i].name, *end = strrchr(name, '.');
        const bool counts = end && !strcmp(end, ".num_batches_tracked"); /* PyTorch's steps of a batch norm */
        if (!s.used[i] && !counts) w->unused_name[w->unused++] = name;
    }
    return s;
}

/* ---- a prefix of the file's names ---- */

struct prefixes {
    int count;
    const char *text[PREFIXES_MAX];
};

/* Adds what stands before the name in each name of the file that ends with it. */
static void add_prefixes(struct prefixes *p, const struct weights *w, const char *name)
{
    for (int i = 0; i < w->file->count && p->count < PREFIXES_MAX; i++) {
        const char *theirs = w->file->tensor[i].name;
        const size_t all = strlen(theirs), end = strlen(name);
        if (all < end || strcmp(theirs + all - end, name) != 0) continue;
        const char *text = region_text(w->file->region, "%.*s", (int)(all - end), theirs);
        int same = 0;
        while (same < p->count && strcmp(p->text[same], text) != 0) same++;
        p->text[same] = text;
        p->count += same == p->count;
    }
}

/* Those that the names of the first tensor of the graph have that the file has with any. */
static struct prefixes find_prefixes(const struct weights *w)
{
    struct prefixes p = {.count = 0};
    for (int t = 0; t < tensors_of(w->graph) && p.count == 0; t++) {
        const char *ours = tensor_of(w->graph, t)->name, *name[WEIGHT_SOURCES_MAX], *alias;
        add_prefixes(&p, w, ours);
        const int named = weight_names(ours, w->file->region, name);
        for (int i = 0; named && (alias = weight_alias(name[0], i, w->file->region)); i++) add_prefixes(&p, w, alias);
    }
    return p;
}

/* Which prefix makes all names fit, or, where names may be missing, the most; the shortest of several. "": none does.
 */
static const char *advice(const struct weights *w, bool all)
{
    const struct prefixes p = find_prefixes(w);
    const char *best = NULL;
    int least = all ? 0 : tensors_of(w->graph) - 1;
    for (int i = 0; i < p.count; i++) {
        struct weights trial = {.file = w->file, .graph = w->graph};
        const struct matching s = match(&trial, p.text[i]);
        if (s.misfits || trial.initialised > least) continue;
        if (best && trial.initialised == least && strlen(best) <= strlen(p.text[i])) continue;
        best = p.text[i];
        least = trial.initialised;
    }
    if (!best) return "";
    const char *but = least ? region_text(w->file->region, " but %d", least) : "";
    if (!*best) return region_text(w->file->region, ", but all names%s fit without model.init.prefix", but);
    return region_text(w->file->region, ", but all names%s fit without the prefix '%.*s': set model.init.prefix", but,
                       text_shown(best, NAME_SHOWN), best);
}

static enum status judge(const struct matching *s, const struct spec *spec)
{
    const struct weights *w = s->weights;
    const bool none = w->initialised == tensors_of(w->graph);
    const bool missing = w->initialised && (none || spec->init_missing == INIT_MISSING_ERROR);
    if (!missing && !s->misfits) return ST_OK;
    const char *prefix = advice(w, spec->init_missing == INIT_MISSING_ERROR);
    if (*prefix) return fail(ST_SPEC, "model.init.file: %s does not fit the model%s", w->file->path, prefix);
    return fail(ST_SPEC, "model.init.file: %s does not fit the model%s%s%s%s%s", w->file->path, s->misfits ? ": " : "",
                joined(s->misfits, s->misfit, "; ", MISFIT_SHOWN, s->region),
                missing ? names_text("; missing: ", w->initialised, s->missing, s->region) : "",
                missing && !none ? " (missing: init initialises them as usual)" : "",
                names_text("; not used: ", w->unused, w->unused_name, s->region));
}

enum status weights_open(const struct spec *spec, const struct graph *graph, struct weights **weights)
{
    struct safetensors *file;
    *weights = NULL;
    enum status opened = safetensors_open(spec->init_file, &file);
    if (opened != ST_OK) return fail(opened, "model.init.file: %s", status_message());
    struct weights *w = region_array(file->region, 1, sizeof *w);
    *w = (struct weights){.file = file, .graph = graph};
    const struct matching s = match(w, spec->init_prefix ? spec->init_prefix : "");
    const enum status status = judge(&s, spec);
    if (status == ST_OK)
        *weights = w;
    else
        safetensors_close(file);
    return status;
}

enum status weights_digest(struct weights *weights)
{
    const struct safetensors *file = weights->file;
    return *weights->sha256 ? ST_OK : files_sha256(file->descriptor, file->path, file->bytes, NULL, weights->sha256);
}

void weights_close(struct weights *weights)
{
    if (weights) safetensors_close(weights->file);
}

/* ---- loading ---- */

/* Values that no network has: not finite, or a negative variance, whose root an evaluation takes. */
static enum status check_values(const struct weights *w, const struct parameter *p, const struct safetensor *t,
                                int64_t first, int64_t count, const float *value)
{
    const bool variance = !strcmp(p->definition.name, "running_var");
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(value[i]) || (variance && value[i] < 0))
            return fail(ST_FAILED, "model.init.file: %s: element %lld of %.*s is %g, expected a finite number%s",
                        w->file->path, (long long)(first + i), text_shown(t->name, NAME_SHOWN), t->name,
                        (double)value[i], variance ? ", not below 0" : "");
    return ST_OK;
}

static enum status load_tensor(const struct weights *w, int index, struct backend *backend, float *to, float *slice)
{
    float *next = to;
    for (int s = 0; s < w->weight[index].count; s++) {
        const struct safetensor *t = w->weight[index].source[s];
        for (int64_t first = 0; first < t->elements; first += SLICE) {
            const int64_t count = t->elements - first < SLICE ? t->elements - first : SLICE;
            TRY(safetensors_floats(w->file, t, first, count, slice));
            TRY(check_values(w, tensor_of(w->graph, index), t, first, count, slice));
            backend->kind->upload(backend, next, slice, (size_t)count * sizeof *slice);
            next += count;
        }
    }
    return ST_OK;
}

enum status weights_load(const struct weights *weights, struct backend *backend, struct executor *exec)
{
    freed_auto float *slice = allocate(SLICE, sizeof *slice);
    const int parameters = weights->graph->parameters;
    for (int i = 0; i < tensors_of(weights->graph); i++) {
        float *to = i < parameters ? executor_parameter(exec, i) : executor_running(exec, i - parameters);
        if (weights->given[i]) TRY(load_tensor(weights, i, backend, to, slice));
    }
    return ST_OK;
}

char *weights_text(const struct weights *weights)
{
    struct region *region = weights->file->region;
    const int all = tensors_of(weights->graph), initialised = weights->initialised;
    return region_text(region, "%s: %d of %d parameters%s%s%s", weights->file->path, all - initialised, all,
                       weights->graph->states ? " and tensors of running state" : "",
                       names_text("; initialised as usual: ", initialised, weights->initialised_name, region),
                       names_text("; not used: ", weights->unused, weights->unused_name, region));
}
