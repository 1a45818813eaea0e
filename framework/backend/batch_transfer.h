/* How batches come into the backend's memory: the host writes them in logical order, in place, or, for a device, into
 * memory of its own from which they travel while the device works. */
#ifndef REMATCH_BACKEND_BATCH_TRANSFER_H
#define REMATCH_BACKEND_BATCH_TRANSFER_H

#include "backend/backend.h"

struct batch_transfer {
    struct backend *backend;
    const struct graph *graph;
    void *batch;               /* the backend's, as value 0 lies */
    int32_t *labels;           /* one a sample */
    void *next, *staged;       /* a device's: batch_transfer_next_bytes() there, and where the host writes; else NULL */
    size_t bytes, next_labels; /* of the two; labels: where they start in them */
    bool sent;                 /* what is staged is on its way to next */
};

/* Of the device's memory, for the next batch and its labels; 0: the backend's memory is the host's. */
size_t batch_transfer_next_bytes(const struct backend *backend, const struct graph *graph);

/* batch, labels, next: blocks of the backend's memory. ST_FAILED: no memory. */
enum status batch_transfer_open(struct batch_transfer *feed, struct backend *backend, const struct graph *graph,
                                void *batch, int32_t *labels, void *next);
void batch_transfer_close(struct batch_transfer *feed);

/* Where the host writes the next batch, in logical order, and its labels. */
void *batch_transfer_batch(const struct batch_transfer *feed);
int32_t *batch_transfer_labels(const struct batch_transfer *feed);

/* What was written goes on its way; queues that it is the batch, sent or not. */
void batch_transfer_send(struct batch_transfer *feed);
void batch_transfer_take(struct batch_transfer *feed);

#endif
