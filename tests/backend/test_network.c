/* What no network can be prepared with: made-up rows of a backend, and footprints that are too large. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/planned_networks.h"

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

/* Three nodes' saved tensors and scratch, and which node is refused, 0: none. */
static const struct {
    struct footprint footprint[3];
    int node;
} sizes[] = {
    {{{.saved = (size_t)1 << 57}, {.saved = (size_t)1 << 56}, {.saved = (size_t)1 << 55}}, 0},
    {{{.saved = (size_t)1 << 57}, {.saved = (size_t)1 << 56}, {.backward_scratch = {0, (size_t)1 << 56}}}, 3},
    {{{.saved = (size_t)1 << 57}, {.forward_scratch = (size_t)1 << 57}}, 2},
    {{{.backward_scratch = {SIZE_MAX}}}, 1},
    {{{.saved = 1}, {.saved = SIZE_MAX}}, 2},
};

Test(network, refuses_more_bytes_than_can_be_counted)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct sketch sketch;
        struct network *network;
        char expected[32];
        sketch_begin(&sketch, 1024);
        for (int k = 0, y = 0; k < 3; k++)
            y = sketch_add(&sketch, &(struct sketch_node){{y, -1}, 1024, .footprint = sizes[i].footprint[k]});
        const enum status status = network_prepare(sketch.graph, &sketch.backend, &network);
        snprintf(expected, sizeof expected, "layer 'one%d': with it ", sizes[i].node);
        cr_expect(status == (sizes[i].node ? ST_SPEC : ST_OK) && (network != NULL) == (sizes[i].node == 0), "%zu", i);
        cr_expect(!sizes[i].node || !strncmp(status_message(), expected, strlen(expected)), "%s", status_message());
        network_destroy(network);
        sketch_end(&sketch);
    }
}
