/* Writing HDF5; reading is in h5_read.c. Contract: what goes in comes out, bit by bit. */
#include "result/h5.h"

#include <hdf5_hl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "result/h5_manifest.h"

enum { RANK_MAX = 8, ROWS_MAX = 256, CHUNK_BYTES = 64 * 1024, CHUNK_MOST = 1 << 30 };

/* A reader tries again, waiting twice as long each time, where a writer may be in between: some 70 ms in all. */
enum { READ_ATTEMPTS = 26 };

/* SIGKILL may end a write between any two of the kernel's pages. What describes the data must be written as a whole, so
 * the library keeps all of it that fits (an array's index does up to some 8000 chunks) from crossing a page. */
enum { PAGE_BYTES = 4096 };

/* The innermost complaint of the library, or the system's words where it quotes them. */
static herr_t find_reason(unsigned n, const H5E_error2_t *error, void *text)
{
    static const char quote[] = "error message = '";
    const char *said = error->desc ? strstr(error->desc, quote) : NULL;
    if (said) {
        said += sizeof quote - 1;
        snprintf(text, 256, "%.*s", (int)strcspn(said, "'"), said);
        return 1;
    }
    if (n == 0 && error->desc) snprintf(text, 256, "%s", error->desc);
    return 0;
}

bool h5_check(struct h5 *h5, bool ok, const char *what, const char *name)
{
    if (ok || h5->broken) return !h5->broken;
    char reason[256] = "no reason given";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_reason, reason);
    h5->broken = true;
    snprintf(h5->message, sizeof h5->message, "%s: cannot %s%s%s: %s", h5->path, what, *name ? " " : "", name, reason);
    fail(ST_FAILED, "%s", h5->message);
    return false;
}

enum status h5_status(struct h5 *h5) { return h5->broken ? fail(ST_FAILED, "%s", h5->message) : ST_OK; }

void h5_drop(struct h5 *h5, hid_t id, const char *name)
{
    if (id < 0 || (h5->broken && !h5->reading)) return;
    h5_check(h5, H5Idec_ref(id) >= 0, h5->reading ? "close" : "write", name);
}

/* How files are opened, and how they are made; -1: the library could not say. Its own locks, held while a file is being
 * opened, would have a reader of that instant end the run; that one process writes is seen to by record_file.h. */
static hid_t access_list(void)
{
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    const bool ok = list >= 0 && H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0 &&
                    H5Pset_fclose_degree(list, H5F_CLOSE_STRONG) >= 0 && H5Pset_file_locking(list, false, true) >= 0 &&
                    H5Pset_metadata_read_attempts(list, READ_ATTEMPTS) >= 0;
    return ok ? list : -1;
}

static hid_t creation_list(void)
{
    const hid_t list = H5Pcreate(H5P_FILE_CREATE);
    const bool ok = list >= 0 && H5Pset_obj_track_times(list, false) >= 0 &&
                    H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0 &&
                    H5Pset_file_space_strategy(list, H5F_FSPACE_STRATEGY_PAGE, false, 1) >= 0 &&
                    H5Pset_file_space_page_size(list, PAGE_BYTES) >= 0;
    return ok ? list : -1;
}

static hid_t open_file(const char *path, enum h5_mode mode, hid_t access, hid_t creation)
{
    const unsigned flags[] = {[H5_CREATE] = H5F_ACC_TRUNC,
                              [H5_APPEND] = H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE,
                              [H5_EDIT] = H5F_ACC_RDWR,
                              [H5_READ] = H5F_ACC_RDONLY | H5F_ACC_SWMR_READ};
    if (access < 0 || creation < 0) return -1;
    return mode == H5_CREATE ? H5Fcreate(path, flags[mode], creation, access) : H5Fopen(path, flags[mode], access);
}

enum status h5_open(struct h5 *h5, const char *path, enum h5_mode mode)
{
    struct stat file;
    *h5 = (struct h5){.file = -1, .path = path, .reading = mode == H5_READ};
    h5_guard(h5);
    if (stat(path, &file) == 0) h5->bytes = (uint64_t)file.st_size;
    H5dont_atexit(); /* the library's exit handler crashes after a failed flush; it fails from the second time on */
    const char *what = mode == H5_CREATE ? "create" : "open";
    h5_check(h5, H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0, what, "");
    const hid_t access = access_list(), creation = creation_list();
    h5->file = open_file(path, mode, access, creation);
    h5_check(h5, h5->file >= 0, what, "");
    h5_drop(h5, creation, "");
    h5_drop(h5, access, "");
    h5_release(h5);
    return h5_status(h5);
}

void h5_flush(struct h5 *h5)
{
    if (!h5->broken) h5_check(h5, H5Fflush(h5->file, H5F_SCOPE_GLOBAL) >= 0, "write", "");
}

enum status h5_close(struct h5 *h5)
{
    h5_guard(h5);
    if (h5->file >= 0) h5_check(h5, H5Fclose(h5->file) >= 0, h5->reading ? "close" : "write", "");
    h5->file = -1;
    h5_release(h5);
    return h5_status(h5);
}

hid_t h5_file_type(enum number number)
{
    const hid_t types[NUMBERS] = {
        [NUMBER_U8] = H5T_STD_U8LE,   [NUMBER_I32] = H5T_STD_I32LE,  [NUMBER_U32] = H5T_STD_U32LE,
        [NUMBER_U64] = H5T_STD_U64LE, [NUMBER_F32] = H5T_IEEE_F32LE, [NUMBER_F64] = H5T_IEEE_F64LE};
    return types[number];
}

hid_t h5_memory_type(enum number number)
{
    const hid_t types[NUMBERS] = {
        [NUMBER_U8] = H5T_NATIVE_UINT8,   [NUMBER_I32] = H5T_NATIVE_INT32, [NUMBER_U32] = H5T_NATIVE_UINT32,
        [NUMBER_U64] = H5T_NATIVE_UINT64, [NUMBER_F32] = H5T_NATIVE_FLOAT, [NUMBER_F64] = H5T_NATIVE_DOUBLE};
    return types[number];
}

size_t h5_number_bytes(enum number number)
{
    static const size_t bytes[NUMBERS] = {1, 4, 4, 8, 4, 8};
    return bytes[number];
}

hid_t h5_text_type(void)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    const bool ok = type >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
    return ok ? type : -1;
}

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

/* An array that is opened, or -1; space and creation are closed. A path may name groups that are not there yet. */
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

/* Chunks of whole rows of some 64 KiB, or of one large row; of a part of its first dimension where it is huge. */
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

/* Selects rows [first, first + count); -1 where the array cannot be asked. */
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
