/* From a tree to structs: maps are read by their field tables, and every error is collected with its place. */
#ifndef REMATCH_YAML_YAML_READ_H
#define REMATCH_YAML_YAML_READ_H

#include "base/setting.h"
#include "yaml/yaml_tree.h"

struct reading {
    struct region *region;
    struct errors *errors;
    const char *folder; /* of the file that is read, with its slash; NULL: it names no files */
};

/* The folder of path, with its slash; "" where it names none; NULL: no memory. */
const char *reading_folder(const char *path, struct region *region);

/* An error at tree about the key path.key; path, key: NULL or "" are left out. */
void reading_error(struct reading *r, const struct tree *at, const char *path, const char *key, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* "it is not known; expected one of a|b (did you mean 'a'?)": what is wrong with a word that is not among words. */
char *reading_unknown(struct reading *r, const char *word, const char *const *words);

/* Reads one value into the member of object that field describes. A relative path is looked for beside the file that
 * says it, then in the current folder, in experiments/ and in $REMATCH_DATA; one that an argument says, in the current
 * folder first. The member is the path as found, as written where it is nowhere. */
void reading_value(struct reading *r, const struct tree *value, const char *path, const struct field *field,
                   void *object);

/* Sets the defaults, then reads map's keys. also: further keys of the map, NULL-terminated, left to the caller.
 * Unknown keys and missing ones are errors, as is anything that is not a map; of names what the keys belong to. */
void reading_map(struct reading *r, const struct tree *map, const char *path, const char *of,
                 const struct field *fields, const char *const *also, void *object);

/* The format's version, root's key; of names the file that begins with it. Any other version is an error. */
void reading_version(struct reading *r, const struct tree *root, const char *key, int version, const char *of);

#endif
