/* The host device's memory: one range of addresses that is accessible only while queued work runs. Blocks start at odd
 * multiples of 256 bytes, are filled with signalling NaNs when allocated and freed, and have a guard behind. */
#include "device.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <sys/mman.h>

namespace
{
enum { UNIT = 512, ALIGNED = 256, GUARD = 0x7fbadbad };

struct {
    char *base; /* an odd multiple of 256 */
    size_t total, used;
    std::map<char *, size_t> blocks, pinned; /* bytes as asked for */
    std::map<char *, size_t> symbols;        /* device variables that somebody asked the address of */
    int opened;
} memory;

size_t rounded(size_t bytes) { return (bytes + UNIT - 1) / UNIT * UNIT; }

bool holds(const std::map<char *, size_t> &blocks, const void *where, size_t bytes)
{
    char *at = (char *)where;
    auto next = blocks.upper_bound(at);
    if (next == blocks.begin()) return false;
    const auto &[start, size] = *--next;
    return (size_t)(at - start) <= size && bytes <= size - (size_t)(at - start);
}

void reserve()
{
    if (memory.base != nullptr) return;
    memory.total = device_option("memory", (size_t)1 << 30);
    /* Addresses for twice as much, so that gaps between blocks are no lack of memory. */
    void *range = mmap(nullptr, 2 * memory.total + UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) device_wrong("no addresses for %zu bytes", memory.total);
    memory.base = (char *)range + ALIGNED;
}

/* The guard behind a block: at least 512 bytes up to where the next block may start. */
size_t guard_bytes(size_t bytes) { return rounded(bytes) + UNIT - bytes; }

char *place(size_t bytes)
{
    char *at = memory.base;
    for (const auto &[start, size] : memory.blocks) {
        if ((size_t)(start - at) >= bytes + guard_bytes(bytes)) break;
        at = start + size + guard_bytes(size);
    }
    const size_t room = 2 * memory.total - (size_t)(at - memory.base);
    return bytes + guard_bytes(bytes) <= room ? at : nullptr;
}

cudaError_t take(void **block, size_t bytes)
{
    reserve();
    *block = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (bytes > memory.total || rounded(bytes) > memory.total - memory.used) return cudaErrorMemoryAllocation;
    char *at = place(bytes);
    if (at == nullptr) return cudaErrorMemoryAllocation;
    device_open_memory(true);
    device_spoil(at, bytes + guard_bytes(bytes));
    device_open_memory(false);
    memory.blocks[at] = bytes;
    memory.used += rounded(bytes);
    *block = at;
    return cudaSuccess;
}

void give_back(char *at)
{
    const size_t bytes = memory.blocks.at(at);
    device_open_memory(true);
    for (size_t i = (bytes + 3) / 4 * 4; i < bytes + guard_bytes(bytes); i += 4)
        if (*(int *)(at + i) != GUARD) device_wrong("written %zu bytes past a block of %zu", i - bytes, bytes);
    device_spoil(at, bytes);
    device_open_memory(false);
    memory.blocks.erase(at);
    memory.used -= rounded(bytes);
}
} // namespace

void device_wrong(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "host device: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    abort();
}

size_t device_option(const char *word, size_t otherwise)
{
    const char *text = getenv("REMATCH_HOST_DEVICE");
    const std::string words = std::string(",") + (text != nullptr ? text : "") + ",";
    const size_t at = words.find(std::string(",") + word + "=");
    if (at != std::string::npos) return strtoull(words.c_str() + at + strlen(word) + 2, nullptr, 10);
    return words.find(std::string(",") + word + ",") != std::string::npos ? 1 : otherwise;
}

void device_open_memory(bool open)
{
    reserve();
    if (open ? memory.opened++ > 0 : --memory.opened > 0) return;
    mprotect(memory.base - ALIGNED, 2 * memory.total + UNIT, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void device_spoil(void *block, size_t bytes)
{
    const int pattern = GUARD;
    for (size_t i = 0; i < bytes; i += 4) memcpy((char *)block + i, &pattern, bytes - i < 4 ? bytes - i : 4);
}

bool device_holds(const void *where, size_t bytes)
{
    return holds(memory.blocks, where, bytes) || holds(memory.symbols, where, bytes);
}

bool device_pinned(const void *where, size_t bytes) { return holds(memory.pinned, where, bytes); }

cudaError_t device_symbol(void **address, const void *symbol, size_t bytes)
{
    USABLE();
    size_t &known = memory.symbols[(char *)symbol]; /* of a part of it before, perhaps */
    if (known < bytes) known = bytes;
    *address = (void *)symbol;
    return cudaSuccess;
}

extern "C" {

cudaError_t cudaMalloc(void **block, size_t bytes)
{
    OUTSIDE();
    return device_error(take(block, bytes));
}

cudaError_t cudaFree(void *block)
{
    OUTSIDE();
    if (block == nullptr) return cudaSuccess;
    device_drain_all();
    if (memory.blocks.count((char *)block) == 0) return device_error(cudaErrorInvalidValue);
    give_back((char *)block);
    return device_status();
}

cudaError_t cudaMallocAsync(void **block, size_t bytes, cudaStream_t)
{
    OUTSIDE();
    return device_error(take(block, bytes));
}

cudaError_t cudaFreeAsync(void *block, cudaStream_t stream)
{
    OUTSIDE();
    if (block == nullptr) return cudaSuccess;
    if (memory.blocks.count((char *)block) == 0) return device_error(cudaErrorInvalidValue);
    return device_queue(stream, [=] { give_back((char *)block); });
}

cudaError_t cudaMallocHost(void **block, size_t bytes)
{
    OUTSIDE();
    *block = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (*block == nullptr) return device_error(cudaErrorMemoryAllocation);
    device_spoil(*block, bytes);
    memory.pinned[(char *)*block] = bytes;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **block, size_t bytes, unsigned) { return cudaMallocHost(block, bytes); }

/* Host memory stays valid when the device is lost. */
cudaError_t cudaFreeHost(void *block)
{
    if (device_outside_capture() != cudaSuccess) return cudaErrorStreamCaptureUnsupported;
    if (block == nullptr) return cudaSuccess;
    device_drain_all();
    if (memory.pinned.erase((char *)block) == 0) return device_error(cudaErrorInvalidValue);
    free(block);
    return device_status();
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    USABLE();
    reserve();
    *total = memory.total;
    *unused = memory.total - memory.used;
    return cudaSuccess;
}
}
