#include "report/commands.h"

#include <ctype.h>
#include <string.h>

#include "report/report_tree.h"
#include "spec/full_keys.h"
#include "spec/graph_file.h"
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

/* The option that is written in the first length bytes of word; NULL: none. */
static const struct option_row *find_option(const char *word, size_t length)
{
    for (int i = 0; i < OPTIONS; i++)
        if (strlen(option_rows[i].name) == length && !strncmp(option_rows[i].name, word, length))
            return &option_rows[i];
    return NULL;
}

static bool takes_value(const char *word)
{
    const struct option_row *option = find_option(word, strlen(word));
    return option && option->value;
}

/* The values of an option, each behind prefix. */
static void print_values(const struct option_row *option, const char *prefix, FILE *out)
{
    const char *value = option ? option->value : NULL;
    if (!value || isupper((unsigned char)*value)) return;
    for (const char *end; *value; value = *end ? end + 1 : end) {
        end = value + strcspn(value, "|");
        fprintf(out, "%s%.*s\t%s\n", prefix, (int)(end - value), value, option->name);
    }
}

/* The incomplete word begins with a dash. */
static void print_options(const struct command *command, const char *word, FILE *out)
{
    const size_t name = strcspn(word, "=");
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%.*s=", (int)name, word);
    if (word[name]) print_values(find_option(word, name), prefix, out);
    for (int i = 0; i < OPTIONS && !word[name]; i++)
        if (arguments_take(command, i)) fprintf(out, "%s\t%s\n", option_rows[i].name, arguments_doc(command, i));
}

/* ---- keys of specs ---- */

/* What precedes the incomplete word: operands, and arguments key=value. */
struct line {
    struct arguments arguments;
    bool graph;
};

static struct line read_line(int words, char **word, struct region *region)
{
    struct line line = {.arguments.region = region};
    struct arguments *a = &line.arguments;
    NEW(region, a->operand, (size_t)words);
    NEW(region, a->override, (size_t)words);
    for (int i = 1; i < words - 1; i++) {
        line.graph |= !strcmp(word[i], option_rows[OPTION_GRAPH].name);
        if (*word[i] == '-')
            i += takes_value(word[i]);
        else if (strchr(word[i], '='))
            a->override[a->overrides++] = word[i];
        else
            a->operand[a->operands++] = word[i];
    }
    return line;
}

/* The tree of the line's file with the line's overrides; NULL: it cannot be read. */
static const struct yaml_tree *read_tree(const struct line *line)
{
    const struct arguments *a = &line->arguments;
    struct yaml_reader reader = {.region = a->region, .errors = errors_create(a->region)};
    struct source *source;
    const char *path = a->operands ? a->operand[0] : "", **keys;
    if (!a->operands || (!line->graph && arguments_spec(a, &path) != ST_OK)) return NULL;
    if (source_read(path, a->region, &source) != ST_OK) return NULL;
    struct yaml_tree *root = yaml_tree_parse(source, 0, a->region, reader.errors);
    if (!root || root->kind != YAML_MAP) return NULL;
    NEW(a->region, keys, (size_t)a->overrides);
    overrides_apply(&reader, root, a->overrides, a->override, keys);
    return root;
}

/* The keys of the line's file; those of a graph file are its own and its policy's. */
static const struct full_key *line_keys(const struct line *line)
{
    struct region *region = line->arguments.region;
    const struct full_key *of_spec = full_keys(read_tree(line), region);
    struct full_key *keys = NULL;
    int count = 0;
    if (!line->graph) return of_spec;
    for (const struct setting *f = graph_file_keys; f->key; f++) {
        region_grow(region, &keys, count, sizeof *keys);
        keys[count++] = (struct full_key){f->key, f->doc, f};
    }
    for (; of_spec->key; of_spec++) {
        if (strncmp(of_spec->key, "policy", strlen("policy")) != 0) continue;
        region_grow(region, &keys, count, sizeof *keys);
        keys[count++] = *of_spec;
    }
    region_grow(region, &keys, count, sizeof *keys);
    keys[count].key = NULL;
    return keys;
}

/* Keys, each with an equals sign behind it. */
static void print_keys(const struct line *line, FILE *out)
{
    for (const struct full_key *key = line_keys(line); key->key; key++) fprintf(out, "%s=\t%s\n", key->key, key->doc);
}

/* The values of the key before the equals sign, with key and sign; nothing where any value is right. */
static void print_key_values(const struct line *line, const char *word, FILE *out)
{
    static const char *const truths[] = {"true", "false", NULL};
    const size_t length = strcspn(word, "=");
    const struct full_key *key = line_keys(line);
    while (key->key && (strlen(key->key) != length || strncmp(key->key, word, length) != 0)) key++;
    if (!key->key || !key->setting) return;
    const char *const *value = key->setting->type == SETTING_BOOL ? truths : key->setting->values;
    for (; value && *value; value++) fprintf(out, "%s=%s\t%s\n", key->key, *value, key->doc);
}

/* ---- the line ---- */

static void complete_operand(const struct command *command, int words, char **word, FILE *out)
{
    region_auto *region = region_create();
    const struct line line = read_line(words, word, region);
    if (command->overrides && strchr(word[words - 1], '=')) {
        print_key_values(&line, word[words - 1], out);
    } else if (line.arguments.operands) {
        if (command->overrides) print_keys(&line, out);
    } else if (strstr(command->usage, "SPEC") && !line.graph) {
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
    if (takes_value(before))
        print_values(find_option(before, strlen(before)), "", out);
    else if (*last == '-')
        print_options(command, last, out);
    else if (strstr(command->usage, "COMMAND"))
        print_commands(commands, count, out);
    else
        complete_operand(command, words, word, out);
}
