/* Reading HDF5 files that may be damaged: no size is accepted that exceeds the file. */
#include <hdf5_hl.h>
#include <string.h>

#include "console/utf8.h"
#include "result/h5.h"

enum { RANK_MAX = 8 };

bool h5_refuse(struct h5 *h5, const char *name, const char *why)
{
    if (!h5->broken) {
        h5->broken = true;
        snprintf(h5->message, sizeof h5->message, "%s: %s %s", h5->path, name, why);
        fail(ST_FAILED, "%s", h5->message);
    }
    return false;
}

bool h5_exists(struct h5 *h5, const char *path)
{
    h5_guard(h5);
    const bool there = !h5->broken && H5LTpath_valid(h5->file, path, false) > 0;
    h5_release(h5);
    return there;
}

/* An array, whose extent fits the file. array_auto: closed at the end of the block, opened or not: the guard lasts
 * until then. */
struct array {
    struct h5 *h5;
    hid_t id, type, space;
    int rank;
    hsize_t extent[RANK_MAX];
    uint64_t row; /* elements of a row */
};

/* In a file that is being written, an extent may be seen before the bytes of its last chunk, which are fewer. */
enum { CHUNK_SLACK = 1 << 20 };

/* Rows that the file stores, whatever the extent claims; ahead: one chunk more. */
static uint64_t array_stored(const struct array *array, bool ahead)
{
    const uint64_t row = array->row * H5Tget_size(array->type), stored = H5Dget_storage_size(array->id);
    hsize_t chunk[1 + RANK_MAX] = {0};
    uint64_t slack = 0;
    hid_t creation = ahead ? H5Dget_create_plist(array->id) : -1;
    if (creation >= 0 && H5Pget_layout(creation) == H5D_CHUNKED && H5Pget_chunk(creation, 1 + RANK_MAX, chunk) > 0)
        slack = chunk[0] * row < CHUNK_SLACK ? chunk[0] * row : CHUNK_SLACK;
    if (creation >= 0 && H5Pclose(creation) < 0) return 0;
    return row ? (stored + slack) / row : UINT64_MAX;
}

static bool refuse_rows(struct h5 *h5, const char *path, const struct array *array, uint64_t rows)
{
    char why[128];
    snprintf(why, sizeof why, "claims %llu rows; the file stores %llu of them", (unsigned long long)rows,
             (unsigned long long)array_stored(array, false));
    return h5_refuse(h5, path, why);
}

#define array_auto struct array __attribute__((cleanup(array_close)))
static void array_close(struct array *array)
{
    h5_drop(array->h5, "an array", array->type, array->space, array->id);
    h5_release(array->h5);
}

static bool array_open(struct h5 *h5, const char *path, struct array *array)
{
    *array = (struct array){h5, -1, -1, -1, 0, {0}, 1};
    h5_guard(h5);
    if (h5->broken) return false;
    array->id = H5Dopen2(h5->file, path, H5P_DEFAULT);
    if (array->id < 0 && !h5_exists(h5, path)) return h5_refuse(h5, path, "is missing");
    if (!h5_check(h5, array->id >= 0, "read", path)) return false;
    array->type = H5Dget_type(array->id);
    array->space = H5Dget_space(array->id);
    if (!h5_check(h5, array->type >= 0 && array->space >= 0, "read", path)) return false;
    array->rank = H5Sget_simple_extent_ndims(array->space);
    if (array->rank < 0 || array->rank > RANK_MAX) return h5_refuse(h5, path, "has an unexpected number of dimensions");
    array->extent[0] = 1;
    if (!h5_check(h5, !array->rank || H5Sget_simple_extent_dims(array->space, array->extent, NULL) >= 0, "read", path))
        return false;
    for (int i = 1; i < array->rank; i++) {
        if (array->extent[i] && array->row > h5->bytes / array->extent[i])
            return h5_refuse(h5, path, "claims more elements than the file has bytes");
        array->row *= array->extent[i];
    }
    if (array->extent[0] > h5->bytes) return h5_refuse(h5, path, "claims more rows than the file has bytes");
    return true;
}

uint64_t h5_rows(struct h5 *h5, const char *path)
{
    array_auto array;
    uint64_t rows = array_open(h5, path, &array) ? array.extent[0] : 0;
    if (rows > 0 && rows > array_stored(&array, true) && !refuse_rows(h5, path, &array, rows)) rows = 0;
    return rows;
}

