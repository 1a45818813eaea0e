#include "conv_product.h"

#include <string.h>

#include "grouped.h"
#include "matrix.h"
#include "numerics/shape.h"
#include "patches.h"

/* A product of one group: patches of one image times weights, or the gradients of the weights. */
struct task {
    /* Where in_memory(), its functions are used instead of those below; a pointer to the task is one to it. */
    struct matrix_product matrices;
    struct patches patches;
    struct pixels pixels;
    struct patches gradient; /* of the weights: dy, a pixel a patch */
    const float *weights;    /* of the group */
    float *dw, *db;
    /* A column's weights: weights[column * to_column + channel * to_channel + tap], from the taps on, whose steps may
     * be negative. */
    int64_t to_column, to_channel, first_tap, tap_y, tap_x, taps;
};

static int64_t patch_count(const struct patches *p, int64_t batch) { return batch * p->high * p->wide; }

static void pack_patches(const void *of, const struct block *part, float *to, int64_t stride)
{
    const struct task *task = of;
    patches_gather(&task->patches, part->row, part->rows, part->term, part->terms, to,
                   (struct panels){part->terms, 0, stride});
}

/* Weights of a panel, for some terms at a time, whose weights of a column lie near each other. */
static void pack_panel(const struct task *task, const struct block *part, int64_t first, int64_t count, float *to)
{
    enum { STEP = 16 };
    const int64_t channels = task->patches.channels, wide = task->patches.taps_x;
    for (int64_t start = 0; start < part->terms; start += STEP, to += STEP * PANEL) {
        const int64_t terms = lesser(STEP, part->terms - start);
        int64_t at[STEP];
        for (int64_t t = 0, term = part->term + start; t < terms; t++, term++)
            at[t] = task->first_tap + term / channels / wide * task->tap_y + term / channels % wide * task->tap_x +
                    term % channels * task->to_channel;
        const float *from = task->weights + (part->column + first) * task->to_column;
        if (task->to_column < task->to_channel) {
            for (int64_t t = 0; t < terms; t++)
                for (int64_t i = 0; i < count; i++) to[t * PANEL + i] = from[at[t] + i * task->to_column];
        } else {
            for (int64_t i = 0; i < count; i++, from += task->to_column)
                for (int64_t t = 0; t < terms; t++) to[t * PANEL + i] = from[at[t]];
        }
    }
}

static void pack_weights(const void *of, const struct block *part, float *to, int64_t distance)
{
    for (int64_t c = 0; c < part->columns; c += PANEL, to += distance)
        pack_panel(of, part, c, lesser(PANEL, part->columns - c), to);
}

static void write_pixels(const void *of, const struct block *part, const float *sums, int64_t stride)
{
    const struct task *task = of;
    pixels_write(&task->pixels, part->row, part->rows, part->column, part->columns, sums, stride);
}

/* Of the weights' gradients a row is a number of a patch, and the last one ones, for the bias. */
static void pack_numbers(const void *of, const struct block *part, float *to, int64_t distance)
{
    const struct task *task = of;
    const int64_t numbers = patch_terms(&task->patches), some = lesser(part->rows, numbers - part->row);
    patches_gather(&task->patches, part->term, part->terms, part->row, some, to,
                   (struct panels){ROWS_MOST, distance, ROWS_MOST});
    for (int64_t t = 0; t < part->terms && some < part->rows; t++) to[place_by_term(some, t, distance)] = 1;
}

static void pack_gradient(const void *of, const struct block *part, float *to, int64_t distance)
{
    const struct matrix dy = patches_matrix(&((const struct task *)of)->gradient);
    matrix_pack_columns(&dy, part, to, distance);
}

/* Some rows at a time, whose gradients of an output lie near each other. */
static void write_gradients(const void *of, const struct block *part, const float *sums, int64_t stride)
{
    enum { STEP = 16 };
    const struct task *task = of;
    const int64_t channels = task->patches.channels, numbers = patch_terms(&task->patches);
    for (int64_t first = 0; first < part->rows; first += STEP) {
        const int64_t rows = lesser(STEP, part->rows - first);
        int64_t at[STEP];
        for (int64_t r = 0, row = part->row + first; r < rows; r++, row++)
            at[r] = row % channels * task->taps + row / channels;
        for (int64_t k = 0; k < part->columns; k++) {
            float *to = task->dw + (part->column + k) * numbers;
            for (int64_t r = 0; r < rows; r++)
                if (part->row + first + r < numbers)
                    to[at[r]] = sums[(first + r) * stride + k];
                else if (task->db != NULL)
                    task->db[part->column + k] = sums[(first + r) * stride + k];
        }
    }
}

/* Whether patches are pixels and the operands and the result matrices in memory: of 1x1 convolutions of stride 1. */
static bool in_memory(const struct conv_product *conv, const struct task *task)
{
    return patches_matrix(&task->patches).stride > 0 &&
           (conv->pass == CONV_PARAMS ? !conv->bias : pixels_follow(&task->pixels));
}

