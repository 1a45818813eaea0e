#include "onnx_layers.h"

#include <criterion/criterion.h>
#include <string.h>

#define REFUSE_IF(condition, reason)                                                                                   \
    do {                                                                                                               \
        if (condition) return (reason);                                                                                \
    } while (0)

enum { POPULATION = 1 }; /* of batch_norm's setting variance */

/* ---- Tensors. ---- */

static int rank_of(const struct onnx_tensor *t) { return t->dims.count; }

/* The product of dimensions [from, to). */
static int64_t product(const struct onnx_tensor *t, int from, int to)
{
    int64_t elements = 1;
    cr_assert(to <= rank_of(t), "%s has %d dimensions", t->name, rank_of(t));
    for (int i = from; i < to; i++) elements *= t->dims.item[i];
    return elements;
}

static bool same_dims(const struct onnx_tensor *a, const struct onnx_tensor *b)
{
    return rank_of(a) == rank_of(b) &&
           memcmp(a->dims.item, b->dims.item, (size_t)rank_of(a) * sizeof *a->dims.item) == 0;
}

/* Its numbers, of which the node must have so many. */
static const float *numbers(const struct onnx_test *test, const struct onnx_tensor *t, int64_t elements)
{
    cr_assert(t != NULL && t->floats != NULL && t->elements == elements, "%s: a tensor has not %lld elements",
              test->folder, (long long)elements);
    return t->floats;
}

/* {N, C, ...} as {N, ..., C}; of rank 2 and less as it is. */
static const float *channels_last(const struct onnx_tensor *t, struct region *region)
{
    if (rank_of(t) < 3) return t->floats;
    const int64_t channels = t->dims.item[1], pixels = product(t, 2, rank_of(t));
    float *to;
    NEW(region, to, (size_t)t->elements);
    for (int64_t n = 0; n < t->dims.item[0]; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < pixels; p++)
                to[(n * pixels + p) * channels + c] = t->floats[(n * channels + c) * pixels + p];
    return to;
}

/* {rows, columns} as {columns, rows}, times factor. */
static const float *turned(const float *from, int64_t rows, int64_t columns, bool turn, double factor,
                           struct region *region)
{
    float *to;
    NEW(region, to, (size_t)(rows * columns));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[turn ? c * rows + r : r * columns + c] = (float)(factor * (double)from[r * columns + c]);
    return to;
}

/* The list of integers of that name, or count times otherwise. */
static void integers(const struct onnx_test *test, const char *name, int count, int64_t otherwise, int64_t *list)
{
    const struct onnx_attribute *a = onnx_attribute(test, name);
    cr_assert(a == NULL || a->integers.count == count, "%s: %s has not %d numbers", test->folder, name, count);
    for (int i = 0; i < count; i++) list[i] = a ? a->integers.item[i] : otherwise;
}

static bool all_equal(const int64_t *list, int count, int64_t value)
{
    for (int i = 0; i < count; i++)
        if (list[i] != value) return false;
    return true;
}

static int axis_of(const struct onnx_test *test, int64_t otherwise)
{
    const int rank = rank_of(onnx_input(test, 0));
    const int64_t axis = onnx_integer(test, "axis", otherwise);
    cr_assert(axis >= -rank && axis <= rank, "%s: axis %lld", test->folder, (long long)axis);
    return (int)(axis < 0 ? axis + rank : axis);
}

/* Input i in the layer's order, for operators that treat all elements alike. */
static const char *express_elements(const struct onnx_test *test, int i, struct region *region, struct onnx_layer *l)
{
    const struct onnx_tensor *x = onnx_input(test, i);
    const int rank = rank_of(x);
    REFUSE_IF(rank < 1 || rank > 4, "a scalar, or more than four dimensions");
    const int64_t *d = x->dims.item;
    l->c.batch = rank == 1 ? 1 : d[0];
    l->c.x = rank == 4   ? (struct shape)IMAGE(d[2], d[3], d[1])
             : rank == 3 ? (struct shape){2, {d[1], d[2]}}
                         : (struct shape){1, {d[rank - 1]}};
    l->x[i] = rank == 4 ? channels_last(x, region) : x->floats;
    l->y = rank == 4 ? channels_last(onnx_output(test, 0), region) : onnx_output(test, 0)->floats;
    return NULL;
}

