/* The version: one number in the Makefile, which the program prints and the documents name. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"

static const struct {
    const char *file, *line; /* %s: the version; a basic regular expression that one line must match as a whole */
} documents[] = {
    {"CITATION.cff", "version: \"%s\""},
    {"CHANGELOG.md", "## %s ([0-9-]*)"},
    {"README.md", "Version %s (.*"},
};

Test(version, of_the_program_and_of_the_documents_agree)
{
    struct cli cli;
    char version[16], commit[32], command[512];
    cli_open(&cli);
    cli_expect(&cli, 0, "--version");
    cr_assert(sscanf(cli.out, "rematch %15[^,], commit %31[^,], ", version, commit) == 2, "%s", cli.out);
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        char line[64];
        snprintf(line, sizeof line, documents[i].line, version);
        snprintf(command, sizeof command, "[ $(grep -cx '%s' %s) = 1 ]", line, documents[i].file);
        cr_expect(system(command) == 0, "%s has no line %s", documents[i].file, line);
    }
    /* The newest version stands first, with the date of the citation. */
    cr_expect(system("[ \"$(sed -n 's/^date-released: \"\\(.*\\)\"/(\\1)/p' CITATION.cff)\" = "
                     "\"$(sed -n 's/^## [0-9.]* //p' CHANGELOG.md | head -n 1)\" ]") == 0);
    snprintf(command, sizeof command, "[ \"$(sed -n 's/^## //p' CHANGELOG.md | head -n 1 | cut -d' ' -f1)\" = %s ]",
             version);
    cr_expect(system(command) == 0);
    cli_close(&cli);
}

/* Published tables name the commit, as the program prints it. */
Test(version, the_commit_of_published_tables_is_the_programs)
{
    struct cli cli;
    char commit[64], line[128];
    cli_open(&cli);
    cli_expect(&cli, 0, "--version");
    cr_assert(sscanf(cli.out, "rematch %*[^,], commit %63[^,], ", commit) == 1, "%s", cli.out);
    FILE *shell = popen("cd experiments/plans && /usr/bin/python3 -B -c 'import chain; print(chain.program())'", "r");
    cr_assert(shell && fgets(line, sizeof line, shell) && pclose(shell) == 0);
    line[strcspn(line, "\n")] = '\0';
    cr_expect_str_eq(line, commit);
    cli_close(&cli);
}
