/* Files of named tensors in Hugging Face's safetensors format, read with distrust: 8 bytes little-endian length of a
 * header; the header, JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...} and perhaps
 * "__metadata__"; then the data, which the offsets count from. Tensors lie one after the other and fill it. */
#ifndef REMATCH_JOB_SAFETENSORS_H
#define REMATCH_JOB_SAFETENSORS_H

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
    int descriptor;
};

/* Opens the file and checks all of its header. ST_MISSING: there is no such file; ST_FAILED: it is no such file or a
 * damaged one, the message says what is wrong with which tensor. */
enum status safetensors_open(const char *path, struct safetensors **file);
void safetensors_close(struct safetensors *file);

/* NULL: there is none of that name. */
const struct safetensor *safetensors_find(const struct safetensors *file, const char *name);

/* Whether its elements can be had as floats: F32, F16, BF16. */
bool safetensors_is_float(const struct safetensor *tensor);

/* Elements [first, first + count) of such a tensor as floats. ST_FAILED: they cannot be read. */
enum status safetensors_floats(const struct safetensors *file, const struct safetensor *tensor, int64_t first,
                               int64_t count, float *to);

/* SHA-256 of the whole file, in hexadecimal. */
enum status safetensors_sha256(const struct safetensors *file, char text[65]);

#endif
