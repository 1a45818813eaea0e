#include "onnx_files.h"

#include "base/file.h"

#include <string.h>
#include <unistd.h>

enum { LARGEST_FILE = 64 << 20 };

/* ---- The wire format: fields of a key (number and kind) and a value. ---- */

enum { VARINT, FIXED64, LENGTH, FIXED32 = 5 };
#define KEY(number, kind) ((uint64_t)(number) << 3 | (kind))

struct bytes {
    const unsigned char *at, *end;
};

struct field {
    uint64_t key, number; /* number: of a VARINT */
    struct bytes bytes;   /* of the other kinds */
};

static enum status take_varint(struct bytes *in, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (in->at == in->end) return fail(ST_SPEC, "ends within a number");
        const unsigned char byte = *in->at++;
        if (shift == 63 && byte > 1) break;
        *number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return ST_OK;
    }
    return fail(ST_SPEC, "a number of more than 64 bits");
}

static enum status take_bytes(struct bytes *in, uint64_t count, struct bytes *bytes)
{
    if (count > (uint64_t)(in->end - in->at))
        return fail(ST_SPEC, "a field of %llu bytes, %lld are left", (unsigned long long)count,
                    (long long)(in->end - in->at));
    *bytes = (struct bytes){in->at, in->at + count};
    in->at += count;
    return ST_OK;
}

static enum status take_field(struct bytes *in, struct field *field)
{
    uint64_t length;
    *field = (struct field){0};
    TRY(take_varint(in, &field->key));
    switch (field->key & 7) {
    case VARINT:
        return take_varint(in, &field->number);
    case FIXED64:
        return take_bytes(in, 8, &field->bytes);
    case FIXED32:
        return take_bytes(in, 4, &field->bytes);
    case LENGTH:
        TRY(take_varint(in, &length));
        return take_bytes(in, length, &field->bytes);
    default:
        return fail(ST_SPEC, "a field of kind %d", (int)(field->key & 7));
    }
}

/* ---- Values of fields. ---- */

static void add_integer(struct onnx_integers *list, struct region *region, uint64_t number)
{
    region_grow(region, &list->item, list->count, sizeof *list->item);
    list->item[list->count++] = (int64_t)number;
}

/* A packed list. */
static enum status add_integers(struct onnx_integers *list, struct region *region, struct bytes in)
{
    while (in.at < in.end) {
        uint64_t number;
        TRY(take_varint(&in, &number));
        add_integer(list, region, number);
    }
    return ST_OK;
}

static const char *text_of(struct bytes bytes, struct region *region)
{
    return region_text(region, "%.*s", (int)(bytes.end - bytes.at), (const char *)bytes.at);
}

static void add_name(struct onnx_names *names, struct region *region, struct bytes bytes)
{
    region_grow(region, &names->item, names->count, sizeof *names->item);
    names->item[names->count++] = text_of(bytes, region);
}

/* ---- Messages. ---- */

/* TensorProto.DataType, as far as tensors of the type are read. */
enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

static enum status count_elements(struct onnx_tensor *t)
{
    t->elements = 1;
    for (int i = 0; i < t->dims.count; i++) {
        const int64_t dim = t->dims.item[i];
        if (dim < 0 || (dim > 0 && t->elements > LARGEST_FILE / dim))
            return fail(ST_SPEC, "dimension %d is %lld", i, (long long)dim);
        t->elements *= dim;
    }
    return ST_OK;
}

/* Without raw bytes the numbers are in a field of their type, which no operand of ours uses. */
static enum status unpack(struct onnx_tensor *t, uint64_t type, struct bytes raw, struct region *region)
{
    const int64_t size = type == FLOAT ? sizeof(float) : type == INT64 ? sizeof(int64_t) : 1;
    if ((type != FLOAT && type != INT64 && type != BOOL) || raw.at == NULL) return ST_OK;
    if (raw.end - raw.at != t->elements * size)
        return fail(ST_SPEC, "%lld elements in %lld bytes", (long long)t->elements, (long long)(raw.end - raw.at));
    if (type == FLOAT) {
        float *floats;
        NEW(region, floats, (size_t)t->elements);
        if (raw.at != raw.end) memcpy(floats, raw.at, (size_t)(t->elements * size));
        t->floats = floats;
        return ST_OK;
    }
    int64_t *integers;
    NEW(region, integers, (size_t)t->elements);
    for (int64_t i = 0; type == BOOL && i < t->elements; i++) integers[i] = raw.at[i];
    if (type == INT64 && raw.at != raw.end) memcpy(integers, raw.at, (size_t)(t->elements * size));
    t->integers = integers;
    return ST_OK;
}

