/* Drawings as SVG and PDF, drawn by one gnuplot process: report.gp has the drawings, here are their data, as CSV.
 * gnuplot starts in the folder of the drawings and sees names of this file alone, since it would run a name that begins
 * with '|', and reads quotes and line ends within one. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "plan/op.h"
#include "report/report_tree.h"
#include "report/text_table.h"
#include "result/record_file.h"
#include "yaml/new_file.h"

EMBED(drawings, "experiments/harness/report/report.gp");

/* width, height: variables of gnuplot, in cm; last: how a complete file ends. */
static const struct terminal {
    const char *end, *set, *last;
} terminals[] = {
    {"svg", "svg noenhanced size 56*width,56*height dynamic font 'sans-serif,14' background 'white'", "</svg>"},
    {"pdf", "pdfcairo noenhanced size width cm,height cm font 'sans-serif,8'", "%%EOF"}};
enum { TERMINALS = sizeof terminals / sizeof *terminals };

struct drawing {
    struct region *region;
    const json_t *tree;
    const char *folder;
    bool single_column;
    FILE *gnuplot;
    pid_t pid;
    int files; /* a file of each terminal in turn */
    struct new_file **file;
};

enum status report_check_drawings(const char *folder)
{
    if (system("gnuplot -e 'set terminal svg; set terminal pdfcairo' >/dev/null 2>&1") != 0)
        return fail(ST_MISSING, "report: --figures needs gnuplot with pdfcairo; install gnuplot-nox");
    return record_folder(folder);
}

static const json_t *get(const json_t *object, const char *key) { return json_object_get(object, key); }

static const json_t *run_at(const struct drawing *d, size_t number)
{
    return json_array_get(get(d->tree, "runs"), number);
}

/* A text in gnuplot's single quotes, in which nothing is substituted. */
static const char *quoted(const char *text, struct region *region)
{
    char *copy = region_text(region, "'%s'", text);
    for (char *c = copy + 1; c[1]; c++)
        if (*c == '\'' || (unsigned char)*c < ' ') *c = ' ';
    return copy;
}

/* keys: a number first. gnuplot ends the block at a line that begins with END, and then reads commands: no text may
 * begin a line, nor contain the end of one. */
static void write_rows(struct drawing *d, const char *block, const json_t *rows, const char *keys)
{
    json_auto_t *plain = json_array();
    EACH (rows, i, row) {
        const char *key;
        json_t *value, *copy = json_object();
        json_object_foreach (row, key, value) {
            const char *text = json_string_value(value);
            json_object_set_new(copy, key, text ? json_of_plain(text) : json_incref(value));
        }
        json_array_append_new(plain, copy);
    }
    fprintf(d->gnuplot, "$%s << END\n", block);
    text_csv(plain, keys, d->gnuplot);
    fprintf(d->gnuplot, "END\n");
}

/* Sets names to the texts that the rows have of key, each once. */
static void write_names(struct drawing *d, const json_t *rows, const char *key)
{
    json_auto_t *seen = json_object();
    const char *names = "";
    EACH (rows, i, row) {
        const char *name = json_string_at(row, key);
        if (!get(seen, name)) names = region_text(d->region, "%s \"%s\"", names, name);
        json_object_set_new(seen, name, json_true());
    }
    fprintf(d->gnuplot, "names = %s\n", quoted(names, d->region));
}

static void send_section(struct drawing *d, const char *name)
{
    const char *from = strstr(drawings, region_text(d->region, "\n## %s\n", name)), *to = strstr(from + 1, "\n## ");
    fprintf(d->gnuplot, "%.*s\n", to ? (int)(to - from) : (int)strlen(from), from);
}

/* Draws a section of report.gp as a file of each kind: of that height in cm, if it is as wide as a page. */
static enum status draw(struct drawing *d, const char *section, const char *name, double height, double height_single)
{
    fprintf(d->gnuplot, "single = %d\nwidth = %g\nheight = %g\n", d->single_column, d->single_column ? 8.5 : 17.5,
            d->single_column ? height_single : height);
    for (int i = 0; i < TERMINALS; i++) {
        struct new_file *file;
        NEW(d->region, file, 1);
        TRY(new_file_begin(file, region_text(d->region, "%s/%s.%s", d->folder, name, terminals[i].end)));
        region_grow(d->region, &d->file, d->files, sizeof *d->file);
        d->file[d->files++] = file;
        fprintf(d->gnuplot, "reset\nset terminal %s\nset output '%s'\n", terminals[i].set,
                strrchr(file->name, '/') + 1);
        send_section(d, "common");
        send_section(d, section);
        fprintf(d->gnuplot, "unset output\n");
    }
    return ST_OK;
}

/* ---- the drawings ---- */

