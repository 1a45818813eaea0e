/* The keys of a spec, as tables: its top level, and its sections. */
#pragma once

#include "spec/spec.h"

/* A row of a table that a name chooses. */
struct choice {
    const char *name, *doc;     /* doc: one line */
    const struct setting *keys; /* NULL: none */
    const void *row;            /* the pointer that a spec holds */
};

struct registry {
    struct choice (*choice)(int index); /* name NULL after the last */
    size_t chosen;                      /* offset in struct spec of the pointer to the chosen row */
    size_t settings;                    /* offset in struct spec of the struct that its keys set */
    const char *preset;                 /* chosen where no name is given; NULL: a name is required */
    const char *what;
};

/* The setting that chooses a row: its value is the row's index. */
struct setting registry_setting(const struct registry *registry, struct region *region);

/* A map at the top level; a bare word w stands for {word: w}. */
struct section {
    const char *key;
    const char *word;                       /* NULL: no bare word */
    const struct setting *keys;             /* members of struct spec; NULL: none */
    const struct registry *registry;        /* NULL: nothing is chosen by name */
    const char *const *also;                /* further keys, read elsewhere, NULL-terminated; NULL: none */
    bool needed;                            /* must be given */
    bool (*shown)(const struct spec *spec); /* in the resolved spec; NULL: always */
    const char *doc;                        /* one line */
};

/* The scalars at the top level, in struct spec. */
extern const struct setting spec_keys[];

/* The keys of model.init. */
extern const struct setting init_keys[];

/* Ended by a row without key. */
extern const struct section spec_sections[];
extern const struct setting expectation_keys[], published_keys[];

/* The numbers of expectations, in the order of enum expectation_what. */
extern const char *const expectation_names[];

/* The numbers that key ("batch", "optimizer.lr") changes: bit 1 << enum expectation_what for each. */
unsigned spec_changes(const char *key);

/* Keys of the top level without a setting or a section; ended by a row without key. */
struct other_key {
    const char *key, *expected, *doc;
    bool needed;
};
extern const struct other_key spec_other_keys[];

/* All keys of the top level in the order of a resolved spec, NULL-terminated. */
extern const char *const spec_order[];

/* By enum layout_choice and enum precision, NULL-terminated. */
extern const char *const layout_names[];
extern const char *const precision_names[];

/* The section called key, NULL: none. */
const struct section *spec_section(const char *key);
