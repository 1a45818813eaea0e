/* The framework without the harness: the program of tests/library, which includes rematch.h alone. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cli.h"

Test(library, a_program_on_the_framework_alone_trains_equal_bits)
{
    char command[4096], out[512];
    snprintf(command, sizeof command, "\"%.*s/library-example\"", (int)(strrchr(cli_program(), '/') - cli_program()),
             cli_program());
    FILE *pipe = popen(command, "r");
    cr_assert(pipe);
    out[fread(out, 1, sizeof out - 1, pipe)] = '\0';
    cr_expect(pclose(pipe) == 0 && strstr(out, "\nequal in every bit\n"), "%s", out);
    cr_expect(strstr(out, "store_all") && strstr(out, "recomputations: 0") && strstr(out, "recomputations: 1"), "%s",
              out);
}