static struct product product_of_matrices(const struct conv_product *conv, struct task *task)
{
    const struct matrix x = patches_matrix(&task->patches);
    struct matrix dy = patches_matrix(&task->gradient), weights = {task->weights, task->to_channel, false};
    const int64_t pixels = patch_count(&task->patches, conv->batch), channels = task->patches.channels;
    if (conv->pass == CONV_PARAMS) {
        task->matrices.c = (struct target){task->dw, channels, .bare = true};
        dy.transposed = true;
        struct product product = matrix_product(task->gradient.channels, channels, pixels, dy, x, &task->matrices);
        product.spans = true;
        return product;
    }
    task->matrices.c = pixels_target(&task->pixels);
    if (task->to_channel == 1) weights.stride = task->to_column, weights.transposed = true;
    return matrix_product(pixels, task->pixels.channels, channels, x, weights, &task->matrices);
}

/* Its functions get the task. */
static struct product product_of(const struct conv_product *conv, struct task *task)
{
    const struct pixels *to = &task->pixels;
    const int64_t patches = patch_count(&task->patches, conv->batch), numbers = patch_terms(&task->patches);
    if (in_memory(conv, task)) return product_of_matrices(conv, task);
    if (conv->pass == CONV_PARAMS)
        return (struct product){.rows = numbers + conv->bias,
                                .columns = task->gradient.channels,
                                .terms = patches,
                                .spans = true,
                                .by_term = true,
                                .pack_rows = pack_numbers,
                                .pack_columns = pack_gradient,
                                .result = write_gradients};
    return (struct product){.rows = patches,
                            .columns = task->pixels.channels,
                            .terms = numbers,
                            .pack_rows = pack_patches,
                            .pack_columns = pack_weights,
                            .target = pixels_target(to),
                            .result = pixels_follow(to) ? NULL : write_pixels};
}

