#include "small_networks.h"

#include "layer_settings.h"

#include <criterion/criterion.h>
#include <stdio.h>

static int add(struct graph *graph, const char *layer, struct settings settings, int x, int other)
{
    int inputs[] = {x, other}, y = -1;
    enum status status =
        graph_add(graph, layer_find(layer), settings_of(layer_find(layer), &settings), NULL, inputs, &y);
    cr_assert(status == ST_OK, "%s", status_message());
    return y;
}

static int conv(struct graph *graph, int64_t channels, int activation, int x)
{
    return add(
        graph, "conv",
        (struct settings){
            .channels = channels, .kernel = 3, .stride = 1, .padding = 1, .activation = activation, .bias = true},
        x, -1);
}

static int pool(struct graph *graph, int x)
{
    return add(graph, "max_pool", (struct settings){.kernel = 2, .stride = 2}, x, -1);
}

static int linear(struct graph *graph, int64_t units, int activation, int x)
{
    return add(graph, "linear", (struct settings){.units = units, .activation = activation, .bias = true}, x, -1);
}

static int dropout(struct graph *graph, double rate, int x)
{
    return add(graph, "dropout", (struct settings){.rate = rate}, x, -1);
}

static int flatten(struct graph *graph, int x) { return add(graph, "flatten", (struct settings){.rate = 0}, x, -1); }

static int layernorm(struct graph *graph, int x)
{
    return add(graph, "layernorm", (struct settings){.epsilon = 1e-12}, x, -1);
}

static void begin(struct graph *graph, const char *name)
{
    cr_assert(graph_group_begin(graph, name) == ST_OK, "%s", status_message());
}

static int small_cnn(struct graph *graph)
{
    begin(graph, "first");
    int v = conv(graph, 8, ACTIVATION_RELU, 0);
    v = conv(graph, 16, ACTIVATION_RELU, v);
    v = dropout(graph, 0.25, pool(graph, v));
    graph_group_end(graph);
    begin(graph, "second");
    v = dropout(graph, 0.5, conv(graph, 16, ACTIVATION_RELU, v));
    v = add(graph, "relu", (struct settings){.rate = 0}, conv(graph, 8, ACTIVATION_NONE, v), -1);
    v = add(graph, "avg_pool", (struct settings){.kernel = 2, .stride = 2}, v, -1);
    graph_group_end(graph);
    begin(graph, "classifier");
    v = dropout(graph, 0.5, linear(graph, 24, ACTIVATION_TANH, flatten(graph, v)));
    v = linear(graph, 5, ACTIVATION_NONE, v);
    graph_group_end(graph);
    return v;
}

/* x + relu(conv(relu(conv(x)))) behind a conv whose own relu reads its gradient too; and one with a conv as shortcut.
 */
static int residual(struct graph *graph)
{
    int v = conv(graph, 16, ACTIVATION_RELU, 0);
    begin(graph, "identity");
    int arm = conv(graph, 16, ACTIVATION_RELU, dropout(graph, 0.2, conv(graph, 16, ACTIVATION_RELU, v)));
    v = add(graph, "add", (struct settings){.rate = 0}, arm, v);
    graph_group_end(graph);
    begin(graph, "projection");
    int shortcut = conv(graph, 24, ACTIVATION_RELU, v);
    arm = conv(graph, 24, ACTIVATION_RELU, v);
    v = add(graph, "add", (struct settings){.rate = 0}, conv(graph, 24, ACTIVATION_RELU, arm), shortcut);
    v = add(graph, "relu", (struct settings){.rate = 0}, v, -1);
    graph_group_end(graph);
    v = add(graph, "global_avg_pool", (struct settings){.rate = 0}, v, -1);
    if (graph->value[v].shape.rank != 1) v = flatten(graph, v);
    return linear(graph, 4, ACTIVATION_NONE, v);
}

