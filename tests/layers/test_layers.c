/* Every row of layer_table, by what any layer must satisfy: its gradients are the derivatives of its forward, its
 * kernel reads no more than its footprint says, and neither saving bits, nor splitting, nor overlaying changes a bit;
 * but for the first, on a device too.
 */
#include "tests/support/same_bits.h"
#include "tests/support/single_layer.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct layer_case {
    const char *layer;
    struct shape input;
    struct settings settings;
    bool plain; /* as settings_of(layer, NULL) instead */
} cases[] = {
    {"conv", {3, {5, 6, 3}}, {.channels = 4, .kernel = 3, .stride = 1, .padding = 1, .activation = 1, .bias = true}},
    {"conv", {3, {5, 6, 3}}, {.channels = 2, .kernel = 3, .stride = 2}},
    {"conv", {3, {4, 5, 2}}, {.channels = 3, .kernel = 5, .stride = 3, .padding = 2, .activation = 1}},
    {"conv", {3, {4, 5, 2}}, {.channels = 3, .kernel = 1, .stride = 1, .bias = true}},
    {"conv", {3, {6, 4, 1}}, {.channels = 5, .kernel = 2, .stride = 2, .padding = 1, .activation = 1, .bias = true}},
    {"conv", {3, {5, 4, 6}}, {.channels = 4, .kernel = 3, .stride = 1, .padding = 1, .groups = 2, .bias = true}},
    {"conv", {3, {5, 6, 4}}, {.channels = 4, .kernel = 3, .stride = 2, .padding = 1, .groups = 4, .activation = 1}},
    {"conv", {3, {4, 5, 3}}, {.channels = 6, .kernel = 2, .stride = 1, .groups = 3, .activation = 1, .bias = true}},
    {"conv", {3, {7, 6, 3}}, {.channels = 2, .kernel = 3, .stride = 1, .padding = 2, .dilation = 2, .bias = true}},
    {"conv", {3, {7, 8, 2}}, {.channels = 2, .kernel = 3, .stride = 2, .padding = 3, .dilation = 3, .groups = 2}},
    {"conv_transpose", {3, {3, 4, 3}}, {.channels = 4, .kernel = 2, .stride = 2, .bias = true}},
    {"conv_transpose", {3, {4, 3, 2}}, {.channels = 3, .kernel = 3, .stride = 1, .padding = 1}},
    {"conv_transpose",
     {3, {3, 4, 2}},
     {.channels = 3, .kernel = 3, .stride = 2, .padding = 1, .output_padding = 1, .bias = true}},
    {"conv_transpose", {3, {3, 3, 2}}, {.channels = 2, .kernel = 1, .stride = 3, .output_padding = 2, .bias = true}},
    {"conv_transpose", {3, {3, 4, 2}}, {.channels = 3, .kernel = 3, .stride = 2, .padding = 1, .dilation = 2}},
    {"pad", {3, {3, 4, 2}}, {.top = 1, .bottom = 2, .left = 3}},
    {"pad", {3, {5, 4, 2}}, {.top = -1, .bottom = 2, .left = -2, .right = -1}},
    {"max_pool", {3, {6, 7, 2}}, {.kernel = 2}},
    {"max_pool", {3, {6, 7, 2}}, {.kernel = 3, .stride = 2, .padding = 1}},
    {"max_pool", {3, {5, 5, 3}}, {.kernel = 3, .stride = 1, .padding = 1}},
    {"max_pool", {3, {5, 5, 3}}, {.kernel = 1}},
    {"max_pool", {3, {6, 7, 2}}, {.kernel = 2, .activation = ACTIVATION_RELU}},
    {"max_pool", {3, {5, 5, 3}}, {.kernel = 1, .activation = ACTIVATION_RELU}},
    {"max_pool", {3, {18, 19, 2}}, {.kernel = 17, .stride = 1, .activation = ACTIVATION_RELU}},
    {"max_pool", {3, {5, 6, 3}}, {.kernel = 1, .stride = 2}},
    {"max_pool", {3, {18, 19, 2}}, {.kernel = 17, .stride = 1}},
    {"max_pool", {3, {6, 7, 2}}, {.kernel = 3, .stride = 2, .ceil_mode = true}},
    {"avg_pool", {3, {6, 7, 2}}, {.kernel = 2, .ceil_mode = true}},
    {"avg_pool", {3, {6, 7, 2}}, {.kernel = 3, .stride = 3, .padding = 1, .count_padding = true, .ceil_mode = true}},
    {"avg_pool", {3, {6, 7, 2}}, {.kernel = 2}},
    {"avg_pool", {3, {6, 7, 2}}, {.kernel = 3, .stride = 2, .padding = 1}},
    {"avg_pool", {3, {5, 5, 3}}, {.kernel = 3, .stride = 1, .padding = 1}},
    {"avg_pool", {3, {5, 5, 3}}, {.kernel = 1}},
    {"avg_pool", {3, {5, 5, 3}}, {.kernel = 3, .stride = 1, .padding = 2, .count_padding = true}},
    {"global_avg_pool", {3, {4, 5, 3}}, {0}},
    {"flatten", {3, {3, 4, 2}}, {0}},
    {"global_avg_pool", {2, {5, 3}}, {0}},
    {"tokens", {3, {3, 4, 2}}, {0}},
    {"pixels", {2, {9, 2}}, {0}},
    {"pixels", {2, {12, 2}}, {.height = 3}},
    {"class_token", {2, {4, 7}}, {0}},
    {"positions", {2, {4, 7}}, {0}},
    {"latents", {2, {4, 7}}, {.tokens = 3, .units = 5}},
    {"latents", {3, {3, 2, 2}}, {.tokens = 1, .units = 9}},
    {"linear", {1, {7}}, {.units = 5, .bias = true}},
    {"linear", {1, {7}}, {.units = 6, .activation = ACTIVATION_RELU}},
    {"linear", {1, {9}}, {.units = 5, .activation = ACTIVATION_RELU, .bias = true}},
    {"linear", {1, {9}}, {.units = 5, .activation = ACTIVATION_TANH, .bias = true}},
    {"linear", {2, {4, 7}}, {.units = 5, .bias = true}},
    {"linear", {2, {5, 9}}, {.units = 3, .activation = ACTIVATION_RELU, .bias = true}},
    {"linear", {2, {3, 9}}, {.units = 5, .activation = ACTIVATION_TANH}},
    {"embedding", {2, {3, 5}}, {.units = 6, .vocabulary = 8, .positions = 7, .segments = 2}},
    {"embedding", {2, {3, 5}}, {.units = 6, .vocabulary = 8}},
    {"embedding", {2, {3, 5}}, {.units = 6, .vocabulary = 8, .segments = 2}},
    {"embedding", {2, {3, 9}}, {.units = 67, .vocabulary = 30, .positions = 9, .segments = 3}},
    {"attention", {2, {5, 18}}, {.heads = 3}},
    {"attention", {2, {7, 15}}, {.heads = 1, .rate = 0.3}},
    {"attention", {2, {6, 24}}, {.heads = 2, .rate = 0.1, .save = SAVE_NOTHING}},
    {"attention", {2, {1, 6}}, {.heads = 2, .save = SAVE_NOTHING}},
    {"attention", {2, {6, 12}}, {.heads = 2, .rate = 0.1, .causal = true}},
    {"attention", {2, {7, 15}}, {.heads = 1, .save = SAVE_NOTHING, .causal = true}},
    {"attention", {2, {6, 12}}, {.heads = 2, .rope = true}},
    {"attention", {2, {5, 16}}, {.heads = 4, .kv_heads = 2, .rate = 0.2}},
    {"attention", {2, {6, 30}}, {.heads = 3, .kv_heads = 1, .save = SAVE_NOTHING, .causal = true, .rope = true}},
    {"attention", {2, {6, 18}}, {.heads = 3, .of_image = true}},
    {"attention", {2, {5, 12}}, {.heads = 2, .rate = 0.2, .save = SAVE_NOTHING, .of_image = true}},
    {"cross_attention", {2, {5, 6}}, {.heads = 3, .other = 12}},
    {"cross_attention", {2, {5, 6}}, {.heads = 2, .rate = 0.3, .other = 12, .second = SECOND_LONGER}},
    {"cross_attention", {2, {1, 8}}, {.heads = 2, .save = SAVE_NOTHING, .other = 16, .second = SECOND_LONGER}},
    {"cross_attention",
     {2, {4, 8}},
     {.heads = 4, .kv_heads = 2, .rate = 0.1, .save = SAVE_NOTHING, .other = 8, .second = SECOND_LONGER}},
    {"layernorm", {2, {4, 7}}, {.epsilon = 1e-12}},
    {"layernorm", {2, {3, 5}}, {.epsilon = 0.1}},
    {"layernorm", {1, {12}}, {.epsilon = 1e-5}},
    {"rms_norm", {2, {4, 7}}, {.epsilon = 1e-6}},
    {"rms_norm", {1, {12}}, {.epsilon = 0.1}},
    {"group_norm", {3, {4, 5, 6}}, {.epsilon = 1e-5, .groups = 2}},
    {"group_norm", {3, {4, 5, 3}}, {.epsilon = 0.1, .groups = 1}},
    {"group_norm", {3, {4, 5, 3}}, {.epsilon = 1e-5, .groups = 3}},
    {"group_norm", {3, {4, 5, 3}}, {.epsilon = 1e-5, .groups = GROUPS_OF_ONE}},
    {"batch_norm", {3, {4, 5, 3}}, {.epsilon = 1e-5, .momentum = 0.1, .affine = true}},
    {"batch_norm", {3, {4, 5, 3}}, {.epsilon = 1e-5, .activation = ACTIVATION_RELU, .affine = true}},
    {"batch_norm", {3, {1, 7, 2}}, {.epsilon = 0.1, .variance = 1}},
    {"batch_norm", {1, {9}}, {.epsilon = 1e-5, .momentum = 1, .affine = true}},
    {"batch_norm_add", {3, {4, 5, 3}}, {.epsilon = 1e-5, .momentum = 0.1, .affine = true}},
    {"batch_norm_add", {3, {4, 5, 3}}, {.epsilon = 1e-5, .activation = ACTIVATION_RELU, .affine = true}},
    {"batch_norm_add", {1, {9}}, {.epsilon = 0.1, .activation = ACTIVATION_RELU, .variance = 1}},
    {"batch_norm_add", {1, {9}}, {.epsilon = 1e-5}},
    {"gelu", {2, {3, 7}}, {0}},
    {"gelu", {3, {4, 5, 3}}, {0}},
    {"silu", {2, {3, 7}}, {0}},
    {"silu", {3, {4, 5, 3}}, {0}},
    {"hardswish", {3, {4, 5, 3}}, {0}},
    {"sigmoid", {3, {4, 5, 3}}, {0}},
    {"sigmoid", {1, {13}}, {0}},
    {"tanh", {2, {3, 7}}, {0}},
    {"leaky_relu", {3, {4, 5, 3}}, {.slope = 0.01}},
    {"leaky_relu", {1, {13}}, {.slope = 0}},
    {"scale", {2, {5, 3}}, {.by = -0.3}},
    {"select", {2, {4, 7}}, {0}},
    {"select", {2, {4, 7}}, {.token = 3}},
    {"relu", {3, {4, 5, 3}}, {0}},
    {"relu", {2, {4, 5}}, {0}},
    {"relu", {1, {13}}, {0}},
    {"relu6", {3, {4, 5, 3}}, {0}},
    {"relu6", {1, {13}}, {0}},
    {"upsample", {3, {2, 3, 4}}, {.factor = 2}},
    {"upsample", {3, {3, 1, 5}}, {.factor = 3}},
    {"dropout", {3, {7, 3, 5}}, {.rate = 0.5}},
    {"dropout", {1, {33}}, {.rate = 0.2}},
    {"dropout", {1, {5}}, {.rate = 0}},
    {"dropout", {2, {7, 9}}, {.rate = 0.1}},
    {"add", {3, {4, 5, 3}}, {0}},
    {"add", {2, {4, 5}}, {0}},
    {"multiply", {3, {4, 5, 3}}, {0}},
    {"multiply", {1, {7}}, {0}},
    {"multiply", {3, {4, 5, 3}}, {.second = SECOND_VECTOR}},
    {"multiply", {3, {4, 4, 3}}, {.second = SECOND_PIXEL}},
    {"multiply", {2, {4, 5}}, {.second = SECOND_VECTOR}},
    {"concat", {3, {4, 5, 3}}, {.other = 6}},
    {"concat", {3, {4, 5, 3}}, {0}},
    {"concat", {2, {4, 5}}, {.other = 2}},
    {"concat", {1, {7}}, {.other = 12}},
    {"cross_entropy", {1, {10}}, {0}},
    {"cross_entropy", {2, {5, 9}}, {0}},
    {"cross_entropy", {3, {3, 2, 7}}, {0}},
    {"cross_entropy", {2, {5, 9}}, {.label_smoothing = 0.3}},
    {"cross_entropy", {1, {4}}, {.class_weights = WEIGHTS(0.5, 2, 0, 1)}},
    {"cross_entropy", {2, {5, 4}}, {.class_weights = WEIGHTS(0.5, 2, 0, 1), .label_smoothing = 0.3}},
    {"linear_cross_entropy", {2, {5, 6}}, {.units = 4, .chunks = 4, .class_weights = WEIGHTS(0.5, 2, 0, 1)}},
    {"linear_cross_entropy", {1, {6}}, {.units = 9, .chunks = 2, .bias = true, .label_smoothing = 0.1}},
    {"linear_cross_entropy", {2, {5, 6}}, {.units = 9, .chunks = 4}},
    {"linear_cross_entropy", {2, {5, 6}}, {.units = 7, .chunks = 1, .bias = true}},
    {"bce", {1, {1}}, {0}},
    {"bce", {2, {5, 1}}, {0}},
    {"bce", {3, {3, 2, 1}}, {0}},
    {"dice", {3, {4, 3, 3}}, {.smooth = 1}},
    {"dice", {3, {5, 2, 1}}, {.smooth = 1e-5}},
    {"mse", {3, {4, 3, 2}}, {0}},
    {"mse", {1, {9}}, {0}},
    {"sum", {3, {4, 3, 2}}, {0}},
};
enum { CASES = sizeof cases / sizeof *cases };

