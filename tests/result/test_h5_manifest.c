#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "result/h5_write.h"
#include "tests/support/made_runs.h"

enum { ARRAYS = 20, FILE_BYTES = 1 << 16 };

/* A group with so many arrays that the library indexes it by two B-trees: by name, and by creation order. */
static void write_group(const char *path, struct h5_manifest *manifest)
{
    struct h5 h5;
    char name[32];
    cr_assert(h5_manifest_open(manifest, &h5, path, H5_CREATE) == ST_OK, "%s", status_message());
    h5_group(&h5, "/group");
    for (int i = 0; i < ARRAYS; i++) {
        snprintf(name, sizeof name, "/group/array%d", i);
        h5_array(&h5, name, NUMBER_U64, 1, &(hsize_t){1}, &(uint64_t){(uint64_t)i});
    }
    cr_assert(h5_close(&h5) == ST_OK, "%s", status_message());
}

/* Replaces part of the file at path. */
static void overwrite(const char *path, long at, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "r+");
    cr_assert(file && fseek(file, at, SEEK_SET) == 0 && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

Test(h5_manifest, every_index_of_a_group_is_read_back)
{
    static const char *const kinds[] = {"BTHD", "BTLF"};
    static const char zeros[4];
    static char content[FILE_BYTES];
    char folder[256], path[300];
    int lost = 0;
    folder_make(folder);
    snprintf(path, sizeof path, "%s/indexes.h5", folder);
    struct h5_manifest *manifest = h5_manifest_create();
    write_group(path, manifest);
    cr_assert(h5_manifest_check(manifest, path) == ST_OK, "%s", status_message());
    FILE *file = fopen(path, "r");
    const size_t bytes = fread(content, 1, sizeof content, file);
    cr_assert(bytes < sizeof content && fclose(file) == 0);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (const char *at = content; (at = memmem(at, (size_t)(content + bytes - at), kinds[k], 4));
             at += 4, lost++) {
            overwrite(path, at - content, zeros, 4);
            cr_assert(h5_manifest_check(manifest, path) == ST_FAILED, "%s at %td", kinds[k], at - content);
            overwrite(path, at - content, kinds[k], 4);
        }
    cr_assert(lost == 4, "%d", lost);
    cr_assert(h5_manifest_check(manifest, path) == ST_OK, "%s", status_message());
    h5_manifest_destroy(manifest);
    folder_remove(folder);
}
