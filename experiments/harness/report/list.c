#include "report/list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/result_row.h"
#include "base/text.h"
#include "console/arguments.h"
#include "report/figures_text.h"
#include "spec/spec_load.h"

struct run {
    const char *folder, *path, *id; /* folder "": the one that is listed */
    struct result_row row;
    const char *baseline, *verdict; /* of a variant: the file that it is compared with, NULL: none */
};

struct runs {
    struct region *region;
    const char *folder;
    struct run *run;
    int count;
};

/* ---- finding runs ---- */

static bool is_result_name(const char *name) { return text_ends(name, ".h5") || text_ends(name, ".h5.part"); }

static int is_result(const struct dirent *entry) { return is_result_name(entry->d_name); }

static int is_folder(const struct dirent *entry) { return entry->d_name[0] != '.' && !is_result_name(entry->d_name); }

static int count_entries(const char *folder, int (*wanted)(const struct dirent *))
{
    struct dirent **entry;
    const int count = scandir(folder, &entry, wanted, NULL);
    for (int i = 0; i < count; i++) free(entry[i]);
    if (count >= 0) free(entry);
    return count;
}

bool list_is_results(const char *folder)
{
    struct dirent **entry;
    if (count_entries(folder, arguments_is_spec) > 0) return false;
    bool found = count_entries(folder, is_result) > 0;
    const int count = scandir(folder, &entry, is_folder, NULL);
    for (int i = 0; i < count; i++) {
        char below[4096];
        snprintf(below, sizeof below, "%s/%s", folder, entry[i]->d_name);
        found = found || count_entries(below, is_result) > 0;
        free(entry[i]);
    }
    if (count >= 0) free(entry);
    return found;
}

static void add_run(struct runs *r, const char *folder, const char *name)
{
    region_grow(r->region, &r->run, r->count, sizeof *r->run);
    struct run *run = &r->run[r->count++];
    *run = (struct run){.folder = folder,
                        .path = region_text(r->region, "%s/%s%s%s", r->folder, folder, *folder ? "/" : "", name),
                        .id = region_text(r->region, "%.*s", (int)(strstr(name, ".h5") - name), name),
                        .verdict = "-"};
    result_row_read(run->path, &run->row);
}

static void add_folder(struct runs *r, const char *folder)
{
    struct dirent **entry;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", r->folder, folder);
    const int count = scandir(path, &entry, is_result, alphasort);
    for (int i = 0; i < count; i++) {
        add_run(r, folder, entry[i]->d_name);
        free(entry[i]);
    }
    if (count >= 0) free(entry);
}

static enum status find_runs(struct runs *r)
{
    struct dirent **entry;
    add_folder(r, "");
    const int count = scandir(r->folder, &entry, is_folder, alphasort);
    if (count < 0) return fail(ST_SPEC, "%s: cannot be read: %s", r->folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        add_folder(r, region_text(r->region, "%s", entry[i]->d_name));
        free(entry[i]);
    }
    free(entry);
    return ST_OK;
}

static int by_creation(const void *left, const void *right)
{
    const struct run *a = left, *b = right;
    const int folders = strcmp(a->folder, b->folder), created = strcmp(a->row.created, b->row.created);
    return folders ? folders : created ? created : strcmp(a->path, b->path);
}

/* ---- verdicts ---- */

static bool completed(const struct run *run, const char *variant)
{
    return run->row.readable && run->row.whole && !strcmp(run->row.variant, variant);
}

/* How well a baseline matches a run; -1: it does not. */
static int match(const struct run *run, const struct run *baseline)
{
    if (!completed(baseline, "baseline") || strcmp(baseline->folder, run->folder)) return -1;
    if (!digest_equal(baseline->row.trains, run->row.trains)) return -1;
    return 2 * !strcmp(baseline->row.invocation, run->row.invocation) + digest_equal(baseline->row.how, run->row.how);
}

static void judge(const struct runs *r, struct run *run)
{
    int best = -1;
    if (!completed(run, "variant")) return;
    for (int i = 0; i < r->count; i++) { /* later ones are newer */
        const int matches = match(run, &r->run[i]);
        if (matches < 0 || matches < best) continue;
        best = matches;
        run->baseline = r->run[i].path;
    }
    if (run->baseline) run->verdict = result_row_verdict(run->baseline, run->path);
}

/* ---- printing runs ---- */

/* How a run ended, in the text's table. */
static const char *outcome(const struct run *run)
{
    if (!run->row.readable) return "unreadable";
    if (!run->row.whole) return run->row.status;
    return strcmp(run->row.variant, "variant") ? run->row.variant : run->verdict;
}

static json_t *run_figures(const struct run *run)
{
    const struct result_row *row = &run->row;
    json_t *one = json_object();
    PUT(one, "experiment", run->folder);
    PUT(one, "run", run->id);
    PUT(one, "file", run->path);
    PUT(one, "side", row->variant);
    PUT(one, "policy", row->policy);
    PUT(one, "batch", row->batch);
    PUT(one, "steps", row->steps ? figure_unsigned(row->steps) : json_null());
    PUT(one, "peak_bytes", row->peak ? figure_unsigned(row->peak) : json_null());
    PUT(one, "live_peak_bytes", row->live_peak ? figure_unsigned(row->live_peak) : json_null());
    PUT(one, "step_ns", row->step_ns > 0 ? figure_integer((int64_t)row->step_ns) : json_null());
    PUT(one, "status", row->readable ? row->status : "unreadable");
    PUT(one, "verdict", run->verdict);
    PUT(one, "baseline", run->baseline ? run->baseline : "");
    PUT(one, "overrides", row->overrides);
    PUT(one, "created", row->created);
    PUT(one, "reason", row->readable ? NULL : row->status);
    return one;
}