/* ---- Operators. ---- */

/* auto_pad SAME_UPPER and SAME_LOWER: an output for every stride begun; an odd row of padding goes to one side. */
static const char *same_padding(const struct onnx_tensor *x, struct settings *s)
{
    int64_t total[2];
    for (int i = 0; i < 2; i++) {
        const int64_t in = x->dims.item[2 + i], covered = (ratio_up(in, s->stride) - 1) * s->stride + s->kernel;
        total[i] = covered > in ? covered - in : 0;
    }
    REFUSE_IF(total[0] != total[1] || total[0] % 2 != 0, "padding differs between sides");
    s->padding = total[0] / 2;
    return NULL;
}

/* Kernel, stride and padding, of an image. */
static const char *express_window(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    const struct onnx_tensor *x = onnx_input(test, 0), *y = onnx_output(test, 0);
    struct settings *s = &l->c.settings;
    int64_t kernel[2], stride[2], padding[4], dilation[2];
    REFUSE_IF(rank_of(x) != 4, "images not of two dimensions");
    integers(test, "kernel_shape", 2, 0, kernel);
    integers(test, "strides", 2, 1, stride);
    integers(test, "pads", 4, 0, padding);
    integers(test, "dilations", 2, 1, dilation);
    cr_assert(stride[0] > 0, "%s: stride %lld", test->folder, (long long)stride[0]);
    REFUSE_IF(kernel[0] < 1, "a kernel whose size only its weights tell");
    REFUSE_IF(!all_equal(dilation, 2, strcmp(l->c.layer, "conv") == 0 ? dilation[0] : 1), "dilation");
    REFUSE_IF(kernel[0] != kernel[1] || stride[0] != stride[1], "kernel or stride not square");
    REFUSE_IF(onnx_integer(test, "ceil_mode", 0) != 0, "windows that begin within and end outside (ceil_mode)");
    REFUSE_IF(!all_equal(padding, 4, padding[0]), "padding differs between sides");
    s->kernel = kernel[0], s->stride = stride[0], s->padding = padding[0], s->dilation = dilation[0];
    if (strncmp(onnx_text(test, "auto_pad", ""), "SAME", 4) == 0) {
        const char *reason = same_padding(x, s);
        REFUSE_IF(reason != NULL, reason);
    }
    const int64_t *d = x->dims.item;
    l->c.x = (struct shape)IMAGE(d[2], d[3], d[1]);
    l->c.batch = d[0];
    l->x[0] = channels_last(x, region);
    l->y = channels_last(y, region);
    return NULL;
}

static const char *express_conv(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    const char *reason = express_window(test, region, l);
    REFUSE_IF(reason != NULL, reason);
    const struct onnx_tensor *w = onnx_input(test, 1), *b = onnx_input(test, 2);
    const int64_t groups = onnx_integer(test, "group", 1), channels = onnx_output(test, 0)->dims.item[1];
    cr_assert(groups > 0, "%s: %lld groups", test->folder, (long long)groups);
    const int64_t filter = onnx_input(test, 0)->dims.item[1] / groups * l->c.settings.kernel * l->c.settings.kernel;
    l->c.settings.channels = channels;
    l->c.settings.groups = groups;
    l->c.settings.bias = b != NULL;
    l->parameter[0] = numbers(test, w, channels * filter);
    l->parameter[1] = b ? numbers(test, b, channels) : NULL;
    return NULL;
}

/* Of max_pool, the places of the largest are not an output of the layer. */
static const char *express_pool(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    const char *reason = express_window(test, region, l);
    REFUSE_IF(reason != NULL, reason);
    struct settings *s = &l->c.settings;
    REFUSE_IF(s->padding >= s->kernel, "padding of a whole window");
    s->count_padding = onnx_integer(test, "count_include_pad", 0) != 0;
    return NULL;
}

