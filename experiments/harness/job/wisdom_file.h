/* Ways to do convolutions that were chosen by timing them: a file that `rematch bench --convolutions` writes and
 * conv: {algorithm: measured, wisdom: FILE} reads, so that baseline and variant choose alike. Strict YAML, as specs
 * are:
 *
 *     rematch_wisdom: 1
 *     device, backend, libraries: where and with what it was measured; all must be the same where it is read
 *     precision, scratch_limit, batch: of the spec; all must be the same where it is read
 *     rounds: how often each way was timed, the least time counts
 *     convolutions: [{key, pass, algorithm, chunk, ns, rule_algorithm, rule_chunk, rule_ns}]
 *
 * A row is for every node of its key (graph_node_key()): the fastest way, its time, and that of what conv.algorithm:
 * auto takes. Times are whole ns. */
#ifndef REMATCH_JOB_WISDOM_FILE_H
#define REMATCH_JOB_WISDOM_FILE_H

#include <stdio.h>

#include "numerics/digest.h"
#include "spec/spec.h"

struct wisdom_line {
    const char *key;
    int pass; /* enum pass */
    struct way way, rule;
    int64_t ns, rule_ns;
};

struct wisdom_file {
    const char *path, *text; /* of the file */
    struct digest digest;    /* XXH3-128 of its text */
    const char *device, *backend, *libraries;
    int precision; /* enum precision */
    uint64_t scratch_limit;
    int64_t batch, rounds;
    int lines;
    struct wisdom_line *line;
    struct wisdom wisdom; /* what the backend takes of it */
};

/* What the head of a file says that is made on this backend for this spec. */
void wisdom_file_describe(const struct spec *spec, const struct backend *backend, struct wisdom_file *file);

/* Reads spec's file. Everything in region. ST_SPEC: the file is wrong, told with its places; or it was measured
 * elsewhere or otherwise, the message names how and how to make the file. */
enum status wisdom_file_read(const struct spec *spec, const struct backend *backend, struct region *region,
                             struct wisdom_file **file);

/* The file's text in canonical form; names: of each line's nodes. false: the stream failed. */
bool wisdom_file_write(const struct wisdom_file *file, const char *const *names, FILE *out);

#endif
