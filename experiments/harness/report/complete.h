/* Completion of a command line in a shell: a script of the shell asks the program itself, whose tables parse the line.
 */
#pragma once

#include "console/arguments.h"

/* Prints the script for "bash" or "zsh". */
void complete_script(const char *shell, FILE *out);

/* The internal sub-command that it calls with the words after the program, the last of them incomplete: prints what
 * that may be, one a line, each with a tab and its meaning; nothing where a file is expected. */
extern const char complete_command[];
void complete_words(const struct command *commands, int count, int words, char **word, FILE *out);
