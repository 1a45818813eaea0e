#include "backend/batch_transfer.h"

#include "base/units.h"

size_t batch_labels_offset(const struct graph *graph) { return round_up(graph->value[0].bytes); }

static int64_t labels_of(const struct graph *graph) { return graph->batch * graph_labels(graph); }

size_t batch_bytes(const struct graph *graph)
{
    return batch_labels_offset(graph) + round_up((size_t)labels_of(graph) * sizeof(int32_t));
}

size_t batch_transfer_next_bytes(const struct backend *backend, const struct graph *graph)
{
    return backend && backend->kind->device ? batch_bytes(graph) : 0;
}

enum status batch_transfer_open(struct batch_transfer *transfer, struct backend *backend, const struct graph *graph,
                                void *batch, void *next)
{
    char text[UNIT_TEXT];
    *transfer = (struct batch_transfer){.backend = backend, .graph = graph, .batch = batch};
    transfer->labels_offset = batch_labels_offset(graph);
    transfer->labels = (int32_t *)(void *)((char *)batch + transfer->labels_offset);
    transfer->bytes = batch_transfer_next_bytes(backend, graph);
    if (!transfer->bytes) return ST_OK;
    transfer->next = next;
    transfer->staged = backend->kind->device->stage(backend, transfer->bytes);
    if (transfer->staged) return ST_OK;
    return fail(ST_FAILED, "cannot reserve %s of the host's memory for a batch",
                exact_bytes_text(transfer->bytes, text));
}

void batch_transfer_close(struct batch_transfer *transfer)
{
    if (transfer->staged) transfer->backend->kind->device->unstage(transfer->backend, transfer->staged);
}

void *batch_transfer_batch(const struct batch_transfer *transfer)
{
    return transfer->staged ? transfer->staged : transfer->batch;
}

int32_t *batch_transfer_labels(const struct batch_transfer *transfer)
{
    return (int32_t *)(void *)((char *)batch_transfer_batch(transfer) + transfer->labels_offset);
}

int64_t batch_transfer_counted(const struct batch_transfer *transfer)
{
    const int32_t *labels = batch_transfer_labels(transfer);
    const int64_t count = graph_targets(transfer->graph) ? 0 : labels_of(transfer->graph);
    int64_t counted = 0;
    for (int64_t i = 0; i < count; i++) counted += labels[i] != LABEL_NONE;
    return counted;
}

double batch_transfer_divisor(const struct batch_transfer *transfer)
{
    const struct graph *graph = transfer->graph;
    const struct node *loss = &graph->node[graph->nodes - 1];
    if (!loss->layer->divisor) return (double)batch_transfer_counted(transfer);
    return loss->layer->divisor(loss->settings, &graph->value[loss->inputs[0]].shape, graph->batch,
                                batch_transfer_labels(transfer));
}

void batch_transfer_send(struct batch_transfer *transfer)
{
    if (transfer->staged && !transfer->sent)
        transfer->backend->kind->device->send(transfer->backend, transfer->next, transfer->staged, transfer->bytes);
    transfer->sent = true;
}

void batch_transfer_take(struct batch_transfer *transfer)
{
    if (!transfer->staged) return;
    const struct backend_kind *kind = transfer->backend->kind;
    batch_transfer_send(transfer);
    kind->device->arrive(transfer->backend, transfer->graph, transfer->batch, transfer->next);
    kind->copy(transfer->backend, transfer->labels, (char *)transfer->next + transfer->labels_offset,
               (size_t)labels_of(transfer->graph) * sizeof(int32_t));
    kind->device->taken(transfer->backend);
    transfer->sent = false;
}
