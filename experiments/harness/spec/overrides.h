/* key.path=value: changes to the tree of a spec before it is read. */
#ifndef REMATCH_SPEC_OVERRIDES_H
#define REMATCH_SPEC_OVERRIDES_H

#include "yaml/yaml_read.h"

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

#endif
