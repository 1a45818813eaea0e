/* Layers whose elements are computed alone or moved: relu, relu6, gelu, add, dropout, in any layout that input and
 * output share; flatten and tokens, which transpose images from channels first to the logical order; and pixels, which
 * does the reverse.
 *
 * Contract: what dropout drops depends on an element's place in logical order alone, so all backends have equal masks;
 * its backward draws again. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "kernels.h"

#define ELEMENT_NAME(layer, value, gradient) #layer,

static enum status relu_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                struct footprint *footprint, void **state)
{
    TRY(layer_state_prepare(backend, graph, node, footprint, state));
    footprint->signs = sign_bytes(((const struct layer_state *)*state)->x.count);
    return ST_OK;
}

static enum status relu_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_function(cuda_queue(s->backend, CLOCK_ACTIVATION), args->x[0], (struct bias){.values = NULL}, FUNCTION_RELU,
                    s->x.count, args->y, args->save ? args->saved : NULL);
    return cuda_queued("relu");
}

static enum status relu_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_derivative(cuda_queue(s->backend, CLOCK_ACTIVATION), args->dy, args->y, args->saved, FUNCTION_RELU,
                      s->x.count, args->dx[0]);
    return cuda_queued("gradient of relu");
}

static enum element_function function_of(const struct node *node)
{
    static const char *const layers[] = {ELEMENT_FUNCTIONS(ELEMENT_NAME)};
    int function = 0;
    while (strcmp(layers[function], node->layer->name) != 0) function++;
    return (enum element_function)function;
}

static enum status elementwise_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_elementwise(cuda_queue(s->backend, CLOCK_ACTIVATION), function_of(s->node), node_number(s->node), args->x[0],
                       s->x.count, args->y);
    return cuda_queued("an elementwise layer");
}

static enum status elementwise_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const float *at = kernel_at(s->node->layer->footprint.reads[PART_INDEX_INPUT], args);
    launch_elementwise_gradient(cuda_queue(s->backend, CLOCK_ACTIVATION), function_of(s->node), node_number(s->node),
                                args->dy, at, s->x.count, args->dx[0]);
    return cuda_queued("gradient of an elementwise layer");
}

static enum status add_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_add(cuda_queue(s->backend, CLOCK_OTHER), args->x[0], args->x[1], s->x.count, args->y);
    return cuda_queued("add");
}

static struct gate_shape gate_of(const struct layer_state *s)
{
    const int64_t channels = shape_width(&s->x.shape);
    return (struct gate_shape){s->x.batch, channels, s->x.elements / channels, s->second.elements,
                               channels_first(&s->x)};
}

static enum status multiply_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    launch_multiply(cuda_queue(s->backend, CLOCK_OTHER), gate_of(s), args->x[0], args->x[1], args->y);
    return cuda_queued("multiply");
}

/* The second gradient first, since the first may be written over dy. */
static enum status multiply_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_OTHER);
    if (args->dx[1] != NULL) launch_gate_gradient(stream, gate_of(s), args->x[0], args->dy, args->dx[1]);
    if (args->dx[0] != NULL) launch_multiply(stream, gate_of(s), args->dy, args->x[1], args->dx[0]);
    return cuda_queued("gradients of multiply");
}

static enum status drop(const struct layer_state *s, const struct kernel_args *args, const float *from, float *to)
{
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_OTHER);
    const double rate = node_real(s->node, "rate");
    if (kernel_drops(args, rate)) {
        const struct element_draw element_draw = element_draw_of(&args->draw, rate);
        const int64_t channels = channels_first(&s->x) ? s->x.shape.dim[2] : s->x.elements;
        const struct dropout_shape shape = {s->x.batch, channels, s->x.elements / channels};
        launch_dropout(stream, shape, &element_draw, survivor_factor(rate), from, to);
    } else if (to != from) {
        s->backend->kind->copy(s->backend, to, from, (size_t)s->x.count * sizeof *to);
    }
    return cuda_queued("dropout");
}

static enum status dropout_forward(void *state, const struct kernel_args *args)
{
    return drop(state, args, args->x[0], args->y);
}

static enum status dropout_backward(void *state, const struct kernel_args *args)
{
    return drop(state, args, args->dy, args->dx[0]);
}

/* The input, or the output of pixels. */
static const struct extent *image_of(const struct layer_state *s) { return s->y.shape.rank == 3 ? &s->y : &s->x; }

/* Whether both orders differ. */
static bool transposes(const struct layer_state *s)
{
    const struct extent *image = image_of(s);
    return channels_first(image) && image->shape.dim[2] > 1 && image_pixels(image) > 1;
}

static enum status flatten_prepare(struct backend *backend, const struct graph *graph, const struct node *node,
                                   struct footprint *footprint, void **state)
{
    TRY(layer_state_prepare(backend, graph, node, footprint, state));
    const bool same = !transposes(*state);
    footprint->y_over_x = footprint->passes_gradient = same;
    footprint->implementation = same ? "copy" : "transposition";
    return ST_OK;
}

/* to = from, which is the image or what it becomes. */
static enum status move(const struct layer_state *s, const float *from, bool image, float *to)
{
    const int64_t rows = image ? image_of(s)->shape.dim[2] : image_pixels(image_of(s));
    const cudaStream_t stream = cuda_queue(s->backend, CLOCK_REORDER);
    if (transposes(s))
        launch_transpose(stream, from, s->x.batch, rows, s->x.elements / rows, to);
    else if (to != from)
        s->backend->kind->copy(s->backend, to, from, (size_t)s->x.count * sizeof *to);
    return cuda_queued("flatten");
}

static enum status flatten_forward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    return move(s, args->x[0], image_of(s) == &s->x, args->y);
}

static enum status flatten_backward(void *state, const struct kernel_args *args)
{
    const struct layer_state *s = state;
    return move(s, args->dy, image_of(s) == &s->y, args->dx[0]);
}

const struct kernel cuda_relu = {true, relu_prepare, relu_forward, relu_backward, free};
const struct kernel cuda_elementwise = {true, layer_state_prepare, elementwise_forward, elementwise_backward, free};
const struct kernel cuda_add = {true, layer_state_prepare, add_forward, NULL, free};
const struct kernel cuda_multiply = {true, layer_state_prepare, multiply_forward, multiply_backward, free};
const struct kernel cuda_dropout = {true, layer_state_prepare, dropout_forward, dropout_backward, free};
const struct kernel cuda_flatten = {true, flatten_prepare, flatten_forward, flatten_backward, free};
