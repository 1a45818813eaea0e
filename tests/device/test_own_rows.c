/* The cuda backend's own kernels, layer by layer, against the reference: in both layouts, in place and not, saving and
 * not, with all sources of randomness. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "arrays.h"
#include "backend/network.h"
#include "kernels/cuda/cuda.h"
#include "numerics/token_batch.h"
#include "tests/support/layer_settings.h"

enum { BATCH = 3, PLACES = 14 };

static const struct row {
    const char *layer;
    const struct kernel *kernel;
    double tolerance; /* of the largest number in a result; 0: equal bits */
    struct shape x[PLACES];
    struct settings settings;
} rows[] = {
    {"relu", &cuda_relu, 0, {{3, {5, 4, 3}}, {3, {8, 8, 16}}, {1, {7}}, {2, {9, 33}}}, {0}},
    {"relu6", &cuda_elementwise, 0, {{3, {5, 4, 3}}, {1, {7}}, {2, {9, 33}}}, {0}},
    {"gelu", &cuda_elementwise, 1e-6, {{3, {5, 4, 3}}, {2, {9, 33}}, {2, {4, 64}}}, {0}},
    {"silu", &cuda_elementwise, 1e-6, {{3, {5, 4, 3}}, {2, {9, 33}}}, {0}},
    {"hardswish", &cuda_elementwise, 1e-6, {{3, {5, 4, 3}}, {2, {9, 33}}}, {0}},
    {"sigmoid", &cuda_elementwise, 1e-6, {{3, {5, 4, 3}}, {2, {9, 33}}}, {0}},
    {"tanh", &cuda_elementwise, 1e-6, {{3, {5, 4, 3}}, {2, {9, 33}}}, {0}},
    {"leaky_relu", &cuda_elementwise, 0, {{3, {5, 4, 3}}, {2, {9, 33}}}, {.slope = 0.2}},
    {"scale", &cuda_elementwise, 0, {{3, {5, 4, 3}}, {2, {9, 33}}}, {.by = -0.3}},
    {"add", &cuda_add, 0, {{3, {5, 4, 3}}, {2, {9, 33}}, {2, {4, 64}}}, {0}},
    {"concat", &cuda_concat, 0, {{3, {5, 4, 3}}, {2, {9, 33}}, {1, {7}}, {3, {1, 1, 9}}}, {.other = 6}},
    {"concat", &cuda_concat, 0, {{3, {5, 4, 3}}, {2, {9, 33}}}, {0}},
    {"multiply", &cuda_multiply, 0, {{3, {5, 4, 3}}, {2, {9, 33}}, {1, {7}}}, {0}},
    {"multiply", &cuda_multiply, 1e-6, {{3, {5, 4, 3}}, {2, {9, 33}}, {3, {1, 1, 9}}}, {.second = SECOND_VECTOR}},
    {"multiply", &cuda_multiply, 1e-6, {{3, {5, 5, 3}}}, {.second = SECOND_PIXEL}},
    {"flatten", &cuda_flatten, 0, {{3, {5, 4, 3}}, {3, {7, 6, 40}}, {3, {1, 1, 9}}, {3, {6, 6, 1}}, {2, {3, 5}}}, {0}},
    {"tokens", &cuda_flatten, 0, {{3, {5, 4, 3}}, {3, {7, 6, 40}}, {3, {1, 1, 9}}, {3, {6, 6, 1}}}, {0}},
    {"pixels", &cuda_flatten, 0, {{2, {9, 33}}, {2, {4, 64}}, {2, {1, 5}}, {2, {36, 1}}}, {0}},
    {"class_token", &cuda_class_token, 1e-6, {{2, {9, 33}}, {2, {4, 64}}, {2, {1, 5}}}, {0}},
    {"positions", &cuda_positions, 1e-6, {{2, {9, 33}}, {2, {4, 64}}, {2, {1, 5}}}, {0}},
    {"dropout",
     &cuda_dropout,
     0,
     {{3, {5, 4, 3}}, {3, {5, 5, 8}}, {2, {9, 33}}, {1, {64}}, {3, {1, 1, 5}}},
     {.rate = 0.3}},
    {"dropout", &cuda_dropout, 0, {{3, {5, 4, 3}}, {1, {64}}}, {.rate = 0}},
    {"select", &cuda_select, 0, {{2, {9, 33}}, {2, {4, 64}}}, {.token = 3}},
    {"embedding",
     &cuda_embedding,
     1e-5,
     {{2, {3, 90}}, {2, {3, 5}}},
     {.units = 20, .vocabulary = 7, .positions = 95, .segments = 2}},
    {"embedding",
     &cuda_embedding,
     1e-5,
     {{2, {3, 200}}},
     {.units = 150, .vocabulary = 3, .positions = 200, .segments = 1}},
    {"embedding",
     &cuda_embedding,
     1e-5,
     {{2, {3, 64}}},
     {.units = 7, .vocabulary = 1000, .positions = 64, .segments = 3}},
    {"embedding",
     &cuda_embedding,
     1e-5,
     {{2, {3, 11}}}, /* a number that goes one token over its first run */
     {.units = 4, .vocabulary = 1, .positions = 11, .segments = 1}},
    {"layernorm",
     &cuda_layernorm,
     1e-5,
     {{1, {7}},
      {2, {90, 33}},
      {2, {30, 128}},
      {2, {4, 256}},
      {2, {5, 500}},
      {2, {20, 768}},
      {2, {3, 1000}},
      {2, {3, 1030}},
      {1, {5000}},
      {2, {3, 129}}, /* just above what so many quads hold */
      {2, {3, 257}},
      {2, {3, 513}},
      {2, {3, 769}},
      {1, {4097}}},
     {.epsilon = 1e-5}},
    {"batch_norm",
     &cuda_batch_norm,
     1e-5,
     {{3, {5, 4, 3}}, {3, {8, 8, 16}}, {3, {1, 2, 70}}, {1, {9}}},
     {.epsilon = 1e-5, .activation = ACTIVATION_RELU, .momentum = 0.1, .affine = true}},
    {"batch_norm",
     &cuda_batch_norm,
     1e-5,
     {{3, {17, 16, 2}}, {1, {40}}},
     {.epsilon = 0.1, .momentum = 0.3, .variance = 1}},
    {"batch_norm_add",
     &cuda_batch_norm,
     1e-5,
     {{3, {5, 4, 3}}, {3, {8, 8, 16}}, {3, {1, 2, 70}}, {1, {9}}},
     {.epsilon = 1e-5, .activation = ACTIVATION_RELU, .momentum = 0.1, .affine = true}},
    {"batch_norm_add", &cuda_batch_norm, 1e-5, {{3, {17, 16, 2}}, {1, {40}}}, {.epsilon = 0.1, .momentum = 0.3}},
    {"max_pool", &cuda_max_pool, 0, {{3, {8, 6, 5}}, {3, {7, 9, 4}}, {3, {7, 8, 4}}, {3, {8, 7, 4}}}, {.kernel = 2}},
    {"max_pool", &cuda_max_pool, 0, {{3, {9, 6, 5}}, {3, {8, 8, 2}}}, {.kernel = 3}},
    {"max_pool", &cuda_max_pool, 1e-6, {{3, {9, 7, 5}}, {3, {8, 8, 2}}}, {.kernel = 3, .stride = 2, .padding = 1}},
    {"max_pool", &cuda_max_pool, 1e-6, {{3, {9, 7, 5}}}, {.kernel = 4, .stride = 1, .padding = 3}},
    {"max_pool", &cuda_max_pool, 0, {{3, {9, 7, 5}}}, {.kernel = 1}},
    {"max_pool", &cuda_max_pool, 0, {{3, {9, 7, 5}}}, {.kernel = 1, .stride = 2}},
    {"max_pool", &cuda_max_pool, 1e-6, {{3, {20, 18, 2}}}, {.kernel = 17, .stride = 1}},
    {"max_pool", &cuda_max_pool, 0, {{3, {5, 5, 2}}}, {.kernel = 2, .stride = 3}},
    {"max_pool", &cuda_max_pool, 0, {{3, {8, 6, 5}}, {3, {7, 9, 4}}}, {.kernel = 2, .activation = ACTIVATION_RELU}},
    {"max_pool", &cuda_max_pool, 0, {{3, {9, 7, 5}}}, {.kernel = 1, .activation = ACTIVATION_RELU}},
    {"avg_pool", &cuda_avg_pool, 1e-6, {{3, {8, 6, 5}}, {3, {7, 9, 4}}, {3, {7, 8, 4}}, {3, {8, 7, 4}}}, {.kernel = 2}},
    {"avg_pool", &cuda_avg_pool, 1e-6, {{3, {9, 7, 5}}, {3, {8, 8, 2}}}, {.kernel = 3, .stride = 2, .padding = 1}},
    {"avg_pool", &cuda_avg_pool, 1e-6, {{3, {9, 7, 5}}}, {.kernel = 4, .stride = 1, .padding = 3}},
    {"avg_pool", &cuda_avg_pool, 0, {{3, {9, 7, 5}}}, {.kernel = 1}},
    {"avg_pool",
     &cuda_avg_pool,
     1e-6,
     {{3, {9, 7, 5}}, {3, {8, 8, 2}}},
     {.kernel = 3, .stride = 2, .padding = 2, .count_padding = true}},
    {"max_pool", &cuda_max_pool, 1e-6, {{3, {8, 7, 4}}}, {.kernel = 3, .stride = 2, .ceil_mode = true}},
    {"avg_pool",
     &cuda_avg_pool,
     1e-6,
     {{3, {9, 7, 5}}, {3, {8, 8, 2}}},
     {.kernel = 3, .padding = 1, .count_padding = true, .ceil_mode = true}},
    {"global_avg_pool",
     &cuda_global_avg_pool,
     1e-6,
     {{3, {9, 7, 5}}, {3, {1, 1, 3}}, {3, {8, 8, 40}}, {2, {9, 33}}},
     {0}},
    {"upsample", &cuda_upsample, 1e-6, {{3, {5, 4, 3}}, {3, {8, 6, 16}}}, {.factor = 2}},
    {"upsample", &cuda_upsample, 1e-6, {{3, {2, 3, 1}}, {3, {1, 5, 7}}}, {.factor = 3}},
    {"cross_entropy", &cuda_cross_entropy, 1e-6, {{1, {2}}, {1, {10}}, {2, {7, 33}}, {3, {3, 4, 5}}}, {0}},
    {"sum", &cuda_sum, 1e-6, {{1, {7}}, {3, {9, 7, 5}}, {2, {100, 130}}}, {0}},
};

