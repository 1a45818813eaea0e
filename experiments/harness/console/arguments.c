#include "console/arguments.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

_Static_assert(OPTIONS <= 32, "struct command has a bit for each");

const struct option_row option_rows[OPTIONS] = {
    [OPTION_HELP] = {"--help", NULL, "this text; -h too"},
    [OPTION_JSON] = {"--json", NULL, "one JSON value on stdout, for programs"},
    [OPTION_OPS] = {"--ops", NULL, "every op with the bytes alive while it runs"},
    [OPTION_ALONE] = {"--alone", NULL, "without the plans of other policies, which can take longer than this one"},
    [OPTION_QUIET] = {"--quiet", NULL, "print the verdict and errors only"},
    [OPTION_VERBOSE] = {"--verbose", NULL, "also the op and the largest tensors at each peak"},
    [OPTION_PROVENANCE] = {"--provenance", NULL, "also source, build, libraries, machine and data"},
    [OPTION_PLAN_ONLY] = {"--plan-only", NULL, "check the plan alone, without running it again"},
    [OPTION_ONLY] = {"--only", "baseline|variant", "run this side alone, without a comparison"},
    [OPTION_COSTS] = {"--costs", NULL, "time every node's passes and write a file for costs: {name: measured}"},
    [OPTION_OUT] = {"--out", "FILE",
                    "the file to write: times, a bundle, a page, or of plan: the plan, for the key plan:; -o too"},
    [OPTION_FORCE] = {"--force", NULL, "of a sweep: run finished points again"},
    [OPTION_JOBS] = {"--jobs", "N",
                     "of a sweep: run up to N points at a time, as many as their plans leave memory for"},
    [OPTION_SHARD] = {"--shard", "I/N", "of a sweep: points I, I + N, I + 2 N and so on; I from 1"},
    [OPTION_POINT] = {"--point", "K", "of a sweep: point K alone, from 1"},
    [OPTION_PRINT_COMMANDS] = {"--print-commands", NULL, "of a sweep: print the command that runs each point"},
    [OPTION_GRAPH] = {"--graph", NULL, "the file is a graph of times and bytes, which is planned only"},
    [OPTION_PARETO] = {"--pareto", NULL,
                       "peak and time of every policy with every setting, and the distance from the bound"},
    [OPTION_CSV] = {"--csv", NULL, "as comma-separated values"},
    [OPTION_CSV_TABLE] = {"--csv", "steps|ops|tensors", "a table of the file as comma-separated values"},
    [OPTION_MAX_BATCH] = {"--max-batch", NULL, "the largest batch within --memory, by policy"},
    [OPTION_MIN_MEMORY] = {"--min-memory", NULL, "the least memory within --slowdown, by policy"},
    [OPTION_EXPLAIN] = {"--explain", NULL, "the tensors at the peak, and the effect of each policy"},
    [OPTION_MEMORY] = {"--memory", "BYTES", "limit of static bytes and arena: 16GB, 900MiB"},
    [OPTION_SLOWDOWN] = {"--slowdown", "FACTOR", "limit of time; 1.1: 10 % slower than every pass once"},
    [OPTION_COMPLETION] = {"--completion", "bash|zsh", "print a script that completes words in this shell"},
    [OPTION_FOLLOW] = {"--follow", NULL, "print the steps of a run that goes on elsewhere, until it ends"},
    [OPTION_MAN] = {"--man", NULL, "print the manual page: rematch help --man | man -l -"},
    [OPTION_RESUME] = {"--resume", "auto|must|never",
                       "go on from the state file of a run that was stopped: if there is one (auto), or else refuse "
                       "(must); never: run from the beginning"},
    [OPTION_FIGURES] = {"--figures", "FOLDER", "draw figures there, as SVG and PDF, by gnuplot"},
    [OPTION_TRACE] = {"--trace", "FILE", "write one step of each run as a trace, for ui.perfetto.dev"},
};

bool arguments_take(const struct command *command, int option)
{
    return option == OPTION_HELP || command->options & 1u << option;
}

static int find_option(const struct command *command, const char *word, size_t length)
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

