/* The ref backend: every layer's reference kernel on plain host memory, all values in logical order. Other backends are
 * tested against it. */
#include "backend/host.h"

#include <stdlib.h>
#include <string.h>

#include "backend/layer_state.h"
#include "base/units.h"

static enum status ref_open(struct backend *backend)
{
    host_open(backend);
    backend->isa = "portable";
    backend->libraries = "none";
    return ST_OK;
}

static const struct kernel *ref_kernel(const struct node *node) { return &node->layer->reference; }

static bool ref_takes_pool(struct backend *backend, const struct graph *graph, const struct node *node)
{
    (void)backend, (void)graph;
    return !strcmp(node->layer->name, "conv");
}

static enum status ref_reserve(struct backend *backend, size_t bytes, void **block)
{
    (void)backend;
    char text[UNIT_TEXT];
    *block = bytes <= SIZE_MAX - ALIGNMENT ? aligned_alloc(ALIGNMENT, round_up(bytes ? bytes : 1)) : NULL;
    if (!*block) return fail(ST_FAILED, "cannot reserve %s: out of memory", exact_bytes_text(bytes, text));
    memset(*block, 0, bytes);
    return ST_OK;
}

static void ref_unreserve(struct backend *backend, void *block, size_t bytes)
{
    (void)backend, (void)bytes;
    free(block);
}

static void ref_copy(struct backend *backend, void *to, const void *from, size_t bytes)
{
    (void)backend;
    memmove(to, from, bytes);
}

static void ref_fill(struct backend *backend, void *to, uint32_t pattern, size_t bytes)
{
    (void)backend;
    for (size_t i = 0; i < bytes / sizeof pattern; i++) ((uint32_t *)to)[i] = pattern;
}

static void ref_add(struct backend *backend, float *out, const float *a, const float *b, size_t count)
{
    (void)backend;
    for (size_t i = 0; i < count; i++) out[i] = a[i] + b[i];
}

const struct backend_kind backend_ref = {
    .name = "ref",
    .layouts = 1u << LAYOUT_AUTO | 1u << LAYOUT_CHANNELS_LAST,
    .precisions = 1u << PRECISION_FP32,
    .open = ref_open,
    .kernel = ref_kernel,
    .takes_pool = ref_takes_pool,
    .reserve = ref_reserve,
    .unreserve = ref_unreserve,
    .upload = ref_copy,
    .download = ref_copy,
    .copy = ref_copy,
    .fill = ref_fill,
    .add = ref_add,
    HOST_ROWS,
};
