/* Contract: numbers are stored without conversion, so that their bits are read back unchanged. */
#include "result/h5_write.h"

#include <hdf5_hl.h>
#include <string.h>

#include "result/h5_manifest.h"

enum { RANK_MAX = 8, ROWS_MAX = 256, CHUNK_BYTES = 64 * 1024, CHUNK_MOST = 1 << 30 };

static void attribute(struct h5 *h5, const char *object, const char *name, hid_t file_type, hid_t memory_type,
                      const void *value)
{
    const htri_t there = h5->broken ? -1 : H5Aexists_by_name(h5->file, object, name, H5P_DEFAULT);
    if (!h5_check(h5, there >= 0, "find attribute", name)) return;
    if (there) h5_check(h5, H5Adelete_by_name(h5->file, object, name, H5P_DEFAULT) >= 0, "replace", name);
    const hid_t space = H5Screate(H5S_SCALAR);
    hid_t id = -1;
    if (space >= 0 && memory_type >= 0)
        id = H5Acreate_by_name(h5->file, object, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    h5_check(h5, id >= 0 && H5Awrite(id, memory_type, value) >= 0, "write attribute", name);
    h5_drop(h5, id, name);
    h5_drop(h5, space, name);
}

void h5_attribute(struct h5 *h5, const char *object, const char *name, enum number number, const void *value)
{
    attribute(h5, object, name, h5_file_type(number), h5_memory_type(number), value);
    h5_manifest_attribute(h5, object, name, number, value);
}

void h5_attribute_u64(struct h5 *h5, const char *object, const char *name, uint64_t value)
{
    h5_attribute(h5, object, name, NUMBER_U64, &value);
}

void h5_attribute_f64(struct h5 *h5, const char *object, const char *name, double value)
{
    h5_attribute(h5, object, name, NUMBER_F64, &value);
}

void h5_attribute_text(struct h5 *h5, const char *object, const char *name, const char *value)
{
    const char *text = value ? value : "";
    const hid_t type = h5->broken ? -1 : h5_text_type();
    attribute(h5, object, name, type, type, &text);
    h5_drop(h5, type, name);
    h5_manifest_attribute(h5, object, name, NUMBERS, text);
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

/* An open array, or -1; space and creation are closed. Missing groups of the path are created. */
static hid_t create(struct h5 *h5, const char *path, hid_t type, hid_t space, hid_t creation)
{
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    const bool ok = links >= 0 && space >= 0 && creation >= 0 && type >= 0 &&
                    H5Pset_create_intermediate_group(links, true) >= 0 && H5Pset_obj_track_times(creation, false) >= 0;
    const hid_t id = ok ? H5Dcreate2(h5->file, path, type, space, links, creation, H5P_DEFAULT) : -1;
    h5_check(h5, id >= 0, "create", path);
    h5_drop(h5, links, path);
    h5_drop(h5, creation, path);
    h5_drop(h5, space, path);
    return id;
}

static void write_texts(struct h5 *h5, const char *path, hid_t space, const char *const *values)
{
    const hid_t type = h5_text_type();
    const hid_t id = create(h5, path, type, space, H5Pcreate(H5P_DATASET_CREATE));
    h5_check(h5, id >= 0 && H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, "write", path);
    h5_drop(h5, id, path);
    h5_drop(h5, type, path);
}

void h5_text(struct h5 *h5, const char *path, const char *value)
{
    const char *text = value ? value : "";
    if (h5->broken) return;
    write_texts(h5, path, H5Screate(H5S_SCALAR), &text);
    h5_manifest_texts(h5, path, 1, &text, true);
}

void h5_texts(struct h5 *h5, const char *path, size_t count, const char *const *values)
{
    const hsize_t extent = count;
    if (h5->broken) return;
    write_texts(h5, path, H5Screate_simple(1, &extent, NULL), values);
    h5_manifest_texts(h5, path, count, values, false);
}

static uint64_t product(int count, const hsize_t *factor)
{
    uint64_t all = 1;
    for (int i = 0; i < count; i++) all *= factor[i];
    return all;
}

void h5_array(struct h5 *h5, const char *path, enum number number, int rank, const hsize_t *extent, const void *data)
{
    if (h5->broken) return;
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const bool ok = creation >= 0 && H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY) >= 0 &&
                    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER) >= 0;
    h5_check(h5, ok, "create", path);
    const hid_t id = create(h5, path, h5_file_type(number), H5Screate_simple(rank, extent, NULL), creation);
    if (data && id >= 0)
        h5_check(h5, H5Dwrite(id, h5_memory_type(number), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, "write", path);
    h5_manifest_array(h5, path, number, extent[0], product(rank - 1, extent + 1));
    h5_manifest_open(h5, path, id);
    if (data) h5_manifest_rows(h5, id, extent[0], data);
    h5_drop(h5, id, path);
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
    const hid_t id = create(h5, path, h5_file_type(number), H5Screate_simple(rank + 1, now, most), creation);
    h5_drop(h5, id, path);
    h5_manifest_array(h5, path, number, 0, product(rank, extent));
}

hid_t h5_dataset(struct h5 *h5, const char *path)
{
    if (h5->broken) return -1;
    const hid_t id = H5Dopen2(h5->file, path, H5P_DEFAULT);
    h5_check(h5, id >= 0, "open", path);
    h5_manifest_open(h5, path, id);
    return id;
}

void h5_scale(struct h5 *h5, const char *path, const char *name)
{
    const hid_t id = h5_dataset(h5, path);
    h5_check(h5, id >= 0 && H5DSset_scale(id, name) >= 0, "make a scale of", path);
    h5_drop(h5, id, path);
    h5_manifest_scale(h5, path, name);
}

void h5_attach(struct h5 *h5, const char *path, unsigned dimension, const char *scale)
{
    const hid_t id = h5_dataset(h5, path), to = h5_dataset(h5, scale);
    h5_check(h5, id >= 0 && to >= 0 && H5DSattach_scale(id, to, dimension) >= 0, "attach a scale to", path);
    h5_drop(h5, to, scale);
    h5_drop(h5, id, path);
    h5_manifest_attach(h5, path, dimension, scale);
}

/* Selects rows [first, first + count); -1 on failure. */
static hid_t select_rows(hid_t dataset, hsize_t first, hsize_t count, hsize_t extent[RANK_MAX], int *rank)
{
    hsize_t start[RANK_MAX] = {first};
    const hid_t space = H5Dget_space(dataset);
    *rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    if (*rank < 1 || *rank > RANK_MAX || H5Sget_simple_extent_dims(space, extent, NULL) < 0) return -1;
    extent[0] = count;
    return H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL) < 0 ? -1 : space;
}

