/* The canonical text of a spec: every default filled in, in one order. Equal specs have equal texts, and the text is a
 * spec again. It can be moved to any folder: model files are written out, other files have absolute paths. */
#include "spec/spec_read.h"

#include <string.h>

#include "spec/model.h"
#include "spec/spec_settings.h"
#include "yaml/yaml_write.h"

struct printer {
    FILE *out;
    const struct spec *spec;
    const struct yaml_tree *root;
    struct region *region;
};

void spec_print_section(const struct spec *spec, const struct section *section, struct region *region, FILE *out)
{
    const struct registry *registry = section->registry;
    const char *object = (const char *)spec;
    if (section->shown && !section->shown(spec)) return;
    fprintf(out, "%s: {", section->key);
    if (registry) {
        const void *row;
        struct choice choice = registry->choice(0);
        memcpy(&row, object + registry->chosen, sizeof row);
        for (int i = 1; choice.row != row; i++) choice = registry->choice(i);
        fprintf(out, "name: %s", choice.name);
        yaml_write_settings(choice.keys, object + registry->settings, ", ", ", ", region, out);
    } else {
        yaml_write_settings(section->keys, object, "", ", ", region, out);
    }
    fputs("}\n", out);
}

static void print_model(struct printer *p)
{
    fputs("model:\n  init: ", p->out);
    if (p->spec->init_file) {
        fputc('{', p->out);
        yaml_write_settings(init_keys, p->spec, "", ", ", p->region, p->out);
        fputc('}', p->out);
    } else {
        fputs(setting_print(setting_find(init_keys, "name"), p->spec, p->region), p->out);
    }
    fputs("\n  layers:\n", p->out);
    model_print(p->spec->layers, 4, p->region, p->out);
}

static void print_key(struct printer *p, const char *key)
{
    static const char parameters[] = "model.parameters";
    const struct setting *setting = setting_find(spec_keys, key);
    const struct section *section = spec_section(key);
    const struct yaml_tree *tree = yaml_tree_get(p->root, key);
    if (tree && !strcmp(key, "sweep")) { /* without the model's parameters, whose values are written out */
        struct yaml_tree *left = yaml_tree_copy(p->root, p->region);
        sweep_remove(left, parameters, strlen(parameters), NULL, p->region);
        tree = yaml_tree_get(left, "sweep");
    }
    if (!strcmp(key, "rematch"))
        fprintf(p->out, "rematch: %d\n", SPEC_VERSION);
    else if (!strcmp(key, "model"))
        print_model(p);
    else if (section)
        spec_print_section(p->spec, section, p->region, p->out);
    else if (setting && !setting_unset(setting, p->spec))
        fprintf(p->out, "%s: %s\n", key, yaml_write_value(setting, p->spec, p->region));
    else if (!setting && tree)
        fprintf(p->out, "%s: %s\n", key, yaml_tree_print(tree, p->region));
}

char *spec_print(const struct spec *spec, const struct yaml_tree *root, struct region *region)
{
    freed_auto char *text = NULL;
    size_t length;
    struct printer p = {open_memstream(&text, &length), spec, root, region};
    for (int i = 0; spec_order[i]; i++) print_key(&p, spec_order[i]);
    fclose(p.out);
    return region_text(region, "%s", text);
}
