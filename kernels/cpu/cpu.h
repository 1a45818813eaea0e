/* The kernels of the cpu backend, and their times. Every value lies in logical order, images as N H W C. */
#pragma once

#include "backend/backend.h"
#include "backend/layer_state.h"

extern const struct backend_kind backend_cpu;
extern const struct kernel cpu_concat, cpu_conv, cpu_linear, cpu_max_pool, cpu_avg_pool, cpu_global_avg_pool, cpu_relu,
    cpu_dropout, cpu_add, cpu_embedding, cpu_attention, cpu_layernorm, cpu_select, cpu_batch_norm, cpu_elementwise,
    cpu_upsample, cpu_cross_entropy, cpu_multiply, cpu_rms_norm, cpu_group_norm, cpu_class_token, cpu_latents,
    cpu_positions, cpu_conv_transpose, cpu_pad;

/* For struct backend_kind's takes_pool: Winograd's convolutions do. */
bool conv_takes_pool(struct backend *backend, const struct graph *graph, const struct node *node);

/* Adds the time since the last call, or since the op began, to a class. */
static inline void clock_lap(struct backend *backend, enum clock_class class)
{
    const uint64_t now = clock_now_ns();
    backend->clock_ns[class] += now - backend->lap_start;
    backend->lap_start = now;
}
