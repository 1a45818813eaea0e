/* Contract: numbers are stored without conversion, so that their bits are read back unchanged. Every object of a file
 * that passes the check holds what was written to it, even where the system lost a write that it reported as done; text
 * is compared as the readers of h5.h return it, after their cleaning. */
#include "result/h5_write.h"

#include <hdf5_hl.h>
#include <string.h>

#include "console/utf8.h"
#include "numerics/digest.h"

enum { RANK_MAX = 8, ROWS_MAX = 256, CHUNK_BYTES = 64 * 1024, CHUNK_MOST = 1 << 30 };
enum { SLICE_BYTES = 1 << 20, SCALE_NAME = 64 };

/* ---- the manifest ---- */

/* What was written. name: of an attribute or a scale; path of a scale that is attached; "" of an array. */
enum kind { ATTRIBUTE, ARRAY, SCALE, ATTACHED };
struct entry {
    enum kind kind;
    const char *path, *name;
    enum number number;
    hid_t dataset;                   /* of an array that grows, once a row was appended; else -1 */
    uint64_t extent, width, written; /* rows, elements of one, rows that were written */
    bool alone;                      /* a scalar, not a list */
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

enum status h5_manifest_open(struct h5_manifest *manifest, struct h5 *h5, const char *path, enum h5_mode mode)
{
    TRY(h5_open(h5, path, mode));
    h5->manifest = manifest;
    for (int i = 0; i < manifest->entries; i++) manifest->entry[i].dataset = -1;
    return ST_OK;
}

/* The entry of that kind, path and name, new unless there is one; valid until the next call. */
static struct entry *entry_of(struct h5 *h5, enum kind kind, const char *path, const char *name)
{
    struct h5_manifest *m = h5->manifest;
    for (int i = 0; i < m->entries; i++) {
        struct entry *e = &m->entry[i];
        if (e->kind == kind && strcmp(e->path, path) == 0 && strcmp(e->name, name) == 0) return e;
    }
    region_grow(m->region, &m->entry, m->entries, sizeof *m->entry);
    m->entry[m->entries] = (struct entry){.kind = kind,
                                          .path = region_text(m->region, "%s", path),
                                          .name = region_text(m->region, "%s", name),
                                          .dataset = -1};
    return &m->entry[m->entries++];
}

static size_t row_bytes(const struct entry *e) { return (size_t)e->width * h5_number_bytes(e->number); }

/* Of the text as it is read back. Only a scalar may have line breaks. */
static struct digest digest_text(const char *text, bool alone)
{
    const size_t bytes = text ? strlen(text) : 0;
    freed_auto char *copy = memcpy(allocate(bytes + 1, 1), bytes ? text : "", bytes);
    utf8_clean(copy, alone ? "\n\t" : "");
    return digest_bytes(copy, strlen(copy));
}

/* Adds the next rows of an attribute or an array: row by row, because they may be written by any number of calls. */
static void entry_add(struct entry *entry, uint64_t count, const void *rows)
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

/* ---- writing ---- */

/* The open array at path, for h5_drop(); -1: the failure is recorded. */
static hid_t dataset(struct h5 *h5, const char *path)
{
    const hid_t id = h5->broken ? -1 : H5Dopen2(h5->file, path, H5P_DEFAULT);
    h5_check(h5, id >= 0, "open", path);
    return id;
}

void h5_attribute(struct h5 *h5, const char *object, const char *name, enum number number, const void *value)
{
    static const char *const empty = "";
    const htri_t there = h5->broken ? -1 : H5Aexists_by_name(h5->file, object, name, H5P_DEFAULT);
    if (!h5_check(h5, there >= 0, "find attribute", name)) return;
    if (there) h5_check(h5, H5Adelete_by_name(h5->file, object, name, H5P_DEFAULT) >= 0, "replace", name);
    if (number == NUMBER_TEXT && !*(const char *const *)value) value = &empty;
    const hid_t space = H5Screate(H5S_SCALAR), type = h5_type(h5, number, false);
    hid_t id = -1;
    if (space >= 0) id = H5Acreate_by_name(h5->file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    h5_check(h5, id >= 0 && H5Awrite(id, h5_type(h5, number, true), value) >= 0, "write attribute", name);
    h5_drop(h5, name, id, space);
    struct entry *entry = entry_of(h5, ATTRIBUTE, object, name);
    entry->number = number;
    entry->width = 1;
    entry->digest = (struct digest){0};
    entry_add(entry, 1, value);
}

void h5_attribute_text(struct h5 *h5, const char *object, const char *name, const char *value)
{
    h5_attribute(h5, object, name, NUMBER_TEXT, &value);
}

void h5_attribute_u64(struct h5 *h5, const char *object, const char *name, uint64_t value)
{
    h5_attribute(h5, object, name, NUMBER_U64, &value);
}

void h5_attribute_f64(struct h5 *h5, const char *object, const char *name, double value)
{
    h5_attribute(h5, object, name, NUMBER_F64, &value);
}

void h5_describe(struct h5 *h5, const char *path, const char *units, const char *doc)
{
    if (units) h5_attribute_text(h5, path, "units", units);
    if (doc) h5_attribute_text(h5, path, "long_name", doc);
}

void h5_group(struct h5 *h5, const char *path)
{
    if (h5->broken) return;
    const hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
    const bool ok = creation >= 0 && H5Pset_obj_track_times(creation, false) >= 0 &&
                    H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0;
    const hid_t id = ok ? H5Gcreate2(h5->file, path, H5P_DEFAULT, creation, H5P_DEFAULT) : -1;
    h5_check(h5, id >= 0, "create", path);
    h5_drop(h5, path, id, creation);
}

/* An open array, or -1, and its entry in the manifest; creation is closed. Missing groups of the path are created. The
 * array may grow to most rows. */
static hid_t create(struct h5 *h5, const char *path, enum number number, int rank, const hsize_t *extent,
                    const hsize_t *most, hid_t creation)
{
    const hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate_simple(rank, extent, most);
    const bool ok = links >= 0 && space >= 0 && creation >= 0 && H5Pset_create_intermediate_group(links, true) >= 0 &&
                    H5Pset_obj_track_times(creation, false) >= 0;
    const hid_t id =
        ok ? H5Dcreate2(h5->file, path, h5_type(h5, number, false), space, links, creation, H5P_DEFAULT) : -1;
    h5_check(h5, id >= 0, "create", path);
    h5_drop(h5, path, links, creation, space);
    struct entry *entry = entry_of(h5, ARRAY, path, "");
    entry->number = number;
    entry->alone = !rank;
    entry->extent = rank ? extent[0] : 1;
    entry->width = 1;
    for (int i = 1; i < rank; i++) entry->width *= extent[i];
    return id;
}

void h5_array(struct h5 *h5, const char *path, enum number number, int rank, const hsize_t *extent, const void *data)
{
    if (h5->broken) return;
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const bool text = number == NUMBER_TEXT; /* the library fills memory of texts itself */
    const bool ok = creation >= 0 && (text || (H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY) >= 0 &&
                                               H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER) >= 0));
    h5_check(h5, ok, "create", path);
    const hid_t id = create(h5, path, number, rank, extent, NULL, creation);
    if (data && id >= 0)
        h5_check(h5, H5Dwrite(id, h5_type(h5, number, true), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, "write", path);
    if (data) entry_add(entry_of(h5, ARRAY, path, ""), rank ? extent[0] : 1, data);
    h5_drop(h5, path, id);
}

void h5_text(struct h5 *h5, const char *path, const char *value) { h5_array(h5, path, NUMBER_TEXT, 0, NULL, &value); }

void h5_texts(struct h5 *h5, const char *path, size_t count, const char *const *values)
{
    h5_array(h5, path, NUMBER_TEXT, 1, &(hsize_t){count}, values);
}

/* Chunks of some 64 KiB of whole rows, or of one larger row; a huge row is split along its first dimension. */
static void chunk_of(size_t bytes, int rank, const hsize_t *extent, hsize_t *chunk)
{
    hsize_t row = bytes;
    for (int i = 0; i < rank; i++) row *= extent[i];
    chunk[0] = row ? CHUNK_BYTES / row : ROWS_MAX;
    if (chunk[0] < 1) chunk[0] = 1;
    if (chunk[0] > ROWS_MAX) chunk[0] = ROWS_MAX;
    for (int i = 0; i < rank; i++) chunk[i + 1] = extent[i];
    if (rank > 0 && row > CHUNK_MOST) {
        hsize_t slice = row / extent[0];
        chunk[1] = slice < CHUNK_MOST ? CHUNK_MOST / slice : 1;
    }
}

void h5_series(struct h5 *h5, const char *path, enum number number, int rank, const hsize_t *extent)
{
    if (h5->broken) return;
    hsize_t now[RANK_MAX] = {0}, most[RANK_MAX] = {H5S_UNLIMITED}, chunk[RANK_MAX];
    for (int i = 0; i < rank; i++) now[i + 1] = most[i + 1] = extent[i];
    chunk_of(h5_number_bytes(number), rank, extent, chunk);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    h5_check(h5, creation >= 0 && H5Pset_chunk(creation, rank + 1, chunk) >= 0, "create", path);
    h5_drop(h5, path, create(h5, path, number, rank + 1, now, most, creation));
}

void h5_scale(struct h5 *h5, const char *path, const char *name)
{
    const hid_t id = dataset(h5, path);
    h5_check(h5, id >= 0 && H5DSset_scale(id, name) >= 0, "make a scale of", path);
    h5_drop(h5, path, id);
    entry_of(h5, SCALE, path, name);
}

void h5_attach(struct h5 *h5, const char *path, unsigned dimension, const char *scale)
{
    const hid_t id = dataset(h5, path), to = dataset(h5, scale);
    h5_check(h5, id >= 0 && to >= 0 && H5DSattach_scale(id, to, dimension) >= 0, "attach a scale to", path);
    h5_drop(h5, scale, to);
    h5_drop(h5, path, id);
    entry_of(h5, ATTACHED, path, scale)->dimension = dimension;
}

void h5_write_rows(struct h5 *h5, const char *path, hsize_t first, hsize_t count, const void *data)
{
    struct entry *entry = entry_of(h5, ARRAY, path, "");
    hsize_t start[RANK_MAX] = {first}, extent[RANK_MAX];
    const hid_t id = dataset(h5, path), space = id < 0 ? -1 : H5Dget_space(id);
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, extent, NULL);
    extent[0] = count;
    const bool ok = rank > 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0;
    const hid_t memory = ok ? H5Screate_simple(rank, extent, NULL) : -1, type = h5_type(h5, entry->number, true);
    h5_check(h5, memory >= 0 && H5Dwrite(id, type, memory, space, H5P_DEFAULT, data) >= 0, "write", path);
    h5_drop(h5, path, memory, space, id);
    entry_add(entry, count, data);
}

