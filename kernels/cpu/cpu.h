/* What the kernels of the cpu backend share: the backend's state, layouts of values, times. */
#pragma once

#include "backend/backend.h"
#include "backend/layer_state.h"
#include "dnnl.h"

struct cpu {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    enum order blocked; /* how images are blocked on this machine */
    char libraries[64];
};

extern const struct backend_kind backend_cpu;
extern const struct kernel cpu_concat, cpu_conv, cpu_linear, cpu_max_pool, cpu_avg_pool, cpu_global_avg_pool,
    cpu_flatten, cpu_relu, cpu_dropout, cpu_add, cpu_embedding, cpu_attention, cpu_layernorm, cpu_select,
    cpu_batch_norm, cpu_batch_norm_add, cpu_elementwise, cpu_upsample, cpu_cross_entropy, cpu_multiply, cpu_rms_norm,
    cpu_group_norm;

static inline struct cpu *cpu_of(const struct backend *backend) { return backend->vendor; }

/* Sets the padded channels of a blocked image to 0, in the last block of each sample. */
void zero_padding(const struct extent *e, float *y);

/* Adds the time since the last call, or since the op began, to a class. */
static inline void clock_lap(struct backend *backend, enum clock_class class)
{
    const uint64_t now = clock_now_ns();
    backend->clock_ns[class] += now - backend->lap_start;
    backend->lap_start = now;
}
