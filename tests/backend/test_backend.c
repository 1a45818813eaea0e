/* What every backend must do besides layers, for each row of the table that can be opened here. */
#include "backend/backend.h"
#include "tests/support/cli.h"
#include "tests/support/device_mirror.h"
#include "tests/support/same_bits.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 1000 };

static void check_memory(struct backend *b)
{
    const struct backend_kind *kind = b->kind;
    void *block, *other;
    float host[COUNT], back[COUNT];
    cr_assert(kind->reserve(b, sizeof host, &block) == ST_OK && kind->reserve(b, sizeof host, &other) == ST_OK);
    cr_assert((uintptr_t)block % ALIGNMENT == 0);
    kind->download(b, back, block, sizeof back);
    for (int i = 0; i < COUNT; i++) cr_assert(back[i] == 0);
    for (int i = 0; i < COUNT; i++) host[i] = (float)i - 500;
    kind->upload(b, block, host, sizeof host);
    kind->copy(b, other, block, sizeof host);
    kind->download(b, back, other, sizeof back);
    cr_assert(same_bits(host, back, sizeof host));
    cr_assert(digest_equal(kind->digest(b, block, sizeof host), digest_tensor(host, sizeof host, 1)));

    kind->add(b, other, other, block, COUNT); /* onto one of its arguments */
    kind->download(b, back, other, sizeof back);
    for (int i = 0; i < COUNT; i++) cr_assert(back[i] == 2 * host[i]);
    kind->fill(b, other, 0x3f800000, sizeof host);
    kind->download(b, back, other, sizeof back);
    for (int i = 0; i < COUNT; i++) cr_assert(back[i] == 1);

    static const float not_finite[] = {NAN, INFINITY, -INFINITY};
    cr_assert(isfinite(kind->squares(b, block, COUNT)));
    for (int i = 0; i < 3; i++) {
        host[COUNT - 1 - i] = not_finite[i];
        kind->upload(b, block, host, sizeof host);
        cr_assert(!isfinite(kind->squares(b, block, COUNT)) &&
                  isfinite(kind->squares(b, block, (size_t)(COUNT - 1 - i))));
        host[COUNT - 1 - i] = 0;
    }
    kind->unreserve(b, block, sizeof host), kind->unreserve(b, other, sizeof host);
}

/* Buffers of dynamic memory, released in another order: each has the requested size, and the bytes of the live ones are
 * counted. More of them than the count has room for at first. */
static void check_count(struct backend *b)
{
    enum { BUFFERS = 150 };
    const struct backend_kind *kind = b->kind;
    void *buffer[BUFFERS];
    size_t out = 0;
    cr_assert(b->allocated.bytes == 0 && b->allocated.count == 0);
    for (size_t i = 0; i < BUFFERS; i++) {
        buffer[i] = kind->allocate(b, (i % 40 + 1) * ALIGNMENT);
        cr_assert(buffer[i] && (uintptr_t)buffer[i] % ALIGNMENT == 0);
        kind->fill(b, buffer[i], (uint32_t)i, (i % 40 + 1) * ALIGNMENT);
        cr_assert(b->allocated.bytes == (out += (i % 40 + 1) * ALIGNMENT));
    }
    for (size_t i = 0; i < BUFFERS; i++) {
        uint32_t words[ALIGNMENT / sizeof(uint32_t)];
        const size_t at = i * 7 % BUFFERS, bytes = (at % 40 + 1) * ALIGNMENT;
        kind->download(b, words, (char *)buffer[at] + bytes - sizeof words, sizeof words);
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) cr_assert(words[k] == at);
        kind->release(b, buffer[at]);
        cr_assert(b->allocated.bytes == (out -= bytes));
        cr_assert(b->allocated.count == BUFFERS - 1 - i);
    }
    cr_assert(out == 0);
    allocation_count_remove(&b->allocated, buffer);
    cr_assert(b->allocated.bytes == 0 && b->allocated.count == 0, "an unknown buffer changes nothing");
}

