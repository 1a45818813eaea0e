#include "device_mirror.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

bool device_is_real(void)
{
    const char *device = getenv("REMATCH_DEVICE");
    return device != NULL && strcmp(device, "real") == 0;
}

bool backend_is_here(enum status opened)
{
    cr_assert(opened == ST_OK || (opened == ST_MISSING && !device_is_real()), "%s", status_message());
    return opened == ST_OK;
}

bool backend_opens(const char *name)
{
    struct backend *backend;
    const bool opens = backend_is_here(backend_open(name, &(struct backend_options){0}, &backend));
    backend_close(backend);
    return opens;
}

bool backend_has(const char *name, const char *layer)
{
    const struct node node = {.layer = layer_find(layer)};
    return backend_find(name)->kernel(&node) != NULL;
}

static void *reserve(struct backend *backend, size_t bytes)
{
    void *block;
    cr_assert(backend->kind->reserve(backend, bytes, &block) == ST_OK, "%s", status_message());
    return block;
}

/* A moment of the device: the position, and behind it the step. */
enum { MOMENT = 16, STEP = 8 };

void mirror_open(struct mirror *mirror, struct backend *backend)
{
    *mirror = (struct mirror){.backend = backend};
    if (backend->kind->device) mirror->moment = reserve(backend, MOMENT);
}

void mirror_close(struct mirror *mirror)
{
    struct backend *backend = mirror->backend;
    if (!backend->kind->device) return;
    for (int i = 0; i < mirror->blocks; i++)
        backend->kind->unreserve(backend, mirror->block[i].there, mirror->block[i].bytes);
    backend->kind->unreserve(backend, mirror->moment, MOMENT);
}

void mirror_add(struct mirror *mirror, void *host, size_t bytes)
{
    if (!mirror->backend->kind->device || bytes == 0) return;
    cr_assert(mirror->blocks < MIRROR_MOST);
    const int i = mirror->blocks++;
    mirror->block[i].host = host;
    mirror->block[i].bytes = bytes;
    mirror->block[i].there = reserve(mirror->backend, bytes);
}

static void *twin(const struct mirror *mirror, const void *host)
{
    const char *at = host;
    for (int i = 0; i < mirror->blocks; i++) {
        const char *from = mirror->block[i].host;
        if (at >= from && at < from + mirror->block[i].bytes) return (char *)mirror->block[i].there + (at - from);
    }
    cr_assert(host == NULL, "an argument that is not in any block");
    return NULL;
}

static struct kernel_args send(struct mirror *mirror, const struct kernel_args *args)
{
    struct backend *backend = mirror->backend;
    struct kernel_args there = *args;
    for (int i = 0; i < mirror->blocks; i++)
        backend->kind->upload(backend, mirror->block[i].there, mirror->block[i].host, mirror->block[i].bytes);
    for (int i = 0; i < NODE_INPUTS_MAX; i++)
        there.x[i] = twin(mirror, args->x[i]), there.dx[i] = twin(mirror, args->dx[i]);
    for (int i = 0; i < NODE_PARAMETERS_MAX; i++) {
        there.parameters[i] = twin(mirror, args->parameters[i]);
        there.gradients[i] = twin(mirror, args->gradients[i]);
    }
    for (int i = 0; i < NODE_STATES_MAX; i++) there.states[i] = twin(mirror, args->states[i]);
    there.y = twin(mirror, args->y), there.dy = twin(mirror, args->dy), there.once = twin(mirror, args->once);
    there.saved = twin(mirror, args->saved), there.scratch = twin(mirror, args->scratch);
    there.labels = twin(mirror, args->labels), there.divisor = twin(mirror, args->divisor);
    there.draw.mask = twin(mirror, args->draw.mask);
    if (mirror->passes++ % 2 == 0) return there;
    backend->kind->upload(backend, mirror->moment, &args->draw.position, sizeof args->draw.position);
    backend->kind->upload(backend, (char *)mirror->moment + STEP, &args->draw.step, sizeof args->draw.step);
    there.draw.position_there = mirror->moment;
    there.draw.step_there = (const uint32_t *)(const void *)((char *)mirror->moment + STEP);
    there.draw.position = there.draw.step = 12345;
    return there;
}

static enum status fetch(struct mirror *mirror)
{
    struct backend *backend = mirror->backend;
    const enum status status = backend->kind->wait(backend);
    for (int i = 0; i < mirror->blocks; i++)
        backend->kind->download(backend, mirror->block[i].host, mirror->block[i].there, mirror->block[i].bytes);
    return status;
}

enum status mirror_forward(struct mirror *mirror, const struct kernel *kernel, void *state,
                           const struct kernel_args *args)
{
    if (!mirror->backend->kind->device) return kernel->forward(state, args);
    const struct kernel_args there = send(mirror, args);
    TRY(kernel->forward(state, &there));
    return fetch(mirror);
}

enum status mirror_backward(struct mirror *mirror, const struct kernel *kernel, void *state,
                            const struct kernel_args *args, unsigned parts)
{
    struct kernel_args with_parts = *args;
    with_parts.parts = parts;
    if (!mirror->backend->kind->device) return kernel->backward(state, &with_parts);
    const struct kernel_args there = send(mirror, &with_parts);
    TRY(kernel->backward(state, &there));
    return fetch(mirror);
}
