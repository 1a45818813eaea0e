/* The tables as one JSON object, {"policy segments": {doc, keys: [{key, expected, needed, default, doc}]}}; the text is
 * printed from it. */
#include "report/commands.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/json_tree.h"
#include "base/text.h"
#include "console/terminal.h"
#include "spec/model.h"
#include "spec/spec_settings.h"

enum { COLUMNS = 118, KEY_WIDTH = 15, DOC_COLUMN = 34 };

struct schema {
    struct region *region;
    json_t *all;
};

/* A new block; returns its empty list of rows. */
static json_t *block(struct schema *s, const char *kind, const char *name, const char *doc)
{
    json_t *rows = json_array();
    PUT(s->all, region_text(s->region, "%s%s%s", kind, name ? " " : "", name ? name : ""),
        OBJECT(KEY("doc", doc), KEY("keys", rows)));
    return rows;
}

/* preset NULL: no default. */
static void add(json_t *rows, const char *key, const char *expected, bool needed, const char *preset, const char *doc)
{
    ADD(rows, OBJECT(KEY("key", key), KEY("expected", expected), KEY("needed", json_boolean(needed)),
                     KEY("default", preset), KEY("doc", doc)));
}

static void add_setting(struct schema *s, json_t *rows, const struct setting *f)
{
    const char *preset = f->preset && *f->preset ? f->preset : NULL;
    if (preset && f->type == SETTING_INT && strtoll(preset, NULL, 10) < (long long)f->min) preset = NULL; /* unset */
    add(rows, f->key, setting_expected(f, s->region), !f->preset, preset, f->doc);
}

static json_t *add_keys(struct schema *s, json_t *rows, const struct setting *keys)
{
    for (const struct setting *f = keys; f && f->key; f++) add_setting(s, rows, f);
    return rows;
}

/* ---- the top level ---- */

static void add_top(struct schema *s, json_t *rows, const char *key)
{
    const struct setting *setting = setting_find(spec_keys, key);
    const struct section *section = spec_section(key);
    const struct registry *registry = section ? section->registry : NULL;
    if (setting) add_setting(s, rows, setting);
    if (registry) {
        const struct setting names = registry_setting(registry, s->region);
        add(rows, key, setting_expected(&names, s->region), section->needed, registry->preset, section->doc);
    } else if (section) {
        add(rows, key, "a map of keys", section->needed, NULL, section->doc);
    }
    for (const struct other_key *other = spec_other_keys; other->key; other++)
        if (!strcmp(key, other->key)) add(rows, key, other->expected, other->needed, NULL, other->doc);
}

static void add_section(struct schema *s, const struct section *section)
{
    const struct registry *registry = section->registry;
    if (!registry) add_keys(s, block(s, section->key, NULL, section->doc), section->keys);
    for (int i = 0; registry && registry->choice(i).name; i++) {
        const struct choice choice = registry->choice(i);
        add_keys(s, block(s, section->key, choice.name, choice.doc), choice.keys);
    }
}

/* ---- the model ---- */

static void add_layers(struct schema *s)
{
    json_t *model = json_object_get(json_object_get(s->all, "model"), "keys");
    add(model, "layers", "a list of layers", false, NULL, "or the list itself");
    add(model, "parameters", "a map of names to values", false, NULL, "what $NAME stands for in the layers");
    add(model, "init", "a map of keys", false, NULL, "initial values; a bare word is its name");
    add_keys(s, block(s, "model.init", NULL, "where training starts from"), init_keys);
    for (int f = FORM_GROUP; f < FORMS; f++) {
        json_t *rows = add_keys(s, block(s, "model", model_forms[f].name, model_forms[f].doc), model_forms[f].keys);
        for (const struct form_list *list = model_forms[f].lists; list->key; list++)
            add(rows, list->key, "a list of layers", list->needed, NULL, list->doc);
        if (model_forms[f].joins) add_keys(s, rows, layer_find(model_forms[f].joins)->keys);
    }
    for (int i = 0; layer_table[i]; i++) {
        if (!model_lists(layer_table[i]) && !(model_joins(layer_table[i]) && layer_table[i]->keys)) continue;
        json_t *rows = add_keys(s, block(s, "layer", layer_table[i]->name, layer_table[i]->doc), layer_table[i]->keys);
        add_keys(s, rows, model_keys(layer_table[i]));
        if (model_adapts(layer_table[i]))
            add(rows, "lora", "a map of keys", false, NULL, "two products of a low rank, trained in place of this one");
    }
    add_keys(s, block(s, "layer.lora", NULL, "products of a low rank beside a frozen linear"), lora_keys);
}