static void print_text(const struct runs *r, const json_t *rows, FILE *out)
{
    static const char keys[] = "experiment run policy batch peak_bytes step_ns outcome overrides created";
    bool folders = false;
    for (int i = 0; i < r->count; i++) {
        folders |= *r->run[i].folder != '\0';
        PUT(json_array_get(rows, (size_t)i), "outcome", outcome(&r->run[i]));
    }
    figures_table(rows, folders ? keys : strchr(keys, ' ') + 1, 0, false, out);
    for (int i = 0; i < r->count; i++)
        if (!r->run[i].row.readable) fprintf(out, "%s\n", r->run[i].row.status);
}

static void print_csv(const json_t *rows, FILE *out)
{
    figures_csv(rows,
                "experiment run file side policy batch steps peak_bytes live_peak_bytes step_ns status verdict "
                "baseline overrides created reason",
                out);
}

enum status list_results(const char *folder, enum list_form form, FILE *out)
{
    struct runs r = {.region = region_create(), .folder = folder};
    json_t *rows = json_array();
    const enum status status = find_runs(&r);
    if (r.count) qsort(r.run, (size_t)r.count, sizeof *r.run, by_creation);
    for (int i = 0; i < r.count; i++) judge(&r, &r.run[i]);
    for (int i = 0; i < r.count; i++) json_array_append_new(rows, run_figures(&r.run[i]));
    if (status == ST_OK && form == LIST_JSON) figures_write(json_incref(rows), out);
    if (status == ST_OK && form == LIST_CSV) print_csv(rows, out);
    if (status == ST_OK && form == LIST_TEXT) print_text(&r, rows, out);
    json_decref(rows);
    region_destroy(r.region);
    return status;
}

/* ---- experiments ---- */

struct experiment_row {
    struct spec *spec;
    const char *file; /* the newest result, NULL: none */
    struct result_row last;
};

/* The result file in folder that was changed last. */
static const char *newest(const char *folder, struct region *region)
{
    struct dirent **entry;
    struct stat file;
    const char *found = NULL;
    struct timespec at = {0};
    int count = scandir(folder, &entry, is_result, alphasort);
    for (int i = 0; i < count; i++) {
        const char *path = region_text(region, "%s/%s", folder, entry[i]->d_name);
        free(entry[i]);
        if (stat(path, &file) != 0) continue;
        bool later =
            file.st_mtim.tv_sec != at.tv_sec ? file.st_mtim.tv_sec > at.tv_sec : file.st_mtim.tv_nsec > at.tv_nsec;
        if (found && !later) continue;
        found = path;
        at = file.st_mtim;
    }
    if (count >= 0) free(entry);
    return found;
}

static void print_experiment(const struct experiment_row *row, FILE *out)
{
    const char *created = row->last.created;
    fprintf(out, "%-24s %s\n", row->spec->name, row->spec->title ? row->spec->title : "");
    if (row->file) fprintf(out, "%-24s %s%s%s, %s\n", "", row->last.status, *created ? " " : "", created, row->file);
}

static json_t *experiment_figures(const struct experiment_row *row)
{
    json_t *one = json_object(), *last = row->file ? json_object() : json_null();
    PUT(one, "name", row->spec->name);
    PUT(one, "title", row->spec->title);
    PUT(one, "path", row->spec->path);
    PUT(one, "last", last);
    if (!row->file) return one;
    PUT(last, "file", row->file);
    PUT(last, "status", row->last.status);
    PUT(last, "created", row->last.created);
    return one;
}

static enum status list_experiment(const char *path, json_t *all, FILE *out)
{
    struct experiment_row row = {0};
    TRY(spec_load(path, 0, NULL, &row.spec));
    row.file = newest(region_text(row.spec->region, "%s/%s", row.spec->results, row.spec->name), row.spec->region);
    if (row.file) result_row_read(row.file, &row.last);
    if (row.file && !row.last.readable) row.last = (struct result_row){.status = "unreadable"};
    if (all)
        json_array_append_new(all, experiment_figures(&row));
    else
        print_experiment(&row, out);
    spec_destroy(row.spec);
    return ST_OK;
}

enum status list_experiments(const char *folder, bool json, FILE *out)
{
    struct dirent **entry;
    int count = scandir(folder, &entry, arguments_is_spec, alphasort), wrong = 0;
    if (count < 0) return fail(ST_SPEC, "%s: cannot be read: %s", folder, strerror(errno));
    json_t *all = json ? json_array() : NULL;
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        free(entry[i]);
        wrong += list_experiment(path, all, out) != ST_OK;
    }
    free(entry);
    if (all) figures_write(all, out);
    return wrong ? fail(ST_SPEC, "%d of %d specs in %s are wrong", wrong, count, folder) : ST_OK;
}