/* A batch_norm of x, or where there is another value a batch_norm_add; statistics: as in the layer's settings. */
static int batch_norm_of(struct graph *graph, int statistics, int activation, int x, int other)
{
    const struct settings settings = {
        .epsilon = 1e-5, .momentum = 0.1, .affine = true, .statistics = statistics, .activation = activation};
    return add(graph, other < 0 ? "batch_norm" : "batch_norm_add", settings, x, other);
}

static int batch_norm(struct graph *graph, int activation, int x) { return batch_norm_of(graph, 0, activation, x, -1); }

/* A residual block whose convolutions have no activation, each followed by a batch_norm, the last of which adds the
 * shortcut (He et al., 2015), behind one
 * whose relu may move behind a pool. */
static int normalised_by(struct graph *graph, int statistics)
{
    int v = pool(graph, batch_norm_of(graph, statistics, ACTIVATION_RELU, conv(graph, 16, ACTIVATION_NONE, 0), -1));
    begin(graph, "block");
    int arm = batch_norm_of(graph, statistics, ACTIVATION_RELU, conv(graph, 16, ACTIVATION_NONE, v), -1);
    v = batch_norm_of(graph, statistics, ACTIVATION_RELU, conv(graph, 16, ACTIVATION_NONE, arm), v);
    graph_group_end(graph);
    begin(graph, "classifier");
    v = linear(graph, 12, ACTIVATION_NONE, add(graph, "global_avg_pool", (struct settings){.rate = 0}, v, -1));
    v = batch_norm_of(graph, statistics, ACTIVATION_RELU, v, -1);
    v = linear(graph, 4, ACTIVATION_NONE, dropout(graph, 0.2, v));
    graph_group_end(graph);
    return v;
}

static int normalised(struct graph *graph) { return normalised_by(graph, 0); }
static int accumulated(struct graph *graph) { return normalised_by(graph, 1); }

/* An inverted residual (Sandler et al., 2018), then half the size, grouped channels, and the size again. */
static int mobile(struct graph *graph)
{
    const struct settings depthwise = {.channels = 24, .groups = 24, .kernel = 3, .stride = 1, .padding = 1};
    const struct settings grouped = {.channels = 16,
                                     .groups = 4,
                                     .kernel = 3,
                                     .stride = 2,
                                     .padding = 1,
                                     .activation = ACTIVATION_RELU,
                                     .bias = true};
    const int start = conv(graph, 12, ACTIVATION_NONE, 0);
    begin(graph, "inverted");
    int v = add(graph, "relu6", (struct settings){.rate = 0}, conv(graph, 24, ACTIVATION_NONE, start), -1);
    v = add(graph, "relu6", (struct settings){.rate = 0}, add(graph, "conv", depthwise, v, -1), -1);
    v = add(graph, "add", (struct settings){.rate = 0}, conv(graph, 12, ACTIVATION_NONE, v), start);
    graph_group_end(graph);
    begin(graph, "hourglass");
    const int wide = conv(graph, 16, ACTIVATION_RELU, v);
    v = add(graph, "upsample", (struct settings){.factor = 2}, add(graph, "conv", grouped, wide, -1), -1);
    v = dropout(graph, 0.2, add(graph, "add", (struct settings){.rate = 0}, v, wide));
    graph_group_end(graph);
    return linear(graph, 4, ACTIVATION_NONE, add(graph, "global_avg_pool", (struct settings){.rate = 0}, v, -1));
}

static int vgg(struct graph *graph)
{
    static const int channels[5][3] = {{4, 4}, {8, 8}, {16, 16, 16}, {32, 32, 32}, {32, 32, 32}};
    static const char *const names[] = {"block1", "block2", "block3", "block4", "block5"};
    int v = 0;
    for (int b = 0; b < 5; b++) {
        begin(graph, names[b]);
        for (int i = 0; i < 3 && channels[b][i]; i++) v = conv(graph, channels[b][i], ACTIVATION_RELU, v);
        v = pool(graph, v);
        graph_group_end(graph);
    }
    begin(graph, "classifier");
    v = dropout(graph, 0.5, linear(graph, 64, ACTIVATION_RELU, flatten(graph, v)));
    v = dropout(graph, 0.5, linear(graph, 64, ACTIVATION_RELU, v));
    v = linear(graph, 10, ACTIVATION_NONE, v);
    graph_group_end(graph);
    return v;
}

