#include "layer_under_test.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 4096 };

void spoil(void *data, size_t bytes)
{
    const uint32_t pattern = 0x7fa0dead;
    for (size_t i = 0; i + 4 <= bytes; i += 4) memcpy((char *)data + i, &pattern, 4);
}

static struct block block_make(struct subject *s, size_t bytes)
{
    struct block b = {.bytes = bytes};
    b.memory = aligned_alloc(GUARD, 2 * GUARD + (bytes + GUARD - 1) / GUARD * GUARD);
    cr_assert(b.memory != NULL);
    b.data = b.memory + GUARD;
    memset(b.memory, 0xa5, 2 * GUARD + bytes);
    spoil(b.data, bytes);
    mirror_add(&s->mirror, b.memory, 2 * GUARD + bytes);
    return b;
}

static void block_free(struct block *b)
{
    if (b->memory == NULL) return;
    for (int i = 0; i < GUARD; i++)
        cr_assert(b->memory[i] == 0xa5 && b->data[b->bytes + (size_t)i] == 0xa5, "%zu bytes, guard %d", b->bytes, i);
    free(b->memory);
}

/* The graph up to the values that the layer reads. */
static void begin(struct subject *s, const struct layer *layer, int inputs[NODE_INPUTS_MAX])
{
    const struct subject_case *c = s->c;
    const struct shape text = batch_shape(&c->x, c->settings.of_image);
    cr_assert(graph_create(layer->reads_batch ? &text : &c->x, c->batch, &s->graph) == ST_OK, "%s", status_message());
    inputs[0] = layer->reads_batch ? sequence_of_batch(s->graph, &c->x, 9)
                : c->first         ? 0
                                   : value_of_width(s->graph, shape_width(&c->x));
    inputs[1] = layer->reads_batch ? 0 : second_input(s->graph, &c->settings, inputs[0]);
}

/* Only a device has channels first. */
static int layout_of(const char *backend, const struct subject_case *c)
{
    return strcmp(backend, "cuda") != 0 && c->layout == LAYOUT_CHANNELS_FIRST ? LAYOUT_AUTO : c->layout;
}

void subject_open(struct subject *s, const char *backend, const struct subject_case *c)
{
    struct backend_options options = {.threads = 2,
                                      .layout = layout_of(backend, c),
                                      .conv_algorithm = c->algorithm,
                                      .scratch_limit = c->scratch_limit,
                                      .precision = strcmp(backend, "cuda") == 0 ? c->precision : PRECISION_FP32};
    const struct layer *layer = layer_find(c->layer);
    int output;
    *s = (struct subject){.c = c};
    cr_assert(backend_open(backend, &options, &s->backend) == ST_OK, "%s", status_message());
    int inputs[NODE_INPUTS_MAX];
    begin(s, layer, inputs);
    enum status status = graph_add(s->graph, layer, settings_of(layer, &c->settings), NULL, inputs, &output);
    cr_assert(status == ST_OK, "%s", status_message());
    for (int v = 1; v < s->graph->values; v++) s->graph->value[v].wants_gradient = true;
    struct node *node = &s->graph->node[s->graph->nodes - 1];
    s->node = node;
    cr_assert(s->backend->kind->arrange(s->backend, s->graph) == ST_OK, "%s", status_message());
    s->kernel = s->backend->kind->kernel(node);
    cr_assert(s->kernel != NULL);
    cr_assert(s->kernel->prepare(s->backend, s->graph, node, &s->footprint, &s->state) == ST_OK, "%s",
              status_message());
    footprint_keep_sign_bits(&s->footprint, c->relu_bits);
    mirror_open(&s->mirror, s->backend);
    s->parts = (node->parameters ? PART_PARAMS : 0u) | (c->first && !c->settings.other ? 0u : PART_INPUT);
    for (int i = 0; i < layer->inputs; i++) {
        s->x[i] = block_make(s, s->graph->value[inputs[i]].bytes);
        s->dx[i] = block_make(s, s->graph->value[inputs[i]].wants_gradient ? s->x[i].bytes : 0);
    }
    s->y = block_make(s, s->graph->value[output].bytes);
    s->dy = block_make(s, s->graph->value[output].bytes);
    s->saved = block_make(s, s->footprint.saved);
    const size_t scratch[] = {s->footprint.forward_scratch, s->footprint.backward_scratch[0],
                              s->footprint.backward_scratch[1]};
    for (int i = 0; i < 3; i++) s->scratch[i] = block_make(s, scratch[i]);
    s->draw = (struct draw){.mode = RNG_COUNTER, .seed = 11, .node = 2, .step = 3, .position = 1001};
    s->mask = block_make(s, rng_mask_bytes(node->draws, c->batch));
    s->draw.mask = s->mask.data;
    rng_mask_fill(&s->draw, c->settings.rate, node->draws, c->batch);
    for (int i = 0; i < node->parameters; i++) {
        const size_t bytes = (size_t)s->graph->parameter[node->first_parameter + i].elements * sizeof(float);
        s->parameter[i] = block_make(s, bytes);
        s->gradient[i] = block_make(s, bytes);
    }
    s->once = block_make(s, s->footprint.once);
    for (int i = 0; i < node->states; i++) {
        const int64_t elements = s->graph->state[node->first_state + i].elements;
        s->running[i] = block_make(s, (size_t)elements * sizeof(float));
        for (int64_t k = 0; k < elements; k++) ((float *)(void *)s->running[i].data)[k] = 1;
    }
}

