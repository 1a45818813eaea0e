#include "report/commands.h"

#include <ctype.h>
#include <string.h>

#include "report/report_tree.h"
#include "spec/schema.h"

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
            if (arguments_take(command, i)) fprintf(out, "%s\t%s\n", option_rows[i].name, arguments_doc(command, i));
    } else if (strstr(command->usage, "COMMAND")) {
        print_commands(commands, count, out);
    } else if (operands) {
        if (command->overrides) schema_keys(out);
    } else if (strstr(command->usage, "SPEC")) {
        region_auto *region = region_create();
        for (const char **name = arguments_spec_names(region); *name; name++)
            fprintf(out, "%s\tan experiment\n", *name);
    }
}
