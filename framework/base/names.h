/* An index of texts: the numbers that were added under a text, found without comparing it with all others. */
#pragma once

#include "base/region.h"

struct names;

/* An empty index in the region, which must outlast the texts' use. */
struct names *names_create(struct region *region);

/* Adds a number under a text, which must stay as it is. */
void names_add(struct names *names, const char *text, int number);

/* The entries of a text from the newest on, begun with entry -1: the next one; -1: no more. */
int names_next(const struct names *names, const char *text, int entry);
int names_number(const struct names *names, int entry);

/* The newest number of a text; -1: none. */
int names_find(const struct names *names, const char *text);
