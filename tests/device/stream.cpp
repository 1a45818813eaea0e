/* The host device's streams, events and graphs.
 *
 * A stream's work stays queued until the host waits for it or for a later event, or until another stream that waits for
 * such an event runs; only the necessary work runs then. A captured graph is a list of the same pieces of work, queued
 * at each launch: work of the stream that began the capture on the stream of the launch, work of each stream that
 * joined it by an event on a stream of the graph's own.
 *
 * Copies, fills and convolutions claim the memory they write; claiming memory that another stream claimed, without an
 * order between both, is an error, although the work here runs sequentially. */
#include "device.h"

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

namespace
{
struct operation {
    std::function<void()> run; /* may be empty */
    cudaEvent_t record = nullptr, wait = nullptr;
    uint64_t ticket = 0; /* which of the event's recordings */
    size_t lane = 0;     /* in a graph: which of its streams */
};

/* By stream: the last of its claims that precedes the next work. */
using knowledge = std::map<cudaStream_t, uint64_t>;

struct claim {
    size_t bytes;
    cudaStream_t stream;
    uint64_t number;
};
} // namespace

struct CUevent_st {
    uint64_t recorded, done; /* recordings queued, and done */
    cudaStream_t stream;     /* where it was queued last */
    double ms;
    bool timed;
    cudaGraph_t capture; /* in which it was recorded, not to be seen outside; NULL: in none, or that has ended */
    knowledge known;
};

struct CUgraph_st {
    std::vector<operation> operations;
    std::vector<cudaStream_t> streams; /* while it is captured: the one that began it first */
    std::vector<cudaEvent_t> events;
    bool spoiled;
};

struct CUgraphExec_st {
    std::vector<operation> operations;
    std::vector<cudaStream_t> lanes; /* for what is not the first stream's */
};

struct CUstream_st {
    std::deque<operation> queue;
    bool blocking;
    cudaGraph_t capture; /* NULL: it is not being captured */
    size_t lane;         /* in it */
    knowledge known;
};

namespace
{
std::vector<cudaStream_t> streams;
std::map<const char *, claim> claims; /* by where they begin; they do not overlap */
cudaError_t kept;                     /* for cudaGetLastError() */
bool lost;
uint64_t done;

double now_ms()
{
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void drain(cudaStream_t stream, cudaEvent_t event, uint64_t ticket);

void perform(const operation &o)
{
    if (o.wait != nullptr && o.wait->done < o.ticket) drain(o.wait->stream, o.wait, o.ticket);
    static const uint64_t last = device_option("lost", SIZE_MAX);
    if (o.run && done++ >= last) lost = true;
    if (o.run && !lost) o.run();
    if (o.record != nullptr) o.record->done = o.ticket, o.record->ms = now_ms();
}

/* Runs work until the event is recorded, or all work if there is no event. */
void drain(cudaStream_t stream, cudaEvent_t event, uint64_t ticket)
{
    if (stream->queue.empty()) return;
    device_open_memory(true);
    while (!stream->queue.empty() && (event == nullptr || event->done < ticket)) {
        const operation next = stream->queue.front();
        stream->queue.pop_front();
        perform(next);
    }
    device_open_memory(false);
}

void queue(cudaStream_t stream, operation o)
{
    if (o.record != nullptr) o.ticket = ++o.record->recorded, o.record->stream = stream;
    if (o.wait != nullptr) o.ticket = o.wait->recorded;
    stream->queue.push_back(o);
}

/* The legacy stream: ordered with all streams but non-blocking ones. */
void drain_blocking()
{
    for (cudaStream_t s : streams)
        if (s->blocking) drain(s, nullptr, 0);
}

cudaError_t add(cudaStream_t stream, const operation &o)
{
    if (device_status() != cudaSuccess) return device_status();
    if (stream == nullptr) {
        if (device_outside_capture() != cudaSuccess) return cudaErrorStreamCaptureImplicit;
        drain_blocking();
        device_open_memory(true);
        perform(o);
        device_open_memory(false);
    } else if (stream->capture == nullptr) {
        queue(stream, o);
    } else if (stream->capture->spoiled) {
        return device_error(cudaErrorStreamCaptureInvalidated);
    } else {
        stream->capture->operations.push_back(o);
        stream->capture->operations.back().lane = stream->lane;
    }
    return device_status();
}

void learn(knowledge &known, const knowledge &more)
{
    for (const auto &[stream, number] : more) known[stream] = std::max(known[stream], number);
}

/* The host has waited for the stream: all work queued from now on, on any stream, comes after its work. */
void all_learn(cudaStream_t stream)
{
    for (cudaStream_t s : streams)
        if (s != stream) learn(s->known, stream->known);
}

/* Whether every stream that joined the capture ends with an event that another stream waits for. */
bool is_joined(const CUgraph_st &graph)
{
    for (size_t lane = 1; lane < graph.streams.size(); lane++) {
        const operation *last = nullptr;
        for (const operation &o : graph.operations)
            if (o.lane == lane)
                last = &o;
            else if (last != nullptr && last->record != nullptr && o.wait == last->record)
                last = nullptr;
        if (last != nullptr) return false;
    }
    return true;
}

/* The stream joins the event's capture. */
cudaError_t join(cudaStream_t stream, cudaGraph_t capture)
{
    if (stream->capture == nullptr) {
        stream->capture = capture;
        stream->lane = capture->streams.size();
        capture->streams.push_back(stream);
    }
    return stream->capture == capture ? cudaSuccess : device_error(cudaErrorStreamCaptureMerge);
}

/* Checks a copy's kind, and that its device memory lies in one block. */
bool copies(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyDefault)
        return device_holds(to, bytes) == to_device && device_holds(from, bytes) == from_device;
    return device_holds(to, bytes) || device_holds(from, bytes);
}

bool locked(const void *memory, size_t bytes) { return device_holds(memory, bytes) || device_pinned(memory, bytes); }
} // namespace