static const char *express_global_pool(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    REFUSE_IF(rank_of(onnx_input(test, 0)) != 4, "images not of two dimensions");
    return express_elements(test, 0, region, l);
}

/* y = alpha a b + beta c: weights alpha b, turned, and the bias beta c, where that is the same for all rows. */
static const char *express_gemm(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    const struct onnx_tensor *a = onnx_input(test, 0), *b = onnx_input(test, 1), *c = onnx_input(test, 2);
    REFUSE_IF(rank_of(a) != 2 || rank_of(b) != 2, "weights of each sample");
    const bool turn_a = onnx_integer(test, "transA", 0), turn_b = onnx_integer(test, "transB", 0);
    const int64_t units = b->dims.item[turn_b ? 0 : 1], inputs = b->dims.item[turn_b ? 1 : 0];
    const double beta = onnx_real(test, "beta", 1);
    REFUSE_IF(c && c->elements != 1 && (c->elements != units || c->dims.item[rank_of(c) - 1] != units),
              "a bias of each row");
    cr_assert(a->dims.item[turn_a ? 0 : 1] == inputs, "%s: two numbers of products", test->folder);
    l->c.x = (struct shape){1, {inputs}};
    l->c.batch = a->dims.item[turn_a ? 1 : 0];
    l->c.settings.units = units;
    l->c.settings.bias = c != NULL;
    l->x[0] = turned(a->floats, a->dims.item[0], a->dims.item[1], turn_a, 1, region);
    l->parameter[0] = turned(b->floats, b->dims.item[0], b->dims.item[1], !turn_b, onnx_real(test, "alpha", 1), region);
    l->y = onnx_output(test, 0)->floats;
    if (c == NULL) return NULL;
    float *bias;
    NEW(region, bias, (size_t)units);
    for (int64_t u = 0; u < units; u++) bias[u] = (float)(beta * (double)c->floats[c->elements == 1 ? 0 : u]);
    l->parameter[1] = bias;
    return NULL;
}

/* Dimensions from the axis on are a row. Mean and deviation of each row are not an output of the layer. */
static const char *express_layernorm(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    (void)region;
    const struct onnx_tensor *x = onnx_input(test, 0);
    const int axis = axis_of(test, -1);
    const int64_t width = product(x, axis, rank_of(x));
    REFUSE_IF(onnx_input(test, 2) == NULL, "no bias");
    l->c.batch = axis < 2 ? product(x, 0, axis) : x->dims.item[0];
    l->c.x = axis < 2 ? (struct shape){1, {width}} : (struct shape){2, {product(x, 1, axis), width}};
    l->c.settings.epsilon = onnx_real(test, "epsilon", 1e-5);
    l->x[0] = x->floats;
    l->parameter[0] = numbers(test, onnx_input(test, 1), width);
    l->parameter[1] = numbers(test, onnx_input(test, 2), width);
    l->y = onnx_output(test, 0)->floats;
    return NULL;
}

/* Each channel of each sample is normalised: as many groups as channels. */
static const char *express_instance_norm(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    const struct onnx_tensor *x = onnx_input(test, 0);
    REFUSE_IF(rank_of(x) != 4, "images not of two dimensions");
    l->c.settings.groups = x->dims.item[1];
    l->c.settings.epsilon = onnx_real(test, "epsilon", 1e-5);
    l->parameter[0] = numbers(test, onnx_input(test, 1), x->dims.item[1]);
    l->parameter[1] = numbers(test, onnx_input(test, 2), x->dims.item[1]);
    return express_elements(test, 0, region, l);
}

/* {N, C, ...}, whatever the number of dimensions, is an image with a row for each of them but the last. ONNX's momentum
 * is the share of the running state that stays. */