static const int64_t batches[] = {1, 3};

static bool has_case(const struct layer *layer)
{
    for (int c = 0; c < CASES; c++)
        if (!strcmp(cases[c].layer, layer->name)) return true;
    return false;
}

/* A case for a row that has none above: its presets, small numbers where it has none, and the first shape it takes. */
static struct layer_case plain_case(const struct layer *layer)
{
    static const struct shape shapes[] = {{3, {6, 7, 4}}, {2, {5, 8}}, {1, {12}}};
    struct layer_case plain = {.layer = layer->name, .plain = true};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape inputs[NODE_INPUTS_MAX] = {shapes[i], shapes[i]};
        struct shape output = shapes[i];
        plain.input = shapes[i];
        if (!layer->infer || layer->infer(settings_of(layer, NULL), inputs, &output) == ST_OK) return plain;
    }
    cr_assert_fail("layer %s takes none of the shapes here; it needs a case", layer->name);
    return plain;
}

/* Calls check on the case with every batch that the layer takes and way of saving relus. */
static void check_case(const char *backend, const struct layer_case *c, void (*check)(struct single *single))
{
    const bool one = layer_find(c->layer)->mixes_samples && c->input.rank == 1; /* a single value a channel */
    for (int b = one; b < 2; b++)
        for (int bits = 0; bits < 2; bits++) {
            struct single single;
            single_open(&single, backend, c->layer, c->plain ? NULL : &c->settings, &c->input, batches[b], bits);
            check(&single);
            single_close(&single);
        }
}

