#include "safetensors_files.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

void safetensors_write(const char *path, uint64_t length, const char *header, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file != NULL, "%s", path);
    for (int i = 0; i < 8; i++) fputc((int)(length >> (8 * i) & 255), file);
    fputs(header, file);
    if (bytes) cr_assert(fwrite(data, 1, bytes, file) == bytes);
    cr_assert(fclose(file) == 0);
}

/* The header's entry for what was put behind the elements; words: how many floats have its size. */
static void add_entry(struct safetensors_writer *writer, const char *name, const char *dtype, const char *shape,
                      size_t words)
{
    const size_t before = writer->elements;
    writer->elements += words;
    writer->length += (size_t)snprintf(writer->header + writer->length, sizeof writer->header - writer->length,
                                       "%s\"%s\": {\"dtype\": \"%s\", \"shape\": [%s], \"data_offsets\": [%zu, %zu]}",
                                       before ? ", " : "{", name, dtype, shape, 4 * before, 4 * writer->elements);
    cr_assert(writer->length + 2 < sizeof writer->header);
}

void safetensors_add(struct safetensors_writer *writer, const char *name, const char *shape, float base)
{
    size_t elements = 1, before = writer->elements;
    char *end;
    for (const char *s = shape; *s; s = end + strspn(end, ", ")) elements *= strtoul(s, &end, 10);
    cr_assert(before + elements <= sizeof writer->data / sizeof *writer->data);
    for (size_t i = 0; i < elements; i++) writer->data[before + i] = base + (float)i;
    add_entry(writer, name, "F32", shape, elements);
}

void safetensors_add_count(struct safetensors_writer *writer, const char *name, int64_t count)
{
    enum { WORDS = sizeof count / sizeof *writer->data };
    cr_assert(writer->elements + WORDS <= sizeof writer->data / sizeof *writer->data);
    memcpy(&writer->data[writer->elements], &count, sizeof count);
    add_entry(writer, name, "I64", "", WORDS);
}

void safetensors_finish(struct safetensors_writer *writer, const char *path)
{
    strcpy(writer->header + writer->length, "}");
    safetensors_write(path, writer->length + 1, writer->header, writer->data, 4 * writer->elements);
}
