/* Finding and reading the files of a data set; every read is checked. For the formats in this folder. */
#pragma once

#include "dataset.h"

/* How a data set is recognised on disk. */
struct files_source {
    const char *const *folders; /* names of its folder, ended by NULL */
    const char *const *probes;  /* any of these files shows that a folder is the right one, ended by NULL */
    const char *advice;         /* where to get it: "get X from Y" or "apt-get install Z" */
};

/* A file held open for reading. */
struct files_handle {
    const struct dataset_file *file; /* in dataset->file */
    int descriptor;
};

/* The folder of the files; see dataset_open. ST_MISSING: one message names the files, the places searched, where to get
 * them and where to put them. */
enum status files_find(struct dataset *dataset, const struct files_source *source, const char **folder);

/* Opens folder/name (folder NULL: name), computes its SHA-256 and adds it to dataset->file. ST_FAILED: not there, not a
 * plain file, unreadable or empty. The descriptor is the caller's to close. */
enum status files_open(struct dataset *dataset, const char *folder, const char *name, struct files_handle *handle);

/* Reduces *found, the samples of a file, to data.samples where that is set. ST_SPEC: the file has fewer. */
enum status files_cut(const struct dataset *dataset, const struct dataset_file *file, int64_t *found);

/* bytes bytes at offset into buffer; ST_FAILED, naming file and offset, where they cannot be read. May be called by
 * several threads. */
enum status files_read(const struct files_handle *handle, uint64_t offset, size_t bytes, void *buffer);

/* SHA-256 of a whole file of that many bytes, in hexadecimal. stop: asked after each piece, ends it with ST_FAILED;
 * NULL: nothing does. */
enum status files_sha256(int descriptor, const char *path, uint64_t bytes, bool (*stop)(void), char text[65]);