/* Patches of x, a pixel of y each. */
static struct task task_forward(const struct conv_product *conv, int64_t group)
{
    const int64_t inputs = conv->x.channels / conv->groups, outputs = conv->y.channels / conv->groups;
    const int64_t k = conv->kernel;
    return (struct task){
        .patches = {conv->x, NULL, group * inputs, inputs, k, k, conv->dilation, conv->stride, -conv->padding,
                    -conv->padding, conv->y.height, conv->y.width},
        .pixels = {conv->y, NULL, group * outputs, outputs, 1, 0, 0, conv->y.height, conv->y.width},
        .gradient = {conv->y, NULL, group * outputs, outputs, 1, 1, 1, 1, 0, 0, conv->y.height, conv->y.width},
        .to_column = inputs * k * k,
        .to_channel = k * k,
        .tap_y = k,
        .tap_x = 1,
        .taps = k * k};
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* From a tap to the next by which a pixel of y depends on the same pixel of x, along one side. */
static int64_t tap_step(const struct conv_product *conv)
{
    return conv->stride / common_divisor(conv->stride, conv->dilation);
}

/* Taps by which a pixel of y depends on pixel number first of x, along one side, and the first such pixel of y. */
struct side {
    int64_t taps, last, from, count;
};

static struct side side_of(const struct conv_product *conv, int64_t first, int64_t pixels)
{
    const int64_t s = conv->stride, step = tap_step(conv), at = first + conv->padding;
    int64_t tap = 0;
    while (tap < lesser(step, conv->kernel) && (at - tap * conv->dilation) % s) tap++;
    struct side side = {.taps = tap < lesser(step, conv->kernel) ? ratio_up(conv->kernel - tap, step) : 0};
    side.last = tap + step * (side.taps - 1);
    side.from = (at - side.last * conv->dilation) / s;
    side.count = first < pixels ? ratio_up(pixels - first, s) : 0;
    return side;
}

/* Patches of dy, a pixel of x each, for every stride-th pixel from (y, x) on. */
static struct task task_input(const struct conv_product *conv, int64_t group, int64_t y, int64_t x)
{
    const int64_t inputs = conv->x.channels / conv->groups, outputs = conv->y.channels / conv->groups;
    const int64_t k = conv->kernel, s = conv->stride, step = tap_step(conv);
    const struct side rows = side_of(conv, y, conv->x.height), columns = side_of(conv, x, conv->x.width);
    const bool none = rows.taps == 0 || columns.taps == 0;
    return (struct task){.patches = {conv->y, NULL, group * outputs, outputs, none ? 0 : rows.taps,
                                     none ? 0 : columns.taps, conv->dilation / (s / step), 1, rows.from, columns.from,
                                     rows.count, columns.count},
                         .pixels = {conv->x, NULL, group * inputs, inputs, s, y, x, rows.count, columns.count},
                         .to_column = k * k,
                         .to_channel = inputs * k * k,
                         .first_tap = rows.last * k + columns.last,
                         .tap_y = -step * k,
                         .tap_x = -step};
}

/* Tasks of a group: of INPUT one for each of the first pixels of x within a stride; there may be fewer than strides. */
static int64_t tasks_of(const struct conv_product *conv)
{
    return conv->pass == CONV_INPUT ? lesser(conv->stride, conv->x.height) * lesser(conv->stride, conv->x.width) : 1;
}

static struct task task_of(const struct conv_product *conv, int64_t group, int64_t i)
{
    const int64_t wide = lesser(conv->stride, conv->x.width);
    return conv->pass == CONV_INPUT ? task_input(conv, group, i / wide, i % wide) : task_forward(conv, group);
}

/* Channels of x of a group. */
static int64_t group_of(const struct conv_product *conv) { return conv->x.channels / conv->groups; }

static bool in_groups(const struct conv_product *conv)
{
    return is_grouped(conv->groups, group_of(conv), conv->y.channels / conv->groups, conv->kernel, conv->stride,
                      conv->dilation);
}

/* All groups at once. */
static void widen(const struct conv_product *conv, struct task *task)
{
    task->patches.channels = task->pixels.channels = task->gradient.channels = conv->x.channels;
}

static void need(const struct conv_product *conv, struct task *task, size_t *scratch)
{
    const struct product product = product_of(conv, task);
    size_t bytes;
    if (!in_groups(conv)) {
        bytes = product_plan(&product, conv->threads, conv->limit).scratch;
    } else {
        widen(conv, task);
        bytes = conv->pass == CONV_PARAMS ? grouped_gradients_scratch(&task->patches, group_of(conv), conv->batch)
                                          : grouped_scratch(&task->patches, group_of(conv));
    }
    if (bytes > *scratch) *scratch = bytes;
}

void conv_product_make(enum conv_pass pass, const struct extent *x, const struct extent *y, struct conv_product *conv)
{
    conv->pass = pass;
    conv->x = image_of(x), conv->y = image_of(y), conv->batch = x->batch;
    conv->scratch = 1;
    for (int64_t i = 0; i < tasks_of(conv); i++) {
        struct task task = task_of(conv, 0, i);
        if (task.patches.high > 0 && task.patches.wide > 0) need(conv, &task, &conv->scratch);
    }
}

static void compute(const struct conv_product *conv, struct task *task, void *scratch)
{
    const int64_t group = group_of(conv);
    if (in_groups(conv)) {
        const struct taps taps = {.weights = task->weights,
                                  .group = group,
                                  .to_group = group * group * conv->kernel * conv->kernel,
                                  .to_column = task->to_column,
                                  .to_channel = task->to_channel,
                                  .first = task->first_tap,
                                  .tap_y = task->tap_y,
                                  .tap_x = task->tap_x};
        widen(conv, task);
        if (conv->pass == CONV_PARAMS)
            grouped_gradients(&task->patches, &task->gradient, group, conv->batch, task->dw, task->db, scratch);
        else
            grouped_apply(&task->patches, &task->pixels, conv->batch, &taps, scratch);
        return;
    }
    const struct product product = product_of(conv, task);
    const struct product_plan plan = product_plan(&product, conv->threads, conv->limit);
    product_run(&product, &plan, task, scratch);
}

/* Groups that are computed one by one. */
static int64_t groups_of(const struct conv_product *conv) { return in_groups(conv) ? 1 : conv->groups; }

/* Of a group. */
static int64_t weights_of(const struct conv_product *conv)
{
    return group_of(conv) * (conv->y.channels / conv->groups) * conv->kernel * conv->kernel;
}

void conv_product_apply(const struct conv_product *conv, const float *from, const float *weights, const float *bias,
                        bool relu, float *to, void *scratch)
{
    for (int64_t g = 0; g < groups_of(conv); g++)
        for (int64_t i = 0; i < tasks_of(conv); i++) {
            struct task task = task_of(conv, g, i);
            if (task.patches.high == 0 || task.patches.wide == 0) continue;
            task.patches.data = from, task.pixels.data = to, task.pixels.relu = relu;
            task.pixels.bias = bias != NULL ? bias + task.pixels.first : NULL;
            task.weights = weights + g * weights_of(conv);
            compute(conv, &task, scratch);
        }
}

void conv_product_gradients(const struct conv_product *conv, const float *x, const float *dy, float *weights,
                            float *bias, void *scratch)
{
    for (int64_t g = 0; g < groups_of(conv); g++) {
        struct task task = task_forward(conv, g);
        task.patches.data = x, task.gradient.data = dy;
        task.dw = weights + g * weights_of(conv);
        task.db = bias != NULL ? bias + task.gradient.first : NULL;
        compute(conv, &task, scratch);
    }
}
