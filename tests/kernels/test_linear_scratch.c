/* The scratch of linear layers on the cpu backend is bounded. */
#include <criterion/criterion.h>

#include "backend/backend.h"
#include "kernels/cpu/panel.h"
#include "tests/support/layer_settings.h"

/* Plans a layer of so many vectors; threads that the planned bytes are for. */
static struct footprint plan(int64_t rows, int64_t inputs, int64_t units, int threads)
{
    const struct backend_options options = {.threads = threads};
    const struct settings settings = {.units = units, .bias = true};
    const struct layer *layer = layer_find("linear");
    const struct shape x = {1, {inputs}};
    struct backend *backend;
    struct graph *graph;
    struct footprint footprint;
    int input = 0, output;
    void *state;
    cr_assert(backend_open("cpu", &options, &backend) == ST_OK, "%s", status_message());
    cr_assert(graph_create(&x, rows, &graph) == ST_OK, "%s", status_message());
    cr_assert(graph_add(graph, layer, settings_of(layer, &settings), NULL, &input, &output) == ST_OK, "%s",
              status_message());
    const struct node *node = &graph->node[graph->nodes - 1];
    const struct kernel *kernel = backend->kind->kernel(node);
    cr_assert(kernel->prepare(backend, graph, node, &footprint, &state) == ST_OK, "%s", status_message());
    kernel->release(state);
    graph_destroy(graph);
    backend_close(backend);
    return footprint;
}

/* Also of layers whose inputs, packed for 32 columns, take more than that, and of threads that together do. */
Test(linear_scratch, is_bounded_for_every_layer)
{
    static const int64_t rows[] = {1, 16, 300, 8192, 65536}, widths[] = {1, 32, 1000, 50257, 1310720};
    enum { HEIGHTS = sizeof rows / sizeof *rows, WIDTHS = sizeof widths / sizeof *widths };
    for (int i = 0; i < HEIGHTS * WIDTHS * WIDTHS; i++) {
        const int64_t m = rows[i / WIDTHS / WIDTHS], inputs = widths[i / WIDTHS % WIDTHS], units = widths[i % WIDTHS];
        const size_t bias = (size_t)ratio_up(m, 256) * (size_t)units * sizeof(float); /* its gradient's pieces */
        for (int threads = 1; threads <= 128; threads = threads * 3 + 1) {
            const struct footprint f = plan(m, inputs, units, threads);
            const size_t backward = f.backward_scratch[0];
            cr_expect(f.forward_scratch <= SCRATCH_MOST && (backward <= SCRATCH_MOST || backward == bias),
                      "%lld x %lld to %lld, %d threads: %zu, %zu", (long long)m, (long long)inputs, (long long)units,
                      threads, f.forward_scratch, backward);
        }
    }
}
