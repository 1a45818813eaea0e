#include "job/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { SLICE = 1 << 18, NAMES_SHOWN = 12, NAME_SHOWN = 80 };

/* Names or errors for a message: the first ones, and how many more. */
struct list {
    int count;
    char *text;
};

static void list_add(struct list *list, struct region *region, const char *gap, const char *text)
{
    if (list->count < NAMES_SHOWN)
        list->text = region_text(region, "%s%s%s", list->count ? list->text : "", list->count ? gap : "", text);
    list->count++;
}

static void list_add_name(struct list *list, struct region *region, const char *name)
{
    list_add(list, region, ", ", region_text(region, "%.*s", text_shown(name, NAME_SHOWN), name));
}

static const char *list_text(const struct list *list, struct region *region)
{
    if (list->count <= NAMES_SHOWN) return list->text;
    return region_text(region, "%s and %d more", list->text, list->count - NAMES_SHOWN);
}

/* ---- finding ---- */

struct matching {
    struct weights *weights;
    struct region *region;
    bool *used; /* by tensor of the file */
    struct list missing, misfits;
};

/* The tensor of that name or of one of its aliases. */
static const struct safetensor *find(const struct matching *s, const char *name)
{
    const struct safetensor *found = NULL;
    const char *alias;
    for (int i = 0; !found && (alias = weight_alias(name, i, s->region)); i++)
        found = safetensors_find(s->weights->file, alias);
    return found;
}

/* "[2, 3]" */
static const char *shape_text(const int64_t *dim, int rank, struct region *region)
{
    const char *text = region_text(region, "[");
    for (int i = 0; i < rank; i++) text = region_text(region, "%s%s%lld", text, i ? ", " : "", (long long)dim[i]);
    return region_text(region, "%s]", text);
}

/* Sources have the parameter's shape, except that they divide its first dimension equally. */
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
        list_add(&s->misfits, s->region, "; ",
                 region_text(s->region, "%.*s is %s %s, expected F32, F16 or BF16 of %s%s",
                             text_shown(t->name, NAME_SHOWN), t->name, t->dtype, found, share, wanted));
    }
}

/* The sources of a parameter. If only some of them exist, that is a misfit. */
static void find_weight(struct matching *s, int index)
{
    const struct parameter *p = &s->weights->graph->parameter[index];
    struct weight *w = &s->weights->weight[index];
    const char *name[WEIGHT_SOURCES_MAX] = {p->name};
    int wanted = 1;
    w->source[0] = safetensors_find(s->weights->file, p->name);
    if (!w->source[0]) {
        const int named = weight_names(p->name, s->region, name);
        if (named > 0) wanted = named;
        for (int i = 0; i < named; i++) w->source[i] = find(s, name[i]);
    }
    for (int i = 0; i < wanted; i++) w->count += w->source[i] != NULL;
    if (w->count < wanted) {
        const char *lacks = NULL;
        for (int i = wanted - 1; i >= 0; i--)
            if (!w->source[i]) lacks = name[i];
        if (!w->count) s->weights->initialised_name[s->weights->initialised++] = p->name;
        const char *text = lacks == p->name ? p->name : region_text(s->region, "%s (%s)", p->name, lacks);
        if (w->count) text = region_text(s->region, "%s is incomplete", text);
        list_add_name(w->count ? &s->misfits : &s->missing, s->region, text);
        return;
    }
    for (int i = 0; i < w->count; i++) s->used[w->source[i] - s->weights->file->tensor] = true;
    check_fit(s, p, w);
    s->weights->given[index] = true;
}

static enum status judge(const struct matching *s, const struct spec *spec)
{
    const struct weights *w = s->weights;
    const bool none = w->initialised == w->graph->parameters;
    const bool missing = s->missing.count && (none || spec->init_missing == INIT_MISSING_ERROR);
    struct list unused = {0};
    if (!missing && !s->misfits.count) return ST_OK;
    for (int i = 0; i < w->unused; i++) list_add_name(&unused, s->region, w->unused_name[i]);
    return fail(ST_SPEC, "model.init.file: %s does not fit the model%s%s%s%s%s%s%s", w->file->path,
                s->misfits.count ? ": " : "", s->misfits.count ? list_text(&s->misfits, s->region) : "",
                missing ? "; missing: " : "", missing ? list_text(&s->missing, s->region) : "",
                missing && !none ? " (missing: init initialises them as usual)" : "",
                unused.count ? "; not used: " : "", unused.count ? list_text(&unused, s->region) : "");
}