/* Attention on a fused value, then gelu between two products, each behind a shortcut (Devlin et al., 2018). */
static int encoder(struct graph *graph, const char *name, int64_t width, int save, int x)
{
    begin(graph, name);
    int v = linear(graph, 3 * width, ACTIVATION_NONE, x);
    v = add(graph, "attention", (struct settings){.heads = 2, .rate = 0.2, .save = save}, v, 0);
    v = dropout(graph, 0.1, linear(graph, width, ACTIVATION_NONE, v));
    x = layernorm(graph, add(graph, "add", (struct settings){.rate = 0}, v, x));
    v = add(graph, "gelu", (struct settings){.rate = 0}, linear(graph, 4 * width, ACTIVATION_NONE, x), -1);
    v = dropout(graph, 0.1, linear(graph, width, ACTIVATION_NONE, v));
    v = layernorm(graph, add(graph, "add", (struct settings){.rate = 0}, v, x));
    graph_group_end(graph);
    return v;
}

static int transformer(struct graph *graph)
{
    enum { WIDTH = 12 };
    begin(graph, "embeddings");
    int v = add(graph, "embedding", (struct settings){.units = WIDTH, .vocabulary = 20, .positions = 16, .segments = 2},
                0, -1);
    v = dropout(graph, 0.1, layernorm(graph, v));
    graph_group_end(graph);
    v = encoder(graph, "encoder1", WIDTH, SAVE_PROBABILITIES, v);
    v = encoder(graph, "encoder2", WIDTH, SAVE_NOTHING, v);
    begin(graph, "classifier");
    v = add(graph, "select", (struct settings){.token = 0}, v, -1);
    v = linear(graph, 3, ACTIVATION_NONE, dropout(graph, 0.1, linear(graph, WIDTH, ACTIVATION_TANH, v)));
    graph_group_end(graph);
    return v;
}

enum { DECODER_WIDTH = 12 };

/* A loss of its own behind the layers that wrote value. */
static void auxiliary(struct graph *graph, double weight, int value)
{
    add(graph, "cross_entropy", (struct settings){.label_smoothing = 0.1}, value, -1);
    graph->node[graph->nodes - 1].weight = weight;
}

/* Two blocks of a decoder, each normalised first (Radford et al., 2019). qkv: the width of queries, keys and values;
 * early: tokens are predicted between them, too. */
static int blocks_of(struct graph *graph, struct settings attention, int64_t qkv, bool early)
{
    enum { WIDTH = DECODER_WIDTH };
    int x = add(graph, "embedding", (struct settings){.units = WIDTH, .vocabulary = 20, .positions = 16, .segments = 2},
                0, -1);
    for (int b = 0; b < 2; b++) {
        begin(graph, b ? "block2" : "block1");
        attention.save = b;
        int v = linear(graph, qkv, ACTIVATION_NONE, layernorm(graph, x));
        v = linear(graph, WIDTH, ACTIVATION_NONE, add(graph, "attention", attention, v, 0));
        x = add(graph, "add", (struct settings){.rate = 0}, dropout(graph, 0.1, v), x);
        v = linear(graph, 4 * WIDTH, ACTIVATION_NONE, layernorm(graph, x));
        v = linear(graph, WIDTH, ACTIVATION_NONE, add(graph, "gelu", (struct settings){.rate = 0}, v, -1));
        x = add(graph, "add", (struct settings){.rate = 0}, v, x);
        graph_group_end(graph);
        if (early && b == 0) auxiliary(graph, 0.5, linear(graph, 20, ACTIVATION_NONE, x));
    }
    return layernorm(graph, x);
}