/* A layer on both sides. */
struct pair {
    const struct row *row;
    struct backend *backend;
    struct graph *graph;
    const struct node *node;
    struct footprint footprint[2]; /* reference, cuda */
    void *state[2];
    int inputs;
    struct kernel_args host, there; /* the reference's, and the device's */
    size_t x_bytes[NODE_INPUTS_MAX], y_bytes;
    bool channels_first;
    double seen; /* sum of sizes of what was compared: a test of zeros proves nothing */
};

/* Moves a batch of images between logical order and channels first; other values as they are. */
static float *reordered(const struct pair *p, int value, const float *from, bool back)
{
    const struct value *v = &p->graph->value[value];
    const int64_t channels = v->shape.rank == 3 ? v->shape.dim[2] : 1;
    const int64_t elements = shape_elements(&v->shape), pixels = elements / channels;
    float *to = array_here(v->bytes);
    for (int64_t i = 0; i < (int64_t)(v->bytes / sizeof *to); i++) {
        const int64_t n = i / elements, pixel = i % elements / channels, c = i % channels;
        const int64_t there = v->layout == ORDER_CHANNELS_FIRST ? n * elements + c * pixels + pixel : i;
        if (back)
            to[i] = from[there];
        else
            to[there] = from[i];
    }
    return to;
}