cudaError_t device_error(cudaError_t error)
{
    if (error != cudaSuccess) kept = error;
    return error;
}

cudaError_t device_status()
{
    static const bool absent = device_option("absent", 0);
    if (absent) return device_error(cudaErrorNoDevice);
    return lost ? device_error(cudaErrorLaunchFailure) : cudaSuccess;
}

cudaError_t device_outside_capture()
{
    cudaError_t error = cudaSuccess;
    for (cudaStream_t s : streams)
        if (s->capture != nullptr) s->capture->spoiled = true, error = device_error(cudaErrorStreamCaptureUnsupported);
    return error;
}

void device_drain_all()
{
    for (cudaStream_t s : streams) drain(s, nullptr, 0);
    claims.clear();
}

cudaError_t device_queue(cudaStream_t stream, std::function<void()> work) { return add(stream, {std::move(work)}); }

void device_claim(cudaStream_t stream, const void *memory, size_t bytes)
{
    if (stream == nullptr || bytes == 0) return;
    const char *const from = (const char *)memory;
    auto it = claims.lower_bound(from);
    if (it != claims.begin() && std::prev(it)->first + std::prev(it)->second.bytes > from) --it;
    while (it != claims.end() && it->first < from + bytes) {
        const claim &other = it->second;
        if (other.stream != stream && stream->known[other.stream] < other.number)
            device_wrong("two streams write to %p, and neither waits for the other", (const void *)it->first);
        it = claims.erase(it);
    }
    claims[from] = {bytes, stream, ++stream->known[stream]};
}

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    USABLE();
    *stream = new CUstream_st{{}, !(flags & cudaStreamNonBlocking), nullptr, 0, {}};
    streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!lost) drain(stream, nullptr, 0);
    std::erase(streams, stream);
    std::erase_if(claims, [=](const auto &one) { return one.second.stream == stream; });
    delete stream;
    return device_status();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    OUTSIDE();
    if (stream != nullptr)
        drain(stream, nullptr, 0), all_learn(stream);
    else
        drain_blocking();
    return device_status();
}

