#include "single_layer.h"

#include "token_batches.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void *memory(struct single *single, size_t bytes)
{
    void *p = NULL;
    cr_assert(!bytes || posix_memalign(&p, ALIGNMENT, bytes) == 0);
    mirror_add(&single->mirror, p, bytes);
    return p;
}

enum { VOCABULARY = 7 }; /* of sentences; embeddings tested have more words */

static bool reads_text(const struct layer *layer) { return layer->reads_batch || layer == layer_find("embedding"); }

/* The graph, up to the layer's inputs. */
static void begin(struct single *single, const struct layer *layer, const struct settings *settings,
                  const struct shape *input, int64_t batch, int inputs[NODE_INPUTS_MAX])
{
    const bool image = settings && settings->of_image;
    const struct shape text = batch_shape(input, image);
    enum status status = graph_create(layer->reads_batch ? &text : input, batch, &single->graph);
    cr_assert(status == ST_OK, "%s", status_message());
    if (layer->reads_batch) inputs[0] = sequence_of_batch(single->graph, input, VOCABULARY);
}

void single_open(struct single *single, const char *backend, const char *layer, const struct settings *settings,
                 const struct shape *input, int64_t batch, enum relu_save relu_save)
{
    memset(single, 0, sizeof *single);
    int output, inputs[NODE_INPUTS_MAX] = {0};
    const struct layer *definition = layer_find(layer);
    cr_assert(definition, "no layer %s", layer);
    cr_assert(backend_open(backend, &(struct backend_options){0}, &single->backend) == ST_OK, "%s", status_message());
    begin(single, definition, settings, input, batch, inputs);
    single->graph->value[0].wants_gradient = !reads_text(definition);
    if (definition->inputs > 1 && !definition->reads_batch)
        inputs[1] = second_input(single->graph, settings, inputs[0]);
    if (inputs[1] != inputs[0]) single->graph->value[inputs[1]].wants_gradient = true;
    cr_assert(graph_add(single->graph, definition, settings_of(definition, settings), NULL, inputs, &output) == ST_OK,
              "%s", status_message());
    const int last = single->graph->nodes - 1;
    single->graph->node[last].relu_save = relu_save;
    cr_assert(network_prepare(single->graph, single->backend, &single->network) == ST_OK, "%s", status_message());
    single->node = &single->graph->node[last];
    mirror_open(&single->mirror, single->backend);
    single->kernel = single->network->binding[last].kernel;
    single->state = single->network->binding[last].state;
    single->footprint = single->network->binding[last].footprint;
    single->batch = batch;
    single->y_bytes = single->graph->value[output].bytes;
    for (int i = 0; i < definition->inputs; i++) {
        single->x_bytes[i] = single->graph->value[inputs[i]].bytes;
        single->text[i] = inputs[i] == 0 && reads_text(definition);
        single->x[i] = memory(single, single->x_bytes[i]);
        if (!single->text[i]) single->dx[i] = memory(single, single->x_bytes[i]);
    }
    single->y = memory(single, single->y_bytes);
    single->dy = memory(single, single->y_bytes);
    single->saved = memory(single, single->footprint.saved);
    size_t scratch = single->footprint.forward_scratch;
    for (int i = 0; i < 2; i++)
        if (scratch < single->footprint.backward_scratch[i]) scratch = single->footprint.backward_scratch[i];
    single->scratch = memory(single, scratch);
    single->parameters = single->node->parameters;
    for (int i = 0; i < single->parameters; i++) {
        const struct parameter *parameter = &single->graph->parameter[single->node->first_parameter + i];
        single->parameter_bytes[i] = (size_t)parameter->elements * sizeof(float);
        single->parameter[i] = memory(single, single->parameter_bytes[i]);
        single->gradient[i] = memory(single, single->parameter_bytes[i]);
    }
    single->once = memory(single, single->footprint.once);
    for (int i = 0; i < single->node->states; i++) {
        const struct parameter *state = &single->graph->state[single->node->first_state + i];
        single->running_bytes[i] = (size_t)state->elements * sizeof(float);
        single->running[i] = memory(single, single->running_bytes[i]);
    }
    single->labels = memory(single, (size_t)(batch * graph_labels(single->graph)) * sizeof *single->labels);
    single->divisor = memory(single, sizeof *single->divisor);
    single->draw = (struct draw){.mode = RNG_COUNTER, .seed = 7, .node = 3, .step = 5};
    single_fill(single, 0);
}

