#include "files.h"

#include <inttypes.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static bool holds(struct region *region, const char *folder, const char *const *probes)
{
    for (; *probes; probes++) {
        if (access(region_text(region, "%s/%s", folder, *probes), F_OK) == 0) return true;
    }
    return false;
}

/* root/FOLDER for each name of the data set's folder, then root itself; NULL: in none of them. */
static const char *find_below(struct dataset *dataset, const struct files_source *source, const char *root)
{
    for (const char *const *name = source->folders; *name; name++) {
        const char *folder = region_text(dataset->region, "%s/%s", root, *name);
        if (holds(dataset->region, folder, source->probes)) return folder;
    }
    return holds(dataset->region, root, source->probes) ? region_text(dataset->region, "%s", root) : NULL;
}

enum status files_find(struct dataset *dataset, const struct files_source *source, const char **folder)
{
    const char *chosen = dataset->settings.path, *environment = getenv("REMATCH_DATA");
    const char *const roots[] = {environment && *environment ? environment : NULL, "data", "/usr/share/datasets"};
    *folder = NULL;
    if (chosen) {
        *folder = find_below(dataset, source, chosen);
        if (*folder) return ST_OK;
        return fail(ST_MISSING, "data set %s: no %s in %s or its folder %s; %s, and set data.path to its folder",
                    dataset->kind->name, source->probes[0], chosen, source->folders[0], source->advice);
    }
    for (size_t i = 0; i < sizeof roots / sizeof *roots && !*folder; i++)
        if (roots[i]) *folder = find_below(dataset, source, roots[i]);
    if (*folder) return ST_OK;
    return fail(
        ST_MISSING,
        "data set %s: no %s in $REMATCH_DATA (%s), data/ or /usr/share/datasets/, nor in a folder %s there; %s; "
        "files of your own go to data/%s/ or to where REMATCH_DATA or data.path says",
        dataset->kind->name, source->probes[0], roots[0] ? roots[0] : "not set", source->folders[0], source->advice,
        source->folders[0]);
}

enum status files_sha256(int descriptor, const char *path, uint64_t bytes, bool (*stop)(void), char text[65])
{
    SHA2_CTX context;
    uint8_t piece[1 << 16];
    SHA256Init(&context);
    for (uint64_t at = 0; at < bytes; at += sizeof piece) {
        const uint64_t rest = bytes - at, now = rest < sizeof piece ? rest : sizeof piece;
        if (stop && stop()) return fail(ST_FAILED, "%s: reading it was stopped by a signal", path);
        TRY(file_read(descriptor, path, at, (size_t)now, piece));
        SHA256Update(&context, piece, (size_t)now);
    }
    SHA256End(&context, text);
    return ST_OK;
}

enum status files_open(struct dataset *dataset, const char *folder, const char *name, struct files_handle *handle)
{
    struct dataset_file *file = &dataset->file[dataset->files];
    if (dataset->files == DATASET_FILES_MAX)
        return fail(ST_FAILED, "data set %s has more than %d files", dataset->kind->name, DATASET_FILES_MAX);
    file->path = region_text(dataset->region, folder ? "%s/%s" : "%s%s", folder ? folder : "", name);
    enum status status = file_open(file->path, &handle->descriptor, &file->bytes);
    if (status != ST_OK)
        return fail(status, "%s; expected: a file of data set %s", status_message(), dataset->kind->name);
    handle->file = file;
    status = file->bytes ? files_sha256(handle->descriptor, file->path, file->bytes, NULL, file->sha256)
                         : fail(ST_FAILED, "%s: the file is empty", file->path);
    if (status == ST_OK)
        dataset->files++;
    else
        close(handle->descriptor);
    return status;
}

enum status files_cut(const struct dataset *dataset, const struct dataset_file *file, int64_t *found)
{
    const int64_t most = dataset->settings.samples;
    if (most > *found)
        return fail(ST_SPEC, "data.samples is %" PRId64 "; expected: at most %" PRId64 ", as many as %s has", most,
                    *found, file->path);
    if (most) *found = most;
    return ST_OK;
}

enum status files_read(const struct files_handle *handle, uint64_t offset, size_t bytes, void *buffer)
{
    return file_read(handle->descriptor, handle->file->path, offset, bytes, buffer);
}
