/* Files in the safetensors format, made by hand. */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* A length, the header, the data; as they are. */
void safetensors_write(const char *path, uint64_t length, const char *header, const void *data, size_t bytes);

/* A file that is written tensor by tensor: name, shape as "2, 3", F32 elements base, base + 1, ...; or a scalar I64. */
struct safetensors_writer {
    char header[1 << 17];
    float data[65536];
    size_t length, elements;
};
void safetensors_add(struct safetensors_writer *writer, const char *name, const char *shape, float base);
void safetensors_add_count(struct safetensors_writer *writer, const char *name, int64_t count);
void safetensors_finish(struct safetensors_writer *writer, const char *path);
