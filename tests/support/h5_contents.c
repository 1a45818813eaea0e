#include "h5_contents.h"

#include <criterion/criterion.h>
#include <hdf5.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numerics/digest.h"

struct listing {
    FILE *out;
    bool failed;
    const char *object; /* whose attributes are listed */
};

static bool is_measured(const char *name)
{
    static const char *const tails[] = {"_ns",     "rss",        "rss_bytes",      "high_water_bytes", "overhead_bytes",
                                        "created", "invocation", "DIMENSION_LIST", "REFERENCE_LIST"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        const size_t length = strlen(name), tail = strlen(tails[i]);
        if (length >= tail && strcmp(name + length - tail, tails[i]) == 0) return true;
    }
    return false;
}

static struct digest digest_of(const void *data, size_t count, size_t bytes, bool texts)
{
    struct digest digest = {0};
    if (!texts) return digest_bytes(data, count * bytes);
    for (size_t i = 0; i < count; i++) {
        const char *text = ((char *const *)data)[i];
        const struct digest both[] = {digest, digest_bytes(text ? text : "", text ? strlen(text) : 0)};
        digest = digest_bytes(both, sizeof both);
    }
    return digest;
}

/* A line for the array or attribute id, and closes it. */
static void list_values(struct listing *l, const char *name, hid_t id, bool attribute)
{
    char digest[33];
    const hid_t type = attribute ? H5Aget_type(id) : H5Dget_type(id);
    const hid_t space = attribute ? H5Aget_space(id) : H5Dget_space(id);
    const hid_t memory = H5Tget_native_type(type, H5T_DIR_ASCEND);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const size_t bytes = H5Tget_size(memory);
    void *data = count < 0 ? NULL : calloc((size_t)count + 1, bytes);
    const herr_t read = data == NULL ? -1
                        : attribute  ? H5Aread(id, memory, data)
                                     : H5Dread(id, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    l->failed |= read < 0;
    fprintf(l->out, "%s%s%s %lld x %zu ", l->object ? l->object : "", l->object ? "@" : "", name, (long long)count,
            bytes);
    if (read >= 0 && !is_measured(name))
        fputs(digest_print(digest_of(data, (size_t)count, bytes, H5Tis_variable_str(type) > 0), digest), l->out);
    fputc('\n', l->out);
    if (read >= 0) H5Dvlen_reclaim(memory, space, H5P_DEFAULT, data);
    free(data);
    H5Tclose(memory);
    H5Tclose(type);
    H5Sclose(space);
}

static herr_t list_attribute(hid_t object, const char *name, const H5A_info_t *info, void *listing)
{
    (void)info;
    struct listing *l = listing;
    const hid_t id = H5Aopen(object, name, H5P_DEFAULT);
    if (id < 0) return -1;
    list_values(l, name, id, true);
    H5Aclose(id);
    return 0;
}

static herr_t list_object(hid_t file, const char *name, const H5O_info_t *info, void *listing)
{
    struct listing *l = listing;
    hsize_t at = 0;
    l->object = NULL;
    if (info->type == H5O_TYPE_DATASET) {
        const hid_t id = H5Dopen2(file, name, H5P_DEFAULT);
        if (id < 0) return -1;
        list_values(l, name, id, false);
        H5Dclose(id);
    }
    l->object = name;
    return H5Aiterate_by_name(file, name, H5_INDEX_NAME, H5_ITER_INC, &at, list_attribute, l, H5P_DEFAULT);
}

char *contents_of(const char *path)
{
    char *text = NULL;
    size_t bytes;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0) return NULL;
    struct listing l = {.out = open_memstream(&text, &bytes)};
    l.failed = H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, list_object, &l) < 0 || l.failed;
    fclose(l.out);
    H5Fclose(file);
    if (l.failed) free(text);
    return l.failed ? NULL : text;
}

char *contents_without(const char *path, const char *group)
{
    char *all = contents_of(path), *end = all;
    for (char *line = all, *next; all && *line; line = next) {
        next = line + strcspn(line, "\n") + 1;
        if (strncmp(line, group, strlen(group)) == 0) continue;
        memmove(end, line, (size_t)(next - line));
        end += next - line;
    }
    if (all) *end = 0;
    return all;
}

char *contents_difference(const char *a, const char *b)
{
    size_t line = 0;
    for (size_t i = 0; a[i] == b[i]; i++) {
        if (!a[i]) return NULL;
        if (a[i] == '\n') line = i + 1;
    }
    return strndup(a + line, strcspn(a + line, "\n"));
}

float *floats_of(const char *path, const char *array, size_t count)
{
    float *floats = malloc(count * sizeof *floats);
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, H5P_DEFAULT);
    const hid_t id = H5Dopen2(file, array, H5P_DEFAULT), space = H5Dget_space(id);
    cr_assert(H5Sget_simple_extent_npoints(space) == (hssize_t)count, "%s %s", path, array);
    cr_assert(H5Dread(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, floats) >= 0, "%s %s", path, array);
    H5Sclose(space);
    H5Dclose(id);
    H5Fclose(file);
    return floats;
}
