#include "console/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "console/standard_input.h"
#include "console/utf8.h"

_Static_assert(OPTIONS <= 32, "struct command has a bit for each");

const struct option_row option_rows[OPTIONS] = {
#define OPTION(id, name, value, doc) {name, value, doc},
#include "console/options.def"
#undef OPTION
};

bool arguments_take(const struct command *command, int option)
{
    return option == OPTION_HELP || command->options & 1u << option;
}

const char *arguments_doc(const struct command *command, int option)
{
    return option == OPTION_OUT ? command->out : option_rows[option].doc;
}

int arguments_option(const struct command *command, const char *word, size_t length)
{
    if (length == 2 && strncmp(word, "-h", 2) == 0) return OPTION_HELP;
    if (length == 2 && strncmp(word, "-o", 2) == 0 && arguments_take(command, OPTION_OUT)) return OPTION_OUT;
    for (int i = 0; i < OPTIONS; i++)
        if (arguments_take(command, i) && strlen(option_rows[i].name) == length &&
            strncmp(option_rows[i].name, word, length) == 0)
            return i;
    return -1;
}

static bool word_among(const char *words, const char *word)
{
    size_t length = strlen(word);
    if (isupper((unsigned char)*words)) return length > 0;
    for (const char *w = words; w; w = (w = strchr(w, '|')) ? w + 1 : NULL)
        if (strncmp(w, word, length) == 0 && (w[length] == '|' || w[length] == '\0')) return length > 0;
    return false;
}

static bool is_path(int option)
{
    const char *value = option_rows[option].value;
    return value && (strcmp(value, "FILE") == 0 || strcmp(value, "FOLDER") == 0);
}

/* The argument that sets a key like the option's name, " (did you mean 'batch=8'?)"; "": there is none. */
static const char *guess_override(const struct arguments *arguments, const char *word, const char *next)
{
    const size_t dashes = strspn(word, "-");
    char *name = region_text(arguments->region, "%.*s", (int)strcspn(word + dashes, "="), word + dashes);
    const char *equals = strchr(word, '='), *value = equals ? equals + 1 : next && *next != '-' ? next : "VALUE";
    for (char *c = name; *c; c++)
        if (*c == '-') *c = '_';
    const char *key = arguments->keys ? text_nearest(name, arguments->keys) : NULL;
    if (!key) return "";
    return region_text(arguments->region, " (did you mean '%s=%.*s'?)", key, text_shown(value, 60), value);
}

/* next: the word behind it; NULL: none. */
static enum status unknown_option(const struct command *command, const struct arguments *arguments, const char *word,
                                  size_t length, const char *next)
{
    const char *known[OPTIONS + 1] = {NULL};
    char name[64], suggestion[TEXT_SUGGESTION];
    int count = 0;
    for (int i = 0; i < OPTIONS; i++)
        if (arguments_take(command, i)) known[count++] = option_rows[i].name;
    snprintf(name, sizeof name, "%.*s", text_shown(word, (int)length < 60 ? (int)length : 60), word);
    text_suggestion(name, known, suggestion);
    return fail(ST_SPEC, "%s: unknown option %s%s; see rematch %s --help", command->name, word,
                *suggestion ? suggestion : guess_override(arguments, word, next), command->name);
}

/* Reads the option at words[*at], with its value from the same word or the next. */
static enum status read_option(const struct command *command, int count, char **words, int *at,
                               struct arguments *arguments)
{
    const char *word = words[*at], *equals = strchr(word, '='), *value = equals ? equals + 1 : NULL;
    const size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const int option = arguments_option(command, word, length);
    if (option < 0) return unknown_option(command, arguments, word, length, *at + 1 < count ? words[*at + 1] : NULL);
    if (!option_rows[option].value && value)
        return fail(ST_SPEC, "%s: %s takes no value", command->name, option_rows[option].name);
    if (option_rows[option].value && !value && *at + 1 < count) value = words[++*at];
    if (option_rows[option].value && (!value || !word_among(option_rows[option].value, value)))
        return fail(ST_SPEC, "%s: %s %s; expected %s", command->name, option_rows[option].name,
                    value && *value ? value : "has no value", option_rows[option].value);
    arguments->given[option] = true;
    arguments->value[option] = value;
    return is_path(option) ? file_expand(value, arguments->region, &arguments->value[option]) : ST_OK;
}

/* A word with an equals sign and no slash before it: a path with an equals sign can be given as ./path. */
static bool is_override(const char *word)
{
    size_t key = strcspn(word, "=");
    return word[key] == '=' && memchr(word, '/', key) == NULL;
}

/* Whether word is a key of a spec, or one with a colon. */
static bool is_key(const struct arguments *arguments, const char *word)
{
    const size_t length = strcspn(word, ":");
    for (const char *const *key = arguments->keys; key && *key; key++)
        if (strlen(*key) == length && !strncmp(*key, word, length)) return !word[length] || !word[length + 1];
    return false;
}

enum status arguments_read(const struct command *command, int count, char **words, struct arguments *arguments)
{
    bool only_operands = false;
    NEW(arguments->region, arguments->operand, (size_t)count);
    NEW(arguments->region, arguments->override, (size_t)count);
    for (int i = 0; i < count; i++) {
        if (!only_operands && strcmp(words[i], "--") == 0)
            only_operands = true;
        else if (!only_operands && words[i][0] == '-' && words[i][1])
            TRY(read_option(command, count, words, &i, arguments));
        else if (command->overrides && is_override(words[i]))
            arguments->override[arguments->overrides++] = words[i];
        else
            arguments->operand[arguments->operands++] = words[i];
    }
    if (arguments->given[OPTION_HELP]) return ST_OK;
    if (arguments->operands > command->most)
        return fail(
            ST_SPEC, "%s: unexpected '%s'%s; usage: rematch %s", command->name, arguments->operand[command->most],
            is_key(arguments, arguments->operand[command->most]) ? " (a key is set as in batch=8, without blanks)" : "",
            command->usage);
    if (arguments->operands < command->least)
        return fail(ST_SPEC, "%s: too few arguments; usage: rematch %s", command->name, command->usage);
    return ST_OK;
}

