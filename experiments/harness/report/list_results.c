#include "report/list_results.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/result_row.h"
#include "base/text.h"
#include "base/units.h"
#include "console/arguments.h"
#include "console/columns.h"
#include "yaml/yaml_write.h"

struct run {
    const char *folder, *path, *id; /* folder "": the one that is listed */
    struct result_row row;
    const char *baseline, *verdict; /* of a variant: the file that it is compared with, NULL: none */
};

struct runs {
    struct region *region;
    const char *folder;
    struct run *run;
    size_t count, room;
};

/* ---- finding ---- */

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

static enum status add_run(struct runs *r, const char *folder, const char *name)
{
    if (r->count == r->room) {
        struct run *larger;
        r->room = r->room ? 2 * r->room : 16;
        NEW(r->region, larger, r->room);
        if (r->count) memcpy(larger, r->run, r->count * sizeof *larger);
        r->run = larger;
    }
    struct run *run = &r->run[r->count++];
    const char *between = *folder ? "/" : "";
    *run = (struct run){.folder = folder,
                        .path = region_text(r->region, "%s/%s%s%s", r->folder, folder, between, name),
                        .id = region_text(r->region, "%.*s", (int)(strstr(name, ".h5") - name), name),
                        .verdict = "-"};
    if (!run->path || !run->id) return ST_FAILED;
    result_row_read(run->path, &run->row);
    return ST_OK;
}

static enum status add_folder(struct runs *r, const char *folder)
{
    struct dirent **entry;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", r->folder, folder);
    const int count = scandir(path, &entry, is_result, alphasort);
    enum status status = ST_OK;
    for (int i = 0; i < count; i++) {
        if (status == ST_OK) status = add_run(r, folder, entry[i]->d_name);
        free(entry[i]);
    }
    if (count >= 0) free(entry);
    return status;
}