static enum status tensor_message(struct bytes in, struct region *region, struct onnx_tensor *t)
{
    struct bytes raw = {0};
    uint64_t type = 0;
    *t = (struct onnx_tensor){.name = ""};
    while (in.at < in.end) {
        struct field f;
        TRY(take_field(&in, &f));
        if (f.key == KEY(1, VARINT)) add_integer(&t->dims, region, f.number);
        if (f.key == KEY(1, LENGTH)) TRY(add_integers(&t->dims, region, f.bytes));
        if (f.key == KEY(2, VARINT)) type = f.number;
        if (f.key == KEY(8, LENGTH)) t->name = text_of(f.bytes, region);
        if (f.key == KEY(9, LENGTH)) raw = f.bytes;
    }
    TRY(count_elements(t));
    return unpack(t, type, raw, region);
}

static enum status attribute_message(struct bytes in, struct region *region, struct onnx_attribute *a)
{
    *a = (struct onnx_attribute){.name = ""};
    while (in.at < in.end) {
        struct field f;
        TRY(take_field(&in, &f));
        if (f.key == KEY(1, LENGTH)) a->name = text_of(f.bytes, region);
        if (f.key == KEY(2, FIXED32)) memcpy(&a->real, f.bytes.at, sizeof a->real);
        if (f.key == KEY(3, VARINT) || f.key == KEY(8, VARINT)) add_integer(&a->integers, region, f.number);
        if (f.key == KEY(4, LENGTH)) a->text = text_of(f.bytes, region);
        if (f.key == KEY(8, LENGTH)) TRY(add_integers(&a->integers, region, f.bytes));
    }
    return ST_OK;
}

static enum status node_message(struct bytes in, struct region *region, struct onnx_test *test)
{
    test->op_type = "";
    test->attributes = test->inputs.count = test->outputs.count = 0;
    while (in.at < in.end) {
        struct field f;
        TRY(take_field(&in, &f));
        if (f.key == KEY(1, LENGTH)) add_name(&test->inputs, region, f.bytes);
        if (f.key == KEY(2, LENGTH)) add_name(&test->outputs, region, f.bytes);
        if (f.key == KEY(4, LENGTH)) test->op_type = text_of(f.bytes, region);
        if (f.key != KEY(5, LENGTH)) continue;
        region_grow(region, &test->attribute, test->attributes, sizeof *test->attribute);
        TRY(attribute_message(f.bytes, region, &test->attribute[test->attributes++]));
    }
    return ST_OK;
}

/* The name of an input or output of the graph (ValueInfoProto), without its type. */
static enum status value_message(struct bytes in, struct region *region, struct onnx_names *names)
{
    struct bytes name = {0};
    while (in.at < in.end) {
        struct field f;
        TRY(take_field(&in, &f));
        if (f.key == KEY(1, LENGTH)) name = f.bytes;
    }
    if (name.at == name.end) return fail(ST_SPEC, "a value without a name");
    add_name(names, region, name);
    return ST_OK;
}

static enum status graph_message(struct bytes in, struct region *region, struct onnx_test *test)
{
    while (in.at < in.end) {
        struct field f;
        TRY(take_field(&in, &f));
        if (f.key == KEY(11, LENGTH)) TRY(value_message(f.bytes, region, &test->given));
        if (f.key == KEY(12, LENGTH)) TRY(value_message(f.bytes, region, &test->expected));
        if (f.key == KEY(1, LENGTH)) {
            test->nodes++;
            TRY(node_message(f.bytes, region, test));
        }
        if (f.key != KEY(5, LENGTH)) continue;
        region_grow(region, &test->constant, test->constants, sizeof *test->constant);
        TRY(tensor_message(f.bytes, region, &test->constant[test->constants++]));
    }
    return ST_OK;
}

static struct bytes bytes_of(const void *bytes, size_t count)
{
    return (struct bytes){bytes, (const unsigned char *)bytes + count};
}

enum status onnx_parse_tensor(const void *bytes, size_t count, struct region *region, struct onnx_tensor *tensor)
{
    return tensor_message(bytes_of(bytes, count), region, tensor);
}

enum status onnx_parse_model(const void *bytes, size_t count, struct region *region, struct onnx_test *test)
{
    struct bytes in = bytes_of(bytes, count);
    *test = (struct onnx_test){.folder = ""};
    while (in.at < in.end) {
        struct field f;
        TRY(take_field(&in, &f));
        if (f.key == KEY(7, LENGTH)) TRY(graph_message(f.bytes, region, test));
    }
    return ST_OK;
}

