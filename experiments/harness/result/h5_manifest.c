/* Contract: every object of a file that passes holds what was written to it, even where the system lost a write that it
 * reported as done. Digests are of what the readers of h5.h return: text is compared after their cleaning. */
#include "result/h5_manifest.h"

#include <hdf5_hl.h>
#include <stdlib.h>
#include <string.h>

#include "console/utf8.h"
#include "numerics/digest.h"

enum { SLICE_BYTES = 1 << 20, SCALE_NAME = 64 };

enum kind { ATTRIBUTE, ARRAY, TEXTS, SCALE, ATTACHED };

struct entry {
    enum kind kind;
    const char *path, *name; /* name: of an attribute, of a scale; path of the scale that is attached */
    enum number number;      /* NUMBERS: text */
    hid_t dataset;
    uint64_t extent, width, written; /* rows, elements of one, rows that were written */
    unsigned dimension;
    struct digest digest;
};

struct h5_manifest {
    struct region *region;
    struct entry *entry;
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

/* Row by row, because rows may be written by any number of calls. */
static struct digest digest_more(struct digest before, const void *row, size_t bytes)
{
    const struct digest both[] = {before, digest_bytes(row, bytes)};
    return digest_bytes(both, sizeof both);
}

static struct digest digest_rows(struct digest before, const void *rows, uint64_t count, size_t bytes)
{
    for (uint64_t i = 0; i < count; i++) before = digest_more(before, (const char *)rows + i * bytes, bytes);
    return before;
}

static size_t row_bytes(const struct entry *e) { return (size_t)e->width * h5_number_bytes(e->number); }

/* A new entry; NULL: the file has no manifest, or failed. */
static struct entry *add(struct h5 *h5, enum kind kind, const char *path, const char *name)
{
    struct h5_manifest *m = h5->manifest;
    if (!m || h5->broken) return NULL;
    region_grow(m->region, &m->entry, m->entries, sizeof *m->entry);
    m->entry[m->entries] = (struct entry){.kind = kind,
                                          .path = region_text(m->region, "%s", path),
                                          .name = region_text(m->region, "%s", name),
                                          .dataset = -1};
    return &m->entry[m->entries++];
}

static struct entry *find(const struct h5_manifest *m, enum kind kind, const char *path, const char *name)
{
    for (int i = 0; m && i < m->entries; i++) {
        struct entry *e = &m->entry[i];
        if (e->kind == kind && strcmp(e->path, path) == 0 && strcmp(e->name, name) == 0) return e;
    }
    return NULL;
}

/* Of the text as it is read back. */
static struct digest digest_text(const char *text, const char *also)
{
    const size_t bytes = strlen(text);
    char *copy = memcpy(allocate(bytes + 1, 1), text, bytes);
    utf8_clean(copy, also);
    const struct digest digest = digest_bytes(copy, strlen(copy));
    free(copy);
    return digest;
}

void h5_manifest_attribute(struct h5 *h5, const char *object, const char *name, enum number number, const void *value)
{
    struct entry *e = find(h5->manifest, ATTRIBUTE, object, name);
    if (!e) e = add(h5, ATTRIBUTE, object, name);
    if (!e) return;
    e->number = number;
    e->digest = number == NUMBERS ? digest_text(value, "") : digest_bytes(value, h5_number_bytes(number));
}

void h5_manifest_array(struct h5 *h5, const char *path, enum number number, uint64_t extent, uint64_t width)
{
    struct entry *e = add(h5, ARRAY, path, "");
    if (!e) return;
    e->number = number;
    e->extent = extent;
    e->width = width;
}

void h5_manifest_texts(struct h5 *h5, const char *path, size_t count, const char *const *values, bool alone)
{
    struct entry *e = add(h5, TEXTS, path, "");
    if (!e) return;
    e->extent = count;
    for (size_t i = 0; i < count; i++) {
        const struct digest text = digest_text(values[i] ? values[i] : "", alone ? "\n\t" : "");
        e->digest = digest_more(e->digest, &text, sizeof text);
    }
}

void h5_manifest_open(struct h5 *h5, const char *path, hid_t dataset)
{
    struct entry *e = find(h5->manifest, ARRAY, path, "");
    if (e) e->dataset = dataset;
}

void h5_manifest_rows(struct h5 *h5, hid_t dataset, uint64_t count, const void *data)
{
    struct h5_manifest *m = h5->manifest;
    for (int i = 0; m && !h5->broken && i < m->entries; i++) {
        struct entry *e = &m->entry[i];
        if (e->kind != ARRAY || e->dataset != dataset) continue;
        e->digest = digest_rows(e->digest, data, count, row_bytes(e));
        e->written += count;
        if (e->written > e->extent) e->extent = e->written;
        return;
    }
}

void h5_manifest_scale(struct h5 *h5, const char *path, const char *name) { add(h5, SCALE, path, name); }

void h5_manifest_attach(struct h5 *h5, const char *path, unsigned dimension, const char *scale)
{
    struct entry *e = add(h5, ATTACHED, path, scale);
    if (e) e->dimension = dimension;
}

/* ---- reading back ---- */

static bool attribute_holds(struct h5 *h5, const struct entry *e, struct region *region)
{
    uint64_t value = 0;
    if (e->number == NUMBERS) {
        const char *text = h5_read_attribute_text(h5, e->path, e->name, NULL, region);
        return digest_equal(digest_bytes(text, strlen(text)), e->digest);
    }
    h5_read_attribute(h5, e->path, e->name, e->number, &value);
    return digest_equal(digest_bytes(&value, h5_number_bytes(e->number)), e->digest);
}

static bool array_holds(struct h5 *h5, const struct entry *e, struct region *region)
{
    const size_t bytes = row_bytes(e);
    const uint64_t most = bytes < SLICE_BYTES ? SLICE_BYTES / (bytes + !bytes) : 1;
    struct digest digest = {0};
    (void)region;
    if (h5_rows(h5, e->path) != e->extent) return false;
    if (e->written == 0) return true;
    if (e->written != e->extent) return false;
    char *rows = allocate(most < e->extent ? most : e->extent, bytes + 1);
    for (uint64_t first = 0, count; !h5->broken && first < e->extent; first += count) {
        count = e->extent - first < most ? e->extent - first : most;
        h5_read_rows(h5, e->path, e->number, (size_t)e->width, first, count, rows);
        digest = digest_rows(digest, rows, count, bytes);
    }
    free(rows);
    return digest_equal(digest, e->digest);
}

static bool texts_hold(struct h5 *h5, const struct entry *e, struct region *region)
{
    size_t count;
    struct digest digest = {0};
    const char **texts = h5_read_texts(h5, e->path, region, &count);
    for (size_t i = 0; i < count; i++) {
        const struct digest text = digest_bytes(texts[i], strlen(texts[i]));
        digest = digest_more(digest, &text, sizeof text);
    }
    return count == e->extent && digest_equal(digest, e->digest);
}

static hid_t open_array(struct h5 *h5, const char *path)
{
    const hid_t id = h5->broken ? -1 : H5Dopen2(h5->file, path, H5P_DEFAULT);
    h5_check(h5, id >= 0, "open", path);
    return id;
}

static bool scale_holds(struct h5 *h5, const struct entry *e, struct region *region)
{
    char name[SCALE_NAME] = "";
    (void)region;
    h5_guard(h5);
    const hid_t id = open_array(h5, e->path);
    const bool ok = id >= 0 && H5DSis_scale(id) > 0 && H5DSget_scale_name(id, name, sizeof name) >= 0;
    h5_drop(h5, id, e->path);
    h5_release(h5);
    return ok && strcmp(name, e->name) == 0;
}

static bool attached_holds(struct h5 *h5, const struct entry *e, struct region *region)
{
    (void)region;
    h5_guard(h5);
    const hid_t id = open_array(h5, e->path), scale = open_array(h5, e->name);
    const bool ok = id >= 0 && scale >= 0 && H5DSis_attached(id, scale, e->dimension) > 0;
    h5_drop(h5, scale, e->name);
    h5_drop(h5, id, e->path);
    h5_release(h5);
    return ok;
}

static void check(struct h5 *h5, const struct entry *e)
{
    static bool (*const holds[])(struct h5 *, const struct entry *, struct region *) = {[ATTRIBUTE] = attribute_holds,
                                                                                        [ARRAY] = array_holds,
                                                                                        [TEXTS] = texts_hold,
                                                                                        [SCALE] = scale_holds,
                                                                                        [ATTACHED] = attached_holds};
    char what[512];
    struct region *region = region_create();
    const bool held = holds[e->kind](h5, e, region);
    snprintf(what, sizeof what, "%s%s%s", e->path, e->kind == ATTRIBUTE ? "@" : "",
             e->kind == ATTRIBUTE ? e->name : "");
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
