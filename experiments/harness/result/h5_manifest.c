/* Contract: every object of a file that passes holds what was written to it, even where the system lost a write that it
 * reported as done. Text is compared as the readers of h5.h return it, after their cleaning. */
#include "result/h5_manifest.h"

#include <hdf5_hl.h>
#include <stdlib.h>
#include <string.h>

#include "console/utf8.h"

enum { SLICE_BYTES = 1 << 20, SCALE_NAME = 64 };

struct h5_manifest {
    struct region *region;
    struct h5_entry *entry;
    int entries;
};

struct h5_manifest *h5_manifest_create(void)
{
    struct region *region = region_create();
    struct h5_manifest *m = region_array(region, 1, sizeof *m);
    m->region = region;
    return m;
}

void h5_manifest_destroy(struct h5_manifest *manifest)
{
    if (manifest) region_destroy(manifest->region);
}

/* ---- recording ---- */

enum status h5_manifest_open(struct h5_manifest *manifest, struct h5 *h5, const char *path, enum h5_mode mode)
{
    TRY(h5_open(h5, path, mode));
    h5->manifest = manifest;
    for (int i = 0; i < manifest->entries; i++) manifest->entry[i].dataset = -1;
    return ST_OK;
}

struct h5_entry *h5_manifest_entry(struct h5_manifest *manifest, enum h5_kind kind, const char *path, const char *name)
{
    struct h5_manifest *m = manifest;
    for (int i = 0; i < m->entries; i++) {
        struct h5_entry *e = &m->entry[i];
        if (e->kind == kind && strcmp(e->path, path) == 0 && strcmp(e->name, name) == 0) return e;
    }
    region_grow(m->region, &m->entry, m->entries, sizeof *m->entry);
    m->entry[m->entries] = (struct h5_entry){.kind = kind,
                                             .path = region_text(m->region, "%s", path),
                                             .name = region_text(m->region, "%s", name),
                                             .dataset = -1};
    return &m->entry[m->entries++];
}

static size_t row_bytes(const struct h5_entry *e) { return (size_t)e->width * h5_number_bytes(e->number); }

/* Of the text as it is read back. Only a scalar may have line breaks. */
static struct digest digest_text(const char *text, bool alone)
{
    const size_t bytes = text ? strlen(text) : 0;
    char *copy = memcpy(allocate(bytes + 1, 1), bytes ? text : "", bytes);
    utf8_clean(copy, alone ? "\n\t" : "");
    const struct digest digest = digest_bytes(copy, strlen(copy));
    free(copy);
    return digest;
}

/* Row by row, because rows may be written by any number of calls. */
void h5_entry_add(struct h5_entry *entry, uint64_t count, const void *rows)
{
    for (uint64_t i = 0; i < count; i++) {
        const char *row = (const char *)rows + i * row_bytes(entry);
        const struct digest both[] = {entry->digest, entry->number == NUMBER_TEXT
                                                         ? digest_text(*(const char *const *)row, entry->alone)
                                                         : digest_bytes(row, row_bytes(entry))};
        entry->digest = digest_bytes(both, sizeof both);
    }
    entry->written += count;
    if (entry->written > entry->extent) entry->extent = entry->written;
}

/* ---- reading back ---- */

static bool attribute_holds(struct h5 *h5, const struct h5_entry *e, struct h5_entry *found, struct region *region)
{
    union {
        uint64_t number;
        const char *text;
    } value = {0};
    h5_read_value(h5, e->path, e->name, e->number, false, &value, region);
    h5_entry_add(found, 1, &value);
    return true;
}

