/* A policy emits a word; liveness derives from it what is saved, freed and replayed. */
#ifndef REMATCH_POLICY_H
#define REMATCH_POLICY_H

#include "chain.h"

/* Everything any policy lets YAML set; a policy's fields say which members are its own. */
struct policy_settings {
    int64_t segments;
    int unit; /* enum unit */
    bool keep_last, keep_saved;
    struct field_list groups; /* manual: names of the groups to replay */
    const char *word;         /* manual: path of a word file */
};

struct policy {
    const char *name;
    const struct field *fields;
    /* Appends to an empty word; ST_SPEC where the settings do not fit the network. */
    enum status (*emit)(const struct network *network, const struct policy_settings *settings, struct region *region,
                        struct word *word);
};

/* The policy called name, or NULL; and the table, ended by NULL, in the order of policies.def. */
const struct policy *policy_find(const char *name);
extern const struct policy *const policy_table[];

#endif
