/* Tests of one node that ONNX publishes as folders: a graph in model.onnx, the operands and the expected outputs in
 * files of one tensor each. Files are protobuf messages (https://protobuf.dev/programming-guides/encoding); of ONNX's
 * messages (onnx.proto) it reads the fields that such a test needs. Nothing that a file says is trusted. */
#pragma once

#include "base/region.h"

#include <stdint.h>

/* Where Debian's package libonnx-testdata has the tests. */
#define ONNX_TESTS "/usr/share/libonnx-testdata/data"

struct onnx_integers {
    int count;
    int64_t *item;
};

struct onnx_tensor {
    const char *name;
    struct onnx_integers dims;
    int64_t elements;
    const float *floats;     /* of type float, else NULL */
    const int64_t *integers; /* of type int64 or bool, else NULL */
};

struct onnx_attribute {
    const char *name, *text; /* text: NULL where it is none */
    float real;
    struct onnx_integers integers; /* one, where it is no list */
};

struct onnx_names {
    int count;
    const char **item;
};

struct onnx_test {
    const char *folder;
    int nodes; /* of the graph; all below is of its last one */
    const char *op_type;
    int attributes;
    struct onnx_attribute *attribute;
    struct onnx_names inputs, outputs;  /* "": an optional operand that is left out */
    struct onnx_tensor *input, *output; /* as many as names; of one left out: no elements, no numbers */
    struct onnx_names given, expected;  /* of the graph: what it is given and what must come out, in the files' order */
    int constants;                      /* of the graph */
    struct onnx_tensor *constant;
};

/* Messages in memory; ST_SPEC: bytes is not one, with what is wrong. */
enum status onnx_parse_tensor(const void *bytes, size_t count, struct region *region, struct onnx_tensor *tensor);
enum status onnx_parse_model(const void *bytes, size_t count, struct region *region, struct onnx_test *test);

/* Reads a folder's graph, then its operands and expected outputs. */
enum status onnx_read_model(const char *folder, struct region *region, struct onnx_test *test);
enum status onnx_read_operands(struct onnx_test *test, struct region *region);

/* An attribute by its name, NULL: the node has none; and its number or text, or the default. */
const struct onnx_attribute *onnx_attribute(const struct onnx_test *test, const char *name);
int64_t onnx_integer(const struct onnx_test *test, const char *name, int64_t otherwise);
double onnx_real(const struct onnx_test *test, const char *name, double otherwise);
const char *onnx_text(const struct onnx_test *test, const char *name, const char *otherwise);

/* Input or output i, NULL where the node has none or it was left out. */
const struct onnx_tensor *onnx_input(const struct onnx_test *test, int i);
const struct onnx_tensor *onnx_output(const struct onnx_test *test, int i);
