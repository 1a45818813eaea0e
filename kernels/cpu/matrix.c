#include "matrix.h"

#include <string.h>

#include "numerics/shape.h"

static void copy_rows(const struct matrix *a, const struct block *part, float *to, int64_t distance)
{
    const float *from = a->data + part->row * a->stride + part->term;
    for (int64_t r = 0; r < part->rows; r++, from += a->stride, to += distance)
        memcpy(to, from, (size_t)part->terms * sizeof *to);
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

/* v = the transpose of so many rows and columns, at most LANES, of what lies there; zeros elsewhere. */
INLINED void load_transposed(const float *from, int64_t stride, int64_t rows, int64_t columns, lanes v[LANES])
{
    for (int64_t r = 0; r < LANES; r++) v[r] = r < rows ? lanes_load_part(from + r * stride, columns) : (lanes){0};
    lanes_transpose(v);
}

/* Of rows that hold a column's terms. */
static void pack_transposed(const struct matrix *b, const struct block *part, float *to, int64_t distance)
{
    for (int64_t c = 0; c < part->columns; c += LANES) {
        const float *from = b->data + (part->column + c) * b->stride + part->term;
        float *at = to + c / PANEL * distance + c % PANEL;
        for (int64_t t = 0; t < part->terms; t += LANES, from += LANES, at += LANES * PANEL) {
            const int64_t terms = lesser(LANES, part->terms - t);
            lanes v[LANES];
            load_transposed(from, b->stride, lesser(LANES, part->columns - c), terms, v);
            for (int64_t k = 0; k < terms; k++) lanes_store(at + k * PANEL, v[k]);
        }
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

void matrix_pack_columns(const struct matrix *b, const struct block *part, float *to, int64_t distance)
{
    if (b->transposed)
        pack_transposed(b, part, to, distance);
    else
        pack_direct(b, part, to, distance);
}

static void pack_columns(const void *of, const struct block *part, float *to, int64_t distance)
{
    matrix_pack_columns(&((const struct matrix_product *)of)->b, part, to, distance);
}

/* Of the transpose. */
static void result_turned(const void *of, const struct block *part, const float *sums, int64_t stride)
{
    const struct matrix_product *m = of;
    for (int64_t r = 0; r < part->rows; r += LANES)
        for (int64_t c = 0; c < part->columns; c += LANES) {
            const int64_t rows = lesser(LANES, part->rows - r), columns = lesser(LANES, part->columns - c);
            const lanes bias = m->c.bias != NULL ? lanes_load_part(m->c.bias + part->row + r, rows) : (lanes){0};
            float *to = m->c.data + (part->column + c) * m->c.stride + part->row + r;
            lanes v[LANES];
            load_transposed(sums + r * stride + c, stride, rows, columns, v);
            for (int64_t k = 0; k < columns; k++, to += m->c.stride) {
                const lanes s = v[k] + bias;
                lanes_store_part(to, m->c.relu ? lanes_rectified(s) : s, rows);
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
                            .source = of->a,
                            .target = of->c,
                            .result = of->turned ? result_turned : NULL};
}