static enum status find_runs(struct runs *r)
{
    struct dirent **entry;
    TRY(add_folder(r, ""));
    const int count = scandir(r->folder, &entry, is_folder, alphasort);
    if (count < 0) return fail(ST_SPEC, "%s: cannot be read: %s", r->folder, strerror(errno));
    enum status status = ST_OK;
    for (int i = 0; i < count; i++) {
        const char *name = region_text(r->region, "%s", entry[i]->d_name);
        if (status == ST_OK) status = name ? add_folder(r, name) : ST_FAILED;
        free(entry[i]);
    }
    free(entry);
    return status;
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

/* How well baseline fits run, -1: not at all. */
static int fitness(const struct run *run, const struct run *baseline)
{
    if (!completed(baseline, "baseline") || strcmp(baseline->folder, run->folder)) return -1;
    if (!digest_equal(baseline->row.trains, run->row.trains)) return -1;
    return 2 * !strcmp(baseline->row.invocation, run->row.invocation) + digest_equal(baseline->row.how, run->row.how);
}

static void judge(const struct runs *r, struct run *run)
{
    int best = -1;
    if (!completed(run, "variant")) return;
    for (size_t i = 0; i < r->count; i++) { /* later ones are newer */
        const int fits = fitness(run, &r->run[i]);
        if (fits < 0 || fits < best) continue;
        best = fits;
        run->baseline = r->run[i].path;
    }
    if (run->baseline) run->verdict = result_row_verdict(run->baseline, run->path);
}

/* ---- printing ---- */

/* What the table says of how a run ended. */
static const char *outcome(const struct run *run)
{
    if (!run->row.readable) return "unreadable";
    if (!run->row.whole) return run->row.status;
    return strcmp(run->row.variant, "variant") ? run->row.variant : run->verdict;
}

static void print_text(const struct runs *r, FILE *out)
{
    static const struct column column[] = {{"experiment", .rank = 1, .least = 8},
                                           {"run", .least = 9},
                                           {"policy", .least = 8},
                                           {"batch", .right = true},
                                           {"peak", .right = true},
                                           {"step", .right = true},
                                           {"verdict", .least = 9},
                                           {"overrides", .rank = 2, .least = 10},
                                           {"created", .rank = 3}};
    struct columns table;
    bool folders = false;
    for (size_t i = 0; i < r->count; i++) folders |= *r->run[i].folder != '\0';
    columns_begin(&table, column + !folders, sizeof column / sizeof *column - !folders);
    for (size_t i = 0; i < r->count; i++) {
        const struct run *run = &r->run[i];
        const struct result_row *row = &run->row;
        char text[UNIT_TEXT];
        if (folders) columns_cell(&table, "%s", run->folder);
        columns_cell(&table, "%s", run->id);
        columns_cell(&table, "%s", row->policy);
        columns_cell(&table, "%s", row->batch);
        columns_cell(&table, "%s", row->readable ? bytes_text((double)row->peak, text) : "-");
        columns_cell(&table, "%s", row->step_ns > 0 ? duration_text((uint64_t)row->step_ns, text) : "-");
        columns_cell(&table, "%s", outcome(run));
        columns_cell(&table, "%s", row->overrides);
        columns_cell(&table, "%.16s", row->created);
    }
    columns_print(&table, out);
    for (size_t i = 0; i < r->count; i++)
        if (!r->run[i].row.readable) fprintf(out, "%s\n", r->run[i].row.status);
}

/* A figure of a run, in the order of the CSV's columns. */
struct cell {
    const char *key, *text; /* text NULL: the number */
    double number;          /* 0: not known */
};
enum { CELLS = 15 };

static void cells_of(const struct run *run, struct cell cell[CELLS])
{
    const struct result_row *row = &run->row;
    const struct cell all[] = {{"experiment", run->folder},
                               {"run", run->id},
                               {"file", run->path},
                               {"side", row->variant},
                               {"policy", row->policy},
                               {"batch", row->batch},
                               {"steps", NULL, (double)row->steps},
                               {"peak_bytes", NULL, (double)row->peak},
                               {"live_peak_bytes", NULL, (double)row->live_peak},
                               {"step_ns", NULL, row->step_ns},
                               {"status", row->readable ? row->status : "unreadable"},
                               {"verdict", run->verdict},
                               {"baseline", run->baseline ? run->baseline : ""},
                               {"overrides", row->overrides},
                               {"created", row->created}};
    _Static_assert(sizeof all / sizeof *all == CELLS, "a cell a column");
    memcpy(cell, all, sizeof all);
}

static void print_csv(const struct runs *r, FILE *out)
{
    struct cell cell[CELLS];
    cells_of(&(struct run){.verdict = ""}, cell);
    for (int c = 0; c < CELLS; c++) fprintf(out, "%s,", cell[c].key);
    fprintf(out, "reason\n");
    for (size_t i = 0; i < r->count; i++) {
        cells_of(&r->run[i], cell);
        for (int c = 0; c < CELLS; c++)
            if (cell[c].text)
                yaml_write_csv(cell[c].text, ",", out);
            else if (cell[c].number > 0)
                fprintf(out, "%.0f,", cell[c].number);
            else
                fputc(',', out);
        yaml_write_csv(r->run[i].row.readable ? "" : r->run[i].row.status, "\n", out);
    }
}

static void print_json(const struct runs *r, FILE *out)
{
    json_t *all = json_array();
    for (size_t i = 0; i < r->count; i++) {
        struct cell cell[CELLS];
        json_t *one = json_object();
        cells_of(&r->run[i], cell);
        for (int c = 0; c < CELLS; c++)
            json_object_set_new(one, cell[c].key,
                                cell[c].text         ? json_string(cell[c].text)
                                : cell[c].number > 0 ? json_integer((json_int_t)cell[c].number)
                                                     : json_null());
        json_object_set_new(one, "reason", r->run[i].row.readable ? json_null() : json_string(r->run[i].row.status));
        json_array_append_new(all, one);
    }
    json_dumpf(all, out, JSON_INDENT(2));
    fputc('\n', out);
    json_decref(all);
}

enum status list_results(const char *folder, enum list_form form, FILE *out)
{
    static void (*const print[])(const struct runs *, FILE *) = {print_text, print_csv, print_json};
    struct runs r = {.region = region_create(), .folder = folder};
    if (!r.region) return fail(ST_FAILED, "out of memory for a list");
    const enum status status = find_runs(&r);
    if (status == ST_OK && r.count) {
        qsort(r.run, r.count, sizeof *r.run, by_creation);
        for (size_t i = 0; i < r.count; i++) judge(&r, &r.run[i]);
    }
    if (status == ST_OK) print[form](&r, out);
    region_destroy(r.region);
    return status;
}
