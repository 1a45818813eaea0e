/* A YAML text as a small tree with the place of every node.
 *
 * Contract: a strict subset. One document of UTF-8; no anchors, aliases, tags, directives or duplicate keys; every text
 * on one line; bounded size and depth. Scalars stay texts; settings interpret them. Any input gives a tree or
 * errors, never a crash. */
#pragma once

#include "yaml/text_errors.h"

/* BROKEN: an error was reported for it; readers skip it. */
enum yaml_kind { YAML_BROKEN, YAML_NULL, YAML_TEXT, YAML_LIST, YAML_MAP };

struct yaml_tree {
    enum yaml_kind kind;
    const char *text; /* TEXT */
    bool quoted;      /* TEXT: in quotes, so no number or truth value */
    struct mark mark;
    int count;               /* of items, or of keys */
    struct yaml_tree **item; /* LIST: its items; MAP: its values */
    struct yaml_tree **key;  /* MAP: its keys, TEXT each */
};

/* Reads the whole text file path; ST_MISSING, ST_FAILED with the message set. */
enum status source_read(const char *path, struct region *region, struct source **source);

/* The tree of source's text from byte from on; NULL: errors were added. */
struct yaml_tree *yaml_tree_parse(const struct source *source, size_t from, struct region *region,
                                  struct errors *errors);

/* The tree of a text that the program wrote itself; NULL where it cannot be read. */
struct yaml_tree *yaml_tree_of_text(const char *text, struct region *region);

/* A list or map over the same items, whose own entries can be edited. */
struct yaml_tree *yaml_tree_copy(const struct yaml_tree *tree, struct region *region);

/* Index of key in map, -1: none, or no map. */
int yaml_tree_find(const struct yaml_tree *map, const char *key);

/* The value of key; NULL: none, or no map. */
struct yaml_tree *yaml_tree_get(const struct yaml_tree *map, const char *key);

/* Replaces or appends key, whose node gets mark; value NULL removes it. */
void yaml_tree_set(struct yaml_tree *map, const char *key, struct mark mark, struct yaml_tree *value,
                   struct region *region);

/* A node of that kind at mark. */
struct yaml_tree *yaml_tree_make(enum yaml_kind kind, const char *text, struct mark mark, struct region *region);

/* As one line of flow YAML. */
char *yaml_tree_print(const struct yaml_tree *tree, struct region *region);
