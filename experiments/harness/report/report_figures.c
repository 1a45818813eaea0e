/* Figures as SVG and PDF, drawn by one gnuplot process: report.gp has the drawings, here are their data. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "policies/policy.h"
#include "report/report_tree.h"
#include "result/record_file.h"
#include "yaml/new_file.h"

EMBED(drawings, "experiments/harness/report/report.gp");

static const struct terminal {
    const char *end, *set;
} terminals[] = {{"svg", "svg noenhanced size 960,400 dynamic font 'sans-serif,14' background 'white'"},
                 {"pdf", "pdfcairo noenhanced size 17cm,7.1cm font 'sans-serif,9'"}};
enum { TERMINALS = sizeof terminals / sizeof *terminals };

struct drawing {
    struct region *region;
    const json_t *tree;
    const char *folder;
    FILE *gnuplot;
    int files;
    struct new_file **file;
    double unit; /* bytes that the axes of memory count in */
};

enum status report_check_figures(const char *folder)
{
    if (system("gnuplot -e 'set terminal svg; set terminal pdfcairo' >/dev/null 2>&1") != 0)
        return fail(ST_MISSING, "report: --figures needs gnuplot with pdfcairo; install gnuplot-nox");
    return record_folder(folder);
}

static const json_t *get(const json_t *object, const char *key) { return json_object_get(object, key); }

static double at(const json_t *array, size_t i) { return json_number_value(json_array_get(array, i)); }

static const json_t *run_at(const struct drawing *d, double number)
{
    return json_array_get(get(d->tree, "runs"), (size_t)number);
}

/* A text in gnuplot's single quotes, in which nothing is substituted. */
static const char *quoted(const char *text, struct region *region)
{
    char *copy = region_text(region, "'%s'", text);
    for (char *c = copy + 1; c[1]; c++)
        if (*c == '\'' || (unsigned char)*c < ' ') *c = ' ';
    return copy;
}

static void send_section(struct drawing *d, const char *name)
{
    const char *from = strstr(drawings, region_text(d->region, "\n## %s\n", name)), *to = strstr(from + 1, "\n## ");
    fprintf(d->gnuplot, "%.*s\n", to ? (int)(to - from) : (int)strlen(from), from);
}

/* Draws a section of report.gp as a file of each kind. */
static enum status draw(struct drawing *d, const char *section, const char *name)
{
    for (int i = 0; i < TERMINALS; i++) {
        struct new_file *file;
        NEW(d->region, file, 1);
        TRY(new_file_begin(file, region_text(d->region, "%s/%s.%s", d->folder, name, terminals[i].end)));
        region_grow(d->region, &d->file, d->files, sizeof *d->file);
        d->file[d->files++] = file;
        fprintf(d->gnuplot, "reset\nset terminal %s\nset output %s\n", terminals[i].set, quoted(file->name, d->region));
        send_section(d, "common");
        send_section(d, section);
        fprintf(d->gnuplot, "unset output\n");
    }
    return ST_OK;
}

/* ---- live memory ---- */

/* Each op as a step from its number to the next, with the tops of the categories; returns the largest. */
static double write_live(struct drawing *d, const json_t *plan)
{
    const json_t *live = get(get(plan, "ops"), "live_bytes"), *names = get(plan, "categories");
    const size_t ops = json_array_size(get(get(plan, "ops"), "phase"));
    double most = 0;
    for (size_t i = 0; i < 2 * ops; i++) {
        double sum = 0;
        fprintf(d->gnuplot, "%zu", (i + 1) / 2);
        for (size_t c = 0; c < CATEGORIES; c++) {
            const char *name = json_string_value(json_array_get(names, c)); /* NULL: the plan has none of the last */
            sum += name ? at(get(live, name), i / 2) / d->unit : 0;
            fprintf(d->gnuplot, " %.9g", sum);
        }
        fprintf(d->gnuplot, "\n");
        most = fmax(most, sum);
    }
    return most;
}

static void write_phases(struct drawing *d, const json_t *plan)
{
    static const int colours[] = {0xd5d9dd, 0xcc79a7, 0x8b949e};
    const json_t *phase = get(get(plan, "ops"), "phase");
    const size_t ops = json_array_size(phase);
    for (size_t from = 0, to = 0; from < ops; from = to) {
        const int kind = (int)at(phase, from);
        while (to < ops && (int)at(phase, to) == kind) to++;
        fprintf(d->gnuplot, "%zu %zu %d\n", from, to, colours[kind]);
    }
}

