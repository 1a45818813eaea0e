#include "product.h"

#include <omp.h>
#include <string.h>

#include "numerics/shape.h"

/* Rows and columns of a block, by which its rows, sums and a panel of columns stay in the second-level cache. Where a
 * block packs its own columns, more rows use them. */
enum { ROWS_BLOCK = 192, ROWS_SPANS = 384, ROWS_LEAST = 48, COLUMNS_BLOCK = 768 };
/* Floats of scratch that threads share. */
enum { MOST_SHARED = 3 << 20 };
/* Multiplications of a thread, about 10 microseconds: of less work, starting threads and their scratch are not worth
 * it. */
enum { WORK_LEAST = 1 << 19 };

/* Scratch of a thread: packed rows, and where they are needed sums, a block's packed columns and the total of spans. */
struct room {
    float *rows, *sums, *columns, *total;
};

/* Whether the innermost loop writes the result, not scratch: a sum of several blocks is not added to it one by one. */
static bool in_place(const struct product *p)
{
    return p->result == NULL && (!p->spans || p->terms <= (p->target.add ? SUM_BLOCK : SUM_SPAN));
}

/* Whether rows are read where they lie. Those 4 KiB apart evict each other from the first-level cache, but packing them
 * takes longer. */
static bool reads_source(const struct product *p) { return !p->by_term && p->source.stride != 0; }

/* Floats from a row of sums to the next. */
static int64_t sums_stride(const struct product_plan *plan) { return plan->columns + SKEW; }
/* Floats from a packed row, or a panel of them, to the next. */
static int64_t rows_distance(const struct product *p, const struct product_plan *plan)
{
    return multiple(p->by_term ? plan->terms * ROWS_MOST : plan->terms, SKEW) + SKEW;
}

static int64_t rows_room(const struct product *p, const struct product_plan *plan)
{
    const int64_t rows = reads_source(p) ? ROWS_MOST : plan->rows;
    return (p->by_term ? rows / ROWS_MOST : rows) * rows_distance(p, plan);
}
static int64_t sums_room(const struct product *p, const struct product_plan *plan)
{
    const bool none = p->result == NULL && (!p->spans || p->terms <= SUM_BLOCK); /* whether a run adds or not */
    return none ? 0 : plan->rows * sums_stride(plan);
}
static int64_t columns_room(const struct product_plan *plan) { return plan->columns * (plan->terms + 1); }

static int64_t room_floats(const struct product *p, const struct product_plan *plan)
{
    const bool total = p->spans && p->terms > SUM_SPAN && plan->together == 0;
    return rows_room(p, plan) + sums_room(p, plan) * (1 + total) + (plan->turn > 0 ? 0 : columns_room(plan));
}

static struct room room_at(const struct product *p, const struct product_plan *plan, float *scratch)
{
    struct room room = {.rows = scratch, .sums = scratch + rows_room(p, plan)};
    room.columns = room.sums + sums_room(p, plan);
    room.total = room.columns + (plan->turn > 0 ? 0 : columns_room(plan));
    return room;
}

/* Of a panel with so many terms. */
static int64_t panel_distance(int64_t terms) { return terms * PANEL + SKEW; }

static int64_t spans_of(const struct product *p) { return p->spans ? ratio_up(p->terms, SUM_SPAN) : 1; }

static int64_t blocks_of(const struct product *p, const struct product_plan *plan)
{
    return ratio_up(p->rows, plan->rows) * ratio_up(p->columns, plan->columns);
}

/* Spans that are summed together where there are too few blocks of the result for the threads. */
static int64_t spans_together(const struct product *p, const struct product_plan *plan, int64_t threads, int64_t room)
{
    const int64_t spans = spans_of(p), blocks = blocks_of(p, plan);
    const int64_t together = lesser(spans, lesser(MOST_SHARED, room) / (p->rows * p->columns) - 1);
    return blocks >= 2 * threads || together < 2 || together * blocks < threads ? 0 : together;
}

/* Columns whose packed terms fit, a multiple of the widest panel; 0: not even one such panel does. */
static int64_t columns_turn(const struct product *p, int64_t room)
{
    if (PANEL_MOST * (p->terms + SKEW) > room) return 0;
    const int64_t fit = lesser(MOST_SHARED, room) / (p->terms + SKEW) / PANEL_MOST * PANEL_MOST;
    return lesser(fit > 0 ? fit : PANEL_MOST, multiple(p->columns, PANEL_MOST));
}