enum status arguments_hold(int count, char **words, struct arguments *arguments)
{
    for (int k = 0; k < arguments->operands; k++)
        for (int i = 0; i < count; i++)
            if (words[i] == arguments->operand[k]) {
                TRY(standard_input_hold(&words[i]));
                arguments->operand[k] = words[i];
            }
    return ST_OK;
}

const char arguments_override_doc[] =
    "sets a key of the spec: batch=8 policy.unit=stage; rematch schema lists the keys";

void arguments_help(const struct command *command, FILE *out)
{
    fprintf(out, "usage: rematch %s\n%s\n\n", command->usage, command->doc);
    for (int i = 0; i < OPTIONS; i++) {
        char name[64];
        if (!arguments_take(command, i)) continue;
        snprintf(name, sizeof name, "%s%s%s", option_rows[i].name, option_rows[i].value ? " " : "",
                 option_rows[i].value ? option_rows[i].value : "");
        fprintf(out, "  %-26s %s\n", name, arguments_doc(command, i));
    }
    if (command->overrides) fprintf(out, "  %-26s %s\n", "key=value", arguments_override_doc);
}

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

int arguments_is_spec(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && text_ends(entry->d_name, ".yaml");
}

const char **arguments_entries(const char *folder, int (*wanted)(const struct dirent *), struct region *region)
{
    struct dirent **entry;
    const char **name;
    errno = EILSEQ;
    const int count = utf8_is_plain(folder) ? scandir(folder, &entry, wanted, alphasort) : -1;
    if (count < 0) return NULL;
    NEW(region, name, (size_t)count + 1);
    for (int i = 0; i < count; i++) {
        name[i] = region_text(region, "%s", entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return name;
}

const char *arguments_experiments(struct region *region)
{
    static const char here[] = "experiments";
    char self[PATH_MAX];
    struct stat about;
    if (stat(here, &about) == 0 || !realpath("/proc/self/exe", self)) return here;
    for (int i = 0; i < 2; i++) *strrchr(self, '/') = '\0'; /* PREFIX/bin/rematch */
    const char *installed = region_text(region, "%s/share/rematch/experiments", self);
    return stat(installed, &about) == 0 ? installed : here;
}

const char **arguments_spec_names(struct region *region)
{
    const char **names = arguments_entries(arguments_experiments(region), arguments_is_spec, region);
    if (!names) NEW(region, names, 1);
    for (const char **name = names; *name; name++)
        *name = region_text(region, "%.*s", (int)(strlen(*name) - strlen(".yaml")), *name);
    return names;
}

/* What a name that no spec has may mean: the names that begin with it, or one that is like it. */
static const char *guess_spec(const char *word, struct region *region)
{
    enum { SHOWN = 8 };
    const char **names = arguments_spec_names(region), *text = "";
    char suggestion[TEXT_SUGGESTION];
    int count = 0;
    for (const char **name = names; *name && *word; name++) {
        if (strncasecmp(*name, word, strlen(word)) != 0) continue;
        if (count++ < SHOWN) text = region_text(region, "%s%s%s", text, *text ? ", " : "", *name);
    }
    if (count > SHOWN) text = region_text(region, "%s and %d more", text, count - SHOWN);
    if (count) return region_text(region, " (so begin%s %s)", count == 1 ? "s" : "", text);
    return region_text(region, "%s", text_suggestion(word, names, suggestion));
}

enum status arguments_spec(const struct arguments *arguments, const char **path)
{
    struct region *region = arguments->region;
    const char *word = arguments->operand[0];
    const bool file = text_ends(word, ".yaml");
    *path = word;
    if (is_file(word) || strchr(word, '/')) return ST_OK;
    *path = region_text(region, "%s/%s%s", arguments_experiments(region), word, file ? "" : ".yaml");
    if (is_file(*path)) return ST_OK;
    const int length = (int)strlen(word) - (file ? (int)strlen(".yaml") : 0);
    return fail(ST_SPEC, "no spec '%s'%s: neither %s nor %s is a file; rematch list shows the experiments", word,
                guess_spec(region_text(region, "%.*s", length, word), region), word, *path);
}

/* Whether the command's operands are files that runs or plans wrote. */
static bool takes_results(const struct command *command)
{
    static const char *const words[] = {" FILE", " RUN", " A B", " [FOLDER"};
    bool takes = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) takes |= strstr(command->usage, words[i]) != NULL;
    return takes && !command->overrides;
}

enum status arguments_results(const struct command *command, const struct arguments *arguments)
{
    for (int i = 0; takes_results(command) && i < arguments->operands; i++) {
        const char *word = arguments->operand[i], **name = arguments_spec_names(arguments->region);
        struct stat about;
        while (*name && strcmp(*name, word) != 0) name++;
        if (!*name || stat(word, &about) == 0) continue;
        const char *folder = region_text(arguments->region, "results/%s", word);
        if (stat(folder, &about) != 0)
            return fail(ST_SPEC, "%s: '%s' is an experiment, no file; rematch run %s writes its files to %s/",
                        command->name, word, word, folder);
        return fail(ST_SPEC, "%s: '%s' is an experiment, no file; rematch list %s shows its files", command->name, word,
                    folder);
    }
    return ST_OK;
}
