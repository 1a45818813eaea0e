/* The program's commands and options as text for people, from the tables that parse them. */
#pragma once

#include "console/arguments.h"

/* Each command with the first line of its description; the same with exit codes and environment. */
void manual_usage(const struct command *commands, int count, FILE *out);
void manual_help(const struct command *commands, int count, FILE *out);

/* All of it as a page in the macros of man(7). */
void manual_page(const struct command *commands, int count, FILE *out);
