#include "report/experiment_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/figures.h"
#include "analysis/result_row.h"
#include "base/text.h"
#include "console/arguments.h"
#include "spec/spec_load.h"

struct row {
    struct spec *spec;
    const char *file; /* the newest result, NULL: none */
    struct result_row last;
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

static void print_row(const struct row *row, FILE *out)
{
    const char *created = row->last.created;
    fprintf(out, "%-24s %s\n", row->spec->name, row->spec->title ? row->spec->title : "");
    if (row->file) fprintf(out, "%-24s %s%s%s, %s\n", "", row->last.status, *created ? " " : "", created, row->file);
}

static json_t *row_figures(const struct row *row)
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

static enum status list_one(const char *path, json_t *all, FILE *out)
{
    struct row row = {0};
    TRY(spec_load(path, 0, NULL, &row.spec));
    row.file = newest(region_text(row.spec->region, "%s/%s", row.spec->results, row.spec->name), row.spec->region);
    if (row.file) result_row_read(row.file, &row.last);
    if (row.file && !row.last.readable) row.last = (struct result_row){.status = "unreadable"};
    if (all)
        json_array_append_new(all, row_figures(&row));
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
    if (all) figures_write(all, out);
    return wrong ? fail(ST_SPEC, "%d of %d specs in %s are wrong", wrong, count, folder) : ST_OK;
}