static int decoder_blocks(struct graph *graph)
{
    return blocks_of(graph, (struct settings){.heads = 2, .rate = 0.2, .causal = true}, 3 * DECODER_WIDTH, false);
}

/* A class for every token. */
static int decoder(struct graph *graph) { return linear(graph, 20, ACTIVATION_NONE, decoder_blocks(graph)); }

static int rotary(struct graph *graph)
{
    const struct settings attention = {.heads = 3, .kv_heads = 1, .rate = 0.2, .causal = true, .rope = true};
    return linear(graph, 20, ACTIVATION_NONE,
                  blocks_of(graph, attention, DECODER_WIDTH + 2 * DECODER_WIDTH / 3, false));
}

static int deep(struct graph *graph)
{
    static const char *const names[] = {"part1", "part2", "part3", "part4", "part5", "part6", "part7"};
    const int start = linear(graph, 12, ACTIVATION_RELU, 0);
    int v = start;
    for (int b = 0; b < 7; b++) {
        begin(graph, names[b]);
        for (int i = 0; i < 3; i++) {
            v = add(graph, "gelu", (struct settings){.rate = 0}, linear(graph, 12 + 4 * i, ACTIVATION_NONE, v), -1);
            v = dropout(graph, 0.1, v);
        }
        v = linear(graph, 12, ACTIVATION_RELU, v);
        graph_group_end(graph);
    }
    v = add(graph, "add", (struct settings){.rate = 0}, v, start);
    return linear(graph, 4, ACTIVATION_NONE, v);
}

/* A shortcut around ten layers, each of them a group: a stage whose subsets can all be examined, and that groups
 * divide. */
static int divided(struct graph *graph)
{
    const int start = linear(graph, 16, ACTIVATION_NONE, 0);
    int v = start;
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "part%d", i);
        begin(graph, name);
        v = linear(graph, 16, ACTIVATION_NONE, v);
        graph_group_end(graph);
    }
    v = add(graph, "add", (struct settings){.rate = 0}, v, start);
    return linear(graph, 4, ACTIVATION_NONE, v);
}

static int pooled(struct graph *graph)
{
    static const struct settings dense = {.kernel = 3, .stride = 1, .padding = 1},
                                 sparse = {.kernel = 3, .stride = 2, .padding = 1};
    begin(graph, "arm");
    int v = conv(graph, 16, ACTIVATION_RELU, 0);
    const int arm = add(graph, "max_pool", dense, conv(graph, 16, ACTIVATION_RELU, v), -1);
    v = add(graph, "add", (struct settings){.rate = 0}, arm, v);
    graph_group_end(graph);
    begin(graph, "chain");
    v = add(graph, "max_pool", sparse, conv(graph, 24, ACTIVATION_RELU, v), -1);
    v = dropout(graph, 0.2, pool(graph, conv(graph, 8, ACTIVATION_RELU, v)));
    graph_group_end(graph);
    return linear(graph, 4, ACTIVATION_NONE, flatten(graph, v));
}

static int concat(struct graph *graph, int x, int other)
{
    return add(graph, "concat", (struct settings){.rate = 0}, x, other);
}

/* Two skips, one within the other, as in a U-Net; then each output beside its input, as in a DenseNet, and the batch
 * beside that. */
static int skips(struct graph *graph)
{
    static const struct settings window = {.kernel = 3, .stride = 1, .padding = 1};
    begin(graph, "unet");
    const int outer = conv(graph, 8, ACTIVATION_RELU, 0);
    const int inner = conv(graph, 16, ACTIVATION_RELU, add(graph, "max_pool", window, outer, -1));
    int v = conv(graph, 16, ACTIVATION_RELU, add(graph, "avg_pool", window, inner, -1));
    v = conv(graph, 8, ACTIVATION_RELU, concat(graph, v, inner));
    v = concat(graph, v, outer);
    graph_group_end(graph);
    begin(graph, "dense");
    v = concat(graph, conv(graph, 8, ACTIVATION_RELU, v), v);
    v = concat(graph, dropout(graph, 0.2, conv(graph, 8, ACTIVATION_NONE, v)), v);
    v = concat(graph, 0, v);
    graph_group_end(graph);
    v = add(graph, "global_avg_pool", (struct settings){.rate = 0}, v, -1);
    return linear(graph, 4, ACTIVATION_NONE, v);
}