static int64_t shared_floats(const struct product *p, const struct product_plan *plan)
{
    return plan->together > 0 ? (plan->together + 1) * p->rows * p->columns : plan->turn * (p->terms + SKEW);
}

/* As many threads as there are work and scratch for, one at least; whether all that there is work for. */
static bool fit_workers(const struct product *p, int64_t threads, int64_t room, struct product_plan *plan)
{
    const int64_t shared = shared_floats(p, plan), each = room_floats(p, plan);
    const int64_t work = blocks_of(p, plan) * (plan->together > 0 ? plan->together : 1);
    const int64_t fit = room < shared + each ? 1 : (room - shared) / each, wanted = lesser(threads, work);
    plan->workers = lesser(fit, wanted);
    plan->scratch = (size_t)(shared + plan->workers * each) * sizeof(float);
    return plan->workers == wanted;
}

/* Halves a side of a block, unless its sums would be too few for what is packed. */
static bool halve(struct product_plan *plan)
{
    if (plan->columns > PANEL_MOST && plan->columns > 2 * plan->rows)
        plan->columns = multiple(plan->columns / 2, PANEL_MOST);
    else if (plan->rows > ROWS_LEAST)
        plan->rows = multiple(plan->rows / 2, ROWS_MOST);
    else
        return false;
    return true;
}

/* Threads that have enough to do, one at least. */
static int64_t useful_threads(const struct product *p, int64_t threads)
{
    const double work = (double)p->rows * (double)p->columns * (double)p->terms;
    return work < (double)threads * WORK_LEAST ? 1 + (int64_t)(work / WORK_LEAST) : threads;
}

/* What divides count, 1 or more, into as few blocks of at most so many as possible, of one size: a multiple. */
static int64_t block_size(int64_t count, int64_t most, int64_t of)
{
    return multiple(ratio_up(count, ratio_up(count, most)), of);
}

struct product_plan product_plan(const struct product *p, int64_t most_threads, uint64_t limit)
{
    const int64_t threads = useful_threads(p, most_threads);
    struct product_plan plan = {
        .rows = block_size(p->rows, p->spans ? ROWS_SPANS : ROWS_BLOCK, ROWS_MOST),
        .columns = block_size(p->columns, COLUMNS_BLOCK, PANEL_MOST),
        .terms = lesser(SUM_BLOCK, p->terms),
    };
    const int64_t room = (int64_t)(limit < INT64_MAX ? limit : INT64_MAX) / (int64_t)sizeof(float);
    while (plan.columns > PANEL_MOST && room_floats(p, &plan) > room / 2)
        plan.columns = multiple(plan.columns / 2, PANEL_MOST);
    while (plan.rows > ROWS_MOST && room_floats(p, &plan) > room / 2) plan.rows = multiple(plan.rows / 2, ROWS_MOST);
    if (p->spans)
        plan.together = spans_together(p, &plan, threads, room / 2);
    else
        plan.turn = columns_turn(p, room / 2);
    if (plan.turn > 0) plan.columns = lesser(plan.columns, plan.turn);
    const int64_t wanted = threads > 1 && plan.together == 0 ? 4 * threads : 1;
    while (plan.rows > ROWS_LEAST && blocks_of(p, &plan) < wanted) plan.rows = multiple(plan.rows / 2, ROWS_MOST);
    while (!fit_workers(p, threads, room, &plan) && halve(&plan)) continue;
    return plan;
}

/* Rows of a block of terms: the distance of ROWS_MOST of them, and that of rows, or of terms where they lie by term. */
struct operand {
    const float *at;
    int64_t part, distance;
};

/* A block of terms whose columns are packed. The first rows lie in memory, the others are packed. */
struct packed {
    int64_t rows, terms, first;
    struct operand source, others;
    struct target target;
    bool by_term; /* the packed rows; those in memory do not */
    bool add;     /* to what the target holds */
    bool ends;    /* with a bias, or 0, and a relu: the last block of a result in place that is not bare */
};

