/* Contract: numbers are stored without conversion, so that their bits are read back unchanged. */
#include "result/h5_write.h"

#include <hdf5_hl.h>
#include <string.h>

#include "result/h5_manifest.h"

enum { RANK_MAX = 8, ROWS_MAX = 256, CHUNK_BYTES = 64 * 1024, CHUNK_MOST = 1 << 30 };

void h5_attribute(struct h5 *h5, const char *object, const char *name, enum number number, const void *value)
{
    static const char *const empty = "";
    const htri_t there = h5->broken ? -1 : H5Aexists_by_name(h5->file, object, name, H5P_DEFAULT);
    if (!h5_check(h5, there >= 0, "find attribute", name)) return;
    if (there) h5_check(h5, H5Adelete_by_name(h5->file, object, name, H5P_DEFAULT) >= 0, "replace", name);
    if (number == NUMBER_TEXT && !*(const char *const *)value) value = &empty;
    const hid_t space = H5Screate(H5S_SCALAR), type = h5_file_type(h5, number);
    hid_t id = -1;
    if (space >= 0) id = H5Acreate_by_name(h5->file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    h5_check(h5, id >= 0 && H5Awrite(id, h5_memory_type(h5, number), value) >= 0, "write attribute", name);
    h5_drop(h5, id, name);
    h5_drop(h5, space, name);
    struct h5_entry *entry = h5_manifest_entry(h5->manifest, H5_ATTRIBUTE, object, name);
    entry->number = number;
    entry->width = 1;
    entry->digest = (struct digest){0};
    h5_entry_add(entry, 1, value);
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

void h5_group(struct h5 *h5, const char *path)
{
    if (h5->broken) return;
    const hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
    const bool ok = creation >= 0 && H5Pset_obj_track_times(creation, false) >= 0 &&
                    H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0;
    const hid_t id = ok ? H5Gcreate2(h5->file, path, H5P_DEFAULT, creation, H5P_DEFAULT) : -1;
    h5_check(h5, id >= 0, "create", path);
    h5_drop(h5, id, path);
    h5_drop(h5, creation, path);
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
        ok ? H5Dcreate2(h5->file, path, h5_file_type(h5, number), space, links, creation, H5P_DEFAULT) : -1;
    h5_check(h5, id >= 0, "create", path);
    h5_drop(h5, links, path);
    h5_drop(h5, creation, path);
    h5_drop(h5, space, path);
    struct h5_entry *entry = h5_manifest_entry(h5->manifest, H5_DATA, path, "");
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
        h5_check(h5, H5Dwrite(id, h5_memory_type(h5, number), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, "write", path);
    if (data) h5_entry_add(h5_manifest_entry(h5->manifest, H5_DATA, path, ""), rank ? extent[0] : 1, data);
    h5_drop(h5, id, path);
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
    h5_drop(h5, create(h5, path, number, rank + 1, now, most, creation), path);
}

void h5_scale(struct h5 *h5, const char *path, const char *name)
{
    const hid_t id = h5_dataset(h5, path);
    h5_check(h5, id >= 0 && H5DSset_scale(id, name) >= 0, "make a scale of", path);
    h5_drop(h5, id, path);
    h5_manifest_entry(h5->manifest, H5_SCALE, path, name);
}

void h5_attach(struct h5 *h5, const char *path, unsigned dimension, const char *scale)
{
    const hid_t id = h5_dataset(h5, path), to = h5_dataset(h5, scale);
    h5_check(h5, id >= 0 && to >= 0 && H5DSattach_scale(id, to, dimension) >= 0, "attach a scale to", path);
    h5_drop(h5, to, scale);
    h5_drop(h5, id, path);
    h5_manifest_entry(h5->manifest, H5_ATTACHED, path, scale)->dimension = dimension;
}

void h5_write_rows(struct h5 *h5, const char *path, hsize_t first, hsize_t count, const void *data)
{
    struct h5_entry *entry = h5_manifest_entry(h5->manifest, H5_DATA, path, "");
    hsize_t start[RANK_MAX] = {first}, extent[RANK_MAX];
    const hid_t id = h5_dataset(h5, path), space = id < 0 ? -1 : H5Dget_space(id);
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, extent, NULL);
    extent[0] = count;
    const bool ok = rank > 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0;
    const hid_t memory = ok ? H5Screate_simple(rank, extent, NULL) : -1, type = h5_memory_type(h5, entry->number);
    h5_check(h5, memory >= 0 && H5Dwrite(id, type, memory, space, H5P_DEFAULT, data) >= 0, "write", path);
    h5_drop(h5, memory, path);
    h5_drop(h5, space, path);
    h5_drop(h5, id, path);
    h5_entry_add(entry, count, data);
}

void h5_append(struct h5 *h5, const char *path, const void *row)
{
    struct h5_entry *entry = h5_manifest_entry(h5->manifest, H5_DATA, path, "");
    if (entry->dataset < 0) entry->dataset = h5_dataset(h5, path);
    if (h5->broken) return;
    const hid_t type = h5_memory_type(h5, entry->number);
    h5_check(h5, H5DOappend(entry->dataset, H5P_DEFAULT, 0, 1, type, row) >= 0, "write", path);
    h5_entry_add(entry, 1, row);
}