static void append_rows(struct h5 *h5, const char *path, hsize_t count, const void *rows)
{
    struct entry *entry = entry_of(h5, ARRAY, path, "");
    if (entry->dataset < 0) entry->dataset = dataset(h5, path);
    if (h5->broken) return;
    const hid_t type = h5_type(h5, entry->number, true);
    h5_check(h5, H5DOappend(entry->dataset, H5P_DEFAULT, 0, count, type, rows) >= 0, "write", path);
    entry_add(entry, count, rows);
}

void h5_append(struct h5 *h5, const char *path, const void *row) { append_rows(h5, path, 1, row); }

static void copy_array(struct h5 *h5, struct h5 *from, const struct entry *entry, uint64_t rows)
{
    const struct entry e = *entry; /* writing may move it */
    const size_t bytes = row_bytes(&e);
    const uint64_t most = bytes < SLICE_BYTES ? SLICE_BYTES / bytes : 1;
    freed_auto char *slice = allocate(most < rows ? most : rows, bytes);
    h5_expect_rows(from, e.path, e.number, (size_t)e.width, rows);
    for (uint64_t first = 0, count; first < rows && !from->broken; first += count) {
        count = rows - first < most ? rows - first : most;
        h5_read_rows(from, e.path, e.number, (size_t)e.width, first, count, slice);
        if (from->broken) break;
        if (e.extent)
            h5_write_rows(h5, e.path, first, count, slice);
        else
            append_rows(h5, e.path, count, slice);
    }
}