/* The sums of a panel of columns from `column` on. Meanwhile the panel that follows, next, is fetched; before the first
 * one, rows that follow each other in memory are, which the processor does not do by itself well enough. */
static __attribute__((noinline)) void panel_sums(const struct packed *p, int64_t column, int64_t columns,
                                                 const float *b, const float *next)
{
    const struct target *target = &p->target;
    const int64_t parts = ratio_up(p->rows, ROWS);
    struct ending ending = {p->rows, columns, p->add, p->ends, .relu = p->ends && target->relu};
    float *sums = target->data + column;
    if (target->bias != NULL) ending.bias = target->bias + column;
    for (int64_t r = 0; r < parts; r++, sums += ROWS * target->stride, ending.rows -= ROWS) {
        const bool in_memory = r * ROWS < p->first, ahead = in_memory && column == 0 && p->source.distance == p->terms;
        const struct operand *o = in_memory ? &p->source : &p->others;
        const int64_t row = r * ROWS - (in_memory ? 0 : p->first);
        const float *a = o->at + row / ROWS_MOST * o->part + row % ROWS_MOST * (p->by_term ? 1 : o->distance);
        const float *ahead_of = ahead ? a + ROWS * o->distance : next + r * p->terms * PANEL / parts;
        const int64_t step = ahead ? ROWS : PANEL / parts;
        if (p->by_term)
            multiply_panel(true, p->terms, a, ROWS_MOST, b, sums, target->stride, &ending, ahead_of, step);
        else
            multiply_panel(false, p->terms, a, o->distance, b, sums, target->stride, &ending, ahead_of, step);
    }
}

/* Zeros the rows behind the last one, which the innermost loop reads. */
static void clear_rows(const struct product *p, int64_t rows, int64_t terms, float *to, int64_t distance)
{
    const int64_t more = multiple(rows, ROWS) - rows;
    if (p->by_term)
        for (int64_t t = 0; t < terms && more > 0; t++)
            memset(to + place_by_term(rows, t, distance), 0, (size_t)more * sizeof *to);
    else
        for (int64_t r = rows; r < rows + more; r++) memset(to + r * distance, 0, (size_t)terms * sizeof *to);
}

/* Zeros the columns that the last panel lacks. */
static void clear_columns(const struct block *part, float *to, int64_t distance)
{
    const int64_t last = part->columns % PANEL;
    to += part->columns / PANEL * distance + last;
    for (int64_t t = 0; t < part->terms && last > 0; t++)
        memset(to + t * PANEL, 0, (size_t)(PANEL - last) * sizeof *to);
}

static void pack_columns(const struct product *p, const void *of, const struct block *part, float *to, int64_t distance)
{
    p->pack_columns(of, part, to, distance);
    clear_columns(part, to, distance);
}

/* A part of the result in memory. */
static struct target part_target(const struct product *p, const struct block *part)
{
    struct target target = p->target;
    if (target.data != NULL) target.data += part->row * target.stride + part->column;
    if (target.bias != NULL) target.bias += part->column;
    return target;
}

/* The part's sums. columns: packed with all terms of the product, or NULL. */
static void part_sums(const struct product *p, const struct product_plan *plan, const void *of,
                      const struct block *part, const float *columns, const struct room *room)
{
    const int64_t row = rows_distance(p, plan), distance = panel_distance(columns != NULL ? p->terms : plan->terms);
    struct packed packed = {.rows = part->rows, .target = {room->sums, sums_stride(plan)}, .by_term = p->by_term};
    if (in_place(p)) packed.target = part_target(p, part);
    packed.others = (struct operand){room->rows, p->by_term ? row : ROWS_MOST * row, row};
    if (reads_source(p)) packed.first = part->rows / ROWS_MOST * ROWS_MOST;
    packed.source = (struct operand){NULL, ROWS_MOST * p->source.stride, p->source.stride};
    for (int64_t t = 0; t == 0 || t < part->terms; t += SUM_BLOCK) {
        struct block some = *part;
        some.term += t, some.terms = packed.terms = lesser(SUM_BLOCK, part->terms - t);
        packed.add = t > 0 || (in_place(p) && p->target.add);
        packed.ends = in_place(p) && !p->target.bare && t + SUM_BLOCK >= part->terms;
        some.row += packed.first, some.rows -= packed.first;
        if (packed.first > 0) packed.source.at = p->source.data + part->row * p->source.stride + some.term;
        if (some.rows > 0) p->pack_rows(of, &some, room->rows, row);
        clear_rows(p, some.rows, some.terms, room->rows, row);
        if (columns == NULL) pack_columns(p, of, &some, room->columns, distance);
        const float *b = columns != NULL ? columns + some.term * PANEL : room->columns;
        for (int64_t c = 0; c < part->columns; c += PANEL, b += distance)
            panel_sums(&packed, c, part->columns - c, b, c + PANEL < part->columns ? b + distance : b);
    }
}