/* A row without a case has reference arithmetic alone. */
static void for_every_case_on(const char *backend, void (*check)(struct single *single))
{
    for (int c = 0; c < CASES; c++)
        if (backend_has(backend, cases[c].layer) && !backend_refuses(backend, &cases[c].settings))
            check_case(backend, &cases[c], check);
    for (const struct layer *const *l = layer_table; *l && !strcmp(backend, "ref"); l++) {
        if (has_case(*l)) continue;
        const struct layer_case plain = plain_case(*l);
        check_case(backend, &plain, check);
    }
}

static void for_every_case(void (*check)(struct single *single))
{
    for_every_case_on("ref", check);
    if (backend_opens("cuda")) for_every_case_on("cuda", check);
}

Test(layers, every_row_is_whole)
{
    for (const struct layer *const *l = layer_table; *l; l++) {
        cr_assert(layer_find((*l)->name) == *l);
        cr_assert((*l)->reference.forward);
        for (const struct setting *f = (*l)->keys; f && f->key; f++) cr_assert(f->doc && *f->doc, "%s", f->key);
    }
    cr_assert(!layer_find("no such layer"));
}

/* ---- Gradients: along a random direction, f(x + hd) - f(x - hd) against gradient . 2hd. */

/* sum of weight * y, and the size of what rounding y to float may have changed in it. */
static double objective(struct single *single, const float *weight, double *noise)
{
    double sum = 0, squares = 0;
    struct kernel_args args = single_args(single);
    args.evaluate |= single->node->layer->in_backward;
    single_pass_forward(single, &args);
    size_t count = single->node->layer->loss ? 1 : single->y_bytes / sizeof(float);
    for (size_t i = 0; i < count; i++) {
        double term = single->node->layer->loss ? single->y[i] : (double)weight[i] * single->y[i];
        sum += term;
        squares += term * term;
    }
    *noise = 8 * 0x1p-24 * sqrt(squares);
    return sum;
}

