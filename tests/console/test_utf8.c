/* Texts of any origin on a terminal: nothing in them controls it, hides, or reverses what follows. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "console/utf8.h"
#include "tests/support/cli.h"

static const struct {
    const char *text, *escaped;
} texts[] = {
    {"plain, \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "plain, \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
    {"a\xCC\x81\xEF\xB8\x8F", "a\xCC\x81\xEF\xB8\x8F"}, /* a combining accent, a variant */
    {"\x1B[31m\x07\x7F\r", "\\u001b[31m\\u0007\\u007f\\u000d"},
    {"\xC2\x9B\xC2\x85", "\\u009b\\u0085"},
    {"\xE2\x80\xAA\xE2\x80\xAE\xE2\x80\xAC", "\\u202a\\u202e\\u202c"},                    /* embedding, override, end */
    {"\xE2\x81\xA6\xE2\x81\xA9\xE2\x80\x8F\xD8\x9C", "\\u2066\\u2069\\u200f\\u061c"},     /* isolates, marks */
    {"\xE2\x80\x8B\xE2\x80\x8C\xE2\x80\x8D\xE2\x81\xA0", "\\u200b\\u200c\\u200d\\u2060"}, /* no width */
    {"\xEF\xBB\xBF\xC2\xAD", "\\ufeff\\u00ad"},
    {"\xF3\xA0\x80\x81", "\\U000e0001"}, /* a tag */
    {"\xE2\x80\xA8\xE2\x80\xA9", "\\u2028\\u2029"},
    {"\x9B\xFF\xE2\x80", "\\x9b\\xff\\xe2\\x80"}, /* not UTF-8 */
    {"a\tb\nc", "a\\u0009b\nc"},
};

Test(utf8, what_is_not_plain_is_replaced_or_escaped)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char clean[64], escaped[64 * ESCAPED];
        const size_t length = strlen(texts[i].text);
        strcpy(clean, texts[i].text);
        utf8_clean(clean, "\n");
        cr_expect(strcspn(clean, "\n") == strcspn(texts[i].text, "\n") && strlen(clean) == length, "%s", clean);
        clean[strcspn(clean, "\n")] = '\0';
        cr_expect(utf8_is_plain(clean), "%s", clean);
        escaped[utf8_escape(texts[i].text, length, "\n", escaped)] = '\0';
        cr_expect_str_eq(escaped, texts[i].escaped);
        cr_expect(utf8_is_plain(texts[i].text) == !strcmp(texts[i].text, texts[i].escaped), "%zu", i);
        cr_expect(strlen(escaped) <= ESCAPED * length);
    }
}

/* A byte order mark begins a file; elsewhere it is an invisible character. */
Test(utf8, a_spec_may_begin_with_a_byte_order_mark)
{
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, "printf '\\357\\273\\277' | cat - small.yaml >marked.yaml", "plan marked.yaml --alone");
    cr_expect(cli.code == 0, "%s", cli.err);
    cli_run(&cli, "printf '# \\357\\273\\277' | cat small.yaml - >marked.yaml", "plan marked.yaml --alone");
    cr_expect(cli.code == 2 && strstr(cli.err, ":21:3: error: a control or invisible character"), "%s", cli.err);
    cli_close(&cli);
}

#define EVIL "e\xE2\x80\xAEv\xE2\x80\x8Bi\x1B[31ml\r\xC2\x9B"

/* Commands that print a path or a word of the user. */
static const char *const commands[] = {
    "show \"$EVIL/a.h5\"",
    "show \"$EVIL\"",
    "show --json \"$EVIL/a.h5\"",
    "verify --plan-only \"$EVIL/a.h5\"",
    "compare \"$EVIL\"/*.h5",
    "list \"$EVIL\"",
    "plan \"$EVIL/wrong.yaml\"",
    "plan small.yaml \"title=$EVIL\"",
    "plan small.yaml \"$EVIL=3\"",
    "plan small.yaml \"policy.$EVIL=3\"",
    "run small.yaml --quiet \"results=$EVIL\"",
    "report \"$EVIL\"/*.h5 --out \"$EVIL/page.html\"",
    "report \"$EVIL\"/*.h5 --trace \"$EVIL/none/trace\"",
    "bundle \"$EVIL\"/*.h5 --out \"$EVIL/x.tar.zst\"",
    "verify \"$EVIL/no.tar.zst\"",
    "\"$EVIL\"",
    "show \"--$EVIL\"",
    "schema \"$EVIL\"",
};

Test(utf8, nothing_that_a_user_gives_controls_the_terminal)
{
    struct cli cli;
    setenv("EVIL", EVIL, 1);
    cli_open(&cli);
    cli_run(&cli,
            "mkdir \"$EVIL\"; (cat small.yaml; echo \"# $EVIL\") "
            ">\"$EVIL/wrong.yaml\"; echo \"$EVIL\" >\"$EVIL/no.tar.zst\"",
            "run small.yaml --quiet");
    cr_assert(cli.code == 0);
    cli_run(
        &cli,
        "i=0; for f in results/small/*.h5; do i=$((i + 1)); cp $f \"$EVIL/$(printf %c $((i)) | tr 12 ab).h5\"; done",
        "schema");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        cli_on_screen(&cli, 400, "", commands[i]); /* which fails for an escape sequence that is none of ours */
        for (char *end = cli.out; (end = strchr(end, '\n'));) *end = ' ';
        cr_expect(utf8_is_plain(cli.out), "%s: %s", commands[i], cli.out);
        cr_expect(strstr(cli.out, "e\\u202ev\\u200bi") || strstr(cli.out, "e???v???i?[31ml"), "%s: %s", commands[i],
                  cli.out);
    }
    cli_close(&cli);
}
