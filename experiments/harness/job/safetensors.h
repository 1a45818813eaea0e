/* Files of named tensors in Hugging Face's safetensors format, which are not trusted: the length of a header, 8 bytes
 * little-endian; the header, JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...},
 * optionally with "__metadata__"; then the data, from which the offsets count. The tensors fill it without gaps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { SAFETENSOR_RANK_MAX = 8 };

struct safetensor {
    const char *name, *dtype;
    int rank;
    int64_t dim[SAFETENSOR_RANK_MAX], elements;
    uint64_t at, bytes; /* in the file */
    int type;           /* private */
};

struct safetensors {
    struct region *region;
    const char *path;
    uint64_t bytes; /* of the file */
    int count;
    struct safetensor *tensor; /* in the order of their data */
    struct names *by_name;     /* their numbers */
    int descriptor;
};

/* Opens the file and checks its whole header. ST_MISSING: it does not exist; ST_FAILED: it has another format, which
 * the message names where it is known, or is damaged, the message names the tensor and what is wrong with it. */
enum status safetensors_open(const char *path, struct safetensors **file);
void safetensors_close(struct safetensors *file);

/* The tensor of that name, or NULL. */
const struct safetensor *safetensors_find(const struct safetensors *file, const char *name);

/* Whether its elements can be converted to float: F32, F16, BF16. */
bool safetensors_is_float(const struct safetensor *tensor);

/* Elements [first, first + count) of such a tensor as floats. ST_FAILED: reading failed. */
enum status safetensors_floats(const struct safetensors *file, const struct safetensor *tensor, int64_t first,
                               int64_t count, float *to);