struct target { /* what is varied */
    float *x;
    const float *gradient;
    size_t count;
};

struct slope {
    double difference, exact, typical, curve, noise; /* f+ - f-, gradient . (x+ - x-), f+ + f- - 2 f */
};

static struct slope measure(struct single *single, const float *weight, struct target t, const float *direction,
                            float h)
{
    struct slope s = {0};
    float *middle = malloc(t.count * sizeof *middle);
    cr_assert(middle);
    memcpy(middle, t.x, t.count * sizeof *middle);
    double shift = 0, squares = 0, centre = objective(single, weight, &s.noise);
    for (size_t i = 0; i < t.count; i++) t.x[i] = middle[i] + h * direction[i];
    double up = objective(single, weight, &s.noise);
    for (size_t i = 0; i < t.count; i++) {
        float plus = t.x[i], minus = middle[i] - h * direction[i]; /* as rounded */
        double term = t.gradient[i] * ((double)plus - minus);
        s.exact += term;
        squares += term * term;
        shift += t.gradient[i] * ((double)plus + minus - 2 * (double)middle[i]);
        t.x[i] = minus;
    }
    double down = objective(single, weight, &s.noise);
    memcpy(t.x, middle, t.count * sizeof *middle);
    free(middle);
    s.difference = up - down;
    s.typical = sqrt(squares);
    s.curve = fabs(up + down - 2 * centre - shift);
    return s;
}

