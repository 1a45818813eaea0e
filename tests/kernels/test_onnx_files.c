/* The reader of ONNX's tests: messages written by hand, and damaged ones. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/onnx_files.h"

/* The bytes of a literal, without its last 0. */
#define BYTES(literal) (literal), sizeof(literal) - 1

/* A graph of one node, Conv(x, "", w) = y with pads [1, 2], a 0.5 and m "abc", whose w is the constant {true}. */
static const char model[] = "\x08\x07" /* the version of the format, which is skipped */
                            "\x3a\x49" /* the graph: its node with inputs, output, operator and attributes */
                            "\x0a\x31\x0a\x01x\x0a\x00\x0a\x01w\x12\x01y\x22\x04\x43onv"
                            "\x2a\x0a\x0a\x04pads\x42\x02\x01\x02"
                            "\x2a\x08\x0a\x01\x61\x15\x00\x00\x00\x3f"
                            "\x2a\x08\x0a\x01m\x22\x03\x61\x62\x63"
                            "\x2a\x0a\x08\x01\x10\x09\x42\x01w\x4a\x01\x01" /* its constant: dimensions, type, ... */
                            "\x5a\x03\x0a\x01x"                             /* what it is given */
                            "\x62\x03\x0a\x01y";                            /* what comes out */

Test(onnx_files, a_node_is_read)
{
    struct region *region = region_create();
    struct onnx_test test;
    cr_assert(onnx_parse_model(BYTES(model), region, &test) == ST_OK, "%s", status_message());
    cr_assert(test.nodes == 1 && strcmp(test.op_type, "Conv") == 0);
    cr_assert(test.inputs.count == 3 && strcmp(test.inputs.item[1], "") == 0);
    cr_assert(test.outputs.count == 1 && strcmp(test.outputs.item[0], "y") == 0);
    cr_assert(test.given.count == 1 && test.expected.count == 1 && strcmp(test.given.item[0], "x") == 0);
    cr_assert(test.constants == 1 && test.constant[0].elements == 1 && test.constant[0].integers[0] == 1);
    cr_assert(onnx_attribute(&test, "pads")->integers.count == 2 && onnx_integer(&test, "pads", 0) == 1);
    cr_assert(onnx_real(&test, "a", 1) == 0.5 && onnx_real(&test, "b", 1) == 1);
    cr_assert(strcmp(onnx_text(&test, "m", ""), "abc") == 0 && onnx_attribute(&test, "n") == NULL);
    region_destroy(region);
}

Test(onnx_files, a_tensor_is_read)
{
    struct region *region = region_create();
    struct onnx_tensor t;
    const char floats[] = "\x08\x02\x08\x01\x10\x01\x4a\x08\x00\x00\x80\x3f\x00\x00\x00\x40";
    const char integers[] = "\x0a\x01\x01\x10\x07\x4a\x08\xfe\xff\xff\xff\xff\xff\xff\xff";
    cr_assert(onnx_parse_tensor(BYTES(floats), region, &t) == ST_OK, "%s", status_message());
    cr_assert(t.dims.count == 2 && t.dims.item[0] == 2 && t.elements == 2 && t.integers == NULL);
    cr_assert(t.floats[0] == 1 && t.floats[1] == 2);
    cr_assert(onnx_parse_tensor(BYTES(integers), region, &t) == ST_OK, "%s", status_message());
    cr_assert(t.dims.count == 1 && t.elements == 1 && t.floats == NULL && t.integers[0] == -2);
    region_destroy(region);
}

static const struct {
    const char *bytes;
    size_t count;
    const char *expected;
} damaged[] = {
    {BYTES("\x08"), "ends within a number"},
    {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "a number of more than 64 bits"},
    {BYTES("\x4a\x05xy"), "a field of 5 bytes, 2 are left"},
    {BYTES("\x4a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a field of 18446744073709551615 bytes, 0 are left"},
    {BYTES("\x15\x01"), "a field of 4 bytes, 1 are left"},
    {BYTES("\x0b"), "a field of kind 3"},
    {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "dimension 0 is -1"},
    {BYTES("\x08\x80\x80\x01\x08\x80\x80\x02"), "dimension 1 is 32768"},
    {BYTES("\x08\x02\x10\x01\x4a\x04xxyy"), "2 elements in 4 bytes"},
};

Test(onnx_files, a_damaged_tensor_is_refused)
{
    struct region *region = region_create();
    struct onnx_tensor t;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        cr_assert(onnx_parse_tensor(damaged[i].bytes, damaged[i].count, region, &t) == ST_SPEC, "%zu", i);
        cr_assert(strcmp(status_message(), damaged[i].expected) == 0, "%zu: %s", i, status_message());
    }
    region_destroy(region);
}

/* Reads the first count bytes of the model with byte at, if it is one of them, changed; a sanitizer watches. */
static void read_damaged(size_t count, size_t at, char change)
{
    struct region *region = region_create();
    struct onnx_test test;
    char *bytes = malloc(count);
    cr_assert(bytes != NULL);
    memcpy(bytes, model, count);
    if (at < count) bytes[at] ^= change;
    onnx_parse_model(bytes, count, region, &test);
    free(bytes);
    region_destroy(region);
}

Test(onnx_files, no_damage_makes_the_reader_leave_its_bytes)
{
    for (size_t count = 1; count < sizeof model; count++) read_damaged(count, count, 0);
    for (size_t at = 0; at < sizeof model - 1; at++)
        for (int change = 1; change < 256; change++) read_damaged(sizeof model - 1, at, (char)change);
}
