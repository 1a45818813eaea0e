#include "report/experiment_list.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "console/arguments.h"
#include "result/own_process.h"
#include "result/result.h"
#include "spec/spec.h"
#include "spec/spec_load.h"

/* What is known of the last run. */
struct last {
    char status[RESULT_STATUS], created[64];
};

struct row {
    struct spec *spec;
    const char *file; /* the newest result, NULL: none */
    struct last last;
};

static int is_result(const struct dirent *entry)
{
    return text_ends(entry->d_name, ".h5") || text_ends(entry->d_name, ".h5.part");
}

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
        if (!path || stat(path, &file) != 0) continue;
        bool later =
            file.st_mtim.tv_sec != at.tv_sec ? file.st_mtim.tv_sec > at.tv_sec : file.st_mtim.tv_nsec > at.tv_nsec;
        if (found && !later) continue;
        found = path;
        at = file.st_mtim;
    }
    if (count >= 0) free(entry);
    return found;
}

static void read_last(const void *file, void *last_run)
{
    struct last *last = last_run;
    struct result *result;
    if (result_open(file, &result) != ST_OK) return;
    result_status(result, last->status);
    snprintf(last->created, sizeof last->created, "%s", result->created);
}

/* A file that cannot be read is told as such. */
static void find_last(struct row *row, struct region *region)
{
    const char *folder = region_text(region, "%s/%s", row->spec->results, row->spec->name);
    row->file = folder ? newest(folder, region) : NULL;
    if (!row->file) return;
    row->last = (struct last){"unreadable", ""};
    apart(read_last, row->file, &row->last, sizeof row->last);
}

static void print_row(const struct row *row, FILE *out)
{
    const char *created = row->last.created;
    fprintf(out, "%-24s %s\n", row->spec->name, row->spec->title ? row->spec->title : "");
    if (row->file) fprintf(out, "%-24s %s%s%s, %s\n", "", row->last.status, *created ? " " : "", created, row->file);
}

static json_t *row_json(const struct row *row)
{
    json_t *one = json_object(), *last = row->file ? json_object() : json_null();
    json_object_set_new(one, "name", json_string(row->spec->name));
    json_object_set_new(one, "title", row->spec->title ? json_string(row->spec->title) : json_null());
    json_object_set_new(one, "path", json_string(row->spec->path));
    if (row->file) {
        json_object_set_new(last, "file", json_string(row->file));
        json_object_set_new(last, "status", json_string(row->last.status));
        json_object_set_new(last, "created", json_string(row->last.created));
    }
    json_object_set_new(one, "last", last);
    return one;
}

static enum status list_one(const char *path, json_t *all, FILE *out)
{
    struct row row = {0};
    TRY(spec_load(path, 0, NULL, &row.spec));
    find_last(&row, row.spec->region);
    if (all)
        json_array_append_new(all, row_json(&row));
    else
        print_row(&row, out);
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
        wrong += list_one(path, all, out) != ST_OK;
    }
    free(entry);
    if (all) {
        json_dumpf(all, out, JSON_INDENT(2));
        fputc('\n', out);
        json_decref(all);
    }
    return wrong ? fail(ST_SPEC, "%d of %d specs in %s are wrong", wrong, count, folder) : ST_OK;
}
