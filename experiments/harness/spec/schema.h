/* What a spec and a model may say, from the very tables by which they are read. */
#ifndef REMATCH_SPEC_SCHEMA_H
#define REMATCH_SPEC_SCHEMA_H

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* Every key with its values, default and meaning, by what it belongs to; name: only what is called so, be it a section,
 * a policy, a layer or a key, NULL: everything. json: one object of arrays instead of a text. ST_SPEC: nothing is
 * called name. */
enum status schema_print(const char *name, bool json, FILE *out);

#endif