/* All samples meet in the first layer alone. */
static int fronted(struct graph *graph)
{
    int v = batch_norm(graph, ACTIVATION_NONE, 0);
    begin(graph, "front");
    for (int i = 0; i < 3; i++) v = conv(graph, 8, ACTIVATION_RELU, v);
    v = dropout(graph, 0.2, v);
    graph_group_end(graph);
    begin(graph, "back");
    for (int i = 0; i < 2; i++) v = conv(graph, 8, ACTIVATION_RELU, v);
    v = flatten(graph, pool(graph, pool(graph, v)));
    graph_group_end(graph);
    return linear(graph, 4, ACTIVATION_NONE, linear(graph, 8, ACTIVATION_RELU, v));
}

/* Every elementwise layer; channels in groups, a gate of channels (Hu, Shen and Sun, 2018), and the product of two arms
 * behind a normalisation (Shazeer, 2020). */
static int gated(struct graph *graph)
{
    static const struct settings none = {.rate = 0}, leaky = {.slope = 0.1};
    begin(graph, "squeeze");
    int v = add(graph, "group_norm", (struct settings){.groups = 3, .epsilon = 1e-5}, conv(graph, 12, 0, 0), -1);
    v = add(graph, "hardswish", none, v, -1);
    v = add(graph, "leaky_relu", leaky, conv(graph, 12, ACTIVATION_RELU, v), -1);
    int gate = linear(graph, 4, ACTIVATION_NONE, add(graph, "global_avg_pool", none, v, -1));
    gate = linear(graph, 12, ACTIVATION_NONE, add(graph, "silu", none, gate, -1));
    v = add(graph, "multiply", none, v, add(graph, "sigmoid", none, gate, -1));
    graph_group_end(graph);
    begin(graph, "product");
    const int x = flatten(graph, pool(graph, v));
    v = add(graph, "rms_norm", (struct settings){.epsilon = 1e-6}, x, -1);
    const int arm = add(graph, "silu", none, linear(graph, 24, ACTIVATION_NONE, v), -1);
    v = add(graph, "multiply", none, arm, linear(graph, 24, ACTIVATION_NONE, v));
    v = dropout(graph, 0.2, add(graph, "tanh", none, linear(graph, 12, ACTIVATION_NONE, v), -1));
    graph_group_end(graph);
    return linear(graph, 4, ACTIVATION_NONE, v);
}

/* The node that wrote value is not trained. */
static int freeze(struct graph *graph, int value)
{
    graph->node[value - 1].frozen = true;
    return value;
}

/* The first layers, and of each kind of backward one between trained layers, are not trained. */
static int frozen(struct graph *graph)
{
    begin(graph, "stem");
    int v = freeze(graph, conv(graph, 8, ACTIVATION_RELU, 0));
    v = pool(graph, freeze(graph, conv(graph, 8, ACTIVATION_RELU, v)));
    graph_group_end(graph);
    begin(graph, "body");
    const int start = conv(graph, 16, ACTIVATION_RELU, v);
    v = freeze(graph, conv(graph, 16, ACTIVATION_RELU, start));
    v = add(graph, "add", (struct settings){.rate = 0}, freeze(graph, conv(graph, 16, ACTIVATION_NONE, v)), start);
    graph_group_end(graph);
    v = flatten(graph, conv(graph, 8, ACTIVATION_RELU, v));
    v = freeze(graph, linear(graph, 12, ACTIVATION_TANH, freeze(graph, layernorm(graph, v))));
    v = freeze(graph, linear(graph, 12, ACTIVATION_RELU, dropout(graph, 0.2, v)));
    return linear(graph, 4, ACTIVATION_NONE, v);
}

