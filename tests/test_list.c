/* The experiments of a folder, and what became of their last runs. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "altered.h"
#include "cli.h"

Test(list, knows_what_became_of_the_last_run)
{
    struct cli cli;
    cli_open(&cli);
    cli_expect(&cli, 0, "list .");
    cli_says(&cli, "small");
    cli_says(&cli, "a small MLP");
    cr_expect(!strstr(cli.out, "results/"), "%s", cli.out);
    cli_expect(&cli, 0, "run small.yaml --only variant --quiet");
    cli_expect(&cli, 0, "list .");
    cli_says(&cli, "completed ");
    cli_says(&cli, ", results/small/");
    json_t *all = cli_json(&cli, 0, "list . --json");
    cr_assert(json_array_size(all) == 1, "%s", cli.out);
    const json_t *last = json_object_get(json_array_get(all, 0), "last");
    cr_assert(strcmp(json_string_value(json_object_get(last, "status")), "completed") == 0);
    json_decref(all);

    char path[512];
    snprintf(path, sizeof path, "%s/results/damaged", cli.folder);
    cr_assert(mkdir(path, 0700) == 0);
    cli_run(&cli, "cp results/small/*.h5 results/damaged/last.h5; sed s/small/damaged/ small.yaml >damaged.yaml",
            "list .");
    snprintf(path, sizeof path, "%s/results/damaged/last.h5", cli.folder);
    alter_endless(path);
    cli_expect(&cli, 0, "list ."); /* reading that one ends the process that reads it */
    cli_says(&cli, " unreadable, results/damaged/last.h5\nsmall ");
    cli_says(&cli, " completed ");
    cli_file(&cli, "bad.yaml", "rematch: 1\nname: bad\n");
    cli_run(&cli, "rm damaged.yaml", "list .");
    cr_assert(cli.code == 2);
    cli_says(&cli, "small");
    cli_complains(&cli, "bad.yaml");
    cli_close(&cli);
}
