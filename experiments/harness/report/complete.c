#include "report/commands.h"

#include <ctype.h>
#include <string.h>

#include "report/report_tree.h"
#include "spec/full_keys.h"
#include "spec/spec_read.h"

const char complete_command[] = "child-complete"; /* the scripts call it */

/* Where the program prints nothing, both complete files. A name is never expanded by the shell. */
EMBED(complete_bash, "experiments/harness/report/complete.bash");
EMBED(complete_zsh, "experiments/harness/report/complete.zsh");

void complete_script(const char *shell, FILE *out) { fputs(strcmp(shell, "bash") ? complete_zsh : complete_bash, out); }

static void print_commands(const struct command *commands, int count, FILE *out)
{
    for (int i = 0; i < count; i++)
        fprintf(out, "%s\t%.*s\n", commands[i].name, (int)strcspn(commands[i].doc, "\n"), commands[i].doc);
}

/* ---- options ---- */

/* The values of an option, each behind prefix. */
static void print_values(int option, const char *prefix, FILE *out)
{
    const char *value = option < 0 ? NULL : option_rows[option].value;
    if (!value || isupper((unsigned char)*value)) return;
    for (const char *end; *value; value = *end ? end + 1 : end) {
        end = value + strcspn(value, "|");
        fprintf(out, "%s%.*s\t%s\n", prefix, (int)(end - value), value, option_rows[option].name);
    }
}

/* The incomplete word begins with a dash. */
static void print_options(const struct command *command, const char *word, FILE *out)
{
    const size_t name = strcspn(word, "=");
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%.*s=", (int)name, word);
    if (word[name]) print_values(arguments_option(command, word, name), prefix, out);
    for (int i = 0; i < OPTIONS && !word[name]; i++)
        if (arguments_take(command, i)) fprintf(out, "%s\t%s\n", option_rows[i].name, arguments_doc(command, i));
}

/* ---- keys of specs ---- */

/* The tree of the file with the overrides, of what precedes the incomplete word; NULL: it cannot be read. */
static const struct yaml_tree *read_tree(const struct arguments *a)
{
    struct yaml_reader reader = {.region = a->region, .errors = errors_create(a->region)};
    struct source *source;
    const char *path = a->operands ? a->operand[0] : "", **keys;
    if (!a->operands || (!a->given[OPTION_GRAPH] && arguments_spec(a, &path) != ST_OK)) return NULL;
    if (source_read(path, a->region, &source) != ST_OK) return NULL;
    struct yaml_tree *root = yaml_tree_parse(source, 0, a->region, reader.errors);
    if (!root || root->kind != YAML_MAP) return NULL;
    NEW(a->region, keys, (size_t)a->overrides);
    overrides_apply(&reader, root, a->overrides, a->override, keys);
    return root;
}

static const struct full_key *keys_of(const struct arguments *a)
{
    return full_keys(read_tree(a), a->given[OPTION_GRAPH], a->region);
}

/* Keys, each with an equals sign behind it. */
static void print_keys(const struct arguments *a, FILE *out)
{
    for (const struct full_key *key = keys_of(a); key->key; key++) fprintf(out, "%s=\t%s\n", key->key, key->doc);
}

/* The values of the key before the equals sign, with key and sign; nothing where any value is right. */
static void print_key_values(const struct arguments *a, const char *word, FILE *out)
{
    static const char *const truths[] = {"true", "false", NULL};
    const size_t length = strcspn(word, "=");
    const struct full_key *key = keys_of(a);
    while (key->key && (strlen(key->key) != length || strncmp(key->key, word, length) != 0)) key++;
    if (!key->key || !key->setting) return;
    const char *const *value = key->setting->type == SETTING_BOOL ? truths : key->setting->values;
    for (; value && *value; value++) fprintf(out, "%s=%s\t%s\n", key->key, *value, key->doc);
}

/* ---- the line ---- */

static void complete_operand(const struct command *command, int words, char **word, FILE *out)
{
    region_auto *region = region_create();
    struct arguments a = {.region = region};
    (void)arguments_read(command, words - 2, word + 1, &a); /* as far as it goes: the line is incomplete */
    if (command->overrides && strchr(word[words - 1], '=')) {
        print_key_values(&a, word[words - 1], out);
    } else if (a.operands) {
        if (command->overrides) print_keys(&a, out);
    } else if (strstr(command->usage, "SPEC") && !a.given[OPTION_GRAPH]) {
        for (const char **name = arguments_spec_names(region); *name; name++)
            fprintf(out, "%s\tan experiment\n", *name);
    }
}

void complete_words(const struct command *commands, int count, int words, char **word, FILE *out)
{
    const struct command *command = NULL;
    if (words < 2) {
        print_commands(commands, count, out);
        return;
    }
    const char *last = word[words - 1], *before = word[words - 2];
    for (int i = 0; i < count; i++)
        if (strcmp(word[0], commands[i].name) == 0) command = &commands[i];
    if (!command) return;
    const int option = arguments_option(command, before, strlen(before));
    if (option >= 0 && option_rows[option].value)
        print_values(option, "", out);
    else if (*last == '-')
        print_options(command, last, out);
    else if (strstr(command->usage, "COMMAND"))
        print_commands(commands, count, out);
    else
        complete_operand(command, words, word, out);
}
