#include "report/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/result_row.h"
#include "base/text.h"
#include "console/arguments.h"
#include "console/terminal.h"
#include "console/utf8.h"
#include "console/work_line.h"
#include "report/text_table.h"
#include "spec/spec.h"

/* ---- folders ---- */

static bool is_result_name(const char *name)
{
    return (text_ends(name, ".h5") || text_ends(name, ".h5.part")) && utf8_is_plain(name);
}

static int is_result(const struct dirent *entry) { return is_result_name(entry->d_name); }

static int is_folder(const struct dirent *entry) { return entry->d_name[0] != '.' && !is_result_name(entry->d_name); }

/* Appends the paths of a folder's files to count others; returns how many there are. */
static int add_folder(const char ***path, int count, const char *folder, struct region *region)
{
    const char **name = arguments_entries(*folder ? folder : "/", is_result, region);
    for (; name && *name; name++) {
        region_grow(region, path, count, sizeof **path);
        (*path)[count++] = region_text(region, "%s/%s", folder, *name);
    }
    return count;
}

/* Of all files in root and in its folders, which are called like experiments. */
static json_t *rows_below(const char *root, struct region *region)
{
    const char **folder = arguments_entries(root, is_folder, region), **path = NULL;
    int count = add_folder(&path, 0, root, region);
    for (; folder && *folder; folder++)
        count = add_folder(&path, count, region_text(region, "%s/%s", root, *folder), region);
    json_auto_t *rows = result_rows(path, (size_t)count);
    json_t *runs = json_array(), *run;
    for (int k = 0; k < count; k++) {
        const char *below = path[k] + strlen(root) + 1, *slash = strchr(below, '/'), *name = slash ? slash + 1 : below;
        ADD(runs, run = OBJECT(KEY("experiment", region_text(region, "%.*s", slash ? (int)(slash - below) : 0, below)),
                               KEY("run", region_text(region, "%.*s", (int)(strstr(name, ".h5") - name), name)),
                               KEY("file", path[k])));
        json_object_update(run, json_array_get(rows, (size_t)k));
    }
    return runs;
}

static int by_creation(const void *left, const void *right)
{
    static const char *const keys[] = {"experiment", "created", "file"};
    const json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
    int order = 0;
    for (int i = 0; i < 3 && !order; i++) order = strcmp(json_string_at(a, keys[i]), json_string_at(b, keys[i]));
    return order;
}

/* ---- verdicts ---- */

static bool completed(const json_t *run, const char *side)
{
    return result_row_is_whole(run) && !strcmp(json_string_at(run, "side"), side);
}

/* Puts "verdict" and "baseline" of each variant that has one. */
static void add_verdicts(const json_t *runs, struct region *region)
{
    json_auto_t *baselines = result_baselines(runs);
    struct result_pair *pair;
    json_t **of;
    size_t pairs = 0;
    NEW(region, pair, json_array_size(runs));
    NEW(region, of, json_array_size(runs));
    EACH (runs, i, run) {
        const json_t *baseline = completed(run, "variant") ? result_row_baseline(baselines, run) : NULL;
        if (!baseline) continue;
        pair[pairs] = (struct result_pair){json_string_at(baseline, "file"), json_string_at(run, "file")};
        of[pairs++] = run;
    }
    json_auto_t *verdicts = result_verdicts(pair, pairs);
    for (size_t k = 0; k < pairs; k++) {
        PUT(of[k], "baseline", pair[k].baseline);
        json_object_set(of[k], "verdict", json_array_get(verdicts, k));
    }
}

json_t *list_runs(const char *folder)
{
    region_auto *region = region_create();
    json_t *rows = json_array(), **sorted;
    work_line_begin();
    json_auto_t *found = rows_below(folder, region);
    add_verdicts(found, region);
    work_line_end();
    NEW(region, sorted, json_array_size(found));
    EACH (found, i, one) sorted[i] = one;
    qsort(sorted, json_array_size(found), sizeof *sorted, by_creation);
    for (size_t i = 0; i < json_array_size(found); i++) json_array_append(rows, sorted[i]);
    return rows;
}

