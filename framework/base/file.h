/* Reading files. */
#pragma once

#include <stdint.h>
#include <unistd.h>

#include "base/region.h"

/* Opens path for reading; the caller closes the descriptor. ST_MISSING: there is no such file; ST_FAILED: it cannot be
 * opened, or is not a plain file. The message begins with the path. */
enum status file_open(const char *path, int *descriptor, uint64_t *bytes);

/* descriptor_auto int descriptor = -1: closed at the end of the block, if it was opened. */
#define descriptor_auto __attribute__((cleanup(descriptor_end)))
static inline void descriptor_end(const int *descriptor)
{
    if (*descriptor >= 0) close(*descriptor);
}

/* Reads bytes bytes at offset of such a file; ST_FAILED: they cannot be read. Several threads may call it. */
enum status file_read(int descriptor, const char *path, uint64_t offset, size_t bytes, void *to);

/* A path as it was typed or written in a spec: "~" and "~/x" are below $HOME. ST_SPEC for "~user", and for variables
 * ($NAME, ${NAME}) in what is no name of a file: only a shell knows what they stand for. */
enum status file_expand(const char *path, struct region *region, const char **expanded);

/* The whole text file, ended by 0. ST_MISSING, ST_FAILED: as above; it has more than most bytes, or is no text. */
enum status file_read_text(const char *path, size_t most, struct region *region, char **text);
