/* Loading a spec: a YAML file and key=value overrides, resolved and checked. */
#ifndef REMATCH_SPEC_SPEC_LOAD_H
#define REMATCH_SPEC_SPEC_LOAD_H

#include "spec/spec.h"

/* Reads path and applies count overrides "key.path=value". The spec's baseline stores everything and has no fault; the
 * file's baseline: block may set more of it. All errors at once on stderr as file:line:col with the line, a caret and
 * what was expected; then ST_SPEC. */
enum status spec_load(const char *path, int count, const char *const *overrides, struct spec **spec);

/* The same; error messages call the file shown, for a temporary copy. */
enum status spec_load_as(const char *path, const char *shown, int count, const char *const *overrides,
                         struct spec **spec);

/* Destroys the spec together with its baseline; NULL is accepted. */
void spec_destroy(struct spec *spec);

/* Whether the baseline: block may set this key of the top level: it affects how a step is computed, not its results. */
bool spec_is_own(const char *key);

#endif
