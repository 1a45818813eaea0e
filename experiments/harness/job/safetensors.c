#include "job/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/names.h"
#include "base/text.h"
#include "console/utf8.h"

enum { LENGTH_BYTES = 8, HEADER_MAX = 100 << 20, PIECE = 1 << 18, SHOWN = 100, HEAD = 1 << 16 };

/* ---- element types ---- */

static void from_f32(const unsigned char *from, int64_t count, float *to)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

static void from_bf16(const unsigned char *from, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)from[2 * i] << 16 | (uint32_t)from[2 * i + 1] << 24;
        memcpy(&to[i], &bits, sizeof bits);
    }
}

/* Exact: the exponent's bias grows by 127 - 15; subnormal numbers are multiples of 2^-24. */
static void from_f16(const unsigned char *from, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t half = from[2 * i] | (uint32_t)from[2 * i + 1] << 8, sign = (half & 0x8000) << 16;
        const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
        uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
        if (exponent == 31) bits = sign | UINT32_C(0x7f800000) | fraction << 13;
        memcpy(&to[i], &bits, sizeof bits);
        if (exponent == 0) to[i] = (sign ? -0x1p-24F : 0x1p-24F) * (float)fraction;
    }
}

static const struct {
    const char *name;
    uint64_t bytes; /* of an element */
    void (*floats)(const unsigned char *from, int64_t count, float *to);
} types[] = {{"F32", 4, from_f32}, {"F16", 2, from_f16}, {"BF16", 2, from_bf16}, {"F64", 8, NULL}, {"I64", 8, NULL},
             {"I32", 4, NULL},     {"I16", 2, NULL},     {"I8", 1, NULL},        {"U64", 8, NULL}, {"U32", 4, NULL},
             {"U16", 2, NULL},     {"U8", 1, NULL},      {"BOOL", 1, NULL}};
enum { TYPES = sizeof types / sizeof *types };

/* ---- reading ---- */

bool safetensors_is_float(const struct safetensor *tensor) { return types[tensor->type].floats != NULL; }

enum status safetensors_floats(const struct safetensors *file, const struct safetensor *tensor, int64_t first,
                               int64_t count, float *to)
{
    const uint64_t width = types[tensor->type].bytes;
    unsigned char piece[PIECE];
    const int64_t most = PIECE / (int64_t)width;
    for (int64_t done = 0; done < count; done += most) {
        const int64_t now = count - done < most ? count - done : most;
        TRY(file_read(file->descriptor, file->path, tensor->at + (uint64_t)(first + done) * width, (size_t)now * width,
                      piece));
        types[tensor->type].floats(piece, now, to + done);
    }
    return ST_OK;
}

const struct safetensor *safetensors_find(const struct safetensors *file, const char *name)
{
    const int found = names_find(file->by_name, name);
    return found < 0 ? NULL : &file->tensor[found];
}

/* ---- the header ---- */

static enum status wrong(const struct safetensors *file, const char *name, const char *what)
{
    return fail(ST_FAILED, "%s: tensor '%.*s': %s", file->path, text_shown(name, SHOWN), name, what);
}

static enum status read_shape(const struct safetensors *file, const json_t *shape, struct safetensor *t)
{
    const size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > SAFETENSOR_RANK_MAX)
        return wrong(file, t->name, "expected a shape of at most 8 dimensions");
    t->rank = (int)rank;
    t->elements = 1;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        t->dim[i] = json_integer_value(dim);
        if (!json_is_integer(dim) || t->dim[i] < 0)
            return wrong(file, t->name, "a dimension is not an integer of at least 0");
        if (__builtin_mul_overflow(t->elements, t->dim[i], &t->elements))
            return wrong(file, t->name, "its shape has more than 2^63 elements");
    }
    return ST_OK;
}

/* data: where the data begins. */
static enum status read_place(const struct safetensors *file, json_t *offsets, uint64_t data, struct safetensor *t)
{
    json_int_t from, to;
    uint64_t bytes;
    if (json_unpack(offsets, "[I, I!]", &from, &to) != 0 || from < 0 || to < from)
        return wrong(file, t->name, "expected data_offsets of [begin, end]");
    if ((uint64_t)to > file->bytes - data) return wrong(file, t->name, "its data_offsets are beyond the file's end");
    t->at = data + (uint64_t)from;
    t->bytes = (uint64_t)(to - from);
    if (__builtin_mul_overflow((uint64_t)t->elements, types[t->type].bytes, &bytes) || bytes != t->bytes)
        return wrong(file, t->name, "its data_offsets span a different number of bytes than its shape and dtype");
    return ST_OK;
}

static enum status read_tensor(const struct safetensors *file, const char *name, const json_t *entry, uint64_t data,
                               struct safetensor *t)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    t->name = region_text(file->region, "%s", name);
    if (!utf8_is_plain(name)) return fail(ST_FAILED, "%s: a name has control characters", file->path);
    while (dtype && t->type < TYPES && strcmp(types[t->type].name, dtype) != 0) t->type++;
    if (!dtype || t->type == TYPES) return wrong(file, name, "its dtype is not known");
    t->dtype = types[t->type].name;
    TRY(read_shape(file, json_object_get(entry, "shape"), t));
    return read_place(file, json_object_get(entry, "data_offsets"), data, t);
}