static const char *express_batch_norm(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    const struct onnx_tensor *x = onnx_input(test, 0);
    const bool training = onnx_integer(test, "training_mode", 0);
    const int rank = rank_of(x);
    REFUSE_IF(rank < 2, "a scalar, or more than four dimensions");
    REFUSE_IF(onnx_integer(test, "spatial", 1) != 1, "statistics of each pixel");
    REFUSE_IF(onnx_attribute(test, "is_test") && !onnx_integer(test, "is_test", 0), "training before version 14");
    const int64_t channels = x->dims.item[1], last = x->dims.item[rank - 1];
    l->c.batch = x->dims.item[0];
    l->c.x = rank == 2 ? (struct shape){1, {channels}} : (struct shape)IMAGE(product(x, 2, rank - 1), last, channels);
    l->c.settings.affine = true;
    l->c.settings.variance = POPULATION;
    l->c.settings.epsilon = onnx_real(test, "epsilon", 1e-5);
    l->c.settings.momentum = 1 - onnx_real(test, "momentum", 0.9);
    l->evaluate = !training;
    l->x[0] = channels_last(x, region);
    l->y = channels_last(onnx_output(test, 0), region);
    for (int i = 0; i < 2; i++) {
        l->parameter[i] = numbers(test, onnx_input(test, 1 + i), channels);
        l->state[i] = numbers(test, onnx_input(test, 3 + i), channels);
        l->moved[i] = training ? numbers(test, onnx_output(test, 1 + i), channels) : NULL;
    }
    return NULL;
}

static struct setting_list weights_of(const struct onnx_tensor *tensor, struct region *region)
{
    double *weights;
    NEW(region, weights, (size_t)tensor->elements);
    for (int64_t i = 0; i < tensor->elements; i++) weights[i] = (double)tensor->floats[i];
    return (struct setting_list){(size_t)tensor->elements, {.reals = weights}};
}

/* Rows of classes, those with the label that is to be ignored left out. Logarithms of probabilities are not an output
 * of the layer. */
static const char *express_loss(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    const struct onnx_tensor *x = onnx_input(test, 0), *label = onnx_input(test, 1);
    REFUSE_IF(strcmp(onnx_text(test, "reduction", "mean"), "mean") != 0, "a loss that is not a mean");
    const int64_t classes = product(x, 1, 2);
    cr_assert(label->elements * classes == x->elements, "%s: not a label for each row", test->folder);
    const float *rows = channels_last(x, region);
    float *kept;
    int32_t *labels;
    NEW(region, kept, (size_t)x->elements);
    NEW(region, labels, (size_t)label->elements);
    for (int64_t n = 0; n < label->elements; n++) {
        if (onnx_attribute(test, "ignore_index") && label->integers[n] == onnx_integer(test, "ignore_index", 0))
            continue;
        memcpy(kept + l->c.batch * classes, rows + n * classes, (size_t)classes * sizeof *kept);
        labels[l->c.batch++] = (int32_t)label->integers[n];
    }
    l->c.x = (struct shape){1, {classes}};
    l->x[0] = kept;
    l->labels = labels;
    if (onnx_input(test, 2)) l->c.settings.class_weights = weights_of(onnx_input(test, 2), region);
    l->y = onnx_output(test, 0)->floats;
    return NULL;
}

/* Rows of a table of words, those of positions and segments being 0. */
static const char *express_gather(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    const struct onnx_tensor *table = onnx_input(test, 0), *id = onnx_input(test, 1);
    REFUSE_IF(axis_of(test, 0) != 0 || rank_of(id) > 2, "not rows of a table");
    for (int64_t i = 0; i < id->elements; i++) {
        REFUSE_IF(id->integers[i] < 0, "rows counted from the end");
        cr_assert(id->integers[i] < table->dims.item[0], "%s: row %lld", test->folder, (long long)id->integers[i]);
    }
    const int64_t batch = rank_of(id) == 2 ? id->dims.item[0] : 1, tokens = id->elements / batch;
    const int64_t width = product(table, 1, rank_of(table));
    float *x, *zeros;
    NEW(region, x, (size_t)(batch * 3 * tokens));
    NEW(region, zeros, (size_t)(tokens * width));
    for (int64_t n = 0; n < batch; n++)
        for (int64_t t = 0; t < tokens; t++) {
            x[(n * 3 + 0) * tokens + t] = (float)id->integers[n * tokens + t];
            x[(n * 3 + 2) * tokens + t] = 1; /* the mask */
        }
    l->c.x = (struct shape){2, {3, tokens}};
    l->c.batch = batch;
    l->c.first = true;
    l->c.settings =
        (struct settings){.units = width, .vocabulary = table->dims.item[0], .positions = tokens, .segments = 1};
    l->x[0] = x;
    l->parameter[0] = table->floats;
    l->parameter[1] = l->parameter[2] = zeros;
    l->y = onnx_output(test, 0)->floats;
    return NULL;
}

