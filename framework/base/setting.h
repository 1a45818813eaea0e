/* What a person may set: one row a key, for layers, policies, data sets, optimisers and the spec itself.
 *
 * The same table drives validation, defaults, key=value overrides, documentation and the attributes of a result file.
 */
#ifndef REMATCH_BASE_SETTING_H
#define REMATCH_BASE_SETTING_H

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
    SETTING_PATH,   /* the same: of a file or a folder that is read */
    SETTING_INTS,   /* struct setting_list of int64_t */
    SETTING_TEXTS,  /* struct setting_list of const char * */
};

struct setting_list {
    size_t count;
    union {
        const int64_t *ints;
        const char *const *texts;
    };
};

struct setting {
    const char *key; /* NULL ends a table */
    enum setting_type type;
    size_t offset;      /* of the member within the struct that the table describes */
    double min, max;    /* closed range for numbers and for the number of list items */
    const char *preset; /* default, written as in YAML, not held to the range; NULL: must be given; "" (TEXT, PATH,
                           INTS, TEXTS, REAL): stays unset (REAL: NaN) */
    const char *const *values; /* CHOICE, and TEXT where only some words are allowed: they, NULL-terminated */
    const char *doc;           /* one line */
    enum status (*check)(const char *text); /* TEXT of a form of its own: ST_SPEC says what is wrong with it */
};

/* The row of key; NULL where there is none or keys is NULL. */
const struct setting *setting_find(const struct setting *keys, const char *key);

/* Sets the member of object from a scalar; a list setting becomes a list of one. Texts are copied into region. ST_SPEC
 * with a message that says what was found and what is expected. */
enum status setting_set(const struct setting *setting, void *object, const char *text, struct region *region);

/* The same for INTS (each at least 0) and TEXTS; *bad is the item at fault, -1 where it is the number of items. */
enum status setting_set_list(const struct setting *setting, void *object, size_t count, const char *const *texts,
                             struct region *region, int *bad);

/* Sets every member that has a preset; the others become unset. ST_SPEC: a preset that cannot be read. */
enum status setting_defaults(const struct setting *keys, void *object, struct region *region);

/* Nothing was set: no text, no items, NaN, a number outside its range. */
bool setting_unset(const struct setting *setting, const void *object);

/* The value as YAML text that setting_set (or a YAML list) reads back unchanged; NULL: no memory. */
char *setting_print(const struct setting *setting, const void *object, struct region *region);

/* "an integer of 1..100", "one of a|b|c"; NULL: no memory. */
char *setting_expected(const struct setting *setting, struct region *region);

#endif
