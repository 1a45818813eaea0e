/* Walking through ONNX's tests of single nodes, and comparing numbers with theirs. */
#pragma once

#include "onnx_files.h"

#include <stdbool.h>

/* Calls judge for each test of one node of a known operator. judge fails the test, or returns NULL where it ran the
 * node, else why it cannot. Prints how many ran and how many did not, by reason; fails the test if fewer than least
 * ran, and skips it where the files are not installed. */
void onnx_walk(bool (*known)(const char *op_type),
               const char *(*judge)(const struct onnx_test *test, struct region *region), int least);

/* Fails the test unless each number is within 1e-5 of ONNX's, relative, or within cancelled times the largest of them:
 * terms of a sum may cancel. where: a backend, or more, for the message. */
void onnx_agree(const struct onnx_test *test, const char *where, const char *what, const float *ours,
                const float *theirs, int64_t count, double cancelled);
