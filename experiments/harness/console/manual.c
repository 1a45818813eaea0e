#include "console/manual.h"

#include <string.h>

static const char about[] = "plans, runs and compares training with recomputed activations";

/* What a user may meet besides commands and options. */
struct fact {
    const char *name, *doc;
};
static const struct fact exit_codes[] = {{"0", "done, or equal"},
                                         {"1", "differs, or an expectation failed"},
                                         {"2", "usage or spec is wrong"},
                                         {"3", "a run failed"},
                                         {"4", "equal as far as compared, but that is no proof"},
                                         {"77", "data, initial values, backend or device is missing"},
                                         {"128+n", "ended by signal n"},
                                         {NULL, NULL}};
static const struct fact environment[] = {
    {"REMATCH_DATA", "a folder of data sets and other files"},       {"TMPDIR", "where verify runs"},
    {"COLUMNS", "the width of help, where no terminal reports one"}, {"NO_COLOR", "no colours on a terminal"},
    {"OMP_WAIT_POLICY", "how idle threads wait: active or passive"}, {NULL, NULL}};

/* ---- help ---- */

static void print_facts(const char *heading, const struct fact *fact, FILE *out)
{
    fprintf(out, "\n%s\n", heading);
    for (; fact->name; fact++) fprintf(out, "  %-16s %s\n", fact->name, fact->doc);
}

void manual_usage(const struct command *commands, int count, FILE *out)
{
    fprintf(out, "usage: rematch COMMAND [ARGUMENT...]\n\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "  %-8s %.*s\n", commands[i].name, (int)strcspn(commands[i].doc, "\n"), commands[i].doc);
    fprintf(out, "\nrematch help COMMAND prints a command's usage and options.\n");
}

void manual_help(const struct command *commands, int count, FILE *out)
{
    fprintf(out, "rematch %s\n", about);
    manual_usage(commands, count, out);
    fprintf(out, "rematch --version prints the version and how the program was built.\n");
    print_facts("exit codes:", exit_codes, out);
    print_facts("environment:", environment, out);
}

/* ---- the manual page ---- */

/* bytes of text with the characters that roff interprets escaped. */
static void put_roff(const char *text, size_t bytes, FILE *out)
{
    for (size_t i = 0; i < bytes; i++) fprintf(out, text[i] == '\\' ? "\\e" : text[i] == '-' ? "\\-" : "%c", text[i]);
}

static void put_line(const char *before, const char *text, size_t bytes, FILE *out)
{
    fputs(before, out);
    put_roff(text, bytes, out);
    fputc('\n', out);
}

static void put_item(const char *term, const char *value, const char *doc, FILE *out)
{
    fprintf(out, ".TP\n.BI \"");
    put_roff(term, strlen(term), out);
    fprintf(out, "%s\" \"%s\"\n", value ? " " : "", value ? value : "");
    put_line("", doc, strlen(doc), out);
}

static void put_facts(const char *heading, const struct fact *fact, FILE *out)
{
    fprintf(out, ".SH %s\n", heading);
    for (; fact->name; fact++) put_item(fact->name, NULL, fact->doc, out);
}

void manual_page(const struct command *commands, int count, FILE *out)
{
    fprintf(out, ".TH REMATCH 1 \"\" rematch \"User Commands\"\n.SH NAME\nrematch \\- %s\n", about);
    fprintf(out, ".SH SYNOPSIS\n.B rematch\n.I COMMAND\n[\\fIARGUMENT\\fR...]\n.SH COMMANDS\n");
    for (int i = 0; i < count; i++) {
        const struct command *c = &commands[i];
        const char *end = strchr(c->doc, '\n');
        put_line(".SS rematch ", c->usage, strlen(c->usage), out);
        put_line("", c->doc, (size_t)(end - c->doc), out);
        put_line("", end + 1, strlen(end + 1), out);
        for (int k = 0; k < OPTIONS; k++)
            if (arguments_take(c, k)) put_item(option_rows[k].name, option_rows[k].value, arguments_doc(c, k), out);
        if (c->overrides) put_item("key=value", NULL, arguments_override_doc, out);
    }
    put_facts("EXIT STATUS", exit_codes, out);
    put_facts("ENVIRONMENT", environment, out);
}
