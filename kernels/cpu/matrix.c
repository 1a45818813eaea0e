#include "matrix.h"

#include <string.h>

#include "numerics/shape.h"

static void copy_rows(const struct matrix *a, const struct block *part, float *to, int64_t distance)
{
    const float *from = a->data + part->row * a->stride + part->term;
    for (int64_t r = 0; r < part->rows; r++, from += a->stride, to += distance) {
        fetch(from + AHEAD * a->stride, part->terms);
        memcpy(to, from, (size_t)part->terms * sizeof *to);
    }
}

/* Of rows of memory that hold a term each. */
static void copy_terms(const struct matrix *a, const struct block *part, float *to, int64_t distance)
{
    const float *from = a->data + part->term * a->stride + part->row;
    const int64_t whole = part->rows / ROWS_MOST, rest = part->rows % ROWS_MOST;
    for (int64_t t = 0; t < part->terms; t++, from += a->stride, to += ROWS_MOST) {
        fetch(from + AHEAD * a->stride, part->rows);
        for (int64_t p = 0; p < whole; p++) memcpy(to + p * distance, from + p * ROWS_MOST, ROWS_MOST * sizeof *to);
        if (rest > 0) memcpy(to + whole * distance, from + whole * ROWS_MOST, (size_t)rest * sizeof *to);
    }
}

static void pack_rows(const void *of, const struct block *part, float *to, int64_t distance)
{
    const struct matrix *a = &((const struct matrix_product *)of)->a;
    if (a->transposed)
        copy_terms(a, part, to, distance);
    else
        copy_rows(a, part, to, distance);
}

/* Of rows that hold a column's terms; STEP of them at a time, which are a line of the cache. */
static void pack_transposed(const struct matrix *b, const struct block *part, float *to, int64_t distance)
{
    enum { STEP = 16 };
    for (int64_t c = 0; c < part->columns; c += PANEL, to += distance)
        for (int64_t t = 0; t < part->terms; t += STEP)
            for (int64_t i = 0; i < lesser(PANEL, part->columns - c); i++) {
                const float *from = b->data + (part->column + c + i) * b->stride + part->term + t;
                const int64_t steps = lesser(STEP, part->terms - t);
                for (int64_t k = 0; k < steps; k++) to[(t + k) * PANEL + i] = from[k];
            }
}

static void pack_direct(const struct matrix *b, const struct block *part, float *to, int64_t distance)
{
    const float *from = b->data + part->term * b->stride + part->column;
    const int64_t whole = part->columns / PANEL, rest = part->columns % PANEL;
    for (int64_t t = 0; t < part->terms; t++, from += b->stride, to += PANEL) {
        fetch(from + AHEAD * b->stride, whole * PANEL);
        for (int64_t p = 0; p < whole; p++) {
            lanes_store(to + p * distance, lanes_load(from + p * PANEL));
            lanes_store(to + p * distance + LANES, lanes_load(from + p * PANEL + LANES));
        }
        if (rest > 0) memcpy(to + whole * distance, from + whole * PANEL, (size_t)rest * sizeof *to);
    }
}

static void pack_columns(const void *of, const struct block *part, float *to, int64_t distance)
{
    const struct matrix *b = &((const struct matrix_product *)of)->b;
    if (b->transposed)
        pack_transposed(b, part, to, distance);
    else
        pack_direct(b, part, to, distance);
}

static void result(const void *of, const struct block *part, const float *sums, int64_t stride)
{
    const struct matrix_product *m = of;
    for (int64_t r = 0; r < part->rows; r++)
        for (int64_t c = 0; c < part->columns; c += LANES) {
            const int64_t count = lesser(LANES, part->columns - c), column = part->column + c;
            float *to = m->c + (part->row + r) * m->stride + column;
            lanes s = lanes_load_part(sums + r * stride + c, count);
            if (m->add) s = lanes_load_part(to, count) + s;
            s += m->bias != NULL ? lanes_load_part(m->bias + column, count) : (lanes){0};
            if (m->relu) s = lanes_rectified(s);
            lanes_store_part(to, s, count);
        }
}

/* Of the transpose; rows of c are written 16 floats at a time. */
static void result_turned(const void *of, const struct block *part, const float *sums, int64_t stride)
{
    enum { STEP = 16 };
    const struct matrix_product *m = of;
    for (int64_t first = 0; first < part->rows; first += STEP)
        for (int64_t c = 0; c < part->columns; c++) {
            float *to = m->c + (part->column + c) * m->stride + part->row;
            for (int64_t r = first; r < lesser(first + STEP, part->rows); r++) {
                const float s = sums[r * stride + c] + (m->bias != NULL ? m->bias[part->row + r] : 0.0f);
                to[r] = m->relu && s <= 0.0f ? 0.0f : s;
            }
        }
}

struct product matrix_product(int64_t rows, int64_t columns, int64_t terms, struct matrix a, struct matrix b,
                              struct matrix_product *of)
{
    if (of->turned) {
        of->a = b, of->b = a;
        of->a.transposed = !of->a.transposed, of->b.transposed = !of->b.transposed;
    } else {
        of->a = a, of->b = b;
    }
    return (struct product){.rows = of->turned ? columns : rows,
                            .columns = of->turned ? rows : columns,
                            .terms = terms,
                            .by_term = of->a.transposed,
                            .pack_rows = pack_rows,
                            .pack_columns = pack_columns,
                            .result = of->turned ? result_turned : result};
}