static enum status match(struct weights *w, const struct spec *spec)
{
    struct region *region = w->file->region;
    struct matching s = {.weights = w, .region = region};
    const size_t parameters = (size_t)w->graph->parameters, tensors = (size_t)w->file->count;
    NEW(region, w->weight, parameters);
    NEW(region, w->given, parameters);
    NEW(region, w->initialised_name, parameters);
    NEW(region, w->unused_name, tensors);
    NEW(region, s.used, tensors);
    for (int i = 0; i < w->graph->parameters; i++) find_weight(&s, i);
    for (int i = 0; i < w->file->count; i++)
        if (!s.used[i]) w->unused_name[w->unused++] = w->file->tensor[i].name;
    return judge(&s, spec);
}

enum status weights_open(const struct spec *spec, const struct graph *graph, struct weights **weights)
{
    struct safetensors *file;
    *weights = NULL;
    enum status opened = safetensors_open(spec->init_file, &file);
    if (opened != ST_OK) return fail(opened, "model.init.file: %s", status_message());
    struct weights *w = region_array(file->region, 1, sizeof *w);
    *w = (struct weights){.file = file, .graph = graph};
    enum status status = match(w, spec);
    if (status != ST_OK) {
        safetensors_close(file);
        return status;
    }
    *weights = w;
    return ST_OK;
}

enum status weights_digest(struct weights *weights)
{
    return *weights->sha256 ? ST_OK : safetensors_sha256(weights->file, weights->sha256);
}

void weights_close(struct weights *weights)
{
    if (weights) safetensors_close(weights->file);
}

/* ---- loading ---- */

static enum status load_parameter(const struct weights *w, int index, struct backend *backend, float *to, float *slice)
{
    const struct parameter *p = &w->graph->parameter[index];
    float *next = to;
    for (int s = 0; s < w->weight[index].count; s++) {
        const struct safetensor *t = w->weight[index].source[s];
        for (int64_t first = 0; first < t->elements; first += SLICE) {
            const int64_t count = t->elements - first < SLICE ? t->elements - first : SLICE;
            TRY(safetensors_floats(w->file, t, first, count, slice));
            backend->kind->upload(backend, next, slice, (size_t)count * sizeof *slice);
            next += count;
        }
    }
    if (!isfinite(backend->kind->squares(backend, to, (size_t)p->elements)))
        return fail(ST_FAILED, "%s: not every value of %s is finite", w->file->path, p->name);
    return ST_OK;
}

enum status weights_load(const struct weights *weights, struct backend *backend, struct executor *exec)
{
    float *slice = allocate(SLICE, sizeof *slice);
    enum status status = ST_OK;
    for (int i = 0; status == ST_OK && i < weights->graph->parameters; i++)
        if (weights->given[i]) status = load_parameter(weights, i, backend, executor_parameter(exec, i), slice);
    free(slice);
    return status;
}

char *weights_text(const struct weights *weights)
{
    struct region *region = weights->file->region;
    struct list initialised = {0}, unused = {0};
    for (int i = 0; i < weights->initialised; i++) list_add_name(&initialised, region, weights->initialised_name[i]);
    for (int i = 0; i < weights->unused; i++) list_add_name(&unused, region, weights->unused_name[i]);
    return region_text(region, "%s: %d of %d parameters%s%s%s%s", weights->file->path,
                       weights->graph->parameters - weights->initialised, weights->graph->parameters,
                       initialised.count ? "; initialised as usual: " : "",
                       initialised.count ? list_text(&initialised, region) : "", unused.count ? "; not used: " : "",
                       unused.count ? list_text(&unused, region) : "");
}
