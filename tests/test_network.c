/* Rows of a backend that no network may be prepared with, made up. */
#include <criterion/criterion.h>
#include <string.h>

#include "sketch.h"

static const struct kernel *row; /* what the backend has for every layer */

static const struct kernel *row_of(const struct node *node)
{
    (void)node;
    return row;
}

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    (void)backend, (void)graph, (void)node, (void)footprint, (void)state;
    return fail(ST_MISSING, "it is out of order");
}

static const struct kernel wavering = {.deterministic = false, .prepare = prepare},
                           broken = {.deterministic = true, .prepare = prepare};

static const struct {
    const struct kernel *row;
    enum status status;
    const char *message;
} refused[] = {
    {NULL, ST_SPEC, "layer 'one1': backend 'sketch' has no kernel for one"},
    {&wavering, ST_SPEC, "layer 'one1': the kernel of backend 'sketch' for one is not deterministic"},
    {&broken, ST_MISSING, "layer 'one1': it is out of order"},
};

Test(network, refuses_rows)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct sketch sketch;
        struct network *network;
        sketch_begin(&sketch, 1024);
        sketch_add(&sketch, &(struct sketch_node){.x = {0, -1}, .bytes = 1024});
        struct backend_kind kind = *sketch.backend.kind;
        kind.kernel = row_of;
        sketch.backend.kind = &kind;
        row = refused[i].row;
        cr_expect(network_prepare(sketch.graph, &sketch.backend, &network) == refused[i].status && !network);
        cr_expect(!strncmp(status_message(), refused[i].message, strlen(refused[i].message)), "%s", status_message());
        sketch_end(&sketch);
    }
}
