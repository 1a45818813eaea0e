/* Result files as tables: --csv, pandas and xarray by the lines of results/README.md; and EXPERIMENTS.md's tables. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cli.h"

/* The cell in row (from 1) and the column called key; no cell here has a comma. */
static const char *cell(const char *csv, int row, const char *key)
{
    static char text[512];
    int column = 0, at = 0;
    const char *head = csv, *line = csv;
    for (; strncmp(head, key, strlen(key)) || !strchr(",\n", head[strlen(key)]); column++) {
        head += strcspn(head, ",\n");
        cr_assert(*head == ',', "no column %s in %s", key, csv);
        head++;
    }
    for (int i = 0; i < row; i++) {
        line = strchr(line, '\n');
        cr_assert(line && *++line, "no row %d in %s", row, csv);
    }
    for (; at < column; at++) line += strcspn(line, ",\n") + 1;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, ",\n"), line);
    return text;
}

static int lines_of(const char *text)
{
    int lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static void read_file(const struct cli *cli, const char *name, char text[4096])
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", cli->folder, name);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    text[fread(text, 1, 4095, file)] = '\0';
    fclose(file);
}

static void run_small(struct cli *cli, char file[256])
{
    cli_open(cli);
    cli_expect(cli, 0, "run small.yaml --only variant --quiet");
    cr_assert(sscanf(cli->out, "variant %255s", file) == 1, "%s", cli->out);
}

/* Beside the numbers of --json, the plan's ops, and h5dump's texts. */
Test(tables, csv_has_the_files_numbers)
{
    struct cli cli;
    char file[256], arguments[512];
    run_small(&cli, file);
    snprintf(arguments, sizeof arguments, "show %s --json", file);
    json_t *all = cli_json(&cli, 0, arguments), *steps = json_object_get(all, "steps");
    snprintf(arguments, sizeof arguments, "show --csv steps %s", file);
    cli_expect(&cli, 0, arguments);
    cr_assert(lines_of(cli.out) == 5, "%s", cli.out);
    for (int i = 0; i < 4; i++) {
        static const char *const keys[] = {"step", "loss", "lr", "grad_norm", "total_ns", "live_peak"};
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            const json_t *number = json_array_get(json_object_get(steps, keys[k]), (size_t)i);
            const char *text = cell(cli.out, i + 1, keys[k]);
            cr_expect(strtod(text, NULL) == json_number_value(number), "%s: %s", keys[k], text);
        }
        cr_expect(strlen(cell(cli.out, i + 1, "grad_digest")) == 32);
    }
    char first[64];
    snprintf(first, sizeof first, "%s", cell(cli.out, 1, "param_digest"));
    cr_expect(strcmp(first, cell(cli.out, 2, "param_digest")) != 0, "the digest of another step");
    json_decref(all);

    json_t *plan = cli_json(&cli, 0, "plan small.yaml --ops --json"), *ops = json_object_get(plan, "ops");
    snprintf(arguments, sizeof arguments, "show %s --csv=ops", file);
    cli_expect(&cli, 0, arguments);
    cr_assert(json_array_size(ops) > 0 && lines_of(cli.out) == (int)json_array_size(ops) + 1, "%s", cli.out);
    for (int i = 0; i < (int)json_array_size(ops); i++) {
        const json_t *op = json_array_get(ops, (size_t)i);
        const char *live = cell(cli.out, i + 1, "live");
        cr_expect(strtod(live, NULL) == json_number_value(json_object_get(op, "live_bytes")), "%s", live);
    }
    cr_expect(!strcmp(cell(cli.out, 1, "x_0"), "-2") && !strcmp(cell(cli.out, 1, "x_1"), "-1"), "%s", cli.out);
    cr_expect(strtod(cell(cli.out, 1, "op_least_ns"), NULL) > 0);
    json_decref(plan);

    snprintf(arguments, sizeof arguments, "show %s --csv tensors", file);
    cli_expect(&cli, 0, arguments);
    cr_expect(strstr(cli.out, "text,category,node,bytes,birth,death,offset,slice\nflatten1.y,0,0,512,0,"), "%s",
              cli.out);
    cli_expect(&cli, 2, "show --csv losses x.h5");
    cli_complains(&cli, "--csv losses; expected steps|ops|tensors");
    cli_expect(&cli, 2, "show --csv");
    cli_expect(&cli, 2, "show --csv ops --json x.h5");
    cli_expect(&cli, 2, "show --csv ops small.yaml");
    cli_close(&cli);
}