/* ---- printing ---- */

/* Whether the length bytes of name are a block's heading or one of its two words. */
static bool heads(const char *heading, const char *name, size_t length)
{
    const char *second = strchr(heading, ' ');
    if (strncmp(heading, name, length) == 0 && (heading[length] == '\0' || heading[length] == ' ')) return true;
    return second && strncmp(second + 1, name, length) == 0 && second[1 + length] == '\0';
}

/* Keeps what is called name: blocks by their heading or a word of it, else rows by their key; for section.key, as on
 * the command line, rows of that section alone. */
static void narrow(json_t *all, const char *name)
{
    const char *heading, *dot = strrchr(name, '.'), *key = dot ? dot + 1 : name;
    json_t *one;
    void *next;
    json_object_foreach_safe (all, next, heading, one) {
        json_t *rows = json_object_get(one, "keys");
        const bool within = !dot || heads(heading, name, (size_t)(dot - name));
        if (heads(heading, name, strlen(name)) || (dot && within && !strcmp(key, "name"))) continue;
        for (size_t i = json_array_size(rows); i-- > 0;)
            if (!within || strcmp(json_string_at(json_array_get(rows, i), "key"), key)) json_array_remove(rows, i);
        if (!json_array_size(rows)) json_object_del(all, heading);
    }
}

/* The suggestion for name among the words of all headings and all keys; returns whether there is one. */
static bool suggest(struct schema *s, const char *name, char suggestion[TEXT_SUGGESTION])
{
    const char *heading, **words = NULL;
    const json_t *one;
    int count = 0;
    json_object_foreach (s->all, heading, one) {
        const json_t *rows = json_object_get(one, "keys");
        const char *second = strchr(heading, ' ');
        for (size_t i = 0; i <= json_array_size(rows); i++) {
            region_grow(s->region, &words, count, sizeof *words);
            words[count++] = i ? json_string_at(json_array_get(rows, i - 1), "key") : second ? second + 1 : heading;
        }
    }
    region_grow(s->region, &words, count, sizeof *words);
    words[count] = NULL;
    return *text_suggestion(name, words, suggestion) != '\0';
}

static void print_row(const json_t *row, FILE *out)
{
    const char *preset = json_string_at(row, "default");
    const char *value = json_is_true(json_object_get(row, "needed")) ? "(needed)" : preset ? preset : "-";
    int column = fprintf(out, "  %-*s %s ", KEY_WIDTH, json_string_at(row, "key"), value);
    fprintf(out, "%*s%s: %s\n", column < DOC_COLUMN ? DOC_COLUMN - column : 0, "", json_string_at(row, "expected"),
            json_string_at(row, "doc"));
}

/* In lines of the terminal's width, elsewhere of COLUMNS. */
static void print_text(json_t *all, FILE *to)
{
    FILE *out = terminal_width(to) ? to : terminal_lines(to, COLUMNS);
    const char *heading, *between = "";
    json_t *one;
    json_object_foreach (all, heading, one) {
        fprintf(out, "%s%s: %s\n", between, heading, json_string_at(one, "doc"));
        EACH (json_object_get(one, "keys"), i, row) print_row(row, out);
        between = "\n";
    }
    if (out != to) fclose(out);
}

static struct schema all_keys(struct region *region)
{
    struct schema s = {region, json_object()};
    json_t *top = block(&s, "spec", NULL, "a file of the keys below; a bare word in place of a map is its name");
    for (const char *const *key = spec_order; *key; key++) add_top(&s, top, *key);
    for (const struct section *section = spec_sections; section->key; section++) add_section(&s, section);
    add_keys(&s, block(&s, "expect", NULL, "one figure of the list"), expectation_keys);
    add_keys(&s, block(&s, "published", NULL, "one point of the list"), published_keys);
    return s;
}

enum status schema_print(struct arguments *arguments)
{
    const char *name = arguments->operands ? arguments->operand[0] : NULL;
    struct schema s = all_keys(arguments->region);
    json_auto_t *all = s.all;
    add_layers(&s);
    const char *dot = name ? strrchr(name, '.') : NULL;
    char suggestion[TEXT_SUGGESTION] = "";
    if (name && !suggest(&s, name, suggestion) && dot) suggest(&s, dot + 1, suggestion);
    if (name) narrow(all, name);
    if (!json_object_size(all))
        return fail(ST_SPEC, "schema: nothing is called '%s'%s; rematch schema shows all", name, suggestion);
    if (arguments->given[OPTION_JSON])
        json_answer(json_incref(all), "schema", stdout);
    else
        print_text(all, stdout);
    return ST_OK;
}