void h5_copy_rows(struct h5 *h5, struct h5 *from, uint64_t (*rows)(void *self, const char *path), void *self)
{
    struct h5_manifest *m = h5->manifest;
    for (int i = 0; i < m->entries; i++) {
        const struct entry *e = &m->entry[i];
        const uint64_t count = e->kind == ARRAY && !e->written && e->number != NUMBER_TEXT ? rows(self, e->path) : 0;
        if (count) copy_array(h5, from, e, e->extent && e->extent < count ? e->extent : count);
    }
}

/* ---- reading back ---- */

static bool attribute_holds(struct h5 *h5, const struct entry *e, struct entry *found, struct region *region)
{
    union {
        uint64_t number;
        const char *text;
    } value = {0};
    h5_read_value(h5, e->path, e->name, e->number, false, &value, region);
    entry_add(found, 1, &value);
    return true;
}

/* An array in slices; rows that were never written are not read. */
static bool data_holds(struct h5 *h5, const struct entry *e, struct entry *found, struct region *region)
{
    const size_t bytes = row_bytes(e);
    const uint64_t most = bytes < SLICE_BYTES ? SLICE_BYTES / (bytes + !bytes) : 1;
    if (e->number == NUMBER_TEXT) {
        size_t count;
        const char **texts = h5_read_texts(h5, e->path, region, &count);
        entry_add(found, count, texts);
        return count == e->extent;
    }
    if (h5_rows(h5, e->path) != e->extent) return false;
    if (e->written && e->written != e->extent) return false;
    freed_auto char *rows = allocate(most < e->written ? most : e->written, bytes + 1);
    for (uint64_t first = 0, count; !h5->broken && first < e->written; first += count) {
        count = e->written - first < most ? e->written - first : most;
        h5_read_rows(h5, e->path, e->number, (size_t)e->width, first, count, rows);
        entry_add(found, count, rows);
    }
    return true;
}