static enum status unknown_option(const struct command *command, const char *word, size_t length)
{
    const char *known[OPTIONS + 1] = {NULL};
    char name[64], suggestion[TEXT_SUGGESTION];
    int count = 0;
    for (int i = 0; i < OPTIONS; i++)
        if (arguments_take(command, i)) known[count++] = option_rows[i].name;
    snprintf(name, sizeof name, "%.*s", text_shown(word, (int)length < 60 ? (int)length : 60), word);
    if (!strcmp(name, "--chain") && command->options & 1u << OPTION_GRAPH) /* of an earlier version */
        return fail(ST_SPEC, "%s: unknown option --chain; --graph reads chains, too", command->name);
    return fail(ST_SPEC, "%s: unknown option %s%s; see rematch %s --help", command->name, word,
                text_suggestion(name, known, suggestion), command->name);
}

/* Reads the option at words[*at], with its value from the same word or the next. */
static enum status read_option(const struct command *command, int count, char **words, int *at,
                               struct arguments *arguments)
{
    const char *word = words[*at], *equals = strchr(word, '='), *value = equals ? equals + 1 : NULL;
    const size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const int option = find_option(command, word, length);
    if (option < 0) return unknown_option(command, word, length);
    if (!option_rows[option].value && value)
        return fail(ST_SPEC, "%s: %s takes no value", command->name, option_rows[option].name);
    if (option_rows[option].value && !value && *at + 1 < count) value = words[++*at];
    if (option_rows[option].value && (!value || !word_among(option_rows[option].value, value)))
        return fail(ST_SPEC, "%s: %s %s; expected %s", command->name, option_rows[option].name,
                    value && *value ? value : "has no value", option_rows[option].value);
    arguments->given[option] = true;
    arguments->value[option] = value;
    return ST_OK;
}

/* A word with an equals sign and no slash before it: a path with an equals sign can be given as ./path. */
static bool is_override(const char *word)
{
    size_t key = strcspn(word, "=");
    return word[key] == '=' && memchr(word, '/', key) == NULL;
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
        return fail(ST_SPEC, "%s: unexpected '%s'; usage: rematch %s", command->name, arguments->operand[command->most],
                    command->usage);
    if (arguments->operands < command->least)
        return fail(ST_SPEC, "%s: too few arguments; usage: rematch %s", command->name, command->usage);
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
        fprintf(out, "  %-26s %s\n", name, option_rows[i].doc);
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

const char *arguments_experiments(struct region *region)
{
    static const char here[] = "experiments";
    char self[4096];
    struct stat about;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (stat(here, &about) == 0 || length <= 0) return here;
    self[length] = '\0';
    for (int i = 0; i < 2; i++) *strrchr(self, '/') = '\0'; /* PREFIX/bin/rematch */
    const char *installed = region_text(region, "%s/share/rematch/experiments", self);
    return stat(installed, &about) == 0 ? installed : here;
}

const char **arguments_spec_names(struct region *region)
{
    struct dirent **entry = NULL;
    const char **names;
    const int count = scandir(arguments_experiments(region), &entry, arguments_is_spec, alphasort);
    NEW(region, names, (size_t)(count > 0 ? count : 0) + 1);
    for (int i = 0; i < count; i++) {
        names[i] = region_text(region, "%.*s", (int)(strlen(entry[i]->d_name) - strlen(".yaml")), entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return names;
}

enum status arguments_spec(const struct arguments *arguments, const char **path)
{
    struct region *region = arguments->region;
    const char *word = arguments->operand[0];
    *path = word;
    if (is_file(word) || strchr(word, '/')) return ST_OK;
    *path =
        region_text(region, "%s/%s%s", arguments_experiments(region), word, text_ends(word, ".yaml") ? "" : ".yaml");
    if (is_file(*path)) return ST_OK;
    char suggestion[TEXT_SUGGESTION];
    return fail(ST_SPEC, "no spec '%s': neither %s nor %s is a file; rematch list shows the experiments%s", word, word,
                *path, text_suggestion(word, arguments_spec_names(region), suggestion));
}
