#include "backend/batch_transfer.h"

#include "base/units.h"

static size_t labels_start(const struct graph *graph) { return round_up(graph->value[0].bytes); }

size_t batch_transfer_next_bytes(const struct backend *backend, const struct graph *graph)
{
    if (!backend || !backend->kind->device) return 0;
    return labels_start(graph) + round_up((size_t)graph->batch * sizeof(int32_t));
}

enum status batch_transfer_open(struct batch_transfer *feed, struct backend *backend, const struct graph *graph,
                                void *batch, int32_t *labels, void *next)
{
    char text[UNIT_TEXT];
    *feed = (struct batch_transfer){backend, graph, batch, labels};
    feed->bytes = batch_transfer_next_bytes(backend, graph);
    if (!feed->bytes) return ST_OK;
    feed->next = next;
    feed->next_labels = labels_start(graph);
    feed->staged = backend->kind->device->stage(backend, feed->bytes);
    if (feed->staged) return ST_OK;
    return fail(ST_FAILED, "cannot reserve %s of the host's memory for a batch", exact_bytes_text(feed->bytes, text));
}

void batch_transfer_close(struct batch_transfer *feed)
{
    if (feed->staged) feed->backend->kind->device->unstage(feed->backend, feed->staged);
}

void *batch_transfer_batch(const struct batch_transfer *feed) { return feed->staged ? feed->staged : feed->batch; }

int32_t *batch_transfer_labels(const struct batch_transfer *feed)
{
    return feed->staged ? (int32_t *)(void *)((char *)feed->staged + feed->next_labels) : feed->labels;
}

void batch_transfer_send(struct batch_transfer *feed)
{
    if (feed->staged && !feed->sent)
        feed->backend->kind->device->send(feed->backend, feed->next, feed->staged, feed->bytes);
    feed->sent = true;
}

void batch_transfer_take(struct batch_transfer *feed)
{
    if (!feed->staged) return;
    const struct backend_kind *kind = feed->backend->kind;
    batch_transfer_send(feed);
    kind->device->arrive(feed->backend, feed->graph, feed->batch, feed->next);
    kind->copy(feed->backend, feed->labels, (char *)feed->next + feed->next_labels,
               (size_t)feed->graph->batch * sizeof(int32_t));
    kind->device->taken(feed->backend);
    feed->sent = false;
}
