/* Products of matrices have the bits that kernels/cpu/product.h defines: beside a scalar program written from that
 * definition alone, for operands stored in either way and any number of threads. */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/images.h"

#include "kernels/cpu/matrix.h"

/* ---- The definition. */
static float judge_sum(int64_t first, int64_t end, const float *p, const float *q)
{
    float sum = 0;
    for (int64_t start = first; start < end; start += 256) {
        float block = 0;
        for (int64_t i = start; i < end && i < start + 256; i++) block = fmaf(p[i], q[i], block);
        sum = start == first ? block : sum + block;
    }
    return sum;
}

static float judge(int64_t terms, bool spans, const float *p, const float *q)
{
    if (!spans) return judge_sum(0, terms, p, q);
    float sum = 0;
    for (int64_t start = 0; start < terms; start += 2048) {
        const float span = judge_sum(start, start + 2048 < terms ? start + 2048 : terms, p, q);
        sum = start == 0 ? span : sum + span;
    }
    return sum;
}

/* ---- The product. */
/* The transpose of rows x columns. */
static float *transposed(const float *x, int64_t rows, int64_t columns)
{
    float *t = malloc((size_t)(rows * columns) * sizeof *t);
    for (int64_t i = 0; i < rows * columns; i++) t[i % columns * rows + i / columns] = x[i];
    return t;
}

/* Operands stored by rows and by columns, whose terms are p[row * terms + i] and q[column * terms + i]. */
struct problem {
    int64_t rows, columns, terms;
    bool spans, bias, relu;
    float *p, *p_columns, *q, *q_columns, *biases, *sums;
};

static struct problem problem_make(int64_t rows, int64_t columns, int64_t terms, bool spans, bool bias, bool relu)
{
    struct problem m = {rows, columns, terms, spans, bias, relu};
    m.p = random_floats(rows * terms, 1), m.q = random_floats(columns * terms, 2), m.biases = random_floats(columns, 3);
    m.p_columns = transposed(m.p, rows, terms), m.q_columns = transposed(m.q, columns, terms);
    m.sums = malloc((size_t)(rows * columns) * sizeof *m.sums);
    for (int64_t i = 0; i < rows * columns; i++)
        m.sums[i] = judge(terms, spans, m.p + i / columns * terms, m.q + i % columns * terms);
    return m;
}

/* What the sum becomes that is added to a number. */
static float ended(const struct problem *m, int64_t i, float to)
{
    const float sum = to + m->sums[i] + (m->bias ? m->biases[i % m->columns] : 0);
    return m->relu && sum <= 0 ? 0 : sum;
}

static void problem_free(struct problem *m)
{
    free(m->p), free(m->q), free(m->p_columns), free(m->q_columns), free(m->biases), free(m->sums);
}

/* As layers plan: before their operands exist, and whether or not a call adds to the result. */
static struct product_plan plan_of(const struct problem *m, const struct matrix_product *of, struct matrix a,
                                   struct matrix b, int threads, uint64_t limit)
{
    struct matrix_product planned = {.c.stride = of->c.stride, .turned = of->turned};
    a.data = b.data = NULL;
    struct product product = matrix_product(m->rows, m->columns, m->terms, a, b, &planned);
    product.spans = m->spans;
    return product_plan(&product, threads, limit);
}

/* how: bit 0: p is stored by terms, 1: q, 2: the product is that of the transpose, 3: it is added to i / 8, of sums in
 * spans. Returns the plan. */