static size_t gradient_bytes(const struct pair *p, int i)
{
    return (size_t)p->graph->parameter[i].elements * sizeof(float);
}

static size_t state_bytes(const struct pair *p, int i) { return parameter_bytes(&p->graph->state[i]); }

static float number(uint32_t which, int64_t i)
{
    return 2 * rng_uniform(rng_words(5, RNG_DATA, (uint32_t)i, which, 0, 0).word[0]) - 1;
}

static float *numbers(uint32_t which, size_t bytes)
{
    float *x = array_here(bytes);
    for (size_t i = 0; i < bytes / sizeof *x; i++) x[i] = number(which, (int64_t)i);
    return x;
}

/* Text with ids outside every table, and some frequent ids. */
static void make_text(float *x, const struct settings *s, int64_t tokens)
{
    for (int64_t n = 0; n < BATCH; n++)
        for (int64_t t = 0; t < tokens; t++) {
            float *at = x + n * TOKEN_ROWS * tokens + t;
            const float u = rng_uniform(rng_words(6, RNG_DATA, (uint32_t)t, (uint32_t)n, 0, 0).word[0]);
            at[TOKEN_IDS * tokens] = t % 3 ? floorf(u * (float)s->vocabulary) : t % 9 ? 1 : u < 0.5f ? NAN : -4;
            at[TOKEN_SEGMENTS * tokens] = floorf(u * (float)s->segments);
            at[TOKEN_MASK * tokens] = 1;
        }
}

