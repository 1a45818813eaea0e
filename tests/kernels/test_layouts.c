/* Which layout, algorithm and chunk the cpu backend chooses. */
#include <criterion/criterion.h>
#include <string.h>

#include "backend/backend.h"
#include "tests/support/layer_under_test.h"

/* Blocks are as wide as the machine's vectors; Winograd is used where the shapes are worth it and scratch allows it. */
Test(layouts, winograd_and_chunks_are_chosen_by_rule)
{
    static const struct subject_case fits = {
        "conv", IMAGE(56, 56, 64), CONV(64, 3, 1, 1, ACTIVATION_RELU), 8, true, false, LAYOUT_AUTO, 0, KIB(65536)};
    struct subject_case c = fits;
    struct subject s;
    subject_open(&s, "cpu", &c);
    const bool wide = strstr(s.backend->isa, "avx512") != NULL;
    const int blocked = wide ? 2 : 1, block = wide ? 16 : 8;
    cr_assert(s.graph->value[1].layout == blocked, "layout %d", s.graph->value[1].layout);
    cr_assert(strstr(s.footprint.implementation, "winograd"), "%s", s.footprint.implementation);
    cr_assert(strstr(s.backend->convolutions, "Winograd"), "%s", s.backend->convolutions);
    cr_assert(s.footprint.forward_scratch <= c.scratch_limit && s.footprint.backward_scratch[0] <= c.scratch_limit);
    subject_close(&s);
    c.algorithm = CONV_DIRECT;
    subject_open(&s, "cpu", &c);
    cr_assert(!strstr(s.footprint.implementation, "winograd"), "%s", s.footprint.implementation);
    subject_close(&s);
    c = fits;
    c.scratch_limit = KIB(64);
    subject_open(&s, "cpu", &c);
    cr_assert(!strstr(s.footprint.implementation, "winograd"), "%s", s.footprint.implementation);
    subject_close(&s);
    c = fits;
    c.x.dim[2] = 4 * block - 1; /* a multiple of the block is within a tenth of it */
    subject_open(&s, "cpu", &c);
    cr_assert(s.graph->value[1].layout == blocked);
    subject_close(&s);
    c.x.dim[2] = 1; /* a block of 8 or 16 for one channel is not */
    subject_open(&s, "cpu", &c);
    cr_assert(s.graph->value[0].layout == 0 && s.graph->value[1].layout == 0 && s.graph->value[2].layout == 0);
    subject_close(&s);
}

/* What is not worth Winograd's transforms is a product, unless the spec asks for it. */
Test(layouts, winograd_needs_tiles)
{
    static const struct {
        int64_t side, in, out, batch;
        bool used;
    } rows[] = {{224, 3, 64, 1, true}, {64, 64, 8, 4, true}, {12, 512, 512, 1, false}, {14, 512, 512, 1, true},
                {7, 64, 64, 3, false}, {7, 64, 64, 4, true}, {64, 64, 8, 3, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int algorithm = CONV_AUTO; algorithm <= CONV_WINOGRAD; algorithm++) {
            struct subject_case c = {"conv", IMAGE(rows[i].side, rows[i].side, rows[i].in),
                                     CONV(rows[i].out, 3, 1, 1, ACTIVATION_NONE), rows[i].batch};
            struct subject s;
            c.algorithm = algorithm, c.scratch_limit = KIB(65536);
            subject_open(&s, "cpu", &c);
            const bool used = algorithm == CONV_WINOGRAD || (algorithm == CONV_AUTO && rows[i].used);
            cr_assert((strstr(s.footprint.implementation, "winograd") != NULL) == used, "row %zu, algorithm %d: %s", i,
                      algorithm, s.footprint.implementation);
            subject_close(&s);
        }
}

/* 14 channels are added to a map of 2, asked for blocks of 16 on every machine: too much unless the other images have
 * 64 each. */
Test(layouts, a_small_map_does_not_keep_large_images_in_logical_order)
{
    static const struct settings wide = CONV(64, 3, 1, 1, ACTIVATION_NONE), narrow = CONV(2, 1, 1, 0, ACTIVATION_NONE);
    const struct layer *conv = layer_find("conv");
    struct backend *backend;
    bool seen[2] = {false, false};
    cr_assert(backend_open("cpu", &(struct backend_options){.layout = LAYOUT_AUTO}, &backend) == ST_OK);
    const int added = 14;
    for (int others = 0; others < 4; others++) {
        struct graph *graph;
        int value = 0;
        cr_assert(graph_create(&(struct shape)IMAGE(8, 8, 64), 2, &graph) == ST_OK);
        for (int i = 0; i <= others; i++)
            cr_assert(graph_add(graph, conv, settings_of(conv, i ? &wide : &narrow), NULL, &value, &value) == ST_OK);
        cr_assert(backend->kind->arrange(backend, graph) == ST_OK);
        const bool little = added * 10 <= 2 + 64 * others;
        cr_assert((graph->value[value].layout != 0) == little, "%d other images", others);
        seen[little] = true;
        graph_destroy(graph);
    }
    cr_assert(seen[0] && seen[1]);
    backend_close(backend);
}

Test(layouts, layers_without_blocked_images_are_refused)
{
    struct backend *backend;
    struct graph *graph;
    const int inputs[] = {0};
    int output;
    cr_assert(backend_open("cpu", &(struct backend_options){.layout = LAYOUT_BLOCKED}, &backend) == ST_OK);
    cr_assert(graph_create(&(struct shape)IMAGE(4, 4, 16), 2, &graph) == ST_OK);
    cr_assert(graph_add(graph, layer_find("relu"), NULL, "first", inputs, &output) == ST_OK);
    cr_assert(backend->kind->arrange(backend, graph) == ST_SPEC);
    cr_assert(strstr(status_message(), "first") && strstr(status_message(), "channels_last"), "%s", status_message());
    backend->options.layout = LAYOUT_AUTO;
    cr_assert(backend->kind->arrange(backend, graph) == ST_OK && graph->value[1].layout == 0);
    graph_destroy(graph);
    backend_close(backend);
}

/* Groups of whole blocks and depthwise convolutions are blocked, others are not. */
Test(layouts, groups_that_divide_blocks_are_not_blocked)
{
    static const struct {
        int64_t in, out, groups;
        bool blocked;
    } rows[] = {{64, 64, 4, true},     {32, 32, 32, true},  {64, 32, 2, true}, {64, 64, 1, true},
                {128, 128, 32, false}, {32, 64, 32, false}, {64, 32, 4, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct subject_case c = {
            "conv",
            IMAGE(4, 4, rows[i].in),
            {.channels = rows[i].out, .groups = rows[i].groups, .kernel = 3, .stride = 1, .padding = 1},
            2};
        struct subject s;
        subject_open(&s, "cpu", &c);
        const bool wide = strstr(s.backend->isa, "avx512") != NULL;
        cr_assert(!wide || (s.graph->value[2].layout != 0) == rows[i].blocked, "row %zu", i);
        cr_assert(!strstr(s.footprint.implementation, "ref:"), "row %zu: %s", i, s.footprint.implementation);
        s.backend->options.layout = LAYOUT_BLOCKED;
        const enum status status = s.backend->kind->arrange(s.backend, s.graph);
        cr_assert(!wide || (status == ST_OK) == rows[i].blocked, "row %zu", i);
        subject_close(&s);
    }
}