cudaError_t cudaDeviceSynchronize(void)
{
    OUTSIDE();
    device_drain_all();
    return device_status();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    USABLE();
    if (event->capture != nullptr) {
        if (join(stream, event->capture) != cudaSuccess) return cudaErrorStreamCaptureMerge;
    } else if (stream->capture != nullptr && !(flags & cudaEventWaitExternal)) {
        stream->capture->spoiled = true;
        return device_error(cudaErrorStreamCaptureIsolation);
    }
    learn(stream->known, event->known);
    return add(stream, {{}, nullptr, event});
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    USABLE();
    *event = new CUevent_st{0, 0, nullptr, 0, !(flags & cudaEventDisableTiming), nullptr, {}};
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (event->done < event->recorded && !lost) device_drain_all();
    delete event;
    return device_status();
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    USABLE();
    event->capture = flags & cudaEventRecordExternal ? nullptr : stream->capture;
    if (event->capture != nullptr) event->capture->events.push_back(event);
    event->known = stream->known;
    return add(stream, {{}, event, nullptr});
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    OUTSIDE();
    if (event->capture != nullptr) return device_error(cudaErrorCapturedEvent);
    if (event->done < event->recorded) drain(event->stream, event, event->recorded);
    for (cudaStream_t s : streams) learn(s->known, event->known);
    return device_status();
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    USABLE();
    if (!start->timed || !end->timed || start->recorded == 0 || end->recorded == 0)
        return device_error(cudaErrorInvalidResourceHandle);
    if (start->done < start->recorded || end->done < end->recorded) return device_error(cudaErrorNotReady);
    *ms = (float)(end->ms - start->ms);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    OUTSIDE();
    if (stream == nullptr) return device_error(cudaErrorStreamCaptureUnsupported);
    stream->capture = new CUgraph_st{{}, {stream}, {}, false};
    stream->lane = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = stream->capture;
    if (*graph == nullptr) return device_error(cudaErrorIllegalState);
    if (stream->lane != 0) return device_error(cudaErrorStreamCaptureUnmatched);
    const bool joined = is_joined(**graph);
    for (cudaStream_t s : (*graph)->streams) s->capture = nullptr;
    for (cudaEvent_t e : (*graph)->events) e->capture = nullptr;
    if (!(*graph)->spoiled && joined) return device_status();
    const cudaError_t error = joined ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined;
    delete *graph;
    *graph = nullptr;
    return device_error(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    *status = stream == nullptr || stream->capture == nullptr ? cudaStreamCaptureStatusNone
              : stream->capture->spoiled                      ? cudaStreamCaptureStatusInvalidated
                                                              : cudaStreamCaptureStatusActive;
    return device_status();
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    OUTSIDE();
    *exec = new CUgraphExec_st{graph->operations, std::vector<cudaStream_t>(graph->streams.size() - 1)};
    for (cudaStream_t &lane : (*exec)->lanes) cudaStreamCreateWithFlags(&lane, cudaStreamNonBlocking);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return device_outside_capture(); }

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    OUTSIDE();
    for (const operation &o : exec->operations) queue(o.lane == 0 ? stream : exec->lanes[o.lane - 1], o);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    if (nodes != nullptr) return device_error(cudaErrorNotSupported);
    *count = graph->operations.size();
    return device_status();
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return device_status();
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    for (cudaStream_t lane : exec->lanes) cudaStreamDestroy(lane);
    delete exec;
    return device_status();
}

/* For memory that is not page-locked the host waits for the stream; such a copy cannot be captured. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    USABLE();
    if (bytes == 0) return cudaSuccess;
    if (!copies(to, from, bytes, kind)) return device_error(cudaErrorInvalidValue);
    const bool waits = !locked(to, bytes) || !locked(from, bytes);
    if (waits && device_outside_capture() != cudaSuccess) return cudaErrorStreamCaptureUnsupported;
    if (device_holds(to, bytes)) device_claim(stream, to, bytes);
    const cudaError_t error = device_queue(stream, [=] { memmove(to, from, bytes); });
    return error == cudaSuccess && waits ? cudaStreamSynchronize(stream) : error;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    OUTSIDE();
    return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

/* On the device alone. */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    USABLE();
    if (kind != cudaMemcpyDeviceToDevice || width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
    for (size_t i = 0; i < height; i++) {
        const cudaError_t error =
            cudaMemcpyAsync((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width, kind, stream);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    if (!device_holds(to, bytes)) return device_error(cudaErrorInvalidValue);
    if (bytes == 0) return cudaSuccess;
    device_claim(stream, to, bytes);
    return device_queue(stream, [=] { memset(to, value, bytes); });
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    OUTSIDE();
    return cudaMemsetAsync(to, value, bytes, nullptr);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream)
{
    void *to;
    device_symbol(&to, symbol, offset + bytes);
    return cudaMemcpyAsync((char *)to + offset, from, bytes, kind, stream);
}

cudaError_t cudaPeekAtLastError(void) { return lost ? cudaErrorLaunchFailure : kept; }

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = cudaPeekAtLastError();
    kept = cudaSuccess;
    return error;
}
}
