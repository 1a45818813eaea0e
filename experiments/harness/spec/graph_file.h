/* A network of a graph file: nodes with the times and bytes that the file gives, for models without kernels, published
 * networks, steps that were traced elsewhere, and tests. The file is read as strictly as a spec. */
#pragma once

#include "spec/spec.h"

/* The scalars at the top level of a graph file. */
extern const struct setting graph_file_keys[];

/* Reads path and applies count overrides "key.path=value". spec has text, root, name, title, batch (0: none is given),
 * scaled_from, drop_dead, placed, overrides and policy alone (NULL where none is set); network is freed by
 * abstract_destroy. ST_SPEC where anything is wrong: every error was printed on stderr with its place. */
enum status graph_file_load(const char *path, int count, const char *const *overrides, struct spec **spec,
                            struct network **network);

/* The file with its overrides as one that graph_file_load() makes the same network and policy of. */
char *graph_file_print(const struct spec *spec, struct region *region);
