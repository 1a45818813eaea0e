/* Reading safetensors files: their values, and one clear error for each fault. */
#include "datasets/files.h"
#include "job/safetensors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/safetensors_files.h"

static char path[64];

static void begin(void)
{
    strcpy(path, P_tmpdir "/rematch-safetensors-XXXXXX");
    int descriptor = mkstemp(path);
    cr_assert(descriptor >= 0);
    close(descriptor);
}

static void end(void) { unlink(path); }

TestSuite(safetensors, .init = begin, .fini = end);

#define ENTRY(dtype, shape, from, to)                                                                                  \
    "{\"dtype\": \"" dtype "\", \"shape\": [" shape "], \"data_offsets\": [" #from ", " #to "]}"

/* Some binary16 numbers with their values, bfloat16 with theirs, and floats. */
static const uint16_t halves[] = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8001, 0x03ff, 0x8000, 0x7c00, 0x3555};
static const double half_values[] = {1,    -2,       65504,         0x1p-14, 0x1p-24, -0x1p-24, 1023 * 0x1p-24,
                                     -0.0, INFINITY, 0.333251953125};
static const uint16_t brains[] = {0x3f80, 0xc049, 0x0001, 0x7f80};
static const double brain_values[] = {1, -3.140625, 0x1p-133, INFINITY};
static const float floats[6] = {1.5F, -2, 0, 1e-38F, 3e38F, 7};

static void write_good(void)
{
    static const char header[] =
        "{\"__metadata__\": {\"format\": \"pt\"}, \"b\": " ENTRY("F16", "2, 5", 24, 44) ", \"a\": " ENTRY(
            "F32", "3, 2", 0, 24) ", \"none\": " ENTRY("F32", "0, 4", 44,
                                                       44) ", \"c.d\": " ENTRY("BF16", "4", 44,
                                                                               52) ", \"ids\": " ENTRY("I64", "", 52,
                                                                                                       60) "}   ";
    unsigned char data[60] = {0};
    memcpy(data, floats, 24);
    memcpy(data + 24, halves, 20);
    memcpy(data + 44, brains, 8);
    safetensors_write(path, strlen(header), header, data, sizeof data);
}

static void check_values(const struct safetensors *file, const char *name, const double *values, int64_t count)
{
    const struct safetensor *t = safetensors_find(file, name);
    float got[16];
    cr_assert(t && t->elements == count && safetensors_is_float(t), "%s", name);
    for (int64_t first = 0; first < count; first++) {
        cr_assert(safetensors_floats(file, t, first, count - first, got) == ST_OK, "%s", status_message());
        for (int64_t i = first; i < count; i++)
            cr_assert((double)got[i - first] == values[i] && !signbit(got[i - first]) == !signbit(values[i]),
                      "%s[%d]: %.17g", name, (int)i, (double)got[i - first]);
    }
}

Test(safetensors, valid_files_are_read)
{
    struct safetensors *file;
    double values[6];
    write_good();
    cr_assert(safetensors_open(path, &file) == ST_OK, "%s", status_message());
    for (int i = 0; i < 6; i++) values[i] = (double)floats[i];
    cr_assert(file->count == 5 && !safetensors_find(file, "__metadata__") && !safetensors_find(file, "z"));
    check_values(file, "a", values, 6);
    check_values(file, "b", half_values, 10);
    check_values(file, "c.d", brain_values, 4);
    check_values(file, "none", NULL, 0);
    const struct safetensor *ids = safetensors_find(file, "ids"), *b = safetensors_find(file, "b");
    cr_assert(ids && !safetensors_is_float(ids) && ids->rank == 0 && ids->elements == 1);
    cr_assert(b->rank == 2 && b->dim[0] == 2 && b->dim[1] == 5 && !strcmp(b->dtype, "F16"));
    safetensors_close(file);
}