/* ---- Files. ---- */

static enum status read_whole(const char *path, struct region *region, void **content, uint64_t *bytes)
{
    int file;
    TRY(file_open(path, &file, bytes));
    *content = region_array(region, *bytes > LARGEST_FILE ? 0 : *bytes, 1);
    enum status status = *bytes > LARGEST_FILE ? fail(ST_SPEC, "%s: %llu bytes", path, (unsigned long long)*bytes)
                                               : file_read(file, path, 0, *bytes, *content);
    close(file);
    return status;
}

enum status onnx_read_model(const char *folder, struct region *region, struct onnx_test *test)
{
    const char *path = region_text(region, "%s/model.onnx", folder);
    void *content;
    uint64_t bytes;
    TRY(read_whole(path, region, &content, &bytes));
    if (onnx_parse_model(content, bytes, region, test) != ST_OK)
        return fail(ST_SPEC, "%s: %s", path, region_text(region, "%s", status_message()));
    test->folder = region_text(region, "%s", folder);
    return ST_OK;
}

static enum status read_tensor(const struct onnx_test *test, const char *what, int number, struct region *region,
                               struct onnx_tensor *tensor)
{
    const char *path = region_text(region, "%s/test_data_set_0/%s_%d.pb", test->folder, what, number);
    void *content;
    uint64_t bytes;
    TRY(read_whole(path, region, &content, &bytes));
    if (onnx_parse_tensor(content, bytes, region, tensor) != ST_OK)
        return fail(ST_SPEC, "%s: %s", path, region_text(region, "%s", status_message()));
    return ST_OK;
}

static const struct onnx_tensor *constant_of(const struct onnx_test *test, const char *name)
{
    for (int i = 0; i < test->constants; i++)
        if (strcmp(test->constant[i].name, name) == 0) return &test->constant[i];
    return NULL;
}

/* Files are numbered as the graph lists its values, without its constants. */
static enum status find(const struct onnx_test *test, const char *name, const struct onnx_names *values,
                        const char *what, struct region *region, struct onnx_tensor *tensor)
{
    int number = 0;
    const struct onnx_tensor *constant = constant_of(test, name);
    *tensor = constant ? *constant : (struct onnx_tensor){.name = ""};
    if (constant || name[0] == '\0') return ST_OK;
    for (int i = 0; i < values->count; i++) {
        if (strcmp(values->item[i], name) == 0) return read_tensor(test, what, number, region, tensor);
        number += constant_of(test, values->item[i]) == NULL;
    }
    return fail(ST_SPEC, "%s: no %s of the graph is called %s", test->folder, what, name);
}

enum status onnx_read_operands(struct onnx_test *test, struct region *region)
{
    NEW(region, test->input, (size_t)test->inputs.count);
    NEW(region, test->output, (size_t)test->outputs.count);
    for (int i = 0; i < test->inputs.count; i++)
        TRY(find(test, test->inputs.item[i], &test->given, "input", region, &test->input[i]));
    for (int i = 0; i < test->outputs.count; i++)
        TRY(find(test, test->outputs.item[i], &test->expected, "output", region, &test->output[i]));
    return ST_OK;
}

/* ---- What a node has. ---- */

const struct onnx_attribute *onnx_attribute(const struct onnx_test *test, const char *name)
{
    for (int i = 0; i < test->attributes; i++)
        if (strcmp(test->attribute[i].name, name) == 0) return &test->attribute[i];
    return NULL;
}

int64_t onnx_integer(const struct onnx_test *test, const char *name, int64_t otherwise)
{
    const struct onnx_attribute *a = onnx_attribute(test, name);
    return a && a->integers.count > 0 ? a->integers.item[0] : otherwise;
}

double onnx_real(const struct onnx_test *test, const char *name, double otherwise)
{
    const struct onnx_attribute *a = onnx_attribute(test, name);
    return a ? (double)a->real : otherwise;
}

const char *onnx_text(const struct onnx_test *test, const char *name, const char *otherwise)
{
    const struct onnx_attribute *a = onnx_attribute(test, name);
    return a && a->text ? a->text : otherwise;
}

static const struct onnx_tensor *present(const struct onnx_names *names, const struct onnx_tensor *tensors, int i)
{
    return i < names->count && names->item[i][0] != '\0' ? &tensors[i] : NULL;
}

const struct onnx_tensor *onnx_input(const struct onnx_test *test, int i)
{
    return present(&test->inputs, test->input, i);
}

const struct onnx_tensor *onnx_output(const struct onnx_test *test, int i)
{
    return present(&test->outputs, test->output, i);
}
