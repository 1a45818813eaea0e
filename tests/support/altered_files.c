#include "altered_files.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "numerics/digest.h"

static hid_t open_file(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    cr_assert(file >= 0, "%s", path);
    return file;
}

/* A whole array, in the types of this machine. */
struct content {
    hid_t file, id, memory;
    hsize_t count;
    size_t bytes; /* of one */
    char *all;
};

static struct content read_array(const char *path, const char *array)
{
    struct content c = {.file = open_file(path)};
    c.id = H5Dopen2(c.file, array, H5P_DEFAULT);
    hid_t space = H5Dget_space(c.id), type = H5Dget_type(c.id);
    c.count = (hsize_t)H5Sget_simple_extent_npoints(space);
    c.memory = H5Tget_native_type(type, H5T_DIR_ASCEND);
    c.bytes = H5Tget_size(c.memory);
    c.all = calloc(c.count, c.bytes);
    cr_assert(H5Dread(c.id, c.memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, c.all) >= 0, "%s", array);
    H5Tclose(type);
    H5Sclose(space);
    return c;
}

static void write_array(struct content *c)
{
    cr_assert(H5Dwrite(c->id, c->memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, c->all) >= 0);
    H5Tclose(c->memory);
    H5Dclose(c->id);
    cr_assert(H5Fclose(c->file) >= 0);
    free(c->all);
}

void alter_element(const char *path, const char *array, int64_t element, int64_t add)
{
    struct content c = read_array(path, array);
    cr_assert((hsize_t)element < c.count, "%s has %lld elements", array, (long long)c.count);
    char *one = c.all + (size_t)element * c.bytes;
    uint64_t value = 0;
    memcpy(&value, one, c.bytes); /* little-endian; a sum keeps its low bytes */
    value += (uint64_t)add;
    memcpy(one, &value, c.bytes);
    write_array(&c);
}

void alter_digest(const char *path, size_t step, size_t tensor)
{
    struct content gradients = read_array(path, "/digests/gradient");
    struct content steps = read_array(path, "/steps/grad_digest");
    struct digest *of_step = (struct digest *)(void *)steps.all + step;
    const size_t tensors = gradients.count / steps.count;
    struct digest *all = (struct digest *)(void *)gradients.all + step * tensors;
    all[tensor].low++;
    *of_step = digest_bytes(all, tensors * sizeof *all);
    write_array(&gradients);
    write_array(&steps);
}

/* type is closed. */
static void replace(const char *path, const char *object, const char *attribute, hid_t type, const void *value)
{
    hid_t file = open_file(path), space = H5Screate(H5S_SCALAR);
    if (H5Aexists_by_name(file, object, attribute, H5P_DEFAULT) > 0)
        cr_assert(H5Adelete_by_name(file, object, attribute, H5P_DEFAULT) >= 0);
    hid_t id = H5Acreate_by_name(file, object, attribute, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(H5Awrite(id, type, value) >= 0);
    H5Tclose(type);
    H5Sclose(space);
    H5Aclose(id);
    cr_assert(H5Fclose(file) >= 0);
}

void alter_text(const char *path, const char *object, const char *attribute, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    replace(path, object, attribute, type, &text);
}

void alter_real(const char *path, const char *object, const char *attribute, double value)
{
    replace(path, object, attribute, H5Tcopy(H5T_IEEE_F64LE), &value);
}

void alter_number(const char *path, const char *object, const char *attribute, uint64_t value)
{
    replace(path, object, attribute, H5Tcopy(H5T_STD_U64LE), &value);
}

void alter_array_text(const char *path, const char *array, const char *text)
{
    hid_t file = open_file(path), id = H5Dopen2(file, array, H5P_DEFAULT), type = H5Dget_type(id);
    cr_assert(H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) >= 0);
    H5Tclose(type);
    H5Dclose(id);
    cr_assert(H5Fclose(file) >= 0);
}

void alter_list_text(const char *path, const char *array, size_t element, const char *text)
{
    struct content c = read_array(path, array);
    cr_assert(element < c.count, "%s has %lld elements", array, (long long)c.count);
    char *before = ((char **)(void *)c.all)[element];
    ((const char **)(void *)c.all)[element] = text;
    write_array(&c);
    H5free_memory(before);
}

void alter_away(const char *path, const char *object)
{
    hid_t file = open_file(path);
    cr_assert(H5Ldelete(file, object, H5P_DEFAULT) >= 0);
    cr_assert(H5Fclose(file) >= 0);
}

void alter_sparse(const char *path, const char *array, uint64_t rows)
{
    hid_t file = open_file(path), id = H5Dopen2(file, array, H5P_DEFAULT), type = H5Dget_type(id);
    hid_t space = H5Dget_space(id), creation = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t extent[8];
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    cr_assert(rank > 0 && H5Dclose(id) >= 0 && H5Ldelete(file, array, H5P_DEFAULT) >= 0, "%s", array);
    extent[0] = 1;
    H5Pset_chunk(creation, rank, extent);
    extent[0] = rows;
    hid_t sparse = H5Screate_simple(rank, extent, NULL);
    id = H5Dcreate2(file, array, type, sparse, H5P_DEFAULT, creation, H5P_DEFAULT);
    cr_assert(id >= 0 && H5Dclose(id) >= 0, "%s", array);
    H5Sclose(sparse);
    H5Pclose(creation);
    H5Sclose(space);
    H5Tclose(type);
    cr_assert(H5Fclose(file) >= 0);
}

void alter_shared(const char *path, const char *list)
{
    enum { REFERENCE = 16, MOST = 64 };
    hid_t file = open_file(path), id = H5Dopen2(file, list, H5P_DEFAULT), space = H5Dget_space(id);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const haddr_t offset = H5Dget_offset(id);
    char references[MOST * REFERENCE];
    cr_assert(offset != HADDR_UNDEF && count <= MOST, "%s: %lld", list, (long long)count);
    H5Sclose(space);
    H5Dclose(id);
    cr_assert(H5Fclose(file) >= 0);
    int bytes = open(path, O_RDWR);
    cr_assert(pread(bytes, references, REFERENCE, (off_t)offset) == REFERENCE);
    for (hssize_t i = 1; i < count; i++) memcpy(references + i * REFERENCE, references, REFERENCE);
    cr_assert(pwrite(bytes, references, (size_t)count * REFERENCE, (off_t)offset) == count * REFERENCE);
    close(bytes);
}

void alter_endless(const char *path)
{
    enum { SIZE_AT = 24 };
    static char content[1 << 20];
    int file = open(path, O_RDWR);
    const ssize_t bytes = read(file, content, sizeof content);
    const char *heap = NULL, *end = content + (bytes > 0 ? bytes : 0);
    for (const char *at = content; (at = memmem(at, (size_t)(end - at), "GCOL", 4)); at++) heap = at;
    cr_assert(heap && bytes < (ssize_t)sizeof content, "no heap in %zd bytes", bytes);
    uint64_t size;
    memcpy(&size, heap + SIZE_AT, sizeof size);
    size += 256;
    cr_assert(pwrite(file, &size, sizeof size, heap + SIZE_AT - content) == sizeof size && close(file) == 0);
}

void alter_length(const char *path, double share)
{
    struct stat file;
    cr_assert(stat(path, &file) == 0 && truncate(path, (off_t)((double)file.st_size * share)) == 0);
}

void alter_copy(const char *from, const char *to)
{
    char command[2048];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    cr_assert(system(command) == 0);
}
