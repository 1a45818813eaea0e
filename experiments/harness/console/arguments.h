/* The command line of one sub-command: options, operands, key=value overrides. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/region.h"

enum option {
#define OPTION(id, name, value, doc) OPTION_##id,
#include "console/options.def"
#undef OPTION
    OPTIONS
};

/* An option's in struct command. */
#define BIT(option) (1u << OPTION_##option)

/* value: the words that it takes, separated by |; in capitals: any; NULL: it takes no value. */
struct option_row {
    const char *name, *value, *doc;
};
extern const struct option_row option_rows[OPTIONS];

struct arguments {
    struct region *region;
    bool given[OPTIONS];
    const char *value[OPTIONS]; /* of an option that takes one */
    int operands, overrides;
    const char **operand, **override;
    const char *const *keys; /* that overrides can set, in full, NULL-terminated, for suggestions; NULL: none */
    int code;                /* the exit code of a command that did not fail */
};

/* Whether a folder's entry is a spec, for scandir(). */
int arguments_is_spec(const struct dirent *entry);

/* The wanted entries of a folder by name, ended by NULL; NULL, and errno: it cannot be read. */
const char **arguments_entries(const char *folder, int (*wanted)(const struct dirent *), struct region *region);

/* The folder of the experiments that are known by name: experiments/ here, else that of an installed program. */
const char *arguments_experiments(struct region *region);

/* The names of the specs there, NULL-terminated. */
const char **arguments_spec_names(struct region *region);

struct command {
    const char *name, *usage, *doc;
    unsigned options;                                /* bit 1 << enum option for each besides --help */
    int least, most;                                 /* operands */
    bool overrides;                                  /* takes key=value */
    enum status (*run)(struct arguments *arguments); /* returns a failure, which is then reported */
    const char *out;                                 /* what --out does; NULL: it takes none */
};

/* Whether the command takes the option. */
bool arguments_take(const struct command *command, int option);

/* The option of the command, enum option, that is written in the first length bytes of word; -1: none. */
int arguments_option(const struct command *command, const char *word, size_t length);

/* What an option of a command does. */
const char *arguments_doc(const struct command *command, int option);

/* ST_SPEC, with the message set: an unknown option or a wrong number of operands. */
enum status arguments_read(const struct command *command, int count, char **words, struct arguments *arguments);

/* Reads operands that can be read only once now; the words are changed, too, because the program may be executed again
 * with them. */
enum status arguments_hold(int count, char **words, struct arguments *arguments);

/* What key=value does. */
extern const char arguments_override_doc[];

/* Prints usage, description and one line per option. */
void arguments_help(const struct command *command, FILE *out);

/* ST_SPEC: an operand of a command that reads files of runs is the name of an experiment, and no file. */
enum status arguments_results(const struct command *command, const struct arguments *arguments);

/* The path of a spec given as a path, or as the bare name of a known experiment. ST_SPEC: neither is there. */
enum status arguments_spec(const struct arguments *arguments, const char **path);
