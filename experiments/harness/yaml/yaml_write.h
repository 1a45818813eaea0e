/* Files of text: written whole or not at all; those of YAML, which the program reads again, by setting tables. */
#ifndef REMATCH_YAML_YAML_WRITE_H
#define REMATCH_YAML_YAML_WRITE_H

#include <stdio.h>

#include "base/region.h"
#include "base/setting.h"

/* "key: value" of every setting, with between in between. */
void yaml_write_settings(const struct setting *keys, const void *object, const char *between, struct region *region,
                         FILE *out);

/* Whether yaml_write_whole() will be able to make path, before it is worth the while: nothing may be there but a file
 * with the version's key at the start of a line (else ST_SPEC), and its folder must take a file. path NULL: yes. */
enum status yaml_write_check(const char *path, const char *key, struct region *region);

/* Makes the file path by write, which returns false where its stream failed; under another name first, so that a file
 * that is there is whole. path NULL: to stdout. */
enum status yaml_write_whole(const char *path, bool (*write)(const void *of, FILE *out), const void *of);

/* A setting of comma-separated values in quotes, and end after it. */
void yaml_write_csv(const char *text, const char *end, FILE *out);

#endif