/* The lines as they stand there, on the file of this run; then their tables are compared with --csv. */
Test(tables, pandas_and_xarray_read_a_file_by_the_documented_lines)
{
    static const char modules[] = "/usr/bin/python3 -c 'import h5py, pandas, xarray, h5netcdf' 2>/dev/null";
    static const char after[] = "print('steps', ','.join(str(int(n)) for n in table.total_ns), list(table.index) == "
                                "list(steps.step.values))\n"
                                "print('ops', ','.join(str(int(n)) for n in ops.live), ops.op[0])\n";
    struct cli cli;
    char file[256], command[2048], line[4096], expected[4096];
    if (system(modules) != 0) cr_skip_test("python3-pandas, python3-xarray or python3-h5netcdf is missing");
    run_small(&cli, file);
    snprintf(command, sizeof command,
             "sed -n '/^    import h5py, pandas, xarray/,/^$/s/^    //p' results/README.md | sed "
             "'s,results/mlp-sequential/ID.h5,%s/%s,' >%s/lines.py && wc -l <%s/lines.py",
             cli.folder, file, cli.folder, cli.folder);
    FILE *shell = popen(command, "r");
    int lines = 0;
    cr_assert(fscanf(shell, "%d", &lines) == 1 && pclose(shell) == 0 && lines == 5, "%d lines", lines);
    cli_file(&cli, "after.py", after);
    for (int table = 0; table < 2; table++) {
        snprintf(command, sizeof command, "show %s --csv %s", file, table ? "ops" : "steps");
        cli_expect(&cli, 0, command);
        size_t used = (size_t)snprintf(expected, sizeof expected, table ? "ops " : "steps ");
        for (int row = 1; row < lines_of(cli.out); row++)
            used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%s", row > 1 ? "," : "",
                                     cell(cli.out, row, table ? "live" : "total_ns"));
        snprintf(expected + used, sizeof expected - used, " %s\n", table ? cell(cli.out, 1, "text") : "True");
        snprintf(command, sizeof command, "cd %s && cat lines.py after.py | /usr/bin/python3 - | grep '^%s'",
                 cli.folder, table ? "ops" : "steps");
        shell = popen(command, "r");
        cr_assert(fgets(line, sizeof line, shell) && pclose(shell) == 0);
        cr_expect(!strcmp(line, expected), "%s is not %s", line, expected);
    }
    cli_close(&cli);
}

/* Every table is made; none was edited. */
Test(tables, of_experiments_are_those_of_the_published_files)
{
    cr_expect(
        system("made=$(awk -f experiments/tables.awk EXPERIMENTS.md) && echo \"$made\" | diff EXPERIMENTS.md - >&2") ==
            0,
        "make experiments-md renews them");
    cr_expect(system("test $(sed -E '/<!-- (table|rows):/,/<!-- end/d' EXPERIMENTS.md | grep -c '^ *|---') = 0") == 0);
    cr_expect(system("cd results/published && for csv in *.csv; do grep -q \"<!-- table: ${csv%.csv} -->\" "
                     "../../EXPERIMENTS.md || { echo $csv is in no table >&2; exit 1; }; done") == 0);
}

/* An experiment is a spec or a study; a study is planned, and so is a spec whose numbers are of plans. */
Test(tables, experiments_are_counted)
{
    cr_expect(
        system("specs=$(ls experiments/*.yaml | wc -l); "
               "studies=$(grep -lE '^\"\"\"[a-z0-9-]+: ' experiments/plans/*.py | wc -l); "
               "planned=$(grep '^| .*](#' EXPERIMENTS.md | grep -o 'planned[;)]' | wc -l); all=$((specs + studies)); "
               "run=$((all - planned)); [ $planned -ge $studies ] && "
               "grep -q \"reports $all experiments, $run run and $planned only planned\" README.md && "
               "grep -q \"Of $all experiments $run were run; the $planned marked\" EXPERIMENTS.md") == 0);
}

