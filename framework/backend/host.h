/* Members of struct backend_kind that all backends with the host's memory share. */
#pragma once

#include "backend/backend.h"

/* For open: the moment and the outcome are in the host's memory. */
void host_open(struct backend *backend);
void host_close(struct backend *backend);
/* Every value in logical order. */
enum status host_arrange(struct backend *backend, struct graph *graph);
void *host_allocate(struct backend *backend, size_t bytes);
void host_release(struct backend *backend, void *buffer);
void host_position(struct backend *backend, uint64_t *to, uint64_t offset);
void host_mask(struct backend *backend, const struct draw *draw, double rate, int64_t elements, int64_t batch);
double host_squares(struct backend *backend, const float *x, size_t count);
struct digest host_digest(struct backend *backend, const void *data, size_t bytes);
void host_phase(struct backend *backend, enum phase phase);
enum status host_step(struct backend *backend, bool same, enum status (*body)(void *self), void *self);
enum status host_wait(struct backend *backend);
extern const struct update_kind host_update;

/* All of them, in a struct backend_kind. */
#define HOST_ROWS                                                                                                      \
    .close = host_close, .arrange = host_arrange, .update = &host_update, .allocate = host_allocate,                   \
    .release = host_release, .position = host_position, .mask = host_mask, .squares = host_squares,                    \
    .digest = host_digest, .phase = host_phase, .step = host_step, .wait = host_wait
