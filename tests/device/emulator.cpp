/* Runs a kernel's threads on the host, one after the other, each until it ends or waits for others.
 *
 * Threads run on fibers. Threads that never wait share a fiber, so a kernel without barriers costs little more than its
 * loops. Blocks run in a pseudo-random order, and lanes backwards at every other launch: no result may depend on it. */
#include "emulator.h"

#include <csetjmp>
#include <cstdio>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size)  (void)0
#define __sanitizer_finish_switch_fiber(save, bottom, size) (void)0
#endif

dim3 gridDim, blockDim;
uint3 blockIdx, threadIdx;

namespace
{
enum { LANES = 32, THREADS_MOST = 1024, STACK = 256 << 10 };

struct fiber {
    jmp_buf at;
    const void *stack;
    size_t bytes;
};

enum state { UNSTARTED, READY, EXCHANGING, AT_BARRIER, DONE };

struct thread {
    enum state state;
    struct fiber *on;
    int line; /* where it waits */
    unsigned exchanges;
    uint32_t given[2]; /* by exchanges % 2: one may already give again before another has looked */
};

struct {
    const char *kernel;
    const std::function<void()> *body;
    unsigned threads, warp, lane, current; /* of this block; warp: its first thread; lane: see next_lane() */
    bool backwards, starting;              /* starting: lanes are begun, none is taken up again */
    struct thread thread[THREADS_MOST];
    struct fiber host;
    std::vector<struct fiber *> *idle; /* never freed: fibers live as long as the program */
} run;

uint64_t launches;

__attribute__((noinline)) void go(struct fiber *from, struct fiber *to)
{
    [[maybe_unused]] void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, to->stack, to->bytes);
    if (_setjmp(from->at) == 0) _longjmp(to->at, 1);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
}

void set_thread(unsigned t)
{
    run.current = t;
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}

/* The next of the warp's threads in that state, -1: none; each comes once in a turn, which begins with lane = 0. */
int next_lane(enum state state)
{
    const unsigned lanes = std::min<unsigned>(LANES, run.threads - run.warp);
    while (run.lane < lanes) {
        const unsigned i = run.lane++, t = run.warp + (run.backwards ? lanes - 1 - i : i);
        if (run.thread[t].state == state) return (int)t;
    }
    return -1;
}

/* A fiber runs threads to their ends, one after the other, then idles until it gets another. */
void live(struct fiber *self)
{
    for (;;) {
        for (int t = (int)run.current; t >= 0; t = run.starting ? next_lane(UNSTARTED) : -1) {
            set_thread((unsigned)t);
            run.thread[t].state = READY;
            run.thread[t].on = self;
            (*run.body)();
            run.thread[run.current].state = DONE;
        }
        run.idle->push_back(self);
        go(self, &run.host);
    }
}

struct fiber *newborn;

void born()
{
    struct fiber *self = newborn;
    __sanitizer_finish_switch_fiber(nullptr, &run.host.stack, &run.host.bytes);
    live(self);
}

__attribute__((noinline)) void start(unsigned t)
{
    run.current = t;
    if (run.idle == nullptr) run.idle = new std::vector<struct fiber *>;
    if (!run.idle->empty()) {
        struct fiber *spare = run.idle->back();
        run.idle->pop_back();
        go(&run.host, spare);
        return;
    }
    static ucontext_t context;
    getcontext(&context);
    void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) device_wrong("no memory for a thread");
    newborn = new fiber{{}, stack, STACK};
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = STACK;
    makecontext(&context, born, 0);
    [[maybe_unused]] void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stack, STACK);
    if (_setjmp(run.host.at) == 0) setcontext(&context);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
}

void wait(enum state state, int line)
{
    const unsigned t = run.current;
    run.thread[t].state = state;
    run.thread[t].line = line;
    go(run.thread[t].on, &run.host);
    set_thread(t);
}

/* All of count threads from first on wait in that state at one line, or none does; then they may go on. */
bool release(unsigned first, unsigned count, enum state state)
{
    unsigned waiting = 0, same = 0;
    const struct thread *one = nullptr;
    for (unsigned t = first; t < first + count; t++)
        if (run.thread[t].state == state) waiting++, one = &run.thread[t];
    for (unsigned t = first; t < first + count; t++)
        same += run.thread[t].state == state && run.thread[t].line == one->line;
    if (waiting == 0) return false;
    if (same != (state == EXCHANGING ? (unsigned)LANES : count))
        device_wrong("%s, block (%u, %u, %u): %u of %u threads came to the %s in line %d", run.kernel, blockIdx.x,
                     blockIdx.y, blockIdx.z, same, count, state == EXCHANGING ? "shuffle" : "barrier", one->line);
    for (unsigned t = first; t < first + count; t++) run.thread[t].state = READY;
    return true;
}

void run_warp()
{
    const unsigned lanes = std::min<unsigned>(LANES, run.threads - run.warp);
    run.lane = 0;
    run.starting = true;
    for (int t; (t = next_lane(UNSTARTED)) >= 0;) start((unsigned)t);
    run.starting = false;
    do {
        run.lane = 0;
        for (int t; (t = next_lane(READY)) >= 0;) {
            set_thread((unsigned)t);
            go(&run.host, run.thread[t].on);
        }
    } while (release(run.warp, lanes, EXCHANGING));
}

void run_block()
{
    for (unsigned t = 0; t < run.threads; t++) run.thread[t] = {};
    do {
        const unsigned warps = (run.threads + LANES - 1) / LANES;
        for (unsigned w = 0; w < warps; w++) {
            run.warp = LANES * (run.backwards ? warps - 1 - w : w);
            run_warp();
        }
    } while (release(0, run.threads, AT_BARRIER));
}

void run_grid(const char *kernel, dim3 grid, dim3 block, const std::function<void()> &body)
{
    run.kernel = kernel;
    run.body = &body;
    run.threads = block.x * block.y * block.z;
    run.backwards = ++launches % 2 == 0;
    gridDim = grid, blockDim = block;
    const uint64_t count = (uint64_t)grid.x * grid.y * grid.z;
    /* A prime far larger than the square root of the largest grid: a permutation, unless it divides the count. */
    const uint64_t stride = count % 7368787 ? 7368787 : 1;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t b = (i * stride + launches * 97) % count;
        blockIdx = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        run_block();
    }
}
} // namespace

void emulator_barrier(int line) { wait(AT_BARRIER, line); }

uint32_t emulator_exchange(int line, uint32_t mine, int lane_mask)
{
    struct thread *t = &run.thread[run.current];
    const unsigned turn = t->exchanges++ % 2;
    t->given[turn] = mine;
    const unsigned other = run.current - run.current % LANES + ((run.current % LANES) ^ (unsigned)lane_mask) % LANES;
    wait(EXCHANGING, line);
    return run.thread[other].given[turn];
}

void emulator_launch(const char *kernel, dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> body)
{
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads == 0 || threads > THREADS_MOST || block.z > 64 || grid.x == 0 || grid.x > 0x7fffffff || grid.y == 0 ||
        grid.y > 65535 || grid.z == 0 || grid.z > 65535) {
        device_error(cudaErrorInvalidConfiguration);
        return;
    }
    device_queue(stream, [=] { run_grid(kernel, grid, block, body); });
}