/* By a study of that name or by a recipe; and one of plans alone is made, without writing it. */
Test(tables, each_has_a_command)
{
    cr_expect(
        system("cd experiments/plans && for csv in ../../results/published/*.csv; do name=$(basename $csv .csv); "
               "[ -e $name.py ] || grep -q \"^    \\\"$name\\\": \" run_tables.py || { echo $name has no command >&2; "
               "exit 1; }; done") == 0);
    cr_expect(
        system("test $(/usr/bin/python3 -B experiments/plans/run_tables.py vgg16-relus | grep -c '%) .*%)$') = 2") ==
        0);
}

/* Beside a table, the numbers of its plans: those that the program reports, and those that its cells were printed from.
 */
Test(tables, numbers_are_those_that_the_program_reports)
{
    static const char *const keys[] = {"output relu_after_pool=false", "output relu_after_pool=true",
                                       "bits relu_after_pool=false", "bits relu_after_pool=true"};
    static const char head[] = "# command: make publish-vgg16-relus\n# commit: ";
    static const char publish[] =
        "mkdir -p %s/experiments %s/results/published/numbers && cp -r experiments/*.yaml experiments/models "
        "experiments/plans %s/experiments && cd %s && PUBLISH=yes /usr/bin/python3 -B experiments/plans/run_tables.py "
        "vgg16-relus";
    struct cli cli;
    char command[2048], table[4096] = "", numbers[4096] = "";
    cli_open(&cli);
    snprintf(command, sizeof command, publish, cli.folder, cli.folder, cli.folder, cli.folder);
    cr_assert(system(command) == 0);
    read_file(&cli, "results/published/vgg16-relus.csv", table);
    read_file(&cli, "results/published/numbers/vgg16-relus.csv", numbers);
    const char *rows = strstr(numbers, "\nname,made_by,");
    cr_assert(rows && lines_of(++rows) == 5 && !strncmp(numbers, head, sizeof head - 1), "%s", numbers);
    cr_expect(!strncmp(table, numbers, (size_t)(rows - numbers)), "the same lines # command to # date: %s", numbers);
    for (int i = 0; i < 4; i++) {
        char arguments[256], printed[32];
        snprintf(arguments, sizeof arguments, "plan vgg16-pareto policy=store_all relu_save=%s --alone --json",
                 keys[i]);
        json_t *plan = cli_json(&cli, 0, arguments);
        static const char *const json[] = {"batch", "static_bytes", "live_peak_bytes", "peak_bytes", "slowdown"};
        for (size_t k = 0; k < sizeof json / sizeof *json; k++)
            cr_expect(strtod(cell(rows, i + 1, json[k]), NULL) == json_number_value(json_object_get(plan, json[k])),
                      "%s: %s", keys[i], json[k]);
        snprintf(printed, sizeof printed, "%.2f GiB (", strtod(cell(rows, i + 1, "live_peak_bytes"), NULL) / (1 << 30));
        cr_expect(strstr(table, printed), "%s: %s", table, printed);
        json_decref(plan);
    }
    cli_close(&cli);
}

/* Every file of numbers is that of a table, written by the same command; what is in bytes or ns is a number. */
Test(tables, numbers_of_the_published_files_are_plain)
{
    static const char check[] =
        "import csv, glob, os\n"
        "files = glob.glob('results/published/numbers/*.csv')\n"
        "assert files\n"
        "for path in files:\n"
        "    lines, table = (open(name).readlines() for name in (path, path.replace('/numbers', '')))\n"
        "    assert lines[:4] == table[:4], path\n"
        "    rows = list(csv.DictReader(lines[4:]))\n"
        "    assert rows, path\n"
        "    for row in rows:\n"
        "        for key, text in row.items():\n"
        "            if key.endswith(('_bytes', '_ns')):\n"
        "                assert text == '' or float(text) >= 0, (path, row)\n";
    struct cli cli;
    char command[512];
    cli_open(&cli);
    cli_file(&cli, "check.py", check);
    snprintf(command, sizeof command, "/usr/bin/python3 -B %s/check.py", cli.folder);
    cr_expect(system(command) == 0);
    cli_close(&cli);
}

/* A study of chains ends with 0 only if its numbers are those of another program. */
Test(tables, an_adjoint_runs_the_steps_of_others_schedules)
{
    cr_expect(system("/usr/bin/python3 -B experiments/plans/adjoint.py >/dev/null") == 0);
}

#define PROVENANCE "# command: make x\n# commit: 1\n# machine: a\n# date: 2026-01-01\n"

