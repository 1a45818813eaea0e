/* How batches come into the backend's memory: the host writes them in logical order, in place, or, for a device, into
 * memory of its own from which they travel while the device works. */
#ifndef REMATCH_BACKEND_BATCH_TRANSFER_H
#define REMATCH_BACKEND_BATCH_TRANSFER_H

#include "backend/backend.h"

struct feed {
    struct backend *backend;
    const struct graph *graph;
    void *batch;               /* the backend's, as value 0 lies */
    int32_t *labels;           /* one a sample */
    void *next, *staged;       /* a device's: feed_next_bytes() there, and where the host writes; else NULL */
    size_t bytes, next_labels; /* of the two; labels: where they start in them */
    bool sent;                 /* what is staged is on its way to next */
};

/* Of the device's memory, for the next batch and its labels; 0: the backend's memory is the host's. */
size_t feed_next_bytes(const struct backend *backend, const struct graph *graph);

/* batch, labels, next: blocks of the backend's memory. ST_FAILED: no memory. */
enum status feed_open(struct feed *feed, struct backend *backend, const struct graph *graph, void *batch,
                      int32_t *labels, void *next);
void feed_close(struct feed *feed);

/* Where the host writes the next batch, in logical order, and its labels. */
void *feed_batch(const struct feed *feed);
int32_t *feed_labels(const struct feed *feed);

/* What was written goes on its way; queues that it is the batch, sent or not. */
void feed_send(struct feed *feed);
void feed_take(struct feed *feed);

#endif
