/* The product of two values, or of one and a gate of its channels.
 *
 * Contract: a gate's gradient is summed over pieces of PIECE pixels, each in row order, then over the pieces in
 * order; so the bits depend on the shape alone. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

enum { PIECE = 256, PANEL = 64 /* channels that are computed together */ };

struct multiply {
    struct backend *backend;
    struct extent x, other;
    int64_t pixels, width, panels; /* width: channels */
};

static enum status prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                           struct footprint *footprint, void **state)
{
    struct multiply *m = *state = allocate(1, sizeof *m);
    m->backend = backend;
    m->x = extent_of(graph, node->inputs[0]), m->other = extent_of(graph, node->inputs[1]);
    m->width = shape_width(&m->x.shape);
    m->pixels = shape_elements(&m->x.shape) / m->width;
    m->panels = ratio_up(m->width, PANEL);
    *footprint = node->layer->footprint;
    footprint->implementation = "loops";
    return ST_OK;
}

static bool gated(const struct multiply *m) { return m->other.elements != m->x.elements; }

/* to = a b, for each element. */
static void products(int64_t count, const float *a, const float *b, float *to)
{
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < count; i++) to[i] = a[i] * b[i];
}

/* A panel of channels of a sample. */
struct panel {
    int64_t at, gate, channels; /* its place in x and y, and among the gates, and its channels */
};

static struct panel panel_of(const struct multiply *m, int64_t sample, int64_t panel)
{
    const int64_t first = panel * PANEL, left = m->width - first;
    return (struct panel){.at = sample * m->x.elements + first,
                          .gate = sample * m->width + first,
                          .channels = left < PANEL ? left : PANEL};
}

/* to = from times the gate. */
static void scale(const struct multiply *m, const struct panel *p, const float *from, const float *gate, float *to)
{
    const float *factor = gate + p->gate;
    for (int64_t i = 0; i < m->pixels; i++) {
        const int64_t at = p->at + i * m->width;
#pragma omp simd
        for (int64_t c = 0; c < p->channels; c++) to[at + c] = from[at + c] * factor[c];
    }
}

/* The gate's gradient: the sum of dy x. */
static void reduce(const struct multiply *m, const struct panel *p, const float *x, const float *dy, float *gradient)
{
    float total[PANEL] = {0};
    for (int64_t from = 0; from < m->pixels; from += PIECE) {
        float sum[PANEL] = {0};
        for (int64_t i = from; i < m->pixels && i < from + PIECE; i++)
            for (int64_t c = 0, at = p->at + i * m->width; c < p->channels; c++) sum[c] += dy[at + c] * x[at + c];
        for (int c = 0; c < PANEL; c++) total[c] += sum[c];
    }
    memcpy(gradient + p->gate, total, (size_t)p->channels * sizeof *total);
}

/* What is not NULL: first the gate's gradient by x and from, then to = from times the gate; to may be from. */
static void gate_all(const struct multiply *m, const float *from, const float *gate, float *to, const float *x,
                     float *gradient)
{
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < m->x.batch; n++)
        for (int64_t k = 0; k < m->panels; k++) {
            const struct panel p = panel_of(m, n, k);
            if (gradient != NULL) reduce(m, &p, x, from, gradient);
            if (to != NULL) scale(m, &p, from, gate, to);
        }
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct multiply *m = state;
    if (gated(m))
        gate_all(m, args->x[0], args->x[1], args->y, NULL, NULL);
    else
        products(m->x.count, args->x[0], args->x[1], args->y);
    clock_lap(m->backend, CLOCK_OTHER);
    return ST_OK;
}

/* The second gradient first, since the first may be written over dy. */
static enum status backward(void *state, const struct kernel_args *args)
{
    const struct multiply *m = state;
    if (gated(m)) gate_all(m, args->dy, args->x[1], args->dx[0], args->x[0], args->dx[1]);
    if (!gated(m) && args->dx[1] != NULL) products(m->x.count, args->dy, args->x[0], args->dx[1]);
    if (!gated(m) && args->dx[0] != NULL) products(m->x.count, args->dy, args->x[1], args->dx[0]);
    clock_lap(m->backend, CLOCK_OTHER);
    return ST_OK;
}

const struct kernel cpu_multiply = {true, prepare, forward, backward, free};
