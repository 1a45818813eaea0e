/* Files of text: written whole or not at all; those of YAML, which the program reads again, by field tables. */
#ifndef REMATCH_YAML_YAML_WRITE_H
#define REMATCH_YAML_YAML_WRITE_H

#include <stdio.h>

#include "base/region.h"
#include "base/setting.h"

/* "key: value" of every field, with between in between. */
void writing_fields(const struct field *fields, const void *object, const char *between, struct region *region,
                    FILE *out);

/* Whether writing_whole() will be able to make path, before it is worth the while: nothing may be there but a file with
 * the version's key at the start of a line (else ST_SPEC), and its folder must take a file. path NULL: yes. */
enum status writing_check(const char *path, const char *key, struct region *region);

/* Makes the file path by write, which returns false where its stream failed; under another name first, so that a file
 * that is there is whole. path NULL: to stdout. */
enum status writing_whole(const char *path, bool (*write)(const void *of, FILE *out), const void *of);

/* A field of comma-separated values in quotes, and end after it. */
void writing_csv(const char *text, const char *end, FILE *out);

#endif
