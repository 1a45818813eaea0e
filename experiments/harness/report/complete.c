#include "report/complete.h"

#include <ctype.h>
#include <string.h>

#include "spec/schema.h"

const char complete_command[] = "child-complete";

/* Where the program prints nothing, both complete files. A name is never expanded by the shell. */
static const char bash[] = "# Completes rematch in bash: made by rematch help --completion bash\n"
                           "_rematch() {\n"
                           "    local line word=${COMP_WORDS[COMP_CWORD]}\n"
                           "    COMPREPLY=()\n"
                           "    while IFS= read -r line; do\n"
                           "        [[ $line == \"$word\"* ]] && COMPREPLY+=(\"${line%%%%$'\\t'*}\")\n"
                           "    done < <(\"${COMP_WORDS[0]}\" %s \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
                           "    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace\n"
                           "}\n"
                           "complete -o default -F _rematch rematch\n";
static const char zsh[] =
    "#compdef rematch\n"
    "# Completes rematch in zsh: made by rematch help --completion zsh\n"
    "local -a found keys\n"
    "local line word\n"
    "for line in ${(f)\"$(${words[1]} %s \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"}; do\n"
    "    word=${line%%%%$'\\t'*}\n"
    "    [[ $word == *= ]] && keys+=(\"$word:${line#*$'\\t'}\") || found+=(\"$word:${line#*$'\\t'}\")\n"
    "done\n"
    "_describe argument found || _describe key keys -S '' || _files\n";

void complete_script(const char *shell, FILE *out)
{
    fprintf(out, strcmp(shell, "bash") == 0 ? bash : zsh, complete_command);
}

static void print_commands(const struct command *commands, int count, FILE *out)
{
    for (int i = 0; i < count; i++)
        fprintf(out, "%s\t%.*s\n", commands[i].name, (int)strcspn(commands[i].doc, "\n"), commands[i].doc);
}

/* The values of the option before the incomplete word; false: it is none that takes one. */
static bool print_values(const char *option, FILE *out)
{
    for (int i = 0; i < OPTIONS; i++) {
        const char *value = option_rows[i].value;
        if (!value || strcmp(option, option_rows[i].name) != 0) continue;
        if (isupper((unsigned char)*value)) return true;
        for (const char *end; *value; value = *end ? end + 1 : end) {
            end = value + strcspn(value, "|");
            fprintf(out, "%.*s\t%s\n", (int)(end - value), value, option);
        }
        return true;
    }
    return false;
}

static void print_specs(FILE *out)
{
    struct region *region = region_create();
    for (const char **name = arguments_spec_names(region); *name; name++) fprintf(out, "%s\tan experiment\n", *name);
    region_destroy(region);
}

void complete_words(const struct command *commands, int count, int words, char **word, FILE *out)
{
    const struct command *command = NULL;
    if (words < 2) {
        print_commands(commands, count, out);
        return;
    }
    for (int i = 0; i < count; i++)
        if (strcmp(word[0], commands[i].name) == 0) command = &commands[i];
    if (!command || print_values(word[words - 2], out)) return;
    int operands = 0;
    for (int i = 1; i < words - 1; i++) operands += *word[i] != '-';
    if (*word[words - 1] == '-') {
        for (int i = 0; i < OPTIONS; i++)
            if (arguments_take(command, i)) fprintf(out, "%s\t%s\n", option_rows[i].name, option_rows[i].doc);
    } else if (strstr(command->usage, "COMMAND")) {
        print_commands(commands, count, out);
    } else if (operands) {
        if (command->overrides) schema_keys(out);
    } else if (strstr(command->usage, "SPEC")) {
        print_specs(out);
    }
}