static void fill_arguments(struct pair *p)
{
    const struct value *value = p->graph->value;
    const bool ties = p->row->kernel == &cuda_max_pool || p->row->kernel == &cuda_cross_entropy;
    for (int i = 0; i < p->inputs; i++) {
        float *x = numbers((uint32_t)i, p->x_bytes[i]);
        for (size_t k = 0; ties && k < p->x_bytes[0] / sizeof *x; k++) x[k] = roundf(4 * x[k]) / 4;
        for (size_t k = 0; k < p->x_bytes[i] / sizeof *x; k++) x[k] *= range_of(layer_find(p->row->layer));
        for (int64_t k = 1; p->row->kernel == &cuda_max_pool && k <= value[0].shape.dim[2]; k++)
            x[(int64_t)(p->x_bytes[0] / sizeof *x) - k] = 2; /* the last place of the last window */
        if (!strcmp(p->row->layer, "embedding")) make_text(x, &p->row->settings, value[0].shape.dim[1]);
        p->host.x[i] = x;
        p->host.dx[i] = numbers(9, p->x_bytes[i]);
        p->there.x[i] = array_upload(reordered(p, p->node->inputs[i], x, false), p->x_bytes[i]);
        p->there.dx[i] = array_there(p->x_bytes[i]);
    }
    for (int i = 0; i < p->node->parameters; i++) {
        const size_t bytes = gradient_bytes(p, i);
        p->host.parameters[i] = numbers(20 + (uint32_t)i, bytes);
        p->there.parameters[i] = array_upload(p->host.parameters[i], bytes);
        p->host.gradients[i] = numbers(30 + (uint32_t)i, bytes);
        p->there.gradients[i] = array_upload(p->host.gradients[i], bytes);
    }
    for (int i = 0; i < p->node->states; i++) {
        float *state = numbers(40 + (uint32_t)i, state_bytes(p, i));
        for (size_t k = 0; k < state_bytes(p, i) / sizeof *state; k++) state[k] += 1.5f;
        p->host.states[i] = state;
        p->there.states[i] = array_upload(state, state_bytes(p, i));
    }
    p->host.y = numbers(10, p->y_bytes), p->there.y = array_there(p->y_bytes);
    p->host.dy = numbers(11, p->y_bytes);
    p->there.dy = array_upload(reordered(p, p->node->output, p->host.dy, false), p->y_bytes);
    const int64_t count = BATCH * graph_labels(p->graph);
    const size_t bytes = (size_t)count * sizeof(int32_t);
    int32_t *labels = array_here(bytes);
    double *divisor = array_here(sizeof *divisor);
    for (int64_t n = 0; n < count; n++) labels[n] = (int32_t)(7 * n % shape_width(&value[0].shape));
    for (int64_t n = 4; n < count; n += 5) labels[n] = LABEL_NONE;
    for (int64_t n = 0; n < count; n++) *divisor += labels[n] != LABEL_NONE;
    p->host.labels = labels, p->there.labels = array_upload(labels, bytes);
    p->host.divisor = divisor, p->there.divisor = array_upload(divisor, sizeof *divisor);
}

