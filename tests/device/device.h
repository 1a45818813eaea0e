/* The host device: a stand-in for a GPU, on which the tests run the CUDA backend without one. Its parts (the runtime,
 * the emulator of kernels, cuDNN's and cuBLAS's functions) share this header.
 *
 * Work runs when the host waits for it, stream by stream, never when it is queued; the host cannot access device
 * memory; a captured graph keeps the arguments of its launches. So a program that works on a device by luck alone fails
 * here. Errors of the program end it with a message.
 *
 * REMATCH_HOST_DEVICE in the environment: settings separated by commas. absent: there is no device; memory=BYTES: its
 * memory, by default 1 GiB; lost=N: the device is lost after N pieces of work. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <functional>

/* Queues work on a stream, or adds it to the stream's capture. The error is kept for
 * cudaPeekAtLastError(), too. */
cudaError_t device_queue(cudaStream_t stream, std::function<void()> work);

/* Declares that the next work queued on the stream writes there. Ends the program if work that it does not wait for
 * writes there too. */
void device_claim(cudaStream_t stream, const void *memory, size_t bytes);

/* Keeps the error, unless it is cudaSuccess, for cudaGetLastError(); returns it. */
cudaError_t device_error(cudaError_t error);

/* Whether the device is usable: cudaSuccess, or the error that every call returns. */
cudaError_t device_status();

/* Whether bytes from there on lie in one block of device memory, or of page-locked host memory. */
bool device_holds(const void *memory, size_t bytes);
bool device_pinned(const void *memory, size_t bytes);

/* The address of a device variable of bytes bytes, which is device memory from now on. */
cudaError_t device_symbol(void **address, const void *symbol, size_t bytes);

/* Fills with signalling NaNs, as floats. */
void device_spoil(void *memory, size_t bytes);

/* x as an operand in TF32: rounded to 11 bits of mantissa. */
float device_tf32(float x);

/* Ends the program: the code under test is wrong. */
[[noreturn]] void device_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The number of a setting of REMATCH_HOST_DEVICE; 1 if it has none; otherwise, if the setting is missing. */
size_t device_option(const char *word, size_t otherwise);

/* Opens and closes device memory to the host; calls nest. */
void device_open_memory(bool open);

/* Runs all queued work. */
void device_drain_all();

/* For calls that are potentially unsafe: cudaErrorStreamCaptureUnsupported while a stream is captured, whose capture is
 * lost by it. */
cudaError_t device_outside_capture();

/* Every function of the runtime begins with one of these, which return the error of an unusable device. */
#define USABLE()                                                                                                       \
    if (device_status() != cudaSuccess) return device_status()
#define OUTSIDE()                                                                                                      \
    USABLE();                                                                                                          \
    if (device_outside_capture() != cudaSuccess) return cudaErrorStreamCaptureUnsupported
