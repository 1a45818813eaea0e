/* Settings: one row a key, for layers, policies, data sets, optimizers and the spec itself. The same table drives
 * validation, defaults, key=value overrides, documentation and the attributes of a result file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct region;

enum setting_type {
    SETTING_INT,    /* int64_t; decimal, no sign but '-', no leading zero */
    SETTING_REAL,   /* double; finite */
    SETTING_BOOL,   /* bool; true | false */
    SETTING_BYTES,  /* uint64_t; 4096, 64MiB, 16GB, 1.5GiB */
    SETTING_CHOICE, /* int; index into values[] */
    SETTING_TEXT,   /* const char *; NULL while unset */
    SETTING_PATH,   /* the same: the path of a file or folder to read */
    SETTING_FOLDER, /* the same: the path of a folder to write */
    SETTING_INTS,   /* struct setting_list of int64_t */
    SETTING_REALS,  /* struct setting_list of double */
    SETTING_TEXTS,  /* struct setting_list of const char * */
};

struct setting_list {
    size_t count;
    union {
        const int64_t *ints;
        const double *reals;
        const char *const *texts;
        const void *items;
    };
};

struct setting {
    const char *key; /* NULL ends a table */
    enum setting_type type;
    size_t offset;             /* of the member in the struct that the table describes */
    double min, max;           /* closed range of numbers and of the number of list items */
    const char *preset;        /* default, as in YAML, which may lie outside the range; NULL: required; "" (TEXT, PATH,
                                  FOLDER, INTS, REALS, TEXTS, REAL): stays unset (REAL: NaN) */
    const char *const *values; /* CHOICE, and TEXT where only some words are allowed: the words, NULL-terminated */
    const char *doc;           /* one line */
    enum status (*check)(const char *text); /* of TEXT with a syntax of its own; ST_SPEC says what is wrong */
};

/* The row of key; NULL where there is none or keys is NULL. */
const struct setting *setting_find(const struct setting *keys, const char *key);

/* Sets the member of object from a scalar; a list setting becomes a list of one. Texts are copied into region. ST_SPEC
 * with a message that says what was found and what is expected. */
enum status setting_set(const struct setting *setting, void *object, const char *text, struct region *region);

bool setting_is_list(const struct setting *setting);

/* setting_set() for lists, of numbers of at least 0; *bad is the index of the wrong item, -1: the number of items. */
enum status setting_set_list(const struct setting *setting, void *object, size_t count, const char *const *texts,
                             struct region *region, int *bad);

/* Sets the member of object to that of another setting of the same type; both have its text or its items in common. */
void setting_share(const struct setting *setting, void *object, const struct setting *other, const void *from);

/* Sets every member that has a preset; the others become unset. ST_SPEC: a preset that cannot be read. */
enum status setting_defaults(const struct setting *keys, void *object, struct region *region);

/* Nothing was set: no text, no items, NaN, a number outside its range, true where a truth value has the minimum 1. */
bool setting_unset(const struct setting *setting, const void *object);

/* The value as YAML text that setting_set() (or a YAML list) reads back unchanged. */
char *setting_print(const struct setting *setting, const void *object, struct region *region);

/* "an integer of 1..100", "one of a|b|c". */
char *setting_expected(const struct setting *setting, struct region *region);