static size_t scratch_of(const struct footprint *f)
{
    size_t most = f->forward_scratch;
    for (int i = 0; i < 2; i++) most = f->backward_scratch[i] > most ? f->backward_scratch[i] : most;
    return most;
}

static void open_pair(struct pair *p, const struct row *row, const struct shape *x, bool channels_first, bool bits)
{
    int output, inputs[NODE_INPUTS_MAX] = {0};
    const struct layer *layer = layer_find(row->layer);
    *p = (struct pair){.row = row, .inputs = layer->inputs, .channels_first = channels_first};
    cr_assert(backend_open("cuda", &(struct backend_options){0}, &p->backend) == ST_OK, "%s", status_message());
    cr_assert(graph_create(x, BATCH, &p->graph) == ST_OK);
    inputs[1] = second_input(p->graph, &row->settings, 0);
    cr_assert(graph_add(p->graph, layer, settings_of(layer, &row->settings), NULL, inputs, &output) == ST_OK, "%s",
              status_message());
    p->node = &p->graph->node[p->graph->nodes - 1];
    for (int v = 0; v < p->graph->values; v++) {
        struct value *value = &p->graph->value[v];
        const int64_t samples = layer->loss && v == output ? 1 : BATCH;
        value->bytes = (size_t)(samples * shape_elements(&value->shape)) * sizeof(float);
        value->layout = channels_first && value->shape.rank == 3 ? ORDER_CHANNELS_FIRST : ORDER_LOGICAL;
    }
    for (int i = 0; i < p->inputs; i++) p->x_bytes[i] = p->graph->value[inputs[i]].bytes;
    p->y_bytes = p->graph->value[output].bytes;
    const struct kernel *kernel[] = {&layer->reference, row->kernel};
    for (int k = 0; k < 2; k++) {
        cr_assert(kernel[k]->prepare(p->backend, p->graph, p->node, &p->footprint[k], &p->state[k]) == ST_OK, "%s",
                  status_message());
        footprint_keep_sign_bits(&p->footprint[k], bits);
    }
    fill_arguments(p);
    p->host.saved = array_here(p->footprint[0].saved), p->there.saved = array_there(p->footprint[1].saved);
    p->host.once = array_here(p->footprint[0].once), p->there.once = array_there(p->footprint[1].once);
    p->host.scratch = array_here(scratch_of(&p->footprint[0]));
    p->there.scratch = array_there(scratch_of(&p->footprint[1]));
}

static void close_pair(struct pair *p)
{
    layer_find(p->row->layer)->reference.release(p->state[0]);
    p->row->kernel->release(p->state[1]);
    graph_destroy(p->graph);
    arrays_free();
    backend_close(p->backend);
}

/* Operands that the footprint does not list as read are NULL. */
static void withhold(const struct footprint *footprint, struct kernel_args *args)
{
    const unsigned reads = footprint->reads[0] | footprint->reads[1];
    for (int k = inputs_read(reads, NODE_INPUTS_MAX); k < NODE_INPUTS_MAX; k++) args->x[k] = NULL;
    if (!(reads & READS_Y)) args->y = NULL;
    if (!(reads & READS_SAVED)) args->saved = NULL;
}

/* The device's values against the expected ones. */
static void compare(struct pair *p, const char *what, int value, const void *there, const float *right, size_t bytes)
{
    float *raw = array_download(there, bytes), *got = value >= 0 ? reordered(p, value, raw, true) : raw;
    double most = 0, sum = 0;
    for (size_t i = 0; i < bytes / sizeof *got; i++) {
        most = fmax(most, fabs((double)right[i]));
        sum += fabs((double)right[i]);
    }
    for (size_t i = 0; i < bytes / sizeof *got; i++)
        cr_assert(fabs((double)got[i] - (double)right[i]) <= p->row->tolerance * most,
                  "%s%s, element %d of %d of %s: %.9g, not %.9g", p->row->layer,
                  p->channels_first ? ", channels first" : "", (int)i, (int)(bytes / sizeof *got), what, (double)got[i],
                  (double)right[i]);
    p->seen += sum;
}