uint64_t h5_rows_stored(struct h5 *h5, const char *path)
{
    array_auto array;
    uint64_t rows = array_open(h5, path, &array) ? array.extent[0] : 0, stored = rows ? array_stored(&array, false) : 0;
    return rows < stored ? rows : stored;
}

/* The class must match: the library would convert a real number to an integer. */
static bool is_number(hid_t type, enum number number)
{
    const bool real = number == NUMBER_F32 || number == NUMBER_F64;
    return H5Tget_class(type) == (real ? H5T_FLOAT : H5T_INTEGER);
}

static bool read_rows(struct h5 *h5, const char *path, const struct array *array, enum number number, uint64_t first,
                      uint64_t count, void *data)
{
    hsize_t start[RANK_MAX] = {first}, extent[RANK_MAX];
    memcpy(extent, array->extent, sizeof extent);
    extent[0] = count;
    if (count == 0 || array->row == 0) return true;
    hid_t memory = H5Screate_simple(array->rank, extent, NULL);
    bool ok = memory >= 0 && H5Sselect_hyperslab(array->space, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0 &&
              H5Dread(array->id, h5_type(h5, number, true), memory, array->space, H5P_DEFAULT, data) >= 0;
    h5_check(h5, ok, "read", path);
    h5_drop(h5, path, memory);
    return ok;
}

/* The rows exist with that kind and width, and the file stores them. */
static bool array_check(struct h5 *h5, const char *path, const struct array *array, enum number number, size_t width,
                        uint64_t first, uint64_t count)
{
    if (array->rank < 1 || !is_number(array->type, number))
        return h5_refuse(h5, path, "is not a column of numbers of its kind");
    if (array->row != width) return h5_refuse(h5, path, "has rows of another width than expected");
    if (first > array->extent[0] || count > array->extent[0] - first)
        return h5_refuse(h5, path, "is shorter than the committed steps");
    return !count || first + count <= array_stored(array, false) || refuse_rows(h5, path, array, first + count);
}

uint64_t h5_read_rows(struct h5 *h5, const char *path, enum number number, size_t width, uint64_t first, uint64_t count,
                      void *data)
{
    array_auto array;
    bool ok = array_open(h5, path, &array) && array_check(h5, path, &array, number, width, first, count);
    ok = ok && read_rows(h5, path, &array, number, first, count, data);
    for (uint64_t i = 0; ok && number == NUMBER_U8 && i < count * width; i++)
        if (((const uint8_t *)data)[i] > 1) ok = h5_refuse(h5, path, "holds a flag other than 0 or 1");
    if (!ok) memset(data, 0, (size_t)count * width * h5_number_bytes(number));
    return ok ? array.extent[0] : 0;
}

uint64_t h5_width(struct h5 *h5, const char *path)
{
    array_auto array;
    return array_open(h5, path, &array) ? array.row : 0;
}

void h5_expect_rows(struct h5 *h5, const char *path, enum number number, size_t width, uint64_t count)
{
    array_auto array;
    if (array_open(h5, path, &array)) array_check(h5, path, &array, number, width, 0, count);
}

/* Copies a variable-length string of any character set into region. Only a scalar may have line breaks. small: makes
 * the library clear less than its 1 MiB for each text. left: bytes that the remaining texts may have; several may refer
 * to the same bytes of the file. */
static const char *copy_text(struct h5 *h5, const char *path, const struct array *array, hsize_t row, hid_t small,
                             struct region *region, uint64_t *left)
{
    char *raw = NULL, *text = NULL;
    hid_t memory = H5Screate(H5S_SCALAR);
    bool ok = memory >= 0 && (!array->rank || H5Sselect_elements(array->space, H5S_SELECT_SET, 1, &row) >= 0) &&
              H5Dread(array->id, array->type, memory, array->space, small, &raw) >= 0;
    h5_check(h5, ok, "read", path);
    const uint64_t bytes = raw ? strlen(raw) : 0;
    if (bytes > *left) {
        h5_refuse(h5, path, "claims more text than the file has bytes");
    } else {
        *left -= bytes;
        text = region_text(region, "%s", raw ? raw : "");
        utf8_clean(text, array->rank ? "" : "\n\t");
    }
    h5_check(h5, H5free_memory(raw) >= 0, "read", path);
    h5_drop(h5, path, memory);
    return text;
}

const char **h5_read_texts(struct h5 *h5, const char *path, struct region *region, size_t *count)
{
    array_auto array;
    const char **texts = NULL;
    uint64_t left = h5->bytes;
    bool ok = array_open(h5, path, &array);
    if (ok && (array.rank > 1 || H5Tis_variable_str(array.type) <= 0))
        ok = h5_refuse(h5, path, "is not a list of texts");
    if (ok && array.extent[0] > array_stored(&array, false)) ok = refuse_rows(h5, path, &array, array.extent[0]);
    *count = ok ? array.extent[0] : 0;
    if (ok) NEW(region, texts, *count + 1);
    const hid_t small = ok ? H5Pcreate(H5P_DATASET_XFER) : -1;
    if (ok) h5_check(h5, small >= 0 && H5Pset_buffer(small, 4096, NULL, NULL) >= 0, "read", path);
    for (hsize_t i = 0; i < *count && !h5->broken; i++) texts[i] = copy_text(h5, path, &array, i, small, region, &left);
    h5_drop(h5, path, small);
    if (h5->broken) *count = 0;
    return *count ? texts : NULL;
}

const char *h5_read_text(struct h5 *h5, const char *path, struct region *region)
{
    size_t count;
    const char **texts = h5_read_texts(h5, path, region, &count);
    return count == 1 ? texts[0] : "";
}

/* Opens an attribute of one number of that kind, or of a text; -1: it is another, or optional and missing. The caller
 * closes it either way: the guard lasts until then. */
static hid_t attribute_open(struct h5 *h5, const char *object, const char *name, bool optional, enum number number)
{
    const bool text = number == NUMBER_TEXT;
    h5_guard(h5);
    if (h5->broken) return -1;
    const bool there = h5_exists(h5, object);
    if (!there || H5Aexists_by_name(h5->file, object, name, H5P_DEFAULT) <= 0) {
        if (!optional) h5_refuse(h5, there ? name : object, "is missing");
        return -1;
    }
    hid_t id = H5Aopen_by_name(h5->file, object, name, H5P_DEFAULT, H5P_DEFAULT);
    if (!h5_check(h5, id >= 0, "read attribute", name)) return -1;
    hid_t type = H5Aget_type(id), space = H5Aget_space(id);
    bool ok =
        H5Sget_simple_extent_npoints(space) == 1 && (text ? H5Tis_variable_str(type) > 0 : is_number(type, number));
    h5_drop(h5, name, type, space);
    if (ok) return id;
    h5_drop(h5, name, id);
    h5_refuse(h5, name, text ? "is not a text" : "is not a number of its kind");
    return -1;
}

/* The cleaned text of an open attribute; any character set. */
static const char *text_of(struct h5 *h5, hid_t id, const char *name, struct region *region)
{
    char *raw = NULL;
    hid_t type = H5Aget_type(id);
    h5_check(h5, H5Aread(id, type, &raw) >= 0, "read attribute", name);
    char *text = region_text(region, "%s", raw ? raw : "");
    utf8_clean(text, "");
    h5_check(h5, H5free_memory(raw) >= 0, "read attribute", name);
    h5_drop(h5, name, type);
    return text;
}

void h5_read_value(struct h5 *h5, const char *object, const char *name, enum number number, bool optional, void *value,
                   struct region *region)
{
    hid_t id = attribute_open(h5, object, name, optional, number);
    if (id >= 0 && number == NUMBER_TEXT)
        *(const char **)value = text_of(h5, id, name, region);
    else if (id >= 0)
        h5_check(h5, H5Aread(id, h5_type(h5, number, true), value) >= 0, "read attribute", name);
    h5_drop(h5, "an attribute", id);
    h5_release(h5);
}

const char *h5_read_attribute_text(struct h5 *h5, const char *object, const char *name, const char *otherwise,
                                   struct region *region)
{
    const char *text = otherwise ? otherwise : "";
    h5_read_value(h5, object, name, NUMBER_TEXT, otherwise, &text, region);
    return text;
}

uint64_t h5_read_attribute_u64(struct h5 *h5, const char *object, const char *name, uint64_t otherwise)
{
    h5_read_value(h5, object, name, NUMBER_U64, true, &otherwise, NULL);
    return otherwise;
}