/* A panel a run, of those whose plan the tree has. */
static enum status draw_memory(struct drawing *d, const char *name, const int *run, int runs)
{
    const json_t *plan[2], *figures[2];
    const char *hashes = "";
    double most = 0;
    size_t ops = 0, categories = 0;
    int count = 0;
    for (int i = 0; i < runs; i++) {
        const json_t *one = run_at(d, run[i]), *index = get(one, "plan");
        if (!json_is_integer(index)) continue;
        figures[count] = get(one, "/plan");
        plan[count] = json_array_get(get(d->tree, "plans"), (size_t)json_integer_value(index));
        if (json_array_size(get(plan[count], "categories")) > categories)
            categories = json_array_size(get(plan[count], "categories"));
        hashes = region_text(d->region, "%s %.16s", hashes, figure_string(plan[count], "hash"));
        const size_t own = json_array_size(get(get(plan[count++], "ops"), "phase"));
        ops = own > ops ? own : ops;
    }
    if (!ops) return ST_OK;
    fprintf(d->gnuplot, "$live << END\n");
    for (int i = 0; i < count; i++, fprintf(d->gnuplot, "\n\n")) most = fmax(most, write_live(d, plan[i]));
    fprintf(d->gnuplot, "END\n$phases << END\n");
    for (int i = 0; i < count; i++, fprintf(d->gnuplot, "\n\n")) write_phases(d, plan[i]);
    fprintf(d->gnuplot,
            "END\nruns = %d\nops = %zu\ncategories = %zu\nmost = %.9g\nhashes = %s\narray title[2]\narray peak[2]\n",
            count, ops, categories, most, quoted(hashes, d->region));
    for (int i = 0; i < count; i++) {
        const double peak = figure_number(figures[i], "live_peak_bytes");
        char bytes[UNIT_TEXT];
        fprintf(d->gnuplot, "peak[%d] = %.9g\ntitle[%d] = %s\n", i + 1, peak / d->unit, i + 1,
                quoted(region_text(d->region, "%s: peak %s, slowdown %.3f", figure_string(figures[i], "policy"),
                                   bytes_text(peak, bytes), figure_number(figures[i], "slowdown")),
                       d->region));
    }
    return draw(d, "memory", name);
}

/* ---- curves ---- */

/* The rows with this policy, NULL: all; returns how many. */
static int write_points(struct drawing *d, const json_t *rows, const char *policy)
{
    size_t i;
    json_t *row;
    int count = 0;
    json_array_foreach(rows, i, row)
    {
        if (policy && strcmp(figure_string(row, "policy"), policy) != 0) continue;
        fprintf(d->gnuplot, "%.9g %.9g\n", figure_number(row, "live_peak_bytes") / d->unit,
                figure_number(row, "slowdown"));
        count++;
    }
    return count;
}

static enum status draw_choices(struct drawing *d, const json_t *choices)
{
    const char *names = "";
    fprintf(d->gnuplot, "$bound << END\n");
    write_points(d, get(choices, "bound"), NULL);
    fprintf(d->gnuplot, "END\n$plans << END\n");
    for (const struct policy *const *p = policy_table; *p; p++) {
        if (!write_points(d, get(choices, "plans"), (*p)->name)) continue;
        names = region_text(d->region, "%s %s", names, (*p)->name);
        fprintf(d->gnuplot, "\n\n");
    }
    fprintf(d->gnuplot, "END\nnames = '%s'\nmost = %.9g\n", names, figure_number(choices, "slowdown_shown"));
    return draw(d, "choices", "policies");
}

static enum status draw_losses(struct drawing *d, json_t *pair, const char *name)
{
    static const char *const keys[] = {"step", "a", "b", "difference"};
    const json_t *losses = get(pair, "losses");
    const char *a = "a", *b = "b";
    const size_t steps = json_array_size(get(losses, "step"));
    if (!steps) return ST_OK;
    json_unpack(pair, "{s:[s, s]}", "names", &a, &b);
    fprintf(d->gnuplot, "$losses << END\n");
    for (size_t i = 0; i < steps; i++)
        for (int k = 0; k < 4; k++) fprintf(d->gnuplot, "%.9g%s", at(get(losses, keys[k]), i), k < 3 ? " " : "\n");
    fprintf(d->gnuplot, "END\nnames = '%s %s'\nmost = %.9g\n", a, b, figure_number(losses, "largest_difference"));
    return draw(d, "pair", name);
}

/* What a run has on the other axes: "batch=16,seed=1". */
static const char *others_of(const json_t *axes, const json_t *axis, size_t run, struct region *region)
{
    const char *text = "";
    size_t i;
    json_t *one;
    json_array_foreach(axes, i, one)
    {
        const char *value = json_string_value(json_array_get(get(one, "values"), run));
        if (one != axis)
            text =
                region_text(region, "%s%s%s=%s", text, *text ? "," : "", figure_string(one, "key"), value ? value : "");
    }
    return *text ? text : "variants";
}