/* More elements than one piece, from the middle of a tensor. */
Test(safetensors, a_long_tensor_is_read_in_pieces)
{
    enum { COUNT = 300001, FIRST = 7 };
    char header[128];
    struct safetensors *file;
    float *values = malloc(COUNT * sizeof *values), *got = malloc(COUNT * sizeof *got);
    for (int i = 0; i < COUNT; i++) values[i] = (float)i;
    snprintf(header, sizeof header, "{\"a\": {\"dtype\": \"F32\", \"shape\": [%d], \"data_offsets\": [0, %zu]}}", COUNT,
             COUNT * sizeof *values);
    safetensors_write(path, strlen(header), header, values, COUNT * sizeof *values);
    cr_assert(safetensors_open(path, &file) == ST_OK, "%s", status_message());
    cr_assert(safetensors_floats(file, safetensors_find(file, "a"), FIRST, COUNT - FIRST, got) == ST_OK);
    for (int i = FIRST; i < COUNT; i++) cr_assert(got[i - FIRST] == values[i], "%d: %g", i, (double)got[i - FIRST]);
    safetensors_close(file);
    free(values), free(got);
}

Test(safetensors, digest_equals_sha256sum)
{
    struct safetensors *file;
    char digest[65], command[128], wanted[65] = "";
    write_good();
    cr_assert(safetensors_open(path, &file) == ST_OK &&
              files_sha256(file->descriptor, path, file->bytes, NULL, digest) == ST_OK);
    snprintf(command, sizeof command, "sha256sum %s", path);
    FILE *sum = popen(command, "r");
    cr_assert(sum && fread(wanted, 1, 64, sum) == 64);
    pclose(sum);
    cr_assert(!strcmp(digest, wanted), "%s, not %s", digest, wanted);
    safetensors_close(file);
}

static void refuse(const char *what, const char *message)
{
    struct safetensors *file;
    const enum status status = safetensors_open(path, &file);
    cr_assert(status == ST_FAILED && !file, "%s is %d", what, (int)status);
    cr_assert(strstr(status_message(), path) && strstr(status_message(), message), "%s: %s", what, status_message());
    cr_assert(!strchr(status_message(), '\n'), "%s", status_message());
}

Test(safetensors, errors_name_the_tensor_and_the_fault)
{
    static const struct {
        const char *header, *message;
    } bad[] = {
        {"", "JSON"},
        {"[]", "JSON object"},
        {"{\"a\"", "JSON"},
        {"hello", "JSON"},
        {"{} x", "JSON"},
        {"{\"a\": 1}", "tensor 'a': its dtype is not known"},
        {"{}", "8 bytes at its end belong to no tensor"},
        {"{\"a\": " ENTRY("F32", "2", 0, 8) ", \"a\": " ENTRY("F32", "2", 0, 8) "}", "duplicate"},
        {"{\"a\": " ENTRY("F4", "2", 0, 8) "}", "dtype"},
        {"{\"a\": {\"shape\": [2], \"data_offsets\": [0, 8]}}", "dtype"},
        {"{\"a\": {\"dtype\": \"F32\", \"data_offsets\": [0, 8]}}", "shape"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [2]}}", "data_offsets"},
        {"{\"a\": " ENTRY("F32", "3", 0, 8) "}", "a different number of bytes"},
        {"{\"a\": " ENTRY("F16", "2", 0, 8) "}", "a different number of bytes"},
        {"{\"a\": " ENTRY("F32", "-2", 0, 8) "}", "dimension"},
        {"{\"a\": " ENTRY("F32", "2.0", 0, 8) "}", "dimension"},
        {"{\"a\": " ENTRY("F32", "1, 1, 1, 1, 1, 1, 1, 1, 2", 0, 8) "}", "8 dimensions"},
        {"{\"a\": " ENTRY("F32", "4611686018427387904, 4", 0, 8) "}", "2^63 elements"},
        {"{\"a\": " ENTRY("F32", "4611686018427387904", 0, 0) "}", "a different number of bytes"},
        {"{\"a\": " ENTRY("F32", "99999999999999999999", 0, 8) "}", "JSON"},
        {"{\"a\": " ENTRY("F32", "2", 0, 12) "}", "beyond the file's end"},
        {"{\"a\": " ENTRY("F32", "2", 8, 16) "}", "beyond the file's end"},
        {"{\"a\": " ENTRY("F32", "2", -8, 0) "}", "data_offsets"},
        {"{\"a\": " ENTRY("F32", "2", 8, 0) "}", "data_offsets"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8, 8]}}", "data_offsets"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": 2, \"data_offsets\": [0, 8]}}", "shape"},
        {"{\"a\": " ENTRY("F32", "1", 4, 8) "}", "belong to no tensor"},
        {"{\"a\": " ENTRY("F32", "1", 0, 4) "}", "4 bytes at its end"},
        {"{\"a\": " ENTRY("F32", "2", 0, 8) ", \"b\": " ENTRY("F32", "1", 4, 8) "}", "overlaps"},
        {"{\"a\": " ENTRY("F32", "2", 0, 8) ", \"b\": " ENTRY("F32", "2", 0, 8) "}", "overlaps"},
        {"{\"a\\nb\": " ENTRY("F32", "2", 0, 8) "}", "control characters"},
        {"{\"a\\u0000b\": " ENTRY("F32", "2", 0, 8) "}", "JSON"},
    };
    static const float data[2] = {1, 2};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        safetensors_write(path, strlen(bad[i].header), bad[i].header, data, sizeof data);
        refuse(bad[i].header, bad[i].message);
    }
}