/* Patches as tokens that attend to each other, back to pixels, larger again and shifted; then a token before those of
 * what is left. */
static int vision(struct graph *graph)
{
    static const struct settings none = {.rate = 0}, window = {.kernel = 3, .stride = 2, .ceil_mode = true};
    begin(graph, "patches");
    int v = add(graph, "conv", (struct settings){.channels = 12, .kernel = 2, .stride = 2, .bias = true}, 0, -1);
    v = add(graph, "positions", none, add(graph, "tokens", none, v, -1), -1);
    graph_group_end(graph);
    v = add(graph, "pixels", none, encoder(graph, "encoder", 12, SAVE_PROBABILITIES, v), -1);
    begin(graph, "pixels");
    v = add(graph, "conv_transpose",
            (struct settings){.channels = 8, .kernel = 3, .stride = 2, .padding = 1, .output_padding = 1, .bias = true},
            v, -1);
    v = add(graph, "pad", (struct settings){.top = -1, .bottom = 1, .left = 2, .right = -2}, v, -1);
    v = add(graph, "max_pool", window, add(graph, "relu", none, v, -1), -1);
    graph_group_end(graph);
    v = add(graph, "class_token", none, add(graph, "tokens", none, v, -1), -1);
    v = add(graph, "global_avg_pool", none, linear(graph, 8, ACTIVATION_RELU, v), -1);
    return linear(graph, 4, ACTIVATION_NONE, v);
}

/* Learnt queries read the tokens of an image, twice, among themselves between; then their mean reads tokens that no
 * trained layer wrote (Jaegle et al., 2021). */
static int latent(struct graph *graph)
{
    static const struct settings none = {.rate = 0};
    const struct settings grouped = {.heads = 3, .kv_heads = 1, .rate = 0.2, .save = SAVE_NOTHING};
    begin(graph, "read");
    int x = add(graph, "conv", (struct settings){.channels = 8, .kernel = 2, .stride = 2, .bias = true}, 0, -1);
    x = add(graph, "positions", none, add(graph, "tokens", none, x, -1), -1);
    int v =
        linear(graph, 12, ACTIVATION_NONE, add(graph, "latents", (struct settings){.tokens = 5, .units = 8}, 0, -1));
    v = add(graph, "cross_attention", (struct settings){.heads = 2, .rate = 0.1}, v,
            linear(graph, 24, ACTIVATION_NONE, x));
    graph_group_end(graph);
    const int among = encoder(graph, "encoder", 12, SAVE_PROBABILITIES, v);
    begin(graph, "again");
    v = linear(graph, 12, ACTIVATION_NONE, among);
    v = add(graph, "cross_attention", grouped, v, linear(graph, 8, ACTIVATION_NONE, x));
    v = add(graph, "add", none, v, among);
    graph_group_end(graph);
    const int plain = freeze(graph, linear(graph, 24, ACTIVATION_NONE, add(graph, "tokens", none, 0, -1)));
    v = add(graph, "cross_attention", (struct settings){.heads = 3}, add(graph, "global_avg_pool", none, v, -1), plain);
    return linear(graph, 4, ACTIVATION_NONE, v);
}

/* Two heads before the last one, as GoogLeNet has (Szegedy et al., 2015), one of them in no group, and one that is not
 * trained on layers that are not. */
