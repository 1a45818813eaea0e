/* Specs from texts, and what is told about them on stderr. */
#ifndef REMATCH_TESTS_SUPPORT_SPEC_TEXT_H
#define REMATCH_TESTS_SUPPORT_SPEC_TEXT_H

#include "spec/spec.h"

/* The least that is a spec. */
#define MINIMAL                                                                                                        \
    "rematch: 1\nname: small\nmodel: {layers: [flatten, {linear: {units: classes}}]}\n"                                \
    "data: {name: synthetic, shape: [4, 4, 1], classes: 3}\nbatch: 8\nsteps: 2\noptimizer: {lr: 0.1}\n"

/* Around every test: a file of its own for its texts, and stderr taken over. */
void spec_text_begin(void);
void spec_text_end(void);

/* What was written to stderr since the last call. */
const char *messages(void);

/* Calls refuse, which asserts that it is refused, with every .yaml file of the folder; what is told must be what the
 * file's first lines announce ("# 12:3 key: message begins so") and no more. Returns how many files there are. */
int each_bad_file(const char *folder, void (*refuse)(const char *file));

/* The file, after bytes were written to it. */
const char *write_bytes(const char *bytes, size_t length);

/* Loads text with space-separated overrides; NULL where it is refused. */
struct spec *load(const char *text, const char *overrides, bool baseline);

/* The same; the test fails where it is refused. */
struct spec *load_well(const char *text, const char *overrides, bool baseline);

#endif
