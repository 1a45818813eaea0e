/* The keys that an argument key=value can set, in full: "batch", "policy.budget". */
#pragma once

#include "spec/spec_settings.h"
#include "yaml/yaml_tree.h"

struct full_key {
    const char *key, *doc;
    const struct setting *setting; /* of its value, or of the bare word that stands for a map; NULL: it takes neither */
};

/* All of them, of a graph file its own and its policy's, ended by key NULL. Of a section whose row is chosen by name,
 * the keys of the row that root chooses, or of all rows where root is NULL or chooses none. */
struct full_key *full_keys(const struct yaml_tree *root, bool graph, struct region *region);

/* The keys alone, of all rows, NULL-terminated. */
const char *const *full_key_names(struct region *region);