static int headed(struct graph *graph)
{
    static const struct settings none = {.rate = 0};
    const int stem = freeze(graph, conv(graph, 8, ACTIVATION_RELU, 0));
    const int mean = add(graph, "global_avg_pool", none, stem, -1);
    auxiliary(graph, 2, freeze(graph, linear(graph, 4, ACTIVATION_NONE, mean)));
    begin(graph, "first");
    int v = conv(graph, 8, ACTIVATION_RELU, stem);
    v = pool(graph, conv(graph, 8, ACTIVATION_RELU, v));
    graph_group_end(graph);
    const int head = dropout(graph, 0.2, linear(graph, 12, ACTIVATION_RELU, flatten(graph, v)));
    auxiliary(graph, 0.3, linear(graph, 4, ACTIVATION_NONE, head));
    begin(graph, "second");
    const int start = v;
    v = conv(graph, 8, ACTIVATION_NONE, conv(graph, 8, ACTIVATION_RELU, v));
    v = pool(graph, add(graph, "add", none, v, start));
    graph_group_end(graph);
    begin(graph, "head");
    auxiliary(graph, 0.7, linear(graph, 4, ACTIVATION_NONE, add(graph, "global_avg_pool", none, v, -1)));
    graph_group_end(graph);
    return linear(graph, 4, ACTIVATION_NONE, flatten(graph, v));
}

/* A decoder whose tokens are predicted after its first block, too; its last loss is computed in chunks. */
static int early(struct graph *graph)
{
    const struct settings loss = {.units = 20, .chunks = 4, .bias = true};
    const struct settings attention = {.heads = 2, .rate = 0.2, .causal = true};
    return add(graph, "linear_cross_entropy", loss, blocks_of(graph, attention, 3 * DECODER_WIDTH, true), -1);
}

static int tied(struct graph *graph)
{
    const int v = linear(graph, 20, ACTIVATION_NONE, decoder_blocks(graph));
    cr_assert(graph_tie(graph, 0) == ST_OK, "%s", status_message());
    return v;
}

/* The decoder, whose last linear layer is computed with the loss in chunks that do not divide the rows. */
static int chunked(struct graph *graph)
{
    const struct settings loss = {.units = 20, .chunks = 4, .bias = true};
    return add(graph, "linear_cross_entropy", loss, decoder_blocks(graph), -1);
}

/* As the decoder, by a loss that weighs classes, one of them not at all. */
static int weighted(struct graph *graph)
{
    static const double weights[20] = {1, 0.5, 2, 0, 1, 0.1, 3, 1, 1, 0.7, 1, 1, 0.2, 1, 1.5, 1, 1, 0.9, 1, 4};
    const struct settings loss = {.label_smoothing = 0.1, .class_weights = {20, {.reals = weights}}};
    return add(graph, "cross_entropy", loss, decoder(graph), -1);
}

/* A number for each channel of each pixel, read by that loss. */
static int pixelwise(struct graph *graph, int64_t channels, const char *loss)
{
    static const struct settings window = {.kernel = 3, .stride = 1, .padding = 1};
    begin(graph, "down");
    const int outer = conv(graph, 8, ACTIVATION_RELU, 0);
    int v = dropout(graph, 0.2, conv(graph, 12, ACTIVATION_RELU, add(graph, "max_pool", window, outer, -1)));
    graph_group_end(graph);
    begin(graph, "up");
    v = conv(graph, 8, ACTIVATION_RELU, concat(graph, v, outer));
    v = linear(graph, channels, ACTIVATION_NONE, add(graph, "tokens", (struct settings){.rate = 0}, v, -1));
    v = add(graph, "pixels", (struct settings){.height = 6}, v, -1);
    graph_group_end(graph);
    return add(graph, loss, (struct settings){.smooth = 1}, v, -1);
}

static int dice(struct graph *graph) { return pixelwise(graph, 3, "dice"); }
static int bce(struct graph *graph) { return pixelwise(graph, 1, "bce"); }
static int mse(struct graph *graph) { return pixelwise(graph, 2, "mse"); }

const struct net loss_nets[] = {{"weighted", weighted, {2, {3, 7}}, 3, 20},
                                {"dice", dice, {3, {6, 5, 3}}, 3, 3},
                                {"bce", bce, {3, {6, 5, 3}}, 3, 2},
                                {"mse", mse, {3, {6, 5, 3}}, 3, 1},
                                {NULL, NULL, {0}, 0, 0}};