static void same_bits(const struct pair *p, const char *what, const void *a, const void *b, size_t bytes)
{
    void *x = array_download(a, bytes), *y = array_download(b, bytes);
    cr_assert(!memcmp(x, y, bytes), "%s: %s", p->row->layer, what);
}

static void copy_there(const struct pair *p, void *to, const void *from, size_t bytes)
{
    ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda_of(p->backend)->stream));
}

static void forward(struct pair *p)
{
    const struct kernel *kernel = p->row->kernel;
    p->host.save = p->footprint[0].saved > 0, p->there.save = p->footprint[1].saved > 0;
    p->host.first = p->host.commit = p->there.first = p->there.commit = !p->host.evaluate;
    cr_assert(p->node->layer->reference.forward(p->state[0], &p->host) == ST_OK, "%s", status_message());
    cr_assert(kernel->forward(p->state[1], &p->there) == ST_OK, "%s", status_message());
    compare(p, "y", p->node->output, p->there.y, p->host.y, p->y_bytes);
    if (!p->host.evaluate) compare(p, "once", -1, p->there.once, p->host.once, p->footprint[1].once);
    for (int i = 0; i < p->node->states; i++)
        compare(p, "running state", -1, p->there.states[i], p->host.states[i], state_bytes(p, i));
    struct kernel_args again = p->there;
    again.first = again.commit = false;
    again.y = array_there(p->y_bytes);
    again.saved = NULL, again.save = false;
    cr_assert(kernel->forward(p->state[1], &again) == ST_OK);
    same_bits(p, "y, not saving", again.y, p->there.y, p->y_bytes);
    if (p->footprint[1].y_over_x && p->x_bytes[0] == p->y_bytes) {
        copy_there(p, again.y, p->there.x[0], p->x_bytes[0]);
        again.x[0] = again.y;
        cr_assert(kernel->forward(p->state[1], &again) == ST_OK);
        same_bits(p, "y over x", again.y, p->there.y, p->y_bytes);
    }
}

/* The same again with dx in place of dy and other memory for parameters' gradients. */
static void backward_over(struct pair *p, const struct kernel_args *args)
{
    struct kernel_args over = *args;
    over.dy = over.dx[0] = array_there(p->y_bytes);
    ok(cudaMemcpyAsync(over.dy, args->dy, p->y_bytes, cudaMemcpyDeviceToDevice, cuda_of(p->backend)->stream));
    for (int i = 0; i < p->node->parameters; i++) over.gradients[i] = array_there(gradient_bytes(p, i));
    cr_assert(p->row->kernel->backward(p->state[1], &over) == ST_OK);
    same_bits(p, "dx over dy", over.dx[0], args->dx[0], p->x_bytes[0]);
    for (int i = 0; i < p->node->parameters; i++)
        same_bits(p, "a gradient", over.gradients[i], args->gradients[i], gradient_bytes(p, i));
}

static void backward(struct pair *p)
{
    const struct kernel *kernel = p->row->kernel, *reference = &p->node->layer->reference;
    const bool gradient = strcmp(p->row->layer, "embedding") != 0;
    if (!kernel->backward || p->footprint[1].passes_gradient || (p->footprint[1].once && p->host.evaluate)) return;
    p->host.parts = p->there.parts = (gradient ? PART_INPUT : 0) | (p->node->parameters ? PART_PARAMS : 0);
    struct kernel_args host = p->host, there = p->there;
    withhold(&p->footprint[0], &host), withhold(&p->footprint[1], &there);
    if (!gradient) host.dx[0] = there.dx[0] = NULL;
    if (reference->backward && !p->footprint[0].passes_gradient)
        cr_assert(reference->backward(p->state[0], &host) == ST_OK);
    else
        memcpy(p->host.dx[0], p->host.dy, p->x_bytes[0]);
    cr_assert(kernel->backward(p->state[1], &there) == ST_OK);
    for (int i = 0; gradient && i < p->inputs; i++)
        compare(p, "dx", p->node->inputs[i], there.dx[i], host.dx[i], p->x_bytes[i]);
    if (p->footprint[1].dx_over_dy) backward_over(p, &there);
    for (int i = 0; i < p->node->parameters; i++)
        compare(p, "a gradient", -1, p->there.gradients[i], p->host.gradients[i], gradient_bytes(p, i));
}

