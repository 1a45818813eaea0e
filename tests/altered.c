#include "altered.h"

#include <criterion/criterion.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static hid_t open_file(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    cr_assert(file >= 0, "%s", path);
    return file;
}

void alter_element(const char *path, const char *array, int64_t element, int64_t add)
{
    hid_t file = open_file(path), id = H5Dopen2(file, array, H5P_DEFAULT), space = H5Dget_space(id);
    hssize_t count = H5Sget_simple_extent_npoints(space);
    cr_assert(element < count, "%s has %lld elements", array, (long long)count);
    hid_t type = H5Dget_type(id), memory = H5Tget_native_type(type, H5T_DIR_ASCEND);
    size_t bytes = H5Tget_size(memory);
    char *all = calloc((size_t)count, bytes), *one = all + (size_t)element * bytes;
    cr_assert(H5Dread(id, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    uint64_t value = 0;
    memcpy(&value, one, bytes); /* little-endian; a sum keeps its low bytes */
    value += (uint64_t)add;
    memcpy(one, &value, bytes);
    cr_assert(H5Dwrite(id, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    H5Tclose(memory);
    H5Tclose(type);
    free(all);
    H5Sclose(space);
    H5Dclose(id);
    cr_assert(H5Fclose(file) >= 0);
}

/* type is closed. */
static void replace(const char *path, const char *object, const char *attribute, hid_t type, const void *value)
{
    hid_t file = open_file(path), space = H5Screate(H5S_SCALAR);
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

void alter_away(const char *path, const char *object)
{
    hid_t file = open_file(path);
    cr_assert(H5Ldelete(file, object, H5P_DEFAULT) >= 0);
    cr_assert(H5Fclose(file) >= 0);
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