void product_store(const struct target *t, const struct block *part, const float *sums, int64_t stride)
{
    float *to = t->data;
    for (int64_t r = 0; r < part->rows; r++, sums += stride, to += t->stride)
        for (int64_t c = 0; c < part->columns; c += LANES) {
            const int64_t count = lesser(LANES, part->columns - c);
            lanes s = lanes_load_part(sums + c, count);
            if (t->add) s = lanes_load_part(to + c, count) + s;
            if (!t->bare) s += t->bias != NULL ? lanes_load_part(t->bias + c, count) : (lanes){0};
            if (t->relu) s = lanes_rectified(s);
            lanes_store_part(to + c, s, count);
        }
}

/* total = or += sums. */
static void add_sums(const struct block *part, const float *sums, int64_t stride, float *total, int64_t to, bool add)
{
    product_store(&(struct target){total, to, .add = add, .bare = true}, part, sums, stride);
}

/* What becomes of a part's sums: p->target, or what the product's function makes of them. */
static void store_result(const struct product *p, const void *of, const struct block *part, const float *sums,
                         int64_t stride)
{
    const struct target target = part_target(p, part);
    if (p->result != NULL)
        p->result(of, part, sums, stride);
    else
        product_store(&target, part, sums, stride);
}

/* A block of the result, span by span. */
static void block_result(const struct product *p, const struct product_plan *plan, const void *of,
                         const struct block *part, const float *packed, const struct room *room)
{
    const int64_t span = p->spans ? SUM_SPAN : p->terms;
    int64_t t = 0;
    do {
        struct block some = *part;
        some.term = t, some.terms = lesser(span, p->terms - t);
        part_sums(p, plan, of, &some, packed, room);
        if (span < p->terms) add_sums(part, room->sums, sums_stride(plan), room->total, sums_stride(plan), t > 0);
    } while ((t += span) < p->terms);
    if (!in_place(p)) store_result(p, of, part, span < p->terms ? room->total : room->sums, sums_stride(plan));
}

/* Block number i of columns from first on, of which there are count. */
static struct block block_at(const struct product *p, const struct product_plan *plan, int64_t i, int64_t first,
                             int64_t count)
{
    const int64_t across = ratio_up(count, plan->columns);
    struct block part = {.row = i / across * plan->rows, .column = i % across * plan->columns, .terms = p->terms};
    part.rows = lesser(plan->rows, p->rows - part.row);
    part.columns = lesser(plan->columns, count - part.column);
    part.column += first;
    return part;
}

/* A run on several threads, which take numbers of work. */
struct run {
    const struct product *product;
    const struct product_plan *plan;
    const void *of;
    float *shared; /* packed columns, or sums of spans */
    float *rooms;
    int64_t first, count; /* columns of a turn, or spans that are summed together */
    int64_t next;
};

/* The next number; not below count: there is none. Threads without scratch get none. */
static int64_t take(struct run *run, int64_t thread, int64_t count)
{
    int64_t number;
    if (thread >= run->plan->workers) return count;
#pragma omp atomic capture
    number = run->next++;
    return number;
}

static struct room room_of(const struct run *run, int64_t thread)
{
    const struct product *p = run->product;
    return room_at(p, run->plan, run->rooms + thread * room_floats(p, run->plan));
}

/* A thread's share of a turn's columns. */
static void pack_turn(const struct run *run, int64_t thread, int64_t threads)
{
    const struct product *p = run->product;
    for (int64_t c = thread * PANEL; c < run->count && run->plan->turn > 0; c += threads * PANEL) {
        const struct block panel = {.column = run->first + c, lesser(PANEL, run->count - c), 0, p->terms};
        pack_columns(p, run->of, &panel, run->shared + c / PANEL * panel_distance(p->terms), 0);
    }
}