/* A scale has its name, or is attached to the dimension. */
static bool scale_holds(struct h5 *h5, const struct entry *e, struct entry *found, struct region *region)
{
    const bool attached = e->kind == ATTACHED;
    char name[SCALE_NAME] = "";
    (void)found, (void)region;
    h5_guard(h5);
    const hid_t id = dataset(h5, e->path), scale = attached ? dataset(h5, e->name) : -1;
    const bool ok = id >= 0 && (attached ? scale >= 0 && H5DSis_attached(id, scale, e->dimension) > 0
                                         : H5DSget_scale_name(id, name, sizeof name) >= 0 && !strcmp(name, e->name));
    h5_drop(h5, e->name, scale);
    h5_drop(h5, e->path, id);
    h5_release(h5);
    return ok;
}

/* found: the digest of what the file holds. */
static void check(struct h5 *h5, const struct entry *e)
{
    static bool (*const holds[])(struct h5 *, const struct entry *, struct entry *found, struct region *) = {
        [ATTRIBUTE] = attribute_holds, [ARRAY] = data_holds, [SCALE] = scale_holds, [ATTACHED] = scale_holds};
    const bool attribute = e->kind == ATTRIBUTE;
    char what[512];
    region_auto *region = region_create();
    struct entry found = {.number = e->number, .width = e->width, .alone = e->alone};
    const bool held = holds[e->kind](h5, e, &found, region) && digest_equal(found.digest, e->digest);
    snprintf(what, sizeof what, "%s%s%s", e->path, attribute ? "@" : "", attribute ? e->name : "");
    if (!held) h5_refuse(h5, what, "is not what was written to it");
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
