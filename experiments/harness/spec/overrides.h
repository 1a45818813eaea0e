/* key.path=value: changes to the tree of a spec before it is read. */
#ifndef REMATCH_SPEC_OVERRIDES_H
#define REMATCH_SPEC_OVERRIDES_H

#include "yaml/yaml_read.h"

/* Sets what key (a TEXT node "policy.segments") leads to in root, making maps on the way; a name drops its map's other
 * keys; value NULL removes it. root is edited, what it shares with others is not. */
void yaml_tree_assign(struct yaml_reader *r, struct yaml_tree *root, const struct yaml_tree *key,
                      struct yaml_tree *value);

/* What key leads to in root; NULL: nothing. */
const struct yaml_tree *yaml_tree_follow(const struct yaml_tree *root, const char *key);

/* Applies count arguments "key=value" to root, whole sections and names first, and takes their keys out of its sweep.
 * An empty value removes the key; steps replaces epochs, epochs steps. keys[i] becomes the key of the i-th argument. */
void overrides_apply(struct yaml_reader *r, struct yaml_tree *root, int count, const char *const *arguments,
                     const char **keys);

#endif