#define FIGURES    PROVENANCE "of,b,c\none,2.30 GiB (61.7 %),x1.2\n,1.580 steps,-3 s\ntwo,5,6\ntwo,7,8\n"
#define ROWS(ours) "<!-- rows: r.md -->\n| [a](#a-b) | c | | " ours " | v |\n<!-- end -->\n## A, b\nis x1.7.\n"

static const struct {
    const char *csv, *document, *made; /* made NULL: refused */
    const char *rows;                  /* r.md's */
} documents[] = {
    {PROVENANCE "a,b\n1,2\n", "x\n<!-- table: t -->\nold\n<!-- end -->\ny\n",
     "x\n<!-- table: t -->\n| a | b |\n|---|---|\n| 1 | 2 |\n<!-- end -->\ny\n"},
    {PROVENANCE ",\"b, \"\"c\"\"\",\n\"\",,x\n\"d\",\"e\",\n", "  <!-- table: t -->\n  <!-- end -->\n",
     "  <!-- table: t -->\n  | | b, \"c\" | |\n  |---|---|---|\n  | | | x |\n  | d | e | |\n  <!-- end -->\n"},
    {PROVENANCE "a,b\n1,2\n1,3\n", "<!-- table: t -->\n<!-- end -->\n",
     "<!-- table: t -->\n| a | b |\n|---|---|\n| 1 | 2 |\n| | 3 |\n<!-- end -->\n"},
    {FIGURES, ROWS(""), ROWS("2.30 GiB, 61.7 % and x1.2"),
     "{t; one & x1.2; b}, {t; one & x1.2; b; 2} and {t; x1.2; c}"},
    {FIGURES, ROWS(""), ROWS("1.580 and -3 s of x1.7"), "{t; one & -3 s; b} and {t; 1.580 steps; c} of x1.7"},
    {FIGURES, ROWS(""), NULL, "x1.2"},            /* only in the table */
    {FIGURES, ROWS(""), NULL, "{t; one; b}"},     /* in two rows */
    {FIGURES, ROWS(""), NULL, "{t; three; b}"},   /* in none */
    {FIGURES, ROWS(""), NULL, "{t; x1.2; d}"},    /* in no column */
    {FIGURES, ROWS(""), NULL, "{t; x1.2; b; 3}"}, /* of two numbers */
    {FIGURES, ROWS(""), NULL, "{u; x1.2; b}"},    /* of no table */
    {FIGURES, ROWS(""), NULL},                    /* no such file */
    {PROVENANCE "a,b\n1\n", "<!-- table: t -->\n<!-- end -->\n", NULL},
    {PROVENANCE "a\n\"b\n", "<!-- table: t -->\n<!-- end -->\n", NULL},
    {"# command: x\na\n1\n", "<!-- table: t -->\n<!-- end -->\n", NULL},
    {PROVENANCE "a\n1\n", "<!-- table: other -->\n<!-- end -->\n", NULL},
    {PROVENANCE "a\n1\n", "<!-- table: t -->\n", NULL},
    {PROVENANCE "a\n1\n", "<!-- end -->\n", NULL},
};

Test(tables, are_made_of_csv)
{
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        struct cli cli;
        char command[1024], here[512], text[1024] = "";
        cr_assert(getcwd(here, sizeof here));
        cli_open(&cli);
        snprintf(command, sizeof command, "mkdir -p %s/results/published", cli.folder);
        cr_assert(system(command) == 0);
        cli_file(&cli, "results/published/t.csv", documents[i].csv);
        cli_file(&cli, "d.md", documents[i].document);
        if (documents[i].rows) {
            snprintf(command, sizeof command, "| [a](#a-b) | c | | %s | v |\n", documents[i].rows);
            cli_file(&cli, "r.md", command);
        }
        snprintf(command, sizeof command, "cd %s && awk -f '%s/experiments/tables.awk' d.md 2>error", cli.folder, here);
        FILE *shell = popen(command, "r");
        cr_assert(shell);
        text[fread(text, 1, sizeof text - 1, shell)] = '\0';
        const int state = pclose(shell);
        cr_expect(!state == !!documents[i].made, "%zu: %s", i, text);
        if (documents[i].made) cr_expect(!strcmp(text, documents[i].made), "%zu: %s", i, text);
        cli_close(&cli);
    }
}
