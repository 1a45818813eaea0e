/* The host device: a stand-in for a GPU on which the tests run the CUDA backend where there is none. This is what its
 * parts (the runtime, the emulator of kernels, cuDNN's and cuBLAS's functions) share.
 *
 * Work is not done when it is queued but when the host waits for it, stream by stream, and never before; device memory
 * cannot be touched by the host meanwhile; a captured graph holds the arguments of its launches as they were. So what
 * works by luck on a device does not work here. What only a broken program does ends it with a message.
 *
 * REMATCH_HOST_DEVICE in the environment: words with a comma between them. absent: there is no device; memory=BYTES:
 * what it has, else 1 GiB; lost=N: it is lost after N pieces of work. */
#ifndef REMATCH_TEST_DEVICE_H
#define REMATCH_TEST_DEVICE_H

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <functional>

/* Queues work on a stream, or records it where the stream is being captured. The error is kept for
 * cudaPeekAtLastError(), too. */
cudaError_t device_queue(cudaStream_t stream, std::function<void()> work);

/* Says that work queued on the stream next writes there. Ends the program where other work, which that does not wait
 * for, does. */
void device_claim(cudaStream_t stream, const void *memory, size_t bytes);

/* Keeps the error, unless it is cudaSuccess, for cudaGetLastError(); returns it. */
cudaError_t device_error(cudaError_t error);

/* Whether the device can be used: cudaSuccess, or what every call returns. */
cudaError_t device_status();

/* Whether bytes from there on lie in one block of device memory, or of page-locked host memory. */
bool device_holds(const void *memory, size_t bytes);
bool device_pinned(const void *memory, size_t bytes);

/* The address of a device variable of bytes bytes, which is device memory from now on. */
cudaError_t device_symbol(void **address, const void *symbol, size_t bytes);

/* Fills with what nobody should read, signalling NaNs as float. */
void device_spoil(void *memory, size_t bytes);

/* What tensor cores take of x as an operand in TF32: 11 bits of its mantissa, rounded. */
float device_tf32(float x);

/* Ends the program: the code under test is wrong. */
[[noreturn]] void device_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The number of a word of REMATCH_HOST_DEVICE; 1 where it has none; otherwise, where the word is not there. */
size_t device_option(const char *word, size_t otherwise);

/* Lets the host at the device's memory, as often as it is asked to, until it is told as often to close it. */
void device_open_memory(bool open);

/* Does all that was queued. */
void device_drain_all();

/* For calls that are potentially unsafe: cudaErrorStreamCaptureUnsupported while a stream is captured, whose capture is
 * lost by it. */
cudaError_t device_outside_capture();

/* What functions of the runtime begin with: they return the error that bars them. */
#define USABLE()                                                                                                       \
    if (device_status() != cudaSuccess) return device_status()
#define OUTSIDE()                                                                                                      \
    USABLE();                                                                                                          \
    if (device_outside_capture() != cudaSuccess) return cudaErrorStreamCaptureUnsupported

#endif