static struct product_plan check(const struct problem *m, int how, int threads, uint64_t limit)
{
    struct matrix_product of = {.c = {.stride = m->columns, .relu = m->relu, .add = how & 8}, .turned = how & 4};
    of.c.bias = m->bias ? m->biases : NULL;
    of.c.data = spoiled_floats((size_t)(m->rows * m->columns) * sizeof *of.c.data);
    for (int64_t i = 0; i < m->rows * m->columns && of.c.add; i++) of.c.data[i] = (float)i / 8;
    const struct matrix a =
        how & 1 ? (struct matrix){m->p_columns, m->rows, true} : (struct matrix){m->p, m->terms, false};
    const struct matrix b =
        how & 2 ? (struct matrix){m->q_columns, m->columns, false} : (struct matrix){m->q, m->terms, true};
    const struct product_plan plan = plan_of(m, &of, a, b, threads, limit);
    struct product product = matrix_product(m->rows, m->columns, m->terms, a, b, &of);
    product.spans = m->spans;
    float *scratch = spoiled_floats(plan.scratch + 4);
    omp_set_num_threads(threads);
    product_run(&product, &plan, &of, scratch);
    cr_assert(isnan(scratch[plan.scratch / sizeof *scratch]), "more scratch than %zu bytes is written", plan.scratch);
    for (int64_t i = 0; i < m->rows * m->columns; i++) {
        const float expected = ended(m, i, of.c.add ? (float)i / 8 : 0);
        cr_assert(!memcmp(of.c.data + i, &expected, sizeof expected),
                  "%lld x %lld over %lld, stored %d, %d threads: [%lld] is %.9g, by the definition %.9g",
                  (long long)m->rows, (long long)m->columns, (long long)m->terms, how, threads, (long long)i,
                  (double)of.c.data[i], (double)expected);
    }
    free(of.c.data), free(scratch);
    return plan;
}

Test(product, has_the_bits_of_its_definition, .timeout = 300)
{
    static const struct {
        int64_t rows, columns, terms;
        bool spans, bias, relu;
    } rows[] = {
        {1, 1, 1, false, false, false},     {13, 33, 257, false, true, true},   {200, 17, 300, false, true, false},
        {5, 900, 1000, false, false, true}, {450, 1, 513, true, true, true},    {7, 40, 2049, true, false, false},
        {31, 29, 9001, true, true, false},  {400, 70, 4100, true, false, true}, {97, 800, 30, true, false, false},
        {41, 70, 1024, false, true, true},  {25, 50, 300, true, false, true},   {25, 50, 200, true, true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct problem m =
            problem_make(rows[i].rows, rows[i].columns, rows[i].terms, rows[i].spans, rows[i].bias, rows[i].relu);
        for (int how = 0; how < (m.spans ? 12 : 8); how++)
            for (int threads = 1; threads <= 4; threads++) check(&m, how, threads, UINT64_MAX);
        problem_free(&m);
    }
}

/* Columns that are packed in several turns, or a block of terms at a time where the limit is too little for that. */
Test(product, has_the_same_bits_in_turns, .timeout = 300)
{
    struct problem m = problem_make(3, 70, 100003, false, true, false);
    for (int threads = 1; threads <= 3; threads++) {
        cr_expect(check(&m, 0, threads, UINT64_MAX).turn == 32);
        const struct product_plan plan = check(&m, 0, threads, 8 << 20);
        cr_expect(plan.turn == 0 && plan.scratch <= 8 << 20);
    }
    problem_free(&m);
}

/* Blocks shrink where the limit has scratch for too few threads. */
Test(product, has_the_same_bits_in_small_blocks, .timeout = 300)
{
    for (int spans = 0; spans < 2; spans++) {
        struct problem m = problem_make(400, 900, 4100, spans, true, false);
        for (int how = 0; how < 2; how++) {
            const struct product_plan plan = check(&m, how, 4, 2 << 20);
            cr_expect(plan.workers == 4 && plan.scratch <= 2 << 20, "%lld workers", (long long)plan.workers);
        }
        problem_free(&m);
    }
}

/* Any limit, also one that is too little, has a plan. */
Test(product, has_the_same_bits_within_any_limit, .timeout = 300)
{
    for (int spans = 0; spans < 2; spans++) {
        struct problem m = problem_make(40, 70, 2500, spans, true, false);
        for (uint64_t limit = 1 << 22; limit > 0; limit /= 4)
            for (int threads = 1; threads <= 4; threads += 3) check(&m, 0, threads, limit);
        problem_free(&m);
    }
}

Test(product, a_relu_keeps_nan)
{
    for (int how = 0; how < 8; how += 4) {
        const float p[] = {NAN, 1}, q[] = {1};
        float c[2], *scratch;
        struct matrix_product of = {.c = {c, 1, .relu = true}, .turned = how};
        const struct product product =
            matrix_product(2, 1, 1, (struct matrix){p, 1, false}, (struct matrix){q, 1, false}, &of);
        const struct product_plan plan = product_plan(&product, 1, UINT64_MAX);
        product_run(&product, &plan, &of, scratch = spoiled_floats(plan.scratch));
        cr_expect(isnan(c[0]) && c[1] == 1);
        free(scratch);
    }
}