/* An array in slices; rows that were never written are not read. */
static bool data_holds(struct h5 *h5, const struct h5_entry *e, struct h5_entry *found, struct region *region)
{
    const size_t bytes = row_bytes(e);
    const uint64_t most = bytes < SLICE_BYTES ? SLICE_BYTES / (bytes + !bytes) : 1;
    if (e->number == NUMBER_TEXT) {
        size_t count;
        const char **texts = h5_read_texts(h5, e->path, region, &count);
        h5_entry_add(found, count, texts);
        return count == e->extent;
    }
    if (h5_rows(h5, e->path) != e->extent) return false;
    if (e->written && e->written != e->extent) return false;
    char *rows = allocate(most < e->written ? most : e->written, bytes + 1);
    for (uint64_t first = 0, count; !h5->broken && first < e->written; first += count) {
        count = e->written - first < most ? e->written - first : most;
        h5_read_rows(h5, e->path, e->number, (size_t)e->width, first, count, rows);
        h5_entry_add(found, count, rows);
    }
    free(rows);
    return true;
}

static bool scale_holds(struct h5 *h5, const struct h5_entry *e, struct h5_entry *found, struct region *region)
{
    char name[SCALE_NAME] = "";
    (void)found, (void)region;
    h5_guard(h5);
    const hid_t id = h5_dataset(h5, e->path);
    const bool ok = id >= 0 && H5DSis_scale(id) > 0 && H5DSget_scale_name(id, name, sizeof name) >= 0;
    h5_drop(h5, id, e->path);
    h5_release(h5);
    return ok && strcmp(name, e->name) == 0;
}

static bool attached_holds(struct h5 *h5, const struct h5_entry *e, struct h5_entry *found, struct region *region)
{
    (void)found, (void)region;
    h5_guard(h5);
    const hid_t id = h5_dataset(h5, e->path), scale = h5_dataset(h5, e->name);
    const bool ok = id >= 0 && scale >= 0 && H5DSis_attached(id, scale, e->dimension) > 0;
    h5_drop(h5, scale, e->name);
    h5_drop(h5, id, e->path);
    h5_release(h5);
    return ok;
}

/* found: the digest of what the file holds. */
static void check(struct h5 *h5, const struct h5_entry *e)
{
    static bool (*const holds[])(struct h5 *, const struct h5_entry *, struct h5_entry *found,
                                 struct region *) = {[H5_ATTRIBUTE] = attribute_holds,
                                                     [H5_DATA] = data_holds,
                                                     [H5_SCALE] = scale_holds,
                                                     [H5_ATTACHED] = attached_holds};
    const bool attribute = e->kind == H5_ATTRIBUTE;
    char what[512];
    struct region *region = region_create();
    struct h5_entry found = {.number = e->number, .width = e->width, .alone = e->alone};
    const bool held = holds[e->kind](h5, e, &found, region) && digest_equal(found.digest, e->digest);
    snprintf(what, sizeof what, "%s%s%s", e->path, attribute ? "@" : "", attribute ? e->name : "");
    if (!held) h5_refuse(h5, what, "is not what was written to it");
    region_destroy(region);
}

static herr_t count_object(hid_t at, const char *name, const H5O_info_t *info, void *count)
{
    (void)at, (void)name, (void)info;
    ++*(uint64_t *)count;
    return 0;
}

/* The entries are found by the index of names; a group's index of creation order must list the same objects. */
static void check_indexes(struct h5 *h5)
{
    uint64_t named = 0, ordered = 0;
    h5_guard(h5);
    const bool ok = !h5->broken && H5Ovisit(h5->file, H5_INDEX_NAME, H5_ITER_NATIVE, count_object, &named) >= 0 &&
                    H5Ovisit(h5->file, H5_INDEX_CRT_ORDER, H5_ITER_NATIVE, count_object, &ordered) >= 0;
    if (h5_check(h5, ok, "list", "the groups") && named != ordered)
        h5_refuse(h5, "the groups", "do not list the same objects by name and by creation order");
    h5_release(h5);
}

enum status h5_manifest_check(const struct h5_manifest *manifest, const char *path)
{
    struct h5 h5;
    TRY(h5_open(&h5, path, H5_READ));
    for (int i = 0; i < manifest->entries && !h5.broken; i++) check(&h5, &manifest->entry[i]);
    check_indexes(&h5);
    return h5_close(&h5);
}