void h5_write_rows(struct h5 *h5, hid_t dataset, enum number number, hsize_t first, hsize_t count, const void *data)
{
    if (h5->broken) return;
    hsize_t extent[RANK_MAX];
    int rank;
    const hid_t space = select_rows(dataset, first, count, extent, &rank);
    const hid_t memory = space < 0 ? -1 : H5Screate_simple(rank, extent, NULL);
    h5_check(h5, memory >= 0 && H5Dwrite(dataset, h5_memory_type(number), memory, space, H5P_DEFAULT, data) >= 0,
             "write", "rows");
    h5_manifest_rows(h5, dataset, count, data);
    h5_drop(h5, memory, "rows");
    h5_drop(h5, space, "rows");
}

void h5_append(struct h5 *h5, hid_t dataset, enum number number, const void *row)
{
    if (h5->broken) return;
    hsize_t extent[RANK_MAX] = {0};
    const hid_t space = H5Dget_space(dataset);
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    const bool known = rank >= 1 && rank <= RANK_MAX && H5Sget_simple_extent_dims(space, extent, NULL) >= 0;
    extent[0]++;
    h5_check(h5, known && H5Dset_extent(dataset, extent) >= 0, "extend", "an array");
    h5_drop(h5, space, "an array");
    h5_write_rows(h5, dataset, number, extent[0] - 1, 1, row);
}
