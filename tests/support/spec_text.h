/* Specs from texts, and the errors about them on stderr. */
#pragma once

#include "spec/spec.h"

/* The shortest spec. */
#define MINIMAL                                                                                                        \
    "rematch: 1\nname: small\nmodel: {layers: [flatten, {linear: {units: classes}}]}\n"                                \
    "data: {name: synthetic, shape: [4, 4, 1], classes: 3}\nbatch: 8\nsteps: 2\noptimizer: {lr: 0.1}\n"

/* Before and after every test: create a file for its texts, and capture stderr. */
void spec_text_begin(void);
void spec_text_end(void);

/* The text written to stderr since the last call. */
const char *messages(void);

/* Calls refuse, which asserts a refusal, with every .yaml file of the folder; the errors must be those that the file's
 * first lines announce ("# 12:3 key: beginning of the message") and no others. Returns the number of files. */
int each_bad_file(const char *folder, void (*refuse)(const char *file));

/* Writes bytes to the test's file; returns its path. */
const char *write_bytes(const char *bytes, size_t length);

/* The spec, or its baseline, of text with space-separated overrides; NULL where it is refused. */
struct spec *load(const char *text, const char *overrides, bool baseline);

/* The same; the test fails where it is refused. */
struct spec *load_well(const char *text, const char *overrides, bool baseline);
