/* All errors of a text that a person wrote, reported together: file, line, column, key, what was expected, and the line
 * itself with a caret. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/region.h"
#include "base/status.h"

/* A file, or a key=value argument of the command line. */
struct source {
    const char *name; /* path, or the argument itself */
    const char *text; /* UTF-8, lines ended by \n; NULL: not shown */
    int argument;     /* its number on the command line, from 1; 0: a file */
};

struct mark {
    const struct source *source;
    int line, column; /* from 1, in characters; 0: the whole source */
    int width;        /* characters to underline */
};

struct errors;

/* Everything lives in region. */
struct errors *errors_create(struct region *region);

/* Adds an error; key: the path of its key ("data.shape"), NULL: none. The same error is kept once. */
void errors_add(struct errors *errors, struct mark mark, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

int errors_count(const struct errors *errors);

/* Prints all in the order of their places and returns fail(ST_SPEC, "2 errors; nothing was run"); ST_OK where there
 * are none. */
enum status errors_report(const struct errors *errors, FILE *out);

/* status_message(); if that is the last line of a report, the first error of the report instead. */
const char *errors_reason(void);