static const char *express_element(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    return express_elements(test, 0, region, l);
}

static const char *express_leaky(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    l->c.settings.slope = onnx_real(test, "alpha", 0.01);
    return express_elements(test, 0, region, l);
}

static const char *express_add(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    REFUSE_IF(test->inputs.count != 2, "other than two inputs");
    REFUSE_IF(!same_dims(onnx_input(test, 0), onnx_input(test, 1)), "two shapes");
    const char *reason = express_elements(test, 0, region, l);
    return reason ? reason : express_elements(test, 1, region, l);
}

/* The second input's shape is the first's, or the last dimension of all samples: a gate that each of them has. */
static const char *express_multiply(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    const struct onnx_tensor *x = onnx_input(test, 0), *gate = onnx_input(test, 1);
    if (same_dims(x, gate)) return express_add(test, region, l);
    REFUSE_IF(rank_of(gate) != 1 || rank_of(x) != 3 || gate->elements != x->dims.item[2], "two shapes");
    float *gates;
    NEW(region, gates, (size_t)(x->dims.item[0] * gate->elements));
    for (int64_t n = 0; n < x->dims.item[0]; n++)
        memcpy(gates + n * gate->elements, gate->floats, (size_t)gate->elements * sizeof *gates);
    l->c.settings.second = SECOND_VECTOR;
    const char *reason = express_elements(test, 0, region, l);
    l->x[1] = gates;
    return reason;
}

/* Channels of images; along any other axis, the rest of the dimensions is a row. */
static const char *express_concat(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    REFUSE_IF(test->inputs.count != 2, "other than two inputs");
    const struct onnx_tensor *x = onnx_input(test, 0), *other = onnx_input(test, 1), *y = onnx_output(test, 0);
    const int axis = axis_of(test, 0), rank = rank_of(x);
    const bool images = rank > 2 && axis == 1;
    const int end = images ? axis + 1 : rank;
    l->c.batch = product(x, 0, axis);
    l->c.x = images ? (struct shape)IMAGE(product(x, 2, rank), 1, x->dims.item[1])
                    : (struct shape){1, {product(x, axis, end)}};
    l->c.settings.other = product(other, axis, end);
    l->x[0] = images ? channels_last(x, region) : x->floats;
    numbers(test, other, l->c.batch * shape_elements(&l->c.x) / shape_width(&l->c.x) * l->c.settings.other);
    l->x[1] = images ? channels_last(other, region) : other->floats;
    l->y = images ? channels_last(y, region) : y->floats;
    return NULL;
}

/* Only what is not random: an evaluation, or a rate of 0. Its mask is not an output of the layer. */
static const char *express_dropout(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    const struct onnx_tensor *rate = onnx_input(test, 1), *training = onnx_input(test, 2);
    l->c.settings.rate = rate ? (double)rate->floats[0] : onnx_real(test, "ratio", 0.5);
    l->evaluate = training == NULL || training->integers[0] == 0;
    REFUSE_IF(!l->evaluate && l->c.settings.rate > 0, "ONNX's random numbers");
    return express_elements(test, 0, region, l);
}