const struct net chunked_net = {"chunked", chunked, {2, {3, 7}}, 3, 20};
const struct net tied_net = {"tied", tied, {2, {3, 7}}, 3, 20};
const struct net accumulated_net = {"accumulated", accumulated, {3, {8, 8, 3}}, 4, 4};
const struct net gated_net = {"gated", gated, {3, {8, 8, 3}}, 3, 4};
const struct net headed_net = {"headed", headed, {3, {16, 16, 3}}, 3, 4};
const struct net early_net = {"early", early, {2, {3, 7}}, 3, 20};
const struct net latent_net = {"latent", latent, {3, {8, 8, 3}}, 3, 4};
const struct net vision_net = {"vision", vision, {3, {8, 8, 3}}, 3, 4};
const struct net deep_net = {"deep", deep, {1, {12}}, 40, 4}, divided_net = {"divided", divided, {1, {16}}, 64, 4},
                 pooled_net = {"pooled", pooled, {3, {9, 8, 3}}, 3, 4},
                 rotary_net = {"rotary", rotary, {2, {3, 7}}, 3, 20},
                 fronted_net = {"fronted", fronted, {3, {8, 8, 3}}, 6, 4};

const struct net nets[] = {{"small_cnn", small_cnn, {3, {12, 12, 3}}, 3, 5},
                           {"residual", residual, {3, {8, 8, 3}}, 2, 4},
                           {"vgg", vgg, {3, {32, 32, 3}}, 2, 10},
                           {"transformer", transformer, {2, {3, 7}}, 3, 3},
                           {"skips", skips, {3, {8, 8, 3}}, 2, 4},
                           {"normalised", normalised, {3, {8, 8, 3}}, 4, 4},
                           {"mobile", mobile, {3, {8, 8, 3}}, 3, 4},
                           {"decoder", decoder, {2, {3, 7}}, 3, 20},
                           {"frozen", frozen, {3, {8, 8, 3}}, 2, 4},
                           {NULL, NULL, {0}, 0, 0}};

struct graph *net_build(const struct net *net, enum relu_save relu_save)
{
    struct graph *graph;
    cr_assert(graph_create(&net->input, net->batch, &graph) == ST_OK, "%s", status_message());
    int y = net->build(graph);
    if (!graph->node[y - 1].layer->loss) add(graph, "cross_entropy", (struct settings){.rate = 0}, y, -1);
    for (int i = 0; i < graph->nodes; i++) graph->node[i].relu_save = relu_save;
    cr_assert(graph_finish(graph) == ST_OK, "%s", status_message());
    return graph;
}

struct bound_net net_bind_to(const char *backend, const struct backend_options *options, const struct net *net,
                             enum relu_save relu_save)
{
    struct bound_net b = {.graph = net_build(net, relu_save)};
    cr_assert(backend_open(backend, options, &b.backend) == ST_OK, "%s", status_message());
    cr_assert(network_prepare(b.graph, b.backend, &b.network) == ST_OK, "%s", status_message());
    return b;
}

struct bound_net net_bind(const struct net *net, enum relu_save relu_save)
{
    return net_bind_to("ref", &(struct backend_options){.threads = 1}, net, relu_save);
}

void net_labels(const struct graph *graph, int64_t first, uint32_t step, int64_t classes, int32_t *labels)
{
    const int64_t each = graph_labels(graph);
    for (int64_t i = 0; i < graph->batch * each && graph_targets(graph); i++)
        ((float *)(void *)labels)[i] = (float)(((first * each + i) * 7 + step * 5) % 23) / 11 - 1;
    for (int64_t s = 0; s < graph->batch && !graph_targets(graph); s++)
        for (int64_t t = 0; t < each; t++) {
            const bool none = t > 0 && (first + s + 2 * t + step) % 3 == 0;
            labels[s * each + t] = none ? LABEL_NONE : (int32_t)((first + s + t + step) % classes);
        }
}

void net_release(struct bound_net *bound)
{
    network_destroy(bound->network);
    graph_destroy(bound->graph);
    backend_close(bound->backend);
}
