/* The keys of a spec and a model, printed from the tables by which they are read. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* Every key with its values, default and meaning, by section; name: only the section, policy, layer or key of that
 * name, NULL: all. json: one object instead of text. ST_SPEC: nothing has that name. */
enum status schema_print(const char *name, bool json, FILE *out);

/* The keys that an argument key=value can set, one a line: "policy.budget=", a tab and the meaning. */
void schema_keys(FILE *out);
