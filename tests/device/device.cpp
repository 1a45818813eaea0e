/* The host device's properties. */
#include "device.h"

#include <cstdio>
#include <cstring>

#define NAMES(X)                                                                                                       \
    X(cudaSuccess)                                                                                                     \
    X(cudaErrorInvalidValue)                                                                                           \
    X(cudaErrorMemoryAllocation)                                                                                       \
    X(cudaErrorInvalidConfiguration)                                                                                   \
    X(cudaErrorNoDevice)                                                                                               \
    X(cudaErrorInvalidDevice)                                                                                          \
    X(cudaErrorInvalidResourceHandle)                                                                                  \
    X(cudaErrorIllegalState)                                                                                           \
    X(cudaErrorNotReady)                                                                                               \
    X(cudaErrorLaunchFailure)                                                                                          \
    X(cudaErrorNotSupported)                                                                                           \
    X(cudaErrorStreamCaptureUnsupported)                                                                               \
    X(cudaErrorStreamCaptureInvalidated)                                                                               \
    X(cudaErrorStreamCaptureMerge)                                                                                     \
    X(cudaErrorStreamCaptureUnmatched)                                                                                 \
    X(cudaErrorStreamCaptureUnjoined)                                                                                  \
    X(cudaErrorStreamCaptureIsolation)                                                                                 \
    X(cudaErrorCapturedEvent)                                                                                          \
    X(cudaErrorStreamCaptureImplicit)

extern "C" {

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define NAME(error)                                                                                                    \
    case error:                                                                                                        \
        return #error;
        NAMES(NAME)
    default:
        return "an error";
    }
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : cudaGetErrorName(error);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = device_option("absent", 0) ? 0 : 1;
    return device_status();
}

cudaError_t cudaSetDevice(int device)
{
    return device_status() != cudaSuccess ? device_status() : device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return device_status();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    if (device != 0) return cudaErrorInvalidDevice;
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "host device");
    properties->major = 9;
    properties->multiProcessorCount = 4;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->sharedMemPerBlock = 48 << 10;
    properties->totalGlobalMem = device_option("memory", (size_t)1 << 30);
    return device_status();
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}
}

float device_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (~bits & 0x7f800000) bits = (bits + 0x1000) & ~UINT32_C(0x1fff);
    memcpy(&x, &bits, sizeof x);
    return x;
}