/* No kink where inputs lie, but curved. */
static bool is_smooth(const struct node *node)
{
    static const char *const curved[] = {"gelu",       "silu",          "hardswish",  "sigmoid",   "tanh",
                                         "layernorm",  "rms_norm",      "group_norm", "attention", "cross_attention",
                                         "batch_norm", "batch_norm_add"};
    bool found = node->activation == ACTIVATION_TANH || node->layer->loss;
    for (size_t i = 0; i < sizeof curved / sizeof *curved; i++) found |= !strcmp(node->layer->name, curved[i]);
    return found;
}

/* False where the step crossed a kink (of a relu or a maximum), seen as a curve in what should be straight. */
static bool check_target(struct single *single, const float *weight, struct target t, uint32_t seed)
{
    const bool smooth = is_smooth(single->node);
    const float h = 0x1p-10f;
    float *direction = malloc(t.count * sizeof *direction);
    cr_assert(direction);
    single_random(direction, t.count * sizeof *direction, seed, 10);
    struct slope s = measure(single, weight, t, direction, h), twice = measure(single, weight, t, direction, 2 * h);
    free(direction);
    if (!smooth && (s.curve > 2 * s.noise || twice.curve > 2 * twice.noise)) return false;
    double tolerance = s.noise + (smooth ? fabs(twice.difference / 2 - s.difference) : 0);
    cr_assert(s.typical == 0 || tolerance < 0.05 * s.typical, "%s: a tolerance of %g proves nothing about %g",
              single->node->name, tolerance, s.typical);
    cr_assert(fabs(s.difference - s.exact) <= tolerance, "%s, batch %d, bits %d: f moves by %g, its gradient says %g",
              single->node->name, (int)single->batch, single->node->relu_save, s.difference, s.exact);
    return true;
}

