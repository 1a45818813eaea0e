/* Numbers and words of a model that are set from outside: in its list of layers, `$depth` stands for the value of the
 * parameter depth. */
#pragma once

#include "yaml/yaml_read.h"

/* The list with the values in place: those of given, else those of presets (maps of names to scalars, NULL: none).
 * Errors are added for a name in the list without a value, and for a value that the list does not name. */
const struct yaml_tree *model_parameters(struct yaml_reader *r, const struct yaml_tree *presets,
                                         const struct yaml_tree *given, const struct yaml_tree *list);
