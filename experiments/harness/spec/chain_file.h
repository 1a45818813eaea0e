/* An abstract chain as the user wrote it: stages of times and bytes, for models without kernels, published chains and
 * tests. As strict as a spec. */
#ifndef REMATCH_SPEC_CHAIN_FILE_H
#define REMATCH_SPEC_CHAIN_FILE_H

#include "backend/abstract_chain.h"
#include "policies/policy.h"

enum { CHAIN_STAGES_MAX = 4096 };

struct chain_file {
    struct region *region; /* owns everything */
    const char *name, *title;
    bool drop_dead;
    int stages; /* every repeat written out */
    struct abstract_stage *stage;
    const struct policy *policy; /* NULL: none was asked for */
    struct policy_settings settings;
    int overrides;
    const char *const *override; /* as given */
};

/* Reads path and applies count overrides "key.path=value". ST_SPEC where anything is wrong, all of it told on stderr
 * with its place. */
enum status chain_file_load(const char *path, int count, const char *const *overrides, struct chain_file **file);
void chain_file_destroy(struct chain_file *file);

#endif