static bool check_gradients_at(struct single *single, uint32_t seed)
{
    bool straight = true;
    float *weight = malloc(single->y_bytes);
    cr_assert(weight);
    single_fill(single, seed);
    single_random(weight, single->y_bytes, seed, 9);
    single_forward(single);
    memcpy(single->dy, weight, single->y_bytes);
    single_backward(single);
    for (int i = 0; i < single->node->layer->inputs && straight; i++) {
        if (single->text[i]) continue;
        struct target x = {single->x[i], single->dx[i], single->x_bytes[i] / sizeof(float)};
        straight = check_target(single, weight, x, seed);
    }
    for (int i = 0; i < single->parameters && straight; i++) {
        struct target p = {single->parameter[i], single->gradient[i], single->parameter_bytes[i] / sizeof(float)};
        straight = check_target(single, weight, p, seed);
    }
    free(weight);
    return straight;
}

/* test_batch_norm.c differentiates what is curved and has kinks. */
static void check_gradients(struct single *single)
{
    if (is_smooth(single->node) && single->node->activation == ACTIVATION_RELU) return;
    uint32_t seed = 1, straight = 0;
    while (straight < 2 && seed < 100) straight += check_gradients_at(single, seed++);
    cr_assert(straight == 2, "%s: no direction without a kink", single->node->name);
}

Test(layers, gradients_are_derivatives) { for_every_case_on("ref", check_gradients); }

/* A third of the labels count for nothing, and a label of a slice counts as one of a larger batch. */
static void check_loss(const char *backend, int c)
{
    struct single one, ref;
    single_open(&one, backend, cases[c].layer, &cases[c].settings, &cases[c].input, 300, RELU_OUTPUT);
    single_open(&ref, "ref", cases[c].layer, &cases[c].settings, &cases[c].input, 300, RELU_OUTPUT);
    const bool logical = one.graph->value[0].layout == 0; /* tests/device/test_own_rows.c has the other layout */
    for (int64_t n = 1; n < 300 * graph_labels(ref.graph) && !graph_targets(ref.graph); n += 3)
        one.labels[n] = ref.labels[n] = LABEL_NONE;
    *one.divisor = *ref.divisor += 7;
    single_forward(&one), single_forward(&ref);
    single_backward(&one), single_backward(&ref);
    for (int i = 0; i < 2 && logical; i++)
        cr_assert(fabsf(one.y[i] - ref.y[i]) <= 1e-5f * fabsf(ref.y[i]), "%s on %s: %g, not %g", cases[c].layer,
                  backend, (double)one.y[i], (double)ref.y[i]);
    for (size_t i = 0; i < ref.x_bytes[0] / sizeof(float) && logical; i++)
        cr_assert(fabsf(one.dx[0][i] - ref.dx[0][i]) < 1e-8f, "%s on %s: dx[%zu]", cases[c].layer, backend, i);
    single_close(&one), single_close(&ref);
}

Test(layers, losses_agree_with_the_reference)
{
    static const char *const backends[] = {"cpu", "cuda"};
    for (int b = 0; b < 2; b++)
        for (int c = 0; c < CASES && backend_opens(backends[b]); c++)
            if (layer_find(cases[c].layer)->loss && backend_has(backends[b], cases[c].layer) &&
                !backend_refuses(backends[b], &cases[c].settings))
                check_loss(backends[b], c);
}

/* ---- The footprint's promises. */

/* Fills with NaNs. */
static void poison(void *block, size_t bytes)
{
    if (block) memset(block, 0xff, bytes);
}

static void *copy_of(const void *block, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    cr_assert(copy);
    if (bytes) memcpy(copy, block, bytes);
    return copy;
}

/* The results of a backward: dx, gradients. */
struct results {
    void *dx[NODE_INPUTS_MAX], *gradient[NODE_PARAMETERS_MAX];
};

static size_t dx_bytes(const struct single *single, int k) { return single->dx[k] ? single->x_bytes[k] : 0; }

