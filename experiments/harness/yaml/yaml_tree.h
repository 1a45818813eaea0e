/* A YAML text as a small tree that remembers where everything stood.
 *
 * Contract: a strict subset. One document of UTF-8; no anchors, aliases, tags, directives or duplicate keys; every text
 * on one line; bounded size and depth. Scalars stay texts: what they mean is their field's affair. Any input gives a
 * tree or errors, never a crash. */
#ifndef REMATCH_YAML_YAML_TREE_H
#define REMATCH_YAML_YAML_TREE_H

#include "yaml/text_errors.h"

/* BROKEN: it was refused and told; readers pass over it. */
enum tree_kind { TREE_BROKEN, TREE_NULL, TREE_TEXT, TREE_LIST, TREE_MAP };

struct tree {
    enum tree_kind kind;
    const char *text; /* TEXT */
    bool quoted;      /* TEXT: in quotes, so no number or truth value */
    struct mark mark;
    int count;          /* of items, or of keys */
    struct tree **item; /* LIST: its items; MAP: its values */
    struct tree **key;  /* MAP: its keys, TEXT each */
};

/* Reads the whole text file path; ST_MISSING, ST_FAILED with the message set. */
enum status source_read(const char *path, struct region *region, struct source **source);

/* The tree of source's text from byte from on; NULL with errors added where it cannot be read. */
struct tree *tree_parse(const struct source *source, size_t from, struct region *region, struct errors *errors);

/* A list or map of its own over the same nodes, to be edited; NULL: no memory. */
struct tree *tree_copy(const struct tree *tree, struct region *region);

/* Place of key in map, -1: none, or no map. */
int tree_find(const struct tree *map, const char *key);

/* The value of key; NULL: none, or no map. */
struct tree *tree_get(const struct tree *map, const char *key);

/* Replaces or appends key (a TEXT node); value NULL removes it. */
enum status tree_set(struct tree *map, struct tree *key, struct tree *value, struct region *region);

/* A node of that kind standing at mark; NULL: no memory. */
struct tree *tree_make(enum tree_kind kind, const char *text, struct mark mark, struct region *region);

/* As one line of flow YAML; NULL: no memory. */
char *tree_print(const struct tree *tree, struct region *region);

#endif
