/* Between the tree of a spec and struct spec: reading, and printing as canonical YAML. */
#pragma once

#include "spec/spec_settings.h"
#include "yaml/yaml_read.h"

enum { SPEC_VERSION = 1 }; /* of the format */

struct spec_reader {
    struct yaml_reader yaml;
    struct model_file *files; /* those read so far: the points of a sweep share them */
};

/* Fills spec (zeroed; its region is set) from root; errors are collected. */
void spec_read(struct spec_reader *r, const struct yaml_tree *root, struct spec *spec);

/* Reads the section of root into spec. */
void spec_read_section(struct yaml_reader *r, const struct section *section, const struct yaml_tree *root,
                       struct spec *spec);

/* Reads the block sweep: into the axes and points of spec; NULL: there is none. */
void sweep_read(struct yaml_reader *r, const struct yaml_tree *sweep, struct spec *spec);

/* Reads a map of axes to a value each into value, by axis; keys that are no axis and values that no point has are
 * errors. Returns whether there were none. */
int sweep_condition(struct yaml_reader *r, const struct yaml_tree *map, const char *path, const struct spec *spec,
                    const char **value);

/* Removes the axes that the first length characters of key set from root's sweep. What is excluded or expected at other
 * values of theirs than value (NULL: none) goes with them. */
void sweep_remove(struct yaml_tree *root, const char *key, size_t length, const char *value, struct region *region);

/* Canonical YAML of everything in spec, with the baseline: and sweep: blocks of root. */
char *spec_print(const struct spec *spec, const struct yaml_tree *root, struct region *region);

/* Prints the section of spec, "policy: {name: every, unit: group}", as a line of it. */
void spec_print_section(const struct spec *spec, const struct section *section, struct region *region, FILE *out);

/* Sets the value at key (a TEXT node "policy.segments") in root, creating maps on the way; setting a name drops its
 * map's other keys; value NULL removes the key. Maps on the way are copied: nodes shared with other trees stay. */
void yaml_tree_assign(struct yaml_tree *root, const struct yaml_tree *key, struct yaml_tree *value,
                      struct region *region);

/* The value at key in root; NULL: none. */
const struct yaml_tree *yaml_tree_follow(const struct yaml_tree *root, const char *key);

/* Applies count arguments "key=value" to root, whole sections and names first, and removes their keys from its sweep.
 * An empty value removes the key; steps replaces epochs, epochs steps. keys[i] becomes the key of the i-th argument. */
void overrides_apply(struct yaml_reader *r, struct yaml_tree *root, int count, const char *const *arguments,
                     const char **keys);