Test(backend, memory_of_every_backend)
{
    mallopt(M_PERTURB, 0x5a); /* nothing is zero by chance */
    for (const struct backend_kind *const *kind = backend_table; *kind; kind++) {
        struct backend *backend;
        if (!backend_is_here(backend_open((*kind)->name, &(struct backend_options){0}, &backend))) continue;
        cr_assert(backend->options.threads >= 1 && backend->isa && backend->libraries);
        check_memory(backend);
        check_count(backend);
        backend_close(backend);
    }
    backend_close(NULL);
}

Test(backend, names_that_are_not_there)
{
    struct backend *backend;
    cr_assert(backend_open("abacus", &(struct backend_options){0}, &backend) == ST_SPEC && !backend);
    cr_assert(strstr(status_message(), "abacus") && strstr(status_message(), "ref"), "%s", status_message());
}

Test(backend, more_memory_than_there_is)
{
    struct backend *backend;
    void *block;
    cr_assert(backend_open("ref", &(struct backend_options){.threads = 1}, &backend) == ST_OK);
    cr_assert(backend->kind->reserve(backend, SIZE_MAX - 5, &block) == ST_FAILED && !block);
    cr_assert(strstr(status_message(), "memory"));
    backend_close(backend);
}

Test(backend, the_clock_goes_forward)
{
    uint64_t then = clock_now_ns();
    cr_assert(clock_now_ns() >= then);
    for (int c = 0; c < CLOCK_CLASSES; c++) cr_assert(clock_names[c]);
}

/* What an environment makes of two threads: how many run. */
static const struct {
    const char *environment;
    int threads;
} environments[] = {{"OMP_THREAD_LIMIT=1", 1},
                    {"OMP_MAX_ACTIVE_LEVELS=0", 1},
                    {"OMP_THREAD_LIMIT=2", 2},
                    {"OMP_DYNAMIC=true", 2},
                    {"OMP_NUM_THREADS=1", 2}};

/* A run that waits for a thread that never comes uses up its time on the processor. */
static void expect_threads(struct cli *cli, const char *backend, const char *environment, int threads)
{
    static const char *const commands[] = {"plan", "run"};
    for (int c = 0; c < 2; c++) {
        char before[128], arguments[128], says[128];
        snprintf(before, sizeof before, "ulimit -t 20; export %s", environment);
        snprintf(arguments, sizeof arguments, "%s small.yaml steps=2 backend.name=%s backend.threads=2", commands[c],
                 backend);
        snprintf(says, sizeof says, "backend %s: backend.threads asks for 2 threads, but OpenMP runs %d;", backend,
                 threads);
        cli_run(cli, before, arguments);
        cr_assert(cli->code == (threads == 2 ? 0 : 77), "%s, %s: exit code %d\n%s", environment, arguments, cli->code,
                  cli->err);
        cr_assert(threads == 2 || cli_complaints(cli) == 1, "%s", cli->err);
        if (threads < 2) cli_complains(cli, says);
    }
}

/* One processor is enough for two threads: they take turns. */
static void keep_to_one_processor(void)
{
    cpu_set_t all, one;
    cr_assert(sched_getaffinity(0, sizeof all, &all) == 0);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &all)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    cr_assert(sched_setaffinity(0, sizeof one, &one) == 0);
}

Test(backend, as_many_threads_run_as_were_asked_for, .timeout = 120)
{
    struct cli cli;
    cli_open(&cli);
    for (const struct backend_kind *const *kind = backend_table; *kind; kind++) {
        for (size_t i = 0; i < sizeof environments / sizeof *environments && !(*kind)->device; i++)
            expect_threads(&cli, (*kind)->name, environments[i].environment, environments[i].threads);
    }
    keep_to_one_processor();
    expect_threads(&cli, "cpu", "OMP_DYNAMIC=false", 2);
    cli_close(&cli);
}