void single_close(struct single *single)
{
    for (int i = 0; i < NODE_INPUTS_MAX; i++) free(single->x[i]), free(single->dx[i]);
    for (int i = 0; i < NODE_PARAMETERS_MAX; i++) free(single->parameter[i]), free(single->gradient[i]);
    for (int i = 0; i < NODE_STATES_MAX; i++) free(single->running[i]);
    free(single->y), free(single->dy), free(single->saved), free(single->once), free(single->scratch);
    free(single->labels), free(single->divisor);
    mirror_close(&single->mirror);
    network_destroy(single->network);
    graph_destroy(single->graph);
    backend_close(single->backend);
}

void single_random(float *x, size_t bytes, uint32_t seed, uint32_t which)
{
    for (size_t i = 0; i < bytes / sizeof *x; i++) {
        struct philox words = rng_words(99, RNG_DATA, (uint32_t)(i / 4), seed, which, 0);
        x[i] = 2 * rng_uniform(words.word[i % 4]) - 1;
    }
}

void single_fill(struct single *single, uint32_t seed)
{
    for (int i = 0; i < single->node->layer->inputs; i++) {
        if (single->text[i])
            sentences_make(single->x[i], single->batch, single->graph->value[0].shape.dim[1], VOCABULARY, seed);
        else
            single_random(single->x[i], single->x_bytes[i], seed, (uint32_t)i);
        for (size_t k = 0; single->node->layer == layer_find("relu6") && k < single->x_bytes[i] / sizeof(float); k++)
            single->x[i][k] *= range_of(single->node->layer);
    }
    for (int i = 0; i < single->parameters; i++)
        single_random(single->parameter[i], single->parameter_bytes[i], seed, 2 + (uint32_t)i);
    for (int i = 0; i < NODE_STATES_MAX; i++) {
        single_random(single->running[i], single->running_bytes[i], seed, 8 + (uint32_t)i);
        for (size_t k = 0; k < single->running_bytes[i] / sizeof(float); k++)
            single->running[i][k] = 1.5f + single->running[i][k] / 2;
    }
    const uint32_t classes = (uint32_t)(single->node->layer->predicts ? graph_classes(single->graph)
                                                                      : shape_width(&single->graph->value[0].shape));
    const uint32_t labels = (uint32_t)(single->batch * graph_labels(single->graph));
    for (uint32_t n = 0; n < labels; n++)
        single->labels[n] = (int32_t)(rng_words(99, RNG_DATA, n, seed, 4, 0).word[0] % classes);
    if (single->node->layer->targets) single_random((float *)(void *)single->labels, labels * sizeof(float), seed, 4);
    single_divide(single);
}

void single_divide(struct single *single)
{
    const struct layer *layer = single->node->layer;
    const int64_t labels = single->batch * graph_labels(single->graph);
    const struct shape *x = &single->graph->value[single->node->inputs[0]].shape;
    *single->divisor = 0;
    for (int64_t n = 0; n < labels; n++) *single->divisor += single->labels[n] != LABEL_NONE;
    if (layer->divisor) *single->divisor = layer->divisor(single->node->settings, x, single->batch, single->labels);
}

struct kernel_args single_args(const struct single *single)
{
    struct kernel_args args = {.y = single->y,
                               .dy = single->dy,
                               .saved = single->saved,
                               .once = single->evaluate ? NULL : single->once,
                               .scratch = single->scratch,
                               .labels = single->labels,
                               .divisor = single->divisor,
                               .draw = single->draw,
                               .evaluate = single->evaluate,
                               .first = !single->evaluate,
                               .commit = !single->evaluate,
                               .save = single->footprint.saved > 0};
    for (int i = 0; i < NODE_INPUTS_MAX; i++) args.x[i] = single->x[i], args.dx[i] = single->dx[i];
    for (int i = 0; i < NODE_PARAMETERS_MAX; i++) {
        args.parameters[i] = single->parameter[i];
        args.gradients[i] = single->gradient[i];
    }
    for (int i = 0; i < NODE_STATES_MAX; i++) args.states[i] = single->running[i];
    return args;
}

void single_pass_forward(struct single *single, const struct kernel_args *args)
{
    cr_assert(mirror_forward(&single->mirror, single->kernel, single->state, args) == ST_OK, "%s", status_message());
}

void single_pass_backward(struct single *single, const struct kernel_args *args, unsigned parts)
{
    cr_assert(mirror_backward(&single->mirror, single->kernel, single->state, args, parts) == ST_OK, "%s",
              status_message());
}

void single_forward(struct single *single)
{
    struct kernel_args args = single_args(single);
    single_pass_forward(single, &args);
}

void single_backward(struct single *single)
{
    struct kernel_args args = single_args(single);
    if (single->footprint.passes_gradient) {
        for (int i = 0; i < single->node->layer->inputs; i++) memcpy(single->dx[i], single->dy, single->x_bytes[i]);
        return;
    }
    unsigned parts = PART_INPUT | (single->parameters ? PART_PARAMS : 0);
    single_pass_backward(single, &args, parts);
}
