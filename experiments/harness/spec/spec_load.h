/* Loading a spec: a YAML file and key=value overrides, resolved and checked. */
#ifndef REMATCH_SPEC_SPEC_LOAD_H
#define REMATCH_SPEC_SPEC_LOAD_H

#include "spec/spec.h"

/* Reads path, applies count overrides "key.path=value" and, where baseline is set, what makes it the baseline
 * (policy store_all, no fault, then the file's baseline: block). All errors at once on stderr as file:line:col with the
 * line, a caret and what was expected; then ST_SPEC. */
enum status spec_load(const char *path, int count, const char *const *overrides, bool baseline, struct spec **spec);

/* The same; errors call the file shown, as it is a copy that is removed. */
enum status spec_load_as(const char *path, const char *shown, int count, const char *const *overrides, bool baseline,
                         struct spec **spec);
void spec_destroy(struct spec *spec);

/* Whether a baseline may set this key of the top level for itself: how it is computed, not what. */
bool spec_is_own(const char *key);

#endif
