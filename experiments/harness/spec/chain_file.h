/* A network of an abstract chain: stages with the times and bytes that a file gives, for models without kernels,
 * published chains and tests. The file is read as strictly as a spec. */
#ifndef REMATCH_SPEC_CHAIN_FILE_H
#define REMATCH_SPEC_CHAIN_FILE_H

#include "spec/spec.h"

enum { CHAIN_STAGES_MAX = 4096 };

/* Reads path and applies count overrides "key.path=value". spec has name, title, drop_dead, overrides and policy alone
 * (NULL where none is set); network is freed by abstract_destroy. ST_SPEC where anything is wrong: every error was
 * printed on stderr with its place. */
enum status chain_file_load(const char *path, int count, const char *const *overrides, struct spec **spec,
                            struct network **network);

#endif
