/* rematch schema lists every key; the specs in the documents can be planned. */
#include <criterion/criterion.h>
#include <string.h>

#include "spec/model.h"
#include "spec/spec_settings.h"
#include "tests/support/cli.h"

static void check_block(const json_t *all, const char *kind, const char *name, const struct setting *keys)
{
    char heading[80];
    snprintf(heading, sizeof heading, "%s%s%s", kind, *name ? " " : "", name);
    const json_t *block = json_object_get(all, heading), *rows = json_object_get(block, "keys"), *row;
    cr_assert(block != NULL, "%s", heading);
    cr_expect(json_string_length(json_object_get(block, "doc")) > 0, "%s has no doc", heading);
    for (const struct setting *f = keys; f && f->key; f++) {
        size_t i = 0;
        while ((row = json_array_get(rows, i)) && strcmp(json_string_value(json_object_get(row, "key")), f->key)) i++;
        cr_expect(row && !strcmp(json_string_value(json_object_get(row, "doc")), f->doc), "%s.%s", heading, f->key);
        cr_expect(json_is_true(json_object_get(row, "needed")) == !f->preset, "%s.%s", heading, f->key);
    }
}

Test(schema, shows_every_key)
{
    struct cli cli;
    cli_open(&cli);
    json_t *all = cli_json(&cli, 0, "schema --json");
    const json_t *top = json_object_get(json_object_get(all, "spec"), "keys");
    for (size_t i = 0; spec_order[i]; i++)
        cr_expect(!strcmp(json_string_value(json_object_get(json_array_get(top, i), "key")), spec_order[i]));
    for (int i = 0; policy_table[i]; i++) check_block(all, "policy", policy_table[i]->name, policy_table[i]->keys);
    for (int i = 0; dataset_table[i]; i++) check_block(all, "data", dataset_table[i]->name, dataset_table[i]->keys);
    for (int i = 0; optimizer_table[i]; i++)
        check_block(all, "optimizer", optimizer_table[i]->name, optimizer_table[i]->keys);
    for (int i = 0; layer_table[i]; i++) {
        const struct layer *layer = layer_table[i];
        if (layer->in_backward) continue; /* no spec names it */
        if (layer->loss || model_lists(layer))
            check_block(all, layer->loss ? "loss" : "layer", layer->name, layer->keys);
    }
    for (const struct section *s = spec_sections; s->key; s++)
        if (!s->registry) check_block(all, s->key, "", s->keys);
    json_decref(all);
    cli_expect(&cli, 0, "schema conv");
    cli_says(&cli, "layer conv: ");
    cli_says(&cli, "  scratch_limit   128MiB          a size");
    cli_says(&cli, "  channels        (needed)        an integer of 1..16777216: output channels");
    cr_expect(!strstr(cli.out, "keep_saved") && !strstr(cli.out, "layer linear"), "%s", cli.out);
    cli_expect(&cli, 0, "schema keep_last");
    cli_says(&cli, "policy chen: ");
    cli_expect(&cli, 0, "schema policy.segments");
    cli_says(&cli, "policy segments: ");
    cr_expect(!strstr(cli.out, "layer embedding") && !strstr(cli.out, "keep_last"), "%s", cli.out);
    cli_expect(&cli, 0, "schema model.init.file");
    cli_says(&cli, "model.init: ");
    cr_expect(!strstr(cli.out, "model: "), "%s", cli.out);
    cli_expect(&cli, 0, "schema epochs");
    cli_says(&cli, "without the last batch");
    cli_expect(&cli, 0, "schema optimizer.name");
    cli_says(&cli, "optimizer adamw: ");
    cli_expect(&cli, 2, "schema swish");
    cr_expect(!strstr(cli.err, "did you mean"), "%s", cli.err);
    cli_expect(&cli, 2, "schema optmal");
    cli_complains(&cli, "(did you mean 'optimal'?)");
    cli_expect(&cli, 2, "schema policy.units");
    cli_close(&cli);
}

/* The first indented text of the file with that beginning. */
static char *shown_in(const char *path, const char *begin)
{
    char *text = calloc(1, 1 << 16), line[512];
    bool within = false;
    FILE *file = fopen(path, "r");
    cr_assert(text && file);
    while (fgets(line, sizeof line, file)) {
        if (!*text && !strncmp(line, begin, strlen(begin))) within = true;
        within = within && !strncmp(line, "    ", 4);
        if (within) strcat(text, line + 4);
    }
    fclose(file);
    return text;
}

Test(schema, specs_in_the_documents_can_be_planned)
{
    static const struct {
        const char *path, *begin, *plan;
    } shown[] = {
        {"README.md", "    rematch: 1", "plan shown.yaml"},
        {"experiments/README.md", "    rematch: 1   # a graph", "plan --graph shown.yaml policy.name=optimal"}};
    struct cli cli;
    cli_open(&cli);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char *text = shown_in(shown[i].path, shown[i].begin);
        cli_file(&cli, "shown.yaml", text);
        free(text);
        cli_expect(&cli, 0, shown[i].plan);
        cr_expect(*cli.err == '\0', "%s", cli.err);
    }
    cli_close(&cli);
}