static int by_place(const void *a, const void *b)
{
    const struct safetensor *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Tensors fill the data without gaps and overlaps. */
static enum status check_places(const struct safetensors *file, uint64_t data)
{
    uint64_t end = data;
    for (int i = 0; i < file->count; i++) {
        const struct safetensor *t = &file->tensor[i];
        if (t->at < end) return wrong(file, t->name, "its data overlaps another tensor's");
        if (t->at > end) return wrong(file, t->name, "before its data are bytes that belong to no tensor");
        end = t->at + t->bytes;
    }
    if (end != file->bytes)
        return fail(ST_FAILED, "%s: %llu bytes at its end belong to no tensor", file->path,
                    (unsigned long long)(file->bytes - end));
    return ST_OK;
}

static enum status read_tensors(struct safetensors *file, json_t *header, uint64_t data)
{
    const char *name;
    json_t *entry;
    if (!json_is_object(header)) return fail(ST_FAILED, "%s: its header is not a JSON object", file->path);
    NEW(file->region, file->tensor, json_object_size(header) + 1);
    json_object_foreach (header, name, entry) {
        if (!strcmp(name, "__metadata__")) continue;
        TRY(read_tensor(file, name, entry, data, &file->tensor[file->count]));
        file->count++;
    }
    qsort(file->tensor, (size_t)file->count, sizeof *file->tensor, by_place);
    file->by_name = names_create(file->region);
    for (int i = 0; i < file->count; i++) names_add(file->by_name, file->tensor[i].name, i);
    return check_places(file, data);
}

/* ---- other formats ---- */

#define SAVE_ANEW "save its tensors with safetensors.torch.save_file"

/* A format by what its files begin with, texts after space; inner: what follows somewhere in the first bytes. */
static const struct {
    const char *start, *inner, *what, *cure;
} formats[] = {
    {"PK\3\4", "", "a zip archive, as PyTorch's checkpoints are (pickle)", SAVE_ANEW},
    {"\211HDF\r\n", "", "an HDF5 file, as Keras's weights are", "save its tensors with safetensors.numpy.save_file"},
    {"version https://git-lfs", "", "a pointer of Git LFS, not the file itself", "fetch it with git lfs pull"},
    {"{", "\"weight_map\"", "the index of several safetensors files", "save the tensors of all of them in one"},
    {"<", "", "an HTML page, as a download leaves that needs a login or fails", "download the file itself"},
};

/* Protocols 1 to 5; an opcode follows. */
static bool is_pickle(const unsigned char *head) { return head[0] == 0x80 && head[1] <= 5 && head[2] >= '('; }

/* The format that the file has instead, where it is known; else what is wrong with it as a safetensors file. */
static enum status refuse_format(const struct safetensors *file, const char *wrong)
{
    char head[HEAD + 1] = "";
    TRY(file_read(file->descriptor, file->path, 0, file->bytes < HEAD ? (size_t)file->bytes : HEAD, head));
    const char *text = head + strspn(head, "\xef\xbb\xbf \t\r\n"); /* a byte order mark, space */
    if (is_pickle((const unsigned char *)head))
        return fail(ST_FAILED, "%s: a pickle, as PyTorch's checkpoints are; expected a safetensors file: %s",
                    file->path, SAVE_ANEW);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strncmp(text, formats[i].start, strlen(formats[i].start)) && strstr(text, formats[i].inner))
            return fail(ST_FAILED, "%s: %s; expected a safetensors file: %s", file->path, formats[i].what,
                        formats[i].cure);
    return fail(ST_FAILED, "%s: %s", file->path, wrong);
}

static enum status read_header(struct safetensors *file)
{
    unsigned char length[LENGTH_BYTES];
    uint64_t bytes = 0;
    json_error_t error;
    if (file->bytes < LENGTH_BYTES) return fail(ST_FAILED, "%s: too short for a safetensors file", file->path);
    TRY(file_read(file->descriptor, file->path, 0, sizeof length, length));
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) bytes = bytes << 8 | length[i];
    if (bytes > file->bytes - LENGTH_BYTES || bytes > HEADER_MAX)
        return refuse_format(file, region_text(file->region,
                                               "not a safetensors file, or cut off: a header of %llu bytes "
                                               "in a file of %llu",
                                               (unsigned long long)bytes, (unsigned long long)file->bytes));
    freed_auto char *text = allocate((size_t)bytes, 1);
    TRY(file_read(file->descriptor, file->path, LENGTH_BYTES, (size_t)bytes, text));
    json_auto_t *header = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &error);
    if (!header)
        return refuse_format(
            file, region_text(file->region, "its header is not the JSON of a safetensors file: %.200s", error.text));
    return read_tensors(file, header, LENGTH_BYTES + bytes);
}

enum status safetensors_open(const char *path, struct safetensors **file)
{
    struct region *region = region_create();
    struct safetensors *f = region_array(region, 1, sizeof *f);
    *f = (struct safetensors){.region = region, .path = region_text(region, "%s", path), .descriptor = -1};
    enum status status = file_open(f->path, &f->descriptor, &f->bytes);
    status = status == ST_OK ? read_header(f) : fail(status, "%s; expected a safetensors file", status_message());
    *file = status == ST_OK ? f : NULL;
    if (status != ST_OK) safetensors_close(f);
    return status;
}

void safetensors_close(struct safetensors *file)
{
    if (!file) return;
    if (file->descriptor >= 0) close(file->descriptor);
    region_destroy(file->region);
}
