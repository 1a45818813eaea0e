/* The memory for reading a file is bounded by what the file stores, whatever its extents claim. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build.h"
#include "tests/support/altered_files.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"

enum { ROWS = 1900000, BYTES = 2 << 20 };

/* The commands that read such an array. */
enum { SHOW = 1, COMPARE = 2, VERIFY = 4, TAKE = 8, STEPS = SHOW | COMPARE | VERIFY | TAKE, PLAN = VERIFY | TAKE };
static const char *const commands[] = {"show sparse.h5", "compare sparse.h5 result.h5", "verify sparse.h5 --plan-only",
                                       "plan small.yaml plan=sparse.h5"};
static const struct {
    const char *array;
    unsigned by;
} sparse[] = {
    {"/steps/committed", STEPS},
    {"/steps/step", STEPS},
    {"/steps/loss", STEPS},
    {"/steps/grad_digest", STEPS},
    {"/digests/step", STEPS},
    {"/digests/gradient", STEPS},
    {"/plan/parameters/name", STEPS},
    {"/plan/parameters/elements", STEPS},
    {"/eval/committed", SHOW},
    {"/plan/peak_tensors", SHOW},
    {"/plan/nodes/node", PLAN},
    {"/plan/nodes/inputs", PLAN},
    {"/plan/nodes/name", PLAN},
    {"/plan/ops/op", PLAN},
    {"/plan/ops/live", PLAN},
    {"/plan/buffers/buffer", PLAN},
    {"/plan/parameters/parameter", PLAN},
    {"/memory/predicted", PLAN},
};

static void open_result(struct cli *cli, char whole[300], char path[300])
{
    cli_open(cli);
    cli_expect(cli, 0, "run small.yaml --quiet eval.every=2");
    cli_run(cli, "mv \"$(ls -t results/small/*.h5 | head -1)\" result.h5", "verify result.h5 --plan-only");
    cr_assert(cli->code == 0, "%s\n%s", cli->out, cli->err);
    snprintf(whole, 300, "%.250s/result.h5", cli->folder);
    snprintf(path, 300, "%.250s/sparse.h5", cli->folder);
}

static void expect_refused(struct cli *cli, const char *command, const char *array, const char *says)
{
    /* a sanitizer needs terabytes of address space */
    cli_run(cli, strcmp(BUILD_VARIANT, "san") != 0 ? "ulimit -v 1500000" : "", command);
    cr_assert(cli->code == 2 || cli->code == 3, "%s, %s: exit code %d\n%s", array, command, cli->code, cli->err);
    cli_complains(cli, "sparse.h5: ");
    cli_complains(cli, array);
    cli_complains(cli, says);
    cr_assert(cli_complaints(cli) == 1, "%s, %s: %s", array, command, cli->err);
}

Test(limits, rows_that_a_file_does_not_store_are_refused, .timeout = 240)
{
    struct cli cli;
    char whole[300], path[300];
    open_result(&cli, whole, path);
    for (size_t i = 0; i < sizeof sparse / sizeof *sparse; i++) {
        alter_copy(whole, path);
        alter_sparse(path, sparse[i].array, ROWS);
        cr_assert(truncate(path, BYTES) == 0);
        for (size_t k = 0; k < sizeof commands / sizeof *commands; k++)
            if (sparse[i].by & 1u << k) expect_refused(&cli, commands[k], sparse[i].array, "the file stores 0 of them");
    }
    cli_close(&cli);
}

Test(limits, texts_that_share_their_bytes_are_refused)
{
    struct cli cli;
    char whole[300], path[300], *text = malloc(200000);
    open_result(&cli, whole, path);
    memset(text, 'x', 199999);
    text[199999] = 0;
    alter_copy(whole, path);
    alter_list_text(path, "/plan/peak_tensors", 0, text);
    cli_expect(&cli, 0, "show sparse.h5"); /* a long text that is not shared is valid */
    alter_shared(path, "/plan/peak_tensors");
    expect_refused(&cli, "show sparse.h5", "/plan/peak_tensors", "claims more text than the file has bytes");
    free(text);
    cli_close(&cli);
}