/* The ops with their live bytes by category and their phase; the last one again, as the end of its step. */
static void write_live(struct drawing *d, const json_t *ops)
{
    const json_t *phase = get(ops, "phase");
    const size_t count = json_array_size(phase);
    for (int c = 0; c < CATEGORIES; c++) fprintf(d->gnuplot, "category%d,", c);
    fprintf(d->gnuplot, "phase\n");
    for (size_t i = 0; i <= count; i++) {
        const size_t op = i < count ? i : count - 1;
        for (int c = 0; c < CATEGORIES; c++) {
            const json_t *bytes =
                get(get(ops, "live_bytes"), category_names[c]); /* NULL: the plan has none of the last */
            fprintf(d->gnuplot, "%lld,", (long long)json_integer_value(json_array_get(bytes, op)));
        }
        fprintf(d->gnuplot, i < count ? "%d\n" : "\n", (int)json_integer_value(json_array_get(phase, op)));
    }
    fprintf(d->gnuplot, "\n\n");
}

/* A panel a run, of those whose plan the tree has. */
static enum status draw_memory(struct drawing *d, const char *name, const int *run, int runs)
{
    const char *titles = "";
    double most = 0;
    size_t ops = 0, categories = 0;
    int count = 0;
    fprintf(d->gnuplot, "$live << END\n");
    for (int i = 0; i < runs; i++) {
        const json_t *one = run_at(d, (size_t)run[i]), *index = get(one, "plan"), *json = get(one, "/plan");
        if (!json_is_integer(index)) continue;
        const json_t *plan = json_array_get(get(d->tree, "plans"), (size_t)json_integer_value(index));
        const size_t own = json_array_size(get(get(plan, "ops"), "phase"));
        const double peak = json_number_at(json, "live_peak_bytes");
        if (json_array_size(get(plan, "categories")) > categories)
            categories = json_array_size(get(plan, "categories"));
        write_live(d, get(plan, "ops"));
        ops = own > ops ? own : ops;
        most = fmax(most, peak);
        titles = region_text(d->region, "%s \"%s: %s, slowdown %.3f\"", titles, json_string_at(json, "policy"),
                             BYTES_TEXT(peak), json_number_at(json, "slowdown"));
        count++;
    }
    fprintf(d->gnuplot, "END\nruns = %d\nops = %zu\ncategories = %zu\nmost = %.9g\ntitles = %s\n", count, ops,
            categories, most, quoted(titles, d->region));
    return count ? draw(d, "memory", name, 7.5, count > 1 ? 11 : 7) : ST_OK;
}

static enum status draw_choices(struct drawing *d, const json_t *choices)
{
    double most = json_number_at(choices, "slowdown_shown");
    EACH (get(d->tree, "published"), i, point) most = fmax(most, 1.02 * json_number_at(point, "slowdown"));
    write_rows(d, "bound", get(choices, "bound"), "live_peak_bytes slowdown");
    write_rows(d, "plans", get(choices, "plans"), "live_peak_bytes slowdown policy");
    write_rows(d, "published", get(d->tree, "published"), "live_peak_bytes slowdown label");
    write_names(d, get(choices, "plans"), "policy");
    json_auto_t *own = json_array();
    EACH (get(d->tree, "runs"), k, run) json_array_append(own, json_object_get(run, "/plan"));
    write_rows(d, "own", own, "live_peak_bytes slowdown policy");
    fprintf(d->gnuplot, "most = %.9g\n", most);
    return draw(d, "choices", "policies", 8, 9);
}

static const char *policy_of(const struct drawing *d, size_t run)
{
    return json_string_at(get(run_at(d, run), "/plan"), "policy");
}

static enum status draw_losses(struct drawing *d, json_t *pair, const char *name)
{
    json_auto_t *rows = json_rows(get(pair, "losses"));
    const char *a = "a", *b = "b";
    const bool any = json_array_size(rows) > 0;
    json_unpack(pair, "{s:[s, s]}", "names", &a, &b);
    write_rows(d, "losses", rows, "step a b difference");
    const char *of[] = {policy_of(d, (size_t)json_number_at(pair, "a")),
                        policy_of(d, (size_t)json_number_at(pair, "b"))};
    fprintf(d->gnuplot, "names = %s\nof = %s\nmost = %.9g\n",
            quoted(region_text(d->region, "\"%s, %s\" \"%s, %s\"", a, of[0], b, of[1]), d->region),
            quoted(region_text(d->region, "%s %s", of[0], of[1]), d->region),
            json_number_at(get(pair, "losses"), "largest_difference"));
    return any ? draw(d, "pair", name, 8, 8) : ST_OK;
}

/* Sets of to the policy of each curve; "-" where it has several, or another curve has it, too. */
static void write_policies_of(struct drawing *d, const json_t *rows)
{
    json_auto_t *curves = json_object(), *uses = json_object();
    const char *of = "", *curve;
    json_t *policy;
    EACH (rows, i, row) {
        const char *name = json_string_at(row, "curves"), *own = json_string_at(row, "policy"),
                   *known = json_string_at(curves, name);
        PUT(curves, name, known && strcmp(known, own) != 0 ? "-" : own);
    }
    json_object_foreach (curves, curve, policy) {
        const char *own = json_string_value(policy);
        PUT(uses, own, (int)json_number_at(uses, own) + 1);
    }
    json_object_foreach (curves, curve, policy) {
        const char *own = json_string_value(policy);
        of = region_text(d->region, "%s %s", of, json_number_at(uses, own) == 1 ? own : "-");
    }
    fprintf(d->gnuplot, "of = %s\n", quoted(of, d->region));
}