/* Dimensions from the axis on are a sample: elements keep their order, so it need not be an image. */
static const char *express_flatten(const struct onnx_test *test, struct region *region, struct onnx_layer *l)
{
    (void)region;
    const struct onnx_tensor *x = onnx_input(test, 0);
    const int axis = axis_of(test, 1), rank = rank_of(x) - axis;
    REFUSE_IF(rank < 1 || rank > 3, "samples not of one to three dimensions");
    l->c.batch = product(x, 0, axis);
    l->c.x.rank = rank;
    memcpy(l->c.x.dim, x->dims.item + axis, (size_t)rank * sizeof *x->dims.item);
    l->x[0] = x->floats;
    l->y = onnx_output(test, 0)->floats;
    return NULL;
}

/* integers: inputs, as bits, that are such; all others and the first output are float32. attributes: all that may be
 * there, with a space around each. */
static const struct row {
    const char *op_type, *layer;
    const char *(*express)(const struct onnx_test *test, struct region *region, struct onnx_layer *layer);
    unsigned integers;
    const char *attributes;
} rows[] = {
    {"Add", "add", express_add, 0, " axis broadcast "},
    {"AveragePool", "avg_pool", express_pool, 0, " auto_pad ceil_mode count_include_pad kernel_shape pads strides "},
    {"BatchNormalization", "batch_norm", express_batch_norm, 0, " epsilon is_test momentum spatial training_mode "},
    {"Concat", "concat", express_concat, 0, " axis "},
    {"Conv", "conv", express_conv, 0, " auto_pad dilations group kernel_shape pads strides "},
    {"Dropout", "dropout", express_dropout, 1u << 2, " ratio seed "},
    {"Flatten", "flatten", express_flatten, 0, " axis "},
    {"Gather", "embedding", express_gather, 1u << 1, " axis "},
    {"Gemm", "linear", express_gemm, 0, " alpha beta broadcast transA transB "},
    {"GlobalAveragePool", "global_avg_pool", express_global_pool, 0, " "},
    {"HardSwish", "hardswish", express_element, 0, " "},
    {"InstanceNormalization", "group_norm", express_instance_norm, 0, " epsilon "},
    {"LayerNormalization", "layernorm", express_layernorm, 0, " axis epsilon "},
    {"LeakyRelu", "leaky_relu", express_leaky, 0, " alpha "},
    {"MatMul", "linear", express_gemm, 0, " "},
    {"MaxPool", "max_pool", express_pool, 0,
     " auto_pad ceil_mode dilations kernel_shape pads storage_order strides "}, /* storage_order: of the places */
    {"Mul", "multiply", express_multiply, 0, " axis broadcast "},
    {"Relu", "relu", express_element, 0, " "},
    {"Sigmoid", "sigmoid", express_element, 0, " "},
    {"SoftmaxCrossEntropyLoss", "cross_entropy", express_loss, 1u << 1, " ignore_index reduction "},
    {"Sum", "add", express_add, 0, " "},
    {"Tanh", "tanh", express_element, 0, " "},
};

static const struct row *row_find(const char *op_type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op_type, op_type) == 0) return &rows[i];
    return NULL;
}

bool onnx_layer_known(const char *op_type) { return row_find(op_type) != NULL; }

static bool numbers_fit(const struct row *row, const struct onnx_test *test)
{
    for (int i = 0; i < test->inputs.count; i++) {
        const struct onnx_tensor *x = onnx_input(test, i);
        if (x && (row->integers >> i & 1 ? x->integers == NULL : x->floats == NULL)) return false;
    }
    return onnx_output(test, 0)->floats != NULL;
}

const char *onnx_layer_express(const struct onnx_test *test, struct region *region, struct onnx_layer *layer)
{
    const struct row *row = row_find(test->op_type);
    *layer = (struct onnx_layer){.c.layer = row->layer};
    for (int i = 0; i < test->attributes; i++)
        REFUSE_IF(!strstr(row->attributes, region_text(region, " %s ", test->attribute[i].name)),
                  "an attribute that is not known here");
    REFUSE_IF(!numbers_fit(row, test), "numbers of another type");
    return row->express(test, region, layer);
}