enum { EVALUATING = RNG_UNSAFE + 1 };

/* mode: enum rng_mode, or EVALUATING. */
static void set_draw(struct pair *p, int mode, bool elsewhere)
{
    const int64_t elements = shape_elements(&p->graph->value[0].shape);
    struct draw *draw = &p->host.draw;
    p->host.evaluate = p->there.evaluate = mode == EVALUATING;
    *draw = (struct draw){.mode = mode == EVALUATING ? RNG_COUNTER : (enum rng_mode)mode,
                          .seed = 7,
                          .node = 3,
                          .step = 5,
                          .position = 1234567890123};
    if (mode == RNG_MASK) {
        draw->mask = array_here(rng_mask_bytes(elements, BATCH));
        rng_mask_fill(draw, p->row->settings.rate, elements, BATCH);
    }
    p->there.draw = *draw;
    if (mode == RNG_MASK) p->there.draw.mask = array_upload(draw->mask, rng_mask_bytes(elements, BATCH));
    if (!elsewhere) return;
    p->there.draw.step_there = array_upload(&draw->step, sizeof draw->step);
    p->there.draw.position_there = array_upload(&draw->position, sizeof draw->position);
    p->there.draw.step = 99, p->there.draw.position = 99;
}

static void check(const struct row *row, const struct shape *x, bool channels_first, bool bits)
{
    const bool draws = row->settings.rate > 0;
    for (int mode = RNG_COUNTER; mode <= EVALUATING; mode += draws ? 1 : EVALUATING)
        for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
            struct pair p;
            open_pair(&p, row, x, channels_first, bits);
            set_draw(&p, mode, elsewhere);
            forward(&p);
            backward(&p);
            cr_assert(p.seen > 0 || x->dim[0] == 1, "%s: nothing but zeros", row->layer);
            close_pair(&p);
        }
}

static void check_layer(const char *layer)
{
    int seen = 0;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int s = 0; !strcmp(rows[r].layer, layer) && s < PLACES && rows[r].x[s].rank; s++, seen++)
            for (int first = 0; first < (rows[r].x[s].rank == 3 || !strcmp(layer, "pixels") ? 2 : 1); first++)
                for (int bits = 0; bits < (rows[r].kernel == &cuda_relu ? 2 : 1); bits++)
                    check(&rows[r], &rows[r].x[s], first, bits);
    cr_assert(seen > 0);
}

/* Networks with these are refused, and the message names layer and backend. */
Test(own_rows, layers_without_a_kernel_are_refused)
{
    static const struct {
        const char *layer;
        struct shape x;
        struct settings settings;
    } missing[] = {{"rms_norm", {2, {4, 8}}, {.epsilon = 1e-6}},
                   {"group_norm", {3, {4, 4, 8}}, {.epsilon = 1e-5, .groups = 2}},
                   {"conv_transpose", {3, {4, 4, 8}}, {.channels = 2, .kernel = 2, .stride = 2}},
                   {"pad", {3, {4, 4, 8}}, {.top = 1}},
                   {"latents", {2, {4, 8}}, {.tokens = 2, .units = 3}},
                   {"cross_attention", {2, {4, 8}}, {.heads = 2, .kv_heads = 1}}};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        const struct layer *layer = layer_find(missing[i].layer);
        struct backend *backend;
        struct graph *graph;
        struct network *network;
        int inputs[NODE_INPUTS_MAX] = {0}, value;
        cr_assert(backend_open("cuda", &(struct backend_options){0}, &backend) == ST_OK, "%s", status_message());
        cr_assert(graph_create(&missing[i].x, BATCH, &graph) == ST_OK);
        cr_assert(graph_add(graph, layer, settings_of(layer, &missing[i].settings), NULL, inputs, &value) == ST_OK);
        cr_assert(network_prepare(graph, backend, &network) == ST_SPEC);
        cr_assert(strstr(status_message(), layer->name) && strstr(status_message(), "'cuda' has no kernel"), "%s",
                  status_message());
        graph_destroy(graph);
        backend_close(backend);
    }
}

