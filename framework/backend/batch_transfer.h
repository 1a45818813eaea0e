/* How batches reach the backend's memory: the host writes them in logical order, in place, or, for a device, into
 * staging memory from which they are copied while the device computes. */
#pragma once

#include "backend/backend.h"

struct batch_transfer {
    struct backend *backend;
    const struct graph *graph;
    void *batch;                 /* in the backend's memory, in value 0's layout */
    int32_t *labels;             /* graph_labels() a sample, behind it */
    void *next, *staged;         /* a device's: the next batch in its memory, and where the host writes it; else NULL */
    size_t bytes, labels_offset; /* of these blocks, and of the labels in them */
    bool sent;                   /* the copy from staged to next has started */
};

/* A batch with its labels, and where the labels start in it. */
size_t batch_bytes(const struct graph *graph);
size_t batch_labels_offset(const struct graph *graph);

/* The device's memory for the next batch; 0: the backend's memory is the host's. */
size_t batch_transfer_next_bytes(const struct backend *backend, const struct graph *graph);

/* batch, next: blocks of the backend's memory. ST_FAILED: no memory. */
enum status batch_transfer_open(struct batch_transfer *transfer, struct backend *backend, const struct graph *graph,
                                void *batch, void *next);
void batch_transfer_close(struct batch_transfer *transfer);

/* Where the host writes the next batch, in logical order, and its labels. */
void *batch_transfer_batch(const struct batch_transfer *transfer);
int32_t *batch_transfer_labels(const struct batch_transfer *transfer);

/* How many of these labels are not LABEL_NONE; of targets 0. */
int64_t batch_transfer_counted(const struct batch_transfer *transfer);

/* What the loss of these labels is divided by. */
double batch_transfer_divisor(const struct batch_transfer *transfer);

/* Starts copying what the host wrote; and queues that it becomes the batch, after sending it if that was not done. */
void batch_transfer_send(struct batch_transfer *transfer);
void batch_transfer_take(struct batch_transfer *transfer);