static struct results results_take(const struct single *single)
{
    struct results r;
    for (int k = 0; k < NODE_INPUTS_MAX; k++) {
        r.dx[k] = copy_of(single->dx[k], dx_bytes(single, k));
        poison(single->dx[k], dx_bytes(single, k));
    }
    for (int i = 0; i < NODE_PARAMETERS_MAX; i++)
        r.gradient[i] = copy_of(single->gradient[i], single->parameter_bytes[i]);
    for (int i = 0; i < NODE_PARAMETERS_MAX; i++) poison(single->gradient[i], single->parameter_bytes[i]);
    return r;
}

static void results_free(struct results *r)
{
    for (int k = 0; k < NODE_INPUTS_MAX; k++) free(r->dx[k]);
    for (int i = 0; i < NODE_PARAMETERS_MAX; i++) free(r->gradient[i]);
}

static void results_expect(const struct single *single, struct results *r, const char *what)
{
    for (int k = 0; k < NODE_INPUTS_MAX; k++)
        cr_assert(same_bits(r->dx[k], single->dx[k], dx_bytes(single, k)), "%s: %s changes dx[%d]", single->node->name,
                  what, k);
    for (int i = 0; i < NODE_PARAMETERS_MAX; i++) {
        cr_assert(same_bits(r->gradient[i], single->gradient[i], single->parameter_bytes[i]),
                  "%s: %s changes gradient %d", single->node->name, what, i);
    }
    results_free(r);
}

/* Forward and one backward; dy is random. */
static struct results plain(struct single *single)
{
    single_forward(single);
    single_random(single->dy, single->y_bytes, 1, 9);
    single_backward(single);
    return results_take(single);
}

static void hide_unread(struct single *single, unsigned reads)
{
    for (int k = inputs_read(reads, NODE_INPUTS_MAX); k < NODE_INPUTS_MAX; k++)
        poison(single->x[k], single->x_bytes[k]);
    if (!(reads & READS_Y)) poison(single->y, single->y_bytes);
    if (!(reads & READS_SAVED)) poison(single->saved, single->footprint.saved);
}

/* Backward part by part as a plan may run it: what a part does not claim to read is gone. */
static void check_reads(struct single *single)
{
    if (single->footprint.passes_gradient) return;
    struct results expected = plain(single);
    single_forward(single);
    single_random(single->dy, single->y_bytes, 1, 9);
    struct kernel_args args = single_args(single);
    const unsigned *reads = single->footprint.reads;
    if (single->footprint.split) {
        hide_unread(single, reads[PART_INDEX_PARAMS] | reads[PART_INDEX_INPUT]);
        single_pass_backward(single, &args, PART_PARAMS);
        hide_unread(single, reads[PART_INDEX_INPUT]);
        if (!(reads[PART_INDEX_INPUT] & READS_Y)) args.y = NULL; /* as the executor does */
        if (!(reads[PART_INDEX_INPUT] & READS_SAVED)) args.saved = NULL;
        single_pass_backward(single, &args, PART_INPUT);
    } else {
        hide_unread(single, reads[PART_INDEX_PARAMS] | reads[PART_INDEX_INPUT]);
        single_backward(single);
    }
    results_expect(single, &expected, "taking away what is not read");
}

Test(layers, reads_what_it_says) { for_every_case(check_reads); }

static void check_dy(struct single *single)
{
    single_forward(single);
    single_random(single->dy, single->y_bytes, 1, 9);
    void *dy = copy_of(single->dy, single->y_bytes);
    single_backward(single);
    cr_assert(single->footprint.writes_dy || same_bits(dy, single->dy, single->y_bytes), "%s writes on dy",
              single->node->name);
    free(dy);
}

Test(layers, writes_dy_only_where_it_says) { for_every_case(check_dy); }

