/* The canonical text: every default filled in, in one order, so that equal specs are equal texts and the text is a
 * spec again. Model files are written out, other files named by their absolute paths: it may stand anywhere. */
#include "spec/spec_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "spec/model.h"
#include "spec/spec_settings.h"

struct printer {
    FILE *out;
    const struct spec *spec;
    const struct tree *root;
    struct region *region;
};

/* A path as it is found from everywhere, where there is such a file. */
static const char *value_text(struct printer *p, const struct field *field, const void *object)
{
    if (field->type != FIELD_PATH) return field_print(field, object, p->region);
    const char *path = *(const char *const *)(const void *)((const char *)object + field->offset);
    char *absolute = realpath(path, NULL);
    const char *text = text_quote(absolute ? absolute : path, p->region);
    free(absolute);
    return text;
}

/* "key: value" of every field that is set, with comma between; *printed counts. */
static void print_fields(struct printer *p, const struct field *fields, const void *object, int *printed)
{
    for (const struct field *f = fields; f && f->key; f++) {
        if (field_unset(f, object)) continue;
        const char *value = value_text(p, f, object);
        fprintf(p->out, "%s%s: %s", (*printed)++ ? ", " : "", f->key, value ? value : "");
    }
}

static void print_section(struct printer *p, const struct section *section)
{
    const struct registry *registry = section->registry;
    const struct field *fields = section->fields;
    int printed = 0, index = 0;
    if (section->shown && !section->shown(p->spec)) return;
    fprintf(p->out, "%s: {", section->key);
    if (registry) {
        while (registry->name(index) && !registry->chosen(p->spec, index)) index++;
        fprintf(p->out, "name: %s", registry->name(index));
        fields = registry->fields ? registry->fields(index) : NULL;
        printed++;
    }
    print_fields(p, fields, registry ? (const char *)p->spec + registry->settings : (const char *)p->spec, &printed);
    fputs("}\n", p->out);
}

static void print_model(struct printer *p)
{
    const char *init = field_print(field_find(init_fields, "name"), p->spec, p->region);
    int printed = 0;
    fputs("model:\n  init: ", p->out);
    if (p->spec->init_file) {
        fputc('{', p->out);
        print_fields(p, init_fields, p->spec, &printed);
        fputc('}', p->out);
    } else if (init) {
        fputs(init, p->out);
    }
    fputs("\n  layers:\n", p->out);
    model_print(p->spec->layers, 4, p->region, p->out);
}

static void print_expectations(struct printer *p)
{
    if (p->spec->expectations) fputs("expect:\n", p->out);
    for (int i = 0; i < p->spec->expectations; i++) {
        int printed = 0;
        fputs("  - {", p->out);
        print_fields(p, expectation_fields, &p->spec->expectation[i], &printed);
        fputs("}\n", p->out);
    }
}

static void print_tree(struct printer *p, const char *key)
{
    const struct tree *tree = tree_get(p->root, key);
    const char *text = tree ? tree_print(tree, p->region) : NULL;
    if (text) fprintf(p->out, "%s: %s\n", key, text);
}

static void print_key(struct printer *p, const char *key)
{
    const struct field *field = field_find(spec_fields, key);
    const struct section *section = spec_section(key);
    const char *value = field && !field_unset(field, p->spec) ? value_text(p, field, p->spec) : NULL;
    if (value) fprintf(p->out, "%s: %s\n", key, value);
    if (!strcmp(key, "rematch"))
        fputs("rematch: 1\n", p->out);
    else if (!strcmp(key, "model"))
        print_model(p);
    else if (section)
        print_section(p, section);
    else if (!strcmp(key, "expect"))
        print_expectations(p);
    else if (!field)
        print_tree(p, key);
}

char *spec_print(const struct spec *spec, const struct tree *root, struct region *region)
{
    char *text = NULL, *copy = NULL;
    size_t length;
    struct printer p = {open_memstream(&text, &length), spec, root, region};
    if (!p.out) return NULL;
    for (int i = 0; spec_order[i]; i++) print_key(&p, spec_order[i]);
    if (!fclose(p.out)) copy = region_text(region, "%s", text);
    free(text);
    return copy;
}
