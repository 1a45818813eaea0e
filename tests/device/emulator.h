/* CUDA's language as far as launch.h allows it, for g++: included before a .cu file, it makes its kernels run on the
 * host device. */
#pragma once

#define BLOCKS_MOST 3 /* see launch.h */

#define __shared__ static
#define __launch_bounds__(...)

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "device.h"

extern dim3 gridDim, blockDim;
extern uint3 blockIdx, threadIdx;

/* line: of the call in the source; all threads must wait at the same one. */
void emulator_barrier(int line);
uint32_t emulator_exchange(int line, uint32_t mine, int lane_mask);

/* Queues the kernel; body runs one thread. An impossible grid is a cudaErrorInvalidConfiguration. */
void emulator_launch(const char *kernel, dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> body);

#define __syncthreads()                          emulator_barrier(__LINE__)
#define __shfl_xor_sync(mask, value, lane_mask)  emulator_shuffle(__LINE__, mask, value, lane_mask)
#define LAUNCH(kernel, grid, block, stream, ...) emulator_call(#kernel, kernel, grid, block, stream, __VA_ARGS__)

template <class T> T emulator_shuffle(int line, unsigned mask, T value, int lane_mask)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a word or two");
    uint32_t word[sizeof(T) / 4];
    if (mask != 0xffffffffu) device_wrong("line %d: a shuffle among a part of a warp", line);
    memcpy(word, &value, sizeof value);
    for (uint32_t &w : word) w = emulator_exchange(line, w, lane_mask);
    memcpy(&value, word, sizeof value);
    return value;
}

/* A kernel's pointers are device memory or page-locked. */
template <class T> void emulator_check(const char *kernel, int place, T argument)
{
    if constexpr (std::is_pointer_v<T>)
        if (argument != nullptr && !device_holds((const void *)argument, 0) &&
            !device_pinned((const void *)argument, 0))
            device_wrong("%s: argument %d, %p, is not device memory", kernel, place, (const void *)argument);
}

template <class... P, class... A>
void emulator_call(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream, A... arguments)
{
    std::tuple<P...> frozen(static_cast<P>(arguments)...);
    std::apply(
        [&](P... p) {
            [[maybe_unused]] int place = 0;
            (emulator_check(name, ++place, p), ...);
        },
        frozen);
    emulator_launch(name, grid, block, stream, [=] { std::apply(kernel, frozen); });
}

/* By reference to a __device__ variable. */
template <class T> cudaError_t cudaGetSymbolAddress(void **address, const T &symbol)
{
    return device_symbol(address, &symbol, sizeof symbol);
}

using std::max;
using std::min;
template <class T> T __ldg(const T *p) { return *p; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