/* Of an axis whose values are numbers. */
static enum status draw_axis(struct drawing *d, const json_t *axis, const char *name)
{
    json_auto_t *rows = json_rows(axis);
    EACH (rows, i, row) {
        const size_t run = (size_t)json_integer_value(json_array_get(get(get(d->tree, "sweep"), "runs"), i));
        json_object_update_missing(row, (json_t *)get(run_at(d, run), "/plan"));
    }
    write_rows(d, "curves", rows, "numbers live_peak_bytes slowdown curves");
    write_names(d, rows, "curves");
    write_policies_of(d, rows);
    fprintf(d->gnuplot, "names_of_axis = %s\n", quoted(json_string_at(axis, "key"), d->region));
    return json_is_array(get(axis, "numbers")) ? draw(d, "sweep", name, 8, 12) : ST_OK;
}

/* ---- all of them ---- */

static enum status draw_all(struct drawing *d)
{
    const json_t *pairs = get(d->tree, "pairs"), *choices = get(d->tree, "choices"), *runs = get(d->tree, "runs");
    const bool many = json_array_size(pairs) > 1;
    double peak = 0;
    EACH (runs, r, run) peak = fmax(peak, json_number_at(get(run, "/plan"), "live_peak_bytes"));
    const json_t *root = get(run_at(d, 0), "/");
    const char *name = json_string_at(root, "title"), *policies = "";
    if (!name || !*name) name = json_string_at(root, "experiment");
    EACH (get(d->tree, "policies"), p, policy)
        policies = region_text(d->region, "%s %s", policies, json_string_value(policy));
    fprintf(d->gnuplot, "largest = %.9g\npolicies = %s\nexperiment = %s\n", peak, quoted(policies, d->region),
            quoted(name ? name : "", d->region));
    EACH (pairs, i, pair) {
        const char *end = many ? region_text(d->region, "-%zu", i + 1) : "";
        const int sides[] = {(int)json_number_at(pair, "a"), (int)json_number_at(pair, "b")};
        TRY(draw_memory(d, region_text(d->region, "memory%s", end), sides, 2));
        TRY(draw_losses(d, pair, region_text(d->region, "losses%s", end)));
    }
    if (!json_array_size(pairs)) TRY(draw_memory(d, "memory", (int[]){0}, 1));
    if (json_is_object(choices)) TRY(draw_choices(d, choices));
    EACH (get(get(d->tree, "sweep"), "axes"), k, axis)
        TRY(draw_axis(d, axis, region_text(d->region, "sweep-%zu", k + 1)));
    return ST_OK;
}

/* Starts gnuplot in the folder; d->gnuplot: what it reads. */
static enum status start(struct drawing *d)
{
    static const char *const arguments[] = {"gnuplot", "--default-settings", NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return fail(ST_FAILED, "gnuplot cannot be started: %s", strerror(errno));
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
    int error = posix_spawn_file_actions_addchdir_np(&files, d->folder);
    if (!error) error = posix_spawnp(&d->pid, *arguments, &files, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    close(ends[0]);
    d->gnuplot = error ? NULL : fdopen(ends[1], "w");
    if (d->gnuplot) return ST_OK;
    close(ends[1]);
    return fail(ST_FAILED, "%s: gnuplot cannot be started there: %s", d->folder, strerror(error ? error : errno));
}

static enum status await(struct drawing *d)
{
    int state = 0;
    const bool sent = fclose(d->gnuplot) == 0, ended = waitpid(d->pid, &state, 0) == d->pid;
    return sent && ended && state == 0 ? ST_OK
                                       : fail(ST_FAILED, "%s: gnuplot failed; its messages are above", d->folder);
}

/* gnuplot succeeds, too, where the disk is full. */
static enum status check_drawn(const struct new_file *file, const char *last)
{
    char found[16] = "";
    const size_t length = sizeof found - 1;
    descriptor_auto int descriptor = -1;
    uint64_t bytes = 0;
    if (file_open(file->name, &descriptor, &bytes) == ST_OK && bytes >= length &&
        file_read(descriptor, file->name, bytes - length, length, found) == ST_OK && strstr(found, last))
        return ST_OK;
    return fail(ST_FAILED, "%s: gnuplot left %llu bytes, which are no complete figure", file->path,
                (unsigned long long)bytes);
}

enum status report_write_drawings(const json_t *tree, const char *folder, bool single_column)
{
    region_auto *region = region_create();
    struct drawing d = {.region = region, .tree = tree, .folder = folder, .single_column = single_column};
    TRY(start(&d));
    const enum status drawn = draw_all(&d), ended = await(&d);
    enum status status = drawn != ST_OK ? drawn : ended;
    for (int i = 0; i < d.files && status == ST_OK; i++) status = check_drawn(d.file[i], terminals[i % TERMINALS].last);
    for (int i = 0; i < d.files; i++) status = new_file_end(d.file[i], status);
    return status;
}