static void run_blocks(struct run *run, int64_t thread)
{
    const struct product *p = run->product;
    const struct room room = room_of(run, thread);
    const int64_t blocks = ratio_up(p->rows, run->plan->rows) * ratio_up(run->count, run->plan->columns);
    for (int64_t i; (i = take(run, thread, blocks)) < blocks;) {
        const struct block part = block_at(p, run->plan, i, run->first, run->count);
        const float *packed = run->shared + (part.column - run->first) / PANEL * panel_distance(p->terms);
        block_result(p, run->plan, run->of, &part, run->plan->turn > 0 ? packed : NULL, &room);
    }
}

/* Sums of the spans from first on, behind each other from shared's second matrix on. */
static void sum_spans(struct run *run)
{
    const struct product *p = run->product;
    const int64_t blocks = blocks_of(p, run->plan), work = run->count * blocks;
    const int64_t thread = omp_get_thread_num();
    const struct room room = room_of(run, thread);
    for (int64_t i; (i = take(run, thread, work)) < work;) {
        struct block part = block_at(p, run->plan, i % blocks, 0, p->columns);
        float *to = run->shared + (1 + i / blocks) * p->rows * p->columns;
        part.term = (run->first + i / blocks) * SUM_SPAN;
        part.terms = lesser(SUM_SPAN, p->terms - part.term);
        part_sums(p, run->plan, run->of, &part, NULL, &room);
        add_sums(&part, room.sums, sums_stride(run->plan), to + part.row * p->columns + part.column, p->columns, false);
    }
}

/* Adds them to the total, shared's first matrix; after the last ones that is the result. */
static void add_spans(const struct run *run, bool last)
{
    const struct product *p = run->product;
    const int64_t matrix = p->rows * p->columns;
#pragma omp for schedule(static)
    for (int64_t r = 0; r < p->rows; r++) {
        const struct block row = {.row = r, 1, 0, p->columns, 0, p->terms};
        float *total = run->shared + r * p->columns;
        for (int64_t s = 0; s < run->count; s++)
            add_sums(&row, total + (1 + s) * matrix, 0, total, 0, run->first + s > 0);
        if (last) store_result(p, run->of, &row, total, p->columns);
    }
}

static void run_spans(struct run *run)
{
    const int64_t spans = spans_of(run->product);
    for (run->first = 0; run->first < spans; run->first += run->count) {
        run->count = lesser(run->plan->together, spans - run->first);
        run->next = 0;
#pragma omp parallel if (run->plan->workers > 1)
        {
            sum_spans(run);
#pragma omp barrier
            add_spans(run, run->first + run->count == spans);
        }
    }
}

static void run_turn(struct run *run)
{
#pragma omp parallel if (run->plan->workers > 1)
    {
        pack_turn(run, omp_get_thread_num(), omp_get_num_threads());
#pragma omp barrier
        run_blocks(run, omp_get_thread_num());
    }
}

static void run_turns(struct run *run, bool alone)
{
    const int64_t columns = run->product->columns, turn = run->plan->turn > 0 ? run->plan->turn : columns;
    for (; run->first < columns; run->first += turn) {
        run->count = lesser(turn, columns - run->first);
        run->next = 0;
        if (alone) {
            pack_turn(run, 0, 1);
            run_blocks(run, 0);
        } else {
            run_turn(run);
        }
    }
}

static struct run run_make(const struct product *p, const struct product_plan *plan, const void *of, void *scratch)
{
    struct run run = {p, plan, of, .shared = scratch};
    run.rooms = run.shared + plan->scratch / sizeof(float) - plan->workers * room_floats(p, plan);
    return run;
}

void product_run(const struct product *p, const struct product_plan *plan, const void *of, void *scratch)
{
    struct run run = run_make(p, plan, of, scratch);
    if (plan->together > 0)
        run_spans(&run);
    else
        run_turns(&run, false);
}

void product_alone(const struct product *p, const void *of, void *scratch)
{
    const struct product_plan plan = product_plan(p, 1, UINT64_MAX);
    struct run run = run_make(p, &plan, of, scratch);
    run_turns(&run, true);
}
