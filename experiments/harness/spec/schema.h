/* The keys of a spec and a model, printed from the tables by which they are read. */
#pragma once

#include "console/arguments.h"

/* The command: every key with its values, default and meaning, by section, as text or as one object; of an operand,
 * only the section, policy, layer or key of that name. ST_SPEC: nothing has that name. */
enum status schema_print(struct arguments *arguments);
