/* From a tree to structs: maps are read by setting tables, and every error is collected with its place. */
#pragma once

#include "base/setting.h"
#include "yaml/yaml_tree.h"

struct yaml_reader {
    struct region *region;
    struct errors *errors;
    const char *folder;      /* of the file that is read, with its slash; NULL: the file has no paths */
    const char *const *keys; /* all keys of a spec in full, NULL-terminated, for suggestions; NULL: it is no spec */
};

/* The folder of path, with its slash; "" where it has none. */
const char *yaml_read_folder(const char *path, struct region *region);

/* An error at tree about the key path.key; path, key: NULL or "" are left out. */
void yaml_read_error(struct yaml_reader *r, const struct yaml_tree *at, const char *path, const char *key,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The message "'it' is not known (did you mean 'a'?); expected one of a|b" for a word that is not among words;
 * otherwise: what follows instead of the suggestion where no word is near, "": nothing. */
char *yaml_read_unknown(struct yaml_reader *r, const char *word, const char *const *words, const char *otherwise);

/* Whether word is among words (NULL-terminated; NULL: none). */
bool yaml_read_among(const char *word, const char *const *words);

/* Reads one value into the member of object that setting describes. A relative path in a file is searched beside that
 * file, then in the current folder, in experiments/ and in $REMATCH_DATA; one in an argument, in the current folder
 * first. The member is the path as found, or as written if it is not found; of a path, file_expand() gives the
 * beginning.
 */
void yaml_read_value(struct yaml_reader *r, const struct yaml_tree *value, const char *path,
                     const struct setting *setting, void *object);

/* Sets the defaults, then reads map's keys. also: further keys of the map, NULL-terminated, left to the caller.
 * Unknown keys and missing ones are errors, as is anything that is not a map; of names what the keys belong to. */
void yaml_read_map(struct yaml_reader *r, const struct yaml_tree *map, const char *path, const char *of,
                   const struct setting *keys, const char *const *also, void *object);

/* The format's version, root's key; of names the file that begins with it. Any other version is an error. */
void yaml_read_version(struct yaml_reader *r, const struct yaml_tree *root, const char *key, int version,
                       const char *of);