const char *list_verdict(const char *path, struct region *region)
{
    enum { MOST = 200 };
    static const char *const says[][2] = {{"equal", "equal to its baseline in every bit: "},
                                          {"DIFFERS", "DIFFERS from its baseline, rematch compare says where: "},
                                          {"unproven", "no proof, rematch compare says why: equal to "},
                                          {"-", "cannot be compared with "}};
    const char *end = strrchr(path, '/'), *folder = end ? region_text(region, "%.*s", (int)(end - path), path) : ".";
    const char **file = NULL;
    const int files = add_folder(&file, 0, folder, region);
    if (!file) return "none: not a whole run";
    if (files > MOST) return region_text(region, "rematch list %s has it: the folder has %d files", folder, files);
    json_auto_t *rows = result_rows(file, (size_t)files);
    json_t *row_of = NULL;
    EACH (rows, k, row) {
        PUT_ALL(row, KEY("experiment", ""), KEY("file", file[k]));
        if (!strcmp(file[k] + strlen(folder) + 1, end ? end + 1 : path)) row_of = row;
    }
    if (!completed(row_of, "variant"))
        return completed(row_of, "baseline") ? "a baseline, with which variants are compared" : "none: not a whole run";
    json_auto_t *baselines = result_baselines(rows);
    const char *baseline = json_string_at(result_row_baseline(baselines, row_of), "file");
    if (!baseline) return "none: its folder has no baseline that trains the same";
    json_auto_t *found = result_verdicts(&(struct result_pair){baseline, path}, 1);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (!strcmp(says[i][0], json_string_value(json_array_get(found, 0))))
            return region_text(region, "%s%s", says[i][1], baseline);
    return "none";
}

/* ---- printing runs ---- */

/* How a run ended, in the text's table. */
static const char *outcome(const json_t *run)
{
    if (!result_row_is_whole(run)) return json_string_at(run, "status");
    return json_string_at(run, completed(run, "variant") ? "verdict" : "side");
}

static const json_t *of_match(const json_t *run, const char *which, const char *key)
{
    return json_object_get(json_object_get(json_object_get(run, "match"), which), key);
}

/* Puts the value that each run has of a key that others override, where it is known: what the key was for another of
 * the same side of the experiment. */
static void put_values(const json_t *runs, const char *key)
{
    json_auto_t *before = json_object(); /* by experiment and side */
    for (int pass = 0; pass < 2; pass++) {
        EACH (runs, i, run) {
            char of[512];
            snprintf(of, sizeof of, "%s/%s", json_string_at(run, "experiment"), json_string_at(run, "side"));
            const json_t *set = of_match(run, "set", key), *was = of_match(run, "was", key);
            if (!pass && was) json_object_set(before, of, (json_t *)was);
            if (!pass) continue;
            const json_t *value = set ? set : json_object_get(before, of);
            if (value && (strncmp(key, "policy", 6) != 0 || strcmp(json_string_at(run, "side"), "baseline") != 0))
                json_object_set(run, key, (json_t *)value); /* a baseline's policy is store_all */
        }
    }
}

static bool any_resumed(const json_t *runs)
{
    bool any = false;
    EACH (runs, i, run) any |= json_is_true(json_object_get(run, "resumed"));
    return any;
}

/* The columns: keys that overrides set, then the others. */
static const char *columns_of(const json_t *runs, bool folders, struct region *region)
{
    enum { SHOWN = 12 };
    static const char *const others[] = {"run",     "policy",  "batch",   "peak_bytes", "step_ns",
                                         "outcome", "resumed", "created", NULL};
    json_auto_t *all = json_object(), *columns = json_object();
    const char *key, *keys = folders ? "experiment" : "";
    json_t *value;
    EACH (runs, i, run) json_object_update_missing(all, json_object_get(json_object_get(run, "match"), "set"));
    json_object_foreach (all, key, value) {
        const bool named = !strcmp(key, "policy.name"); /* there is a column for it */
        if (strchr(key, ' ') || json_object_size(columns) == SHOWN) continue;
        if (!named) put_values(runs, key);
        PUT(columns, named ? "policy" : key, json_true());
    }
    for (const char *const *other = others; *other; other++)
        if (strcmp(*other, "resumed") != 0 || any_resumed(runs)) PUT(columns, *other, json_true());
    json_object_foreach (columns, key, value) {
        keys = region_text(region, "%s%s%s", keys, *keys ? " " : "", key);
    }
    return keys;
}