void subject_close(struct subject *s)
{
    for (int i = 0; i < NODE_INPUTS_MAX; i++) block_free(&s->x[i]), block_free(&s->dx[i]);
    for (int i = 0; i < NODE_PARAMETERS_MAX; i++) block_free(&s->parameter[i]), block_free(&s->gradient[i]);
    for (int i = 0; i < 3; i++) block_free(&s->scratch[i]);
    for (int i = 0; i < NODE_STATES_MAX; i++) block_free(&s->running[i]);
    block_free(&s->y), block_free(&s->dy), block_free(&s->saved), block_free(&s->once), block_free(&s->mask);
    mirror_close(&s->mirror);
    if (s->kernel->release != NULL) s->kernel->release(s->state);
    graph_destroy(s->graph);
    backend_close(s->backend);
}

int64_t subject_elements(const struct subject *s, int value)
{
    return shape_elements(&s->graph->value[value].shape) * s->graph->batch;
}

/* Copies each element between logical order and the value's. */
static void walk(const struct subject *s, int value, float *logical, float *data, bool put)
{
    const struct value *v = &s->graph->value[value];
    const int64_t channels = shape_width(&v->shape), pixels = shape_elements(&v->shape) / channels;
    const bool first = v->layout != 0;
    cr_assert(v->bytes == (size_t)(s->graph->batch * pixels * channels) * sizeof(float));
    for (int64_t n = 0; n < s->graph->batch; n++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t c = 0; c < channels; c++) {
                const int64_t i = (n * pixels + p) * channels + c;
                float *at = &data[first ? (n * channels + c) * pixels + p : i];
                if (put)
                    *at = logical[i];
                else
                    logical[i] = *at;
            }
}

void subject_put(const struct subject *s, int value, const float *logical, void *data)
{
    walk(s, value, (float *)logical, data, true);
}

void subject_get(const struct subject *s, int value, const void *data, float *logical)
{
    walk(s, value, logical, (float *)data, false);
}

struct kernel_args subject_args(const struct subject *s)
{
    struct kernel_args args = {.y = s->y.data,
                               .dy = s->dy.data,
                               .save = s->saved.bytes > 0,
                               .once = s->once.bytes > 0 && !s->evaluate ? s->once.data : NULL,
                               .evaluate = s->evaluate,
                               .first = !s->evaluate,
                               .commit = !s->evaluate};
    args.saved = s->saved.bytes > 0 ? s->saved.data : NULL;
    args.draw = s->draw;
    for (int i = 0; i < NODE_INPUTS_MAX; i++) {
        args.x[i] = s->x[i].data;
        args.dx[i] = s->parts & PART_INPUT && s->dx[i].bytes > 0 ? s->dx[i].data : NULL;
    }
    for (int i = 0; i < NODE_PARAMETERS_MAX; i++) {
        args.parameters[i] = (const float *)(const void *)s->parameter[i].data;
        args.gradients[i] = (float *)(void *)s->gradient[i].data;
    }
    for (int i = 0; i < NODE_STATES_MAX; i++) args.states[i] = (float *)(void *)s->running[i].data;
    return args;
}

/* Scratch of other passes must stay unwritten. */
static void mark_others(struct subject *s, const struct block *given)
{
    for (struct block *b = s->scratch; b < s->scratch + 3; b++)
        if (b != given) memset(b->data, 0x5a, b->bytes);
}

static void check_others(const struct subject *s, const struct block *given)
{
    for (const struct block *b = s->scratch; b < s->scratch + 3; b++)
        for (size_t i = 0; b != given && i < b->bytes; i++)
            cr_assert(b->data[i] == 0x5a, "%s: byte %zu of another pass's scratch", s->c->layer, i);
}

void subject_forward(struct subject *s, struct kernel_args *args)
{
    spoil(s->scratch[0].data, s->scratch[0].bytes);
    mark_others(s, &s->scratch[0]);
    args->scratch = s->scratch[0].bytes > 0 ? s->scratch[0].data : NULL;
    cr_assert(mirror_forward(&s->mirror, s->kernel, s->state, args) == ST_OK, "%s", status_message());
    check_others(s, &s->scratch[0]);
}

void subject_backward(struct subject *s, struct kernel_args *args, unsigned parts)
{
    const struct block *larger = s->scratch[1].bytes > s->scratch[2].bytes ? &s->scratch[1] : &s->scratch[2];
    const struct block *scratch = parts == PART_PARAMS ? &s->scratch[1] : parts == PART_INPUT ? &s->scratch[2] : larger;
    spoil(scratch->data, scratch->bytes);
    mark_others(s, scratch);
    args->scratch = scratch->bytes > 0 ? scratch->data : NULL;
    for (int k = inputs_read(footprint_reads(s->footprint.reads, ~0u), NODE_INPUTS_MAX); k < NODE_INPUTS_MAX; k++)
        args->x[k] = NULL;
    cr_assert(mirror_backward(&s->mirror, s->kernel, s->state, args, parts) == ST_OK, "%s", status_message());
    check_others(s, scratch);
}
