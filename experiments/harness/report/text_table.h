/* Trees of numbers (analysis/numbers.h) as text for people: labels from one table, units by the end of a key. */
#pragma once

#include "analysis/json_tree.h"
#include "base/region.h"
#include "base/units.h"

/* A number in the unit that its key ends with; exact: to the last digit, flops without their unit. Returns text. */
char *text_number(const char *key, double number, bool exact, char text[UNIT_TEXT]);

/* The array's objects as a table that fits the terminal. keys: of the columns, separated by blanks. */
void text_table(const json_t *rows, const char *keys, int indent, bool exact, FILE *out);

/* The keys that do not have one value in all rows, if there are several rows; the others are printed in a line, as in
 * "all        batch 8, peak 1.00 MiB". keep: a key that is returned in any case. */
const char *text_unshared(const json_t *rows, const char *keys, const char *keep, struct region *region, FILE *out);

/* The first row as its heads, the others as lines, for a spreadsheet; flags are 0 or 1. */
void text_csv(const json_t *rows, const char *keys, FILE *out);

/* A schedule; of a long one the first steps, and how many more there are. */
void text_schedule(const char *schedule, FILE *out);

/* Each text of an array in a line after prefix. */
void text_notes(const json_t *texts, const char *prefix, FILE *out);