/* First the keys in which the runs differ; what all share is said once. */
static void print_text(const json_t *runs, FILE *out)
{
    region_auto *region = region_create();
    json_auto_t *readable = json_array();
    bool folders = false;
    EACH (runs, i, run) {
        folders |= *json_string_at(run, "experiment") != '\0';
        PUT_ALL(run, KEY("outcome", outcome(run)), KEY("resumed", json_boolean(json_number_at(run, "pieces") > 1)));
        if (!json_string_at(run, "reason")) json_array_append(readable, run);
    }
    const char *keys = text_unshared(readable, columns_of(runs, folders, region), "run", region, out);
    text_table(runs, keys, 0, false, out);
    EACH (runs, k, row)
        if (json_string_at(row, "reason")) fprintf(out, "%s\n", json_string_at(row, "reason"));
}

/* ---- experiments ---- */

/* The result file in folder that was changed last; NULL: none. */
static const char *newest(const char *folder, struct region *region)
{
    struct stat file;
    const char **name = arguments_entries(folder, is_result, region), *found = NULL;
    int64_t at = 0;
    for (; name && *name; name++) {
        const char *path = region_text(region, "%s/%s", folder, *name);
        if (stat(path, &file) != 0) continue;
        const int64_t changed = file.st_mtim.tv_sec * INT64_C(1000000000) + file.st_mtim.tv_nsec;
        if (found && changed <= at) continue;
        found = path;
        at = changed;
    }
    return found;
}

static enum status add_experiment(const char *path, json_t *all)
{
    spec_auto *spec = NULL;
    TRY(report_error(spec_load(path, 0, NULL, &spec)));
    const char *file = newest(region_text(spec->region, "%s/%s", spec->results, spec->name), spec->region);
    json_auto_t *row = file ? result_row(file) : NULL;
    json_t *last = json_null();
    if (row)
        last = OBJECT(KEY("file", file), KEY("status", json_string_at(row, "status")),
                      KEY("created", json_string_at(row, "created")));
    ADD(all, OBJECT(KEY("name", spec->name), KEY("title", spec->title), KEY("path", spec->path), KEY("last", last)));
    return ST_OK;
}

static void print_experiments(const json_t *all, FILE *out)
{
    EACH (all, i, one) {
        const json_t *last = json_object_get(one, "last");
        const char *title = json_string_at(one, "title"), *created = json_string_at(last, "created");
        fprintf(out, "%-24s %s\n", json_string_at(one, "name"), title ? title : "");
        if (created)
            fprintf(out, "%-24s %s%s%s, %s\n", "", json_string_at(last, "status"), *created ? " " : "", created,
                    json_string_at(last, "file"));
    }
}

static enum status list_experiments(const char *folder, const char **name, bool json, FILE *out)
{
    json_auto_t *all = json_array();
    int specs = 0, wrong = 0;
    for (; name[specs]; specs++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, name[specs]);
        wrong += add_experiment(path, all) != ST_OK;
    }
    if (json)
        json_answer(OBJECT(KEY("experiments", json_incref(all))), "list", out);
    else
        print_experiments(all, out);
    return wrong ? fail(ST_SPEC, "%d of %d specs in %s are wrong", wrong, specs, folder) : ST_OK;
}

enum status list_folder(struct arguments *arguments)
{
    struct region *region = arguments->region;
    const bool json = arguments->given[OPTION_JSON];
    const char *folder = arguments->operands ? arguments->operand[0] : arguments_experiments(region);
    const char **specs = arguments_entries(folder, arguments_is_spec, region);
    if (!specs) return fail(ST_SPEC, "%s: cannot be read: %s", folder, strerror(errno));
    json_auto_t *runs = *specs ? NULL : list_runs(folder);
    if (!json_array_size(runs)) return list_experiments(folder, specs, json, stdout);
    if (!json) print_text(runs, stdout);
    EACH (json ? runs : NULL, i, run) json_object_del(run, "match");
    if (json) json_answer(OBJECT(KEY("runs", json_incref(runs))), "list", stdout);
    return ST_OK;
}
