/* The product of two values, or of one and a gate of its channels.
 *
 * Contract: a gate's gradient is summed over pieces of PIECE pixels, each in row order, then over the pieces in
 * order; so the bits depend on the shape alone. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

enum { PIECE = 256, PANEL = 64 /* channels that are computed together */ };

static bool gated(const struct layer_state *s) { return s->second.elements != s->x.elements; }

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

static struct panel panel_of(const struct layer_state *s, int64_t sample, int64_t panel)
{
    const int64_t first = panel * PANEL, width = shape_width(&s->x.shape);
    return (struct panel){
        .at = sample * s->x.elements + first, .gate = sample * width + first, .channels = lesser(PANEL, width - first)};
}

/* to = from times the gate. */
static void scale(const struct layer_state *s, const struct panel *p, const float *from, const float *gate, float *to)
{
    const float *factor = gate + p->gate;
    const int64_t width = shape_width(&s->x.shape);
    for (int64_t first = 0; first < s->x.elements; first += width) {
        const int64_t at = p->at + first;
#pragma omp simd
        for (int64_t c = 0; c < p->channels; c++) to[at + c] = from[at + c] * factor[c];
    }
}

/* The gate's gradient: the sum of dy x. */
static void reduce(const struct layer_state *s, const struct panel *p, const float *x, const float *dy, float *gradient)
{
    const int64_t width = shape_width(&s->x.shape), pixels = s->x.elements / width;
    float total[PANEL] = {0};
    for (int64_t from = 0; from < pixels; from += PIECE) {
        float sum[PANEL] = {0};
        for (int64_t i = from; i < pixels && i < from + PIECE; i++)
            for (int64_t c = 0, at = p->at + i * width; c < p->channels; c++) sum[c] += dy[at + c] * x[at + c];
        for (int c = 0; c < PANEL; c++) total[c] += sum[c];
    }
    memcpy(gradient + p->gate, total, (size_t)p->channels * sizeof *total);
}

/* What is not NULL: first the gate's gradient by x and from, then to = from times the gate; to may be from. */
static void gate_all(const struct layer_state *s, const float *from, const float *gate, float *to, const float *x,
                     float *gradient)
{
    const int64_t panels = ratio_up(shape_width(&s->x.shape), PANEL);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < s->x.batch; n++)
        for (int64_t k = 0; k < panels; k++) {
            const struct panel p = panel_of(s, n, k);
            if (gradient != NULL) reduce(s, &p, x, from, gradient);
            if (to != NULL) scale(s, &p, from, gate, to);
        }
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    if (gated(s))
        gate_all(s, args->x[0], args->x[1], args->y, NULL, NULL);
    else
        products(s->x.count, args->x[0], args->x[1], args->y);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

/* The second gradient first, since the first may be written over dy. */
static enum status backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    if (gated(s)) gate_all(s, args->dy, args->x[1], args->dx[0], args->x[0], args->dx[1]);
    if (!gated(s) && args->dx[1] != NULL) products(s->x.count, args->dy, args->x[0], args->dx[1]);
    if (!gated(s) && args->dx[0] != NULL) products(s->x.count, args->dy, args->x[1], args->dx[0]);
    clock_lap(s->backend, CLOCK_OTHER);
    return ST_OK;
}

const struct kernel cpu_multiply = {true, layer_state_prepare, forward, backward, free};