Test(own_rows, auxiliary_losses_are_refused)
{
    const struct layer *layer = layer_find("cross_entropy");
    struct backend *backend;
    struct graph *graph;
    struct network *network;
    int value = 0, end;
    cr_assert(backend_open("cuda", &(struct backend_options){0}, &backend) == ST_OK, "%s", status_message());
    cr_assert(graph_create(&(struct shape){1, {8}}, BATCH, &graph) == ST_OK);
    cr_assert(graph_add(graph, layer_find("linear"), settings_of(layer_find("linear"), &(struct settings){.units = 3}),
                        NULL, &value, &value) == ST_OK);
    for (int i = 0; i < 2; i++)
        cr_assert(graph_add(graph, layer, settings_of(layer, NULL), NULL, &value, &end) == ST_OK);
    cr_assert(graph_finish(graph) == ST_OK, "%s", status_message());
    cr_assert(network_prepare(graph, backend, &network) == ST_SPEC);
    cr_assert(strstr(status_message(), "layer 'cross_entropy1': auxiliary losses are not computed on cuda yet"), "%s",
              status_message());
    graph_destroy(graph);
    backend_close(backend);
}

/* Layers keep NaNs, and treat -0 as the reference does. */
Test(own_rows, nans_and_negative_zeros)
{
    static const char *const layers[] = {
        "relu",  "relu6",    "gelu",     "silu",     "hardswish",       "sigmoid",   "tanh",      "leaky_relu",
        "scale", "upsample", "max_pool", "avg_pool", "global_avg_pool", "layernorm", "batch_norm"};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        bool one = false;
        for (size_t l = 0; l < sizeof layers / sizeof *layers; l++) one |= !strcmp(rows[r].layer, layers[l]);
        if (!one) continue;
        struct pair p;
        open_pair(&p, &rows[r], &rows[r].x[0], false, false);
        float *x = (float *)(uintptr_t)p.host.x[0];
        x[1] = -0.0f, x[2] = NAN;
        p.there.x[0] = array_upload(x, p.x_bytes[0]);
        p.host.first = p.there.first = true;
        cr_assert(p.node->layer->reference.forward(p.state[0], &p.host) == ST_OK);
        cr_assert(rows[r].kernel->forward(p.state[1], &p.there) == ST_OK);
        const float *right = p.host.y, *y = array_download(p.there.y, p.y_bytes);
        int wrong = 0;
        for (size_t i = 0; i < p.y_bytes / sizeof *y; i++) {
            cr_assert(isnan(y[i]) == isnan(right[i]), "%s, row %zu, element %zu: %g, not %g", rows[r].layer, r, i,
                      (double)y[i], (double)right[i]);
            cr_assert(isnan(y[i]) || right[i] != 0 || rows[r].tolerance > 0 || signbit(y[i]) == signbit(right[i]),
                      "%s, row %zu, element %zu: %g", rows[r].layer, r, i, (double)y[i]);
            wrong += isnan(y[i]);
        }
        cr_assert(wrong > 0, "%s, row %zu", rows[r].layer, r);
        close_pair(&p);
    }
}

#define CHECK(layer)                                                                                                   \
    Test(own_rows, layer) { check_layer(#layer); }
CHECK(relu)
CHECK(relu6)
CHECK(gelu)
CHECK(silu)
CHECK(hardswish)
CHECK(sigmoid)
CHECK(tanh)
CHECK(leaky_relu)
CHECK(scale)
CHECK(add)
CHECK(multiply)
CHECK(concat)
CHECK(flatten)
CHECK(tokens)
CHECK(pixels)
CHECK(class_token)
CHECK(positions)
CHECK(dropout)
CHECK(select)
CHECK(embedding)
CHECK(layernorm)
CHECK(batch_norm)
CHECK(batch_norm_add)
CHECK(max_pool)
CHECK(avg_pool)
CHECK(global_avg_pool)
CHECK(upsample)
CHECK(cross_entropy)
CHECK(sum)