/* The points of the runs that have others on the other axes, from the first such run on, where the axis has numbers;
 * returns how many, 0 also where an earlier run has the same. */
static int write_curve(struct drawing *d, const json_t *axes, const json_t *axis, size_t first)
{
    const char *others = others_of(axes, axis, first, d->region);
    int rows = 0;
    for (size_t i = 0; i < first; i++)
        if (!strcmp(others_of(axes, axis, i, d->region), others)) return 0;
    for (size_t i = first; i < json_array_size(get(axis, "values")); i++) {
        const json_t *plan = get(run_at(d, at(get(get(d->tree, "sweep"), "runs"), i)), "/plan");
        const char *text = json_string_value(json_array_get(get(axis, "values"), i));
        double x;
        if (strcmp(others_of(axes, axis, i, d->region), others) != 0 || !text || text_to_real(text, &x)) continue;
        fprintf(d->gnuplot, "%.9g %.9g %.9g\n", x, figure_number(plan, "live_peak_bytes") / d->unit,
                figure_number(plan, "slowdown"));
        rows++;
    }
    return rows;
}

static enum status draw_axis(struct drawing *d, const json_t *axes, size_t number)
{
    const json_t *axis = json_array_get(axes, number);
    const char *names = "";
    fprintf(d->gnuplot, "$curves << END\n");
    for (size_t i = 0; i < json_array_size(get(axis, "values")); i++) {
        if (!write_curve(d, axes, axis, i)) continue;
        char *name = region_text(d->region, "%s %s", names, others_of(axes, axis, i, d->region));
        for (char *c = name + strlen(names) + 1; *c; c++) *c = *c == ' ' ? '_' : *c;
        names = name;
        fprintf(d->gnuplot, "\n\n");
    }
    fprintf(d->gnuplot, "END\nnames = %s\nnames_of_axis = %s\n", quoted(names, d->region),
            quoted(figure_string(axis, "key"), d->region));
    return *names ? draw(d, "sweep", region_text(d->region, "sweep-%zu", number + 1)) : ST_OK;
}

/* ---- all of them ---- */

/* Memory is counted in the largest unit that is at most the largest peak. */
static void write_unit(struct drawing *d)
{
    double most = 0;
    for (size_t i = 0; i < json_array_size(get(d->tree, "runs")); i++)
        most = fmax(most, figure_number(get(run_at(d, (double)i), "/plan"), "live_peak_bytes"));
    d->unit = most >= 0x1p30 ? 0x1p30 : most >= 0x1p20 ? 0x1p20 : 0x1p10;
    fprintf(d->gnuplot, "unit = '%s'\n", most >= 0x1p30 ? "GiB" : most >= 0x1p20 ? "MiB" : "KiB");
}

static enum status draw_all(struct drawing *d)
{
    const json_t *pairs = get(d->tree, "pairs"), *choices = get(d->tree, "choices"),
                 *axes = get(get(d->tree, "sweep"), "axes");
    const bool many = json_array_size(pairs) > 1;
    size_t i;
    json_t *one;
    write_unit(d);
    json_array_foreach(pairs, i, one)
    {
        const char *end = many ? region_text(d->region, "-%zu", i + 1) : "";
        const int run[] = {(int)figure_number(one, "a"), (int)figure_number(one, "b")};
        TRY(draw_memory(d, region_text(d->region, "memory%s", end), run, 2));
        TRY(draw_losses(d, one, region_text(d->region, "losses%s", end)));
    }
    if (!json_array_size(pairs)) TRY(draw_memory(d, "memory", (int[]){0}, 1));
    if (json_is_object(choices)) TRY(draw_choices(d, choices));
    for (i = 0; i < json_array_size(axes); i++) TRY(draw_axis(d, axes, i));
    return ST_OK;
}

enum status report_write_figures(const json_t *tree, const char *folder)
{
    struct drawing d = {.region = region_create(), .tree = tree, .folder = folder, .gnuplot = popen("gnuplot", "we")};
    enum status status = d.gnuplot ? draw_all(&d) : fail(ST_FAILED, "gnuplot cannot be started: %s", strerror(errno));
    if (d.gnuplot && pclose(d.gnuplot) != 0 && status == ST_OK)
        status = fail(ST_FAILED, "%s: gnuplot failed; its messages are above", folder);
    for (int i = 0; i < d.files; i++) {
        if (status == ST_OK)
            status = new_file_publish(d.file[i]);
        else
            new_file_drop(d.file[i]);
    }
    region_destroy(d.region);
    return status;
}