static void check_overlays(struct single *single)
{
    struct kernel_args args = single_args(single);
    if (single->footprint.y_over_x) {
        cr_assert(single->x_bytes[0] == single->y_bytes);
        single_forward(single);
        void *y = copy_of(single->y, single->y_bytes);
        args.y = single->x[0];
        single_pass_forward(single, &args);
        cr_assert(same_bits(y, single->x[0], single->y_bytes), "%s: y over x differs", single->node->name);
        free(y);
        single_fill(single, 0);
    }
    if (single->footprint.dx_over_dy) {
        struct results expected = plain(single);
        single_random(single->dy, single->y_bytes, 1, 9);
        args = single_args(single);
        args.dx[0] = single->dy;
        const unsigned parts = PART_INPUT | (single->parameters ? PART_PARAMS : 0u);
        single_pass_backward(single, &args, parts);
        memcpy(single->dx[0], single->dy, single->x_bytes[0]);
        results_expect(single, &expected, "dx over dy");
    }
}

/* Where an input wants no gradient, the others' are the same. */
static void check_unwanted(struct single *single)
{
    const bool two = single->dx[0] && single->dx[1];
    if (!two || single->footprint.passes_gradient) return;
    for (int k = 0; k < 2; k++) {
        struct results expected = plain(single);
        struct kernel_args args = single_args(single);
        args.dx[k] = NULL;
        single_pass_backward(single, &args, PART_INPUT | (single->parameters ? PART_PARAMS : 0u));
        memcpy(single->dx[k], expected.dx[k], single->x_bytes[k]);
        results_expect(single, &expected, "an input without a gradient");
    }
}

Test(layers, an_input_may_want_no_gradient) { for_every_case(check_unwanted); }

Test(layers, overlays_change_no_bit) { for_every_case(check_overlays); }

Test(layers, sign_bits_change_no_bit)
{
    for (int c = 0; c < CASES; c++) {
        struct single output, bits;
        single_open(&output, "ref", cases[c].layer, &cases[c].settings, &cases[c].input, 3, false);
        single_open(&bits, "ref", cases[c].layer, &cases[c].settings, &cases[c].input, 3, true);
        struct results expected = plain(&output);
        single_forward(&bits);
        single_random(bits.dy, bits.y_bytes, 1, 9);
        single_backward(&bits);
        results_expect(&bits, &expected, "saving bits");
        cr_assert(!(bits.footprint.reads[PART_INDEX_PARAMS] & READS_Y) ||
                  cases[c].settings.activation == ACTIVATION_TANH || bits.node->layer->in_backward);
        single_close(&output), single_close(&bits);
    }
}

/* A random layer that evaluates does what it does at rate 0, where it has nothing to draw. */
Test(layers, evaluations_drop_nothing)
{
    int random = 0;
    for (int c = 0; c < CASES; c++) {
        if (cases[c].settings.rate <= 0) continue;
        struct single off, zero;
        struct settings settings = cases[c].settings;
        settings.rate = 0;
        single_open(&off, "ref", cases[c].layer, &cases[c].settings, &cases[c].input, 3, false);
        single_open(&zero, "ref", cases[c].layer, &settings, &cases[c].input, 3, false);
        cr_assert(off.node->draws > 0 && zero.node->draws == 0, "%s", cases[c].layer);
        single_forward(&off), single_forward(&zero);
        cr_assert(!same_bits(off.y, zero.y, off.y_bytes), "%s: drops nothing", cases[c].layer);
        off.evaluate = true;
        struct results expected = plain(&zero), got = plain(&off);
        cr_assert(same_bits(off.y, zero.y, off.y_bytes), "%s: drops", cases[c].layer);
        cr_assert(same_bits(got.dx[0], expected.dx[0], off.x_bytes[0]), "%s: drops from dx", cases[c].layer);
        results_free(&got), results_free(&expected);
        single_close(&off), single_close(&zero);
        random++;
    }
    cr_assert(random > 0);
}

static void check_save(struct single *single)
{
    single_forward(single);
    void *y = copy_of(single->y, single->y_bytes);
    struct kernel_args args = single_args(single);
    args.save = args.first = args.commit = false;
    poison(single->saved, single->footprint.saved);
    poison(single->y, single->y_bytes);
    single_pass_forward(single, &args);
    cr_assert(same_bits(y, single->y, single->node->layer->loss ? 2 * sizeof(float) : single->y_bytes));
    for (size_t i = 0; i < single->footprint.saved; i++) cr_assert(((uint8_t *)single->saved)[i] == 0xff);
    free(y);
}

Test(layers, saves_only_when_asked) { for_every_case(check_save); }
