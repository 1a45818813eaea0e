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
    const struct yaml_tree *root;
    struct region *region;
};

/* A path as it is found from everywhere, where there is such a file. */
static const char *value_text(struct printer *p, const struct setting *setting, const void *object)
{
    if (setting->type != SETTING_PATH) return setting_print(setting, object, p->region);
    const char *path = *(const char *const *)(const void *)((const char *)object + setting->offset);
    char *absolute = realpath(path, NULL);
    const char *text = text_quote(absolute ? absolute : path, p->region);
    free(absolute);
    return text;
}

/* "key: value" of every setting that is set, with comma between; *printed counts. */
static void print_keys(struct printer *p, const struct setting *keys, const void *object, int *printed)
{
    for (const struct setting *f = keys; f && f->key; f++) {
        if (setting_unset(f, object)) continue;
        const char *value = value_text(p, f, object);
        fprintf(p->out, "%s%s: %s", (*printed)++ ? ", " : "", f->key, value ? value : "");
    }
}

static void print_section(struct printer *p, const struct section *section)
{
    const struct registry *registry = section->registry;
    const struct setting *keys = section->keys;
    int printed = 0, index = 0;
    if (section->shown && !section->shown(p->spec)) return;
    fprintf(p->out, "%s: {", section->key);
    if (registry) {
        while (registry->name(index) && !registry->chosen(p->spec, index)) index++;
        fprintf(p->out, "name: %s", registry->name(index));
        keys = registry->keys ? registry->keys(index) : NULL;
        printed++;
    }
    print_keys(p, keys, registry ? (const char *)p->spec + registry->settings : (const char *)p->spec, &printed);
    fputs("}\n", p->out);
}

static void print_model(struct printer *p)
{
    const char *init = setting_print(setting_find(init_keys, "name"), p->spec, p->region);
    int printed = 0;
    fputs("model:\n  init: ", p->out);
    if (p->spec->init_file) {
        fputc('{', p->out);
        print_keys(p, init_keys, p->spec, &printed);
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
        print_keys(p, expectation_keys, &p->spec->expectation[i], &printed);
        fputs("}\n", p->out);
    }
}

static void print_tree(struct printer *p, const char *key)
{
    const struct yaml_tree *tree = yaml_tree_get(p->root, key);
    const char *text = tree ? yaml_tree_print(tree, p->region) : NULL;
    if (text) fprintf(p->out, "%s: %s\n", key, text);
}

static void print_key(struct printer *p, const char *key)
{
    const struct setting *setting = setting_find(spec_keys, key);
    const struct section *section = spec_section(key);
    const char *value = setting && !setting_unset(setting, p->spec) ? value_text(p, setting, p->spec) : NULL;
    if (value) fprintf(p->out, "%s: %s\n", key, value);
    if (!strcmp(key, "rematch"))
        fputs("rematch: 1\n", p->out);
    else if (!strcmp(key, "model"))
        print_model(p);
    else if (section)
        print_section(p, section);
    else if (!strcmp(key, "expect"))
        print_expectations(p);
    else if (!setting)
        print_tree(p, key);
}

char *spec_print(const struct spec *spec, const struct yaml_tree *root, struct region *region)
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
