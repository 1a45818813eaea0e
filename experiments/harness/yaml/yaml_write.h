/* Writing text files, whole or not at all; YAML by setting tables, so that the program can read it again. */
#pragma once

#include <stdio.h>

#include "base/region.h"
#include "base/setting.h"

/* The value as YAML text; a path is absolute if its file exists. */
const char *yaml_write_value(const struct setting *setting, const void *object, struct region *region);

/* "key: value" of every setting that is set: first before the first, between before the others. Returns how many. */
int yaml_write_settings(const struct setting *keys, const void *object, const char *first, const char *between,
                        struct region *region, FILE *out);

/* Whether yaml_write_whole() can create path, checked before long work: an existing file must begin with that text, of
 * less than 64 bytes (else ST_SPEC), and the folder must be writable. path NULL: yes. */
enum status yaml_write_check(const char *path, const char *first, const char *kind);

/* Creates the file path by write; under another name first, so that path is never a partial file. path NULL: to stdout.
 */
enum status yaml_write_whole(const char *path, void (*write)(const void *of, FILE *out), const void *of);