Test(safetensors, false_lengths_are_refused)
{
    static const uint64_t lengths[] = {3, 1000, UINT64_C(1) << 40, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        safetensors_write(path, lengths[i], "{}", NULL, 0);
        refuse("a length", "a header of");
    }
}

/* Files of other formats that are taken for weights. */
Test(safetensors, other_formats_are_named)
{
#define FILE_OF(bytes, says)                                                                                           \
    {                                                                                                                  \
        bytes, sizeof bytes - 1, says                                                                                  \
    }
    static const struct {
        const char *bytes;
        size_t count;
        const char *says;
    } files[] = {
        FILE_OF("PK\3\4\0\0\x08\x08\0\0\0\0\0\0archive/data.pkl", "a zip archive, as PyTorch's checkpoints are"),
        FILE_OF("PK\3\4\x14\0\0\0\x08\0\0\0\0\0arr_0.npy", "a zip archive"),
        FILE_OF("\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", "a pickle, as PyTorch's checkpoints are"),
        FILE_OF("\x80\2}q\0(X\x08\0\0\0c1.weightq\1", "a pickle"),
        FILE_OF("\x80\3ccollections\nOrderedDict\n", "a pickle"),
        FILE_OF("\x80\4\x95\5\0\0\0\0\0\0\0}\x94.", "a pickle"),
        FILE_OF("\x80\5\x95\xff\1\0\0\0\0\0\0}\x94.", "a pickle"),
        FILE_OF("{\"metadata\": {\"total_size\": 8}, \"weight_map\": {\"a\": \"model-00001-of-00002.safetensors\"}}",
                "the index of several safetensors files"),
        FILE_OF("{\n  \"weight_map\": {}\n}\n", "the index of several safetensors files"),
        FILE_OF("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 440449768\n", "git lfs pull"),
        FILE_OF("<!DOCTYPE html><html><head></head></html>", "an HTML page"),
        FILE_OF("\r\n  <html lang=en>Log in</html>", "an HTML page"),
        FILE_OF("\xef\xbb\xbf<!doctype html>", "an HTML page"),
        FILE_OF("\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0", "an HDF5 file, as Keras's weights are"),
        FILE_OF("{\"hidden_size\": 768, \"model_type\": \"bert\"}", "not a safetensors file"),
        FILE_OF("\x80\2\0\0\0\0\0\0{\"a\": ", "not a safetensors file, or cut off: a header of 640 bytes"),
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *file = fopen(path, "wb");
        cr_assert(file && fwrite(files[i].bytes, 1, files[i].count, file) == files[i].count && fclose(file) == 0);
        refuse(files[i].says, files[i].says);
    }
}

Test(safetensors, every_truncation_is_refused)
{
    write_good();
    FILE *file = fopen(path, "rb");
    cr_assert(file && fseek(file, 0, SEEK_END) == 0);
    for (long bytes = ftell(file) - 1; bytes >= 0; bytes--) {
        cr_assert(truncate(path, bytes) == 0);
        refuse("a truncated file", "");
    }
    fclose(file);
}

Test(safetensors, a_folder_or_a_missing_file_is_refused)
{
    struct safetensors *file;
    cr_assert(safetensors_open(P_tmpdir, &file) == ST_FAILED && strstr(status_message(), "plain file"));
    cr_assert(safetensors_open(P_tmpdir "/there/is/none", &file) == ST_MISSING && !file);
}
