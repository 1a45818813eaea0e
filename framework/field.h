/* What a person may set: one row a key, for layers, policies, data sets, optimisers and the spec itself.
 *
 * The same table drives validation, defaults, key=value overrides, documentation and the attributes of a result file.
 */
#ifndef REMATCH_FIELD_H
#define REMATCH_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

enum field_type {
    FIELD_INT,    /* int64_t; decimal, no sign but '-', no leading zero */
    FIELD_REAL,   /* double; finite */
    FIELD_BOOL,   /* bool; true | false */
    FIELD_BYTES,  /* uint64_t; 4096, 64MiB, 16GB, 1.5GiB */
    FIELD_CHOICE, /* int; index into values[] */
    FIELD_TEXT,   /* const char *; NULL while unset */
    FIELD_INTS,   /* struct field_list of int64_t */
    FIELD_TEXTS,  /* struct field_list of const char * */
};

struct field_list {
    size_t count;
    union {
        const int64_t *ints;
        const char *const *texts;
    };
};

struct field {
    const char *key; /* NULL ends a table */
    enum field_type type;
    size_t offset;      /* of the member within the struct that the table describes */
    double min, max;    /* closed range for numbers and for the number of list items */
    const char *preset; /* default, written as in YAML; NULL: must be given; "" (TEXT, INTS, TEXTS): stays unset */
    const char *const *values; /* CHOICE: allowed words, NULL-terminated */
    const char *doc;           /* one line */
};

#endif
