/* memory: dynamic as a witness: whatever makes the allocator's count another than the plan's ends the step, with the op
 * and both numbers named. */
#include "exec.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "nets.h"
#include "policy.h"
#include "units.h"

/* A net under `every` on `ref`, ready to run. */
struct bench {
    struct backend *backend;
    struct graph *graph;
    struct network *network;
    struct plan *plan;
};

static void check(enum status status) { cr_assert(status == ST_OK, "%s", status_message()); }

static void open_bench(struct bench *b)
{
    const struct backend_options options = {.threads = 1, .scratch_limit = 1 << 20};
    const struct plan_options plan = {.lower = {.drop_dead = true}};
    check(backend_open("ref", &options, &b->backend));
    b->graph = net_build(&nets[1], RELU_OUTPUT);
    check(network_prepare(b->graph, b->backend, &b->network));
    struct word word = word_empty(b->graph->region);
    check(policy_find("every")->emit(b->network, &(struct policy_settings){.by = 1, .keep_saved = true},
                                     b->graph->region, &word));
    check(plan_build(b->network, &word, &plan, &b->plan));
}

static void close_bench(struct bench *b)
{
    plan_destroy(b->plan);
    network_destroy(b->network);
    graph_destroy(b->graph);
    backend_close(b->backend);
}

/* One step, of a batch and parameters that are all zero. */
static enum status run(const struct bench *b, enum memory_mode memory)
{
    struct exec *exec;
    float loss[2];
    check(exec_create(b->plan, &(struct exec_options){.memory = memory, .seed = 3}, &exec));
    enum status status = exec_step(exec, 5, loss);
    cr_assert(b->backend->ledger.bytes == 0, "a step leaves nothing behind, however it ends");
    exec_destroy(exec);
    return status;
}

/* ---- what is wrong with the bytes that a step asks for ---- */

/* The first buffer that is written and read in the middle of the step. */
static struct buffer *victim(struct plan *plan)
{
    struct buffer *b = plan->lowered.buffer;
    while (b->birth <= 1 || b->death == b->birth || b->death + 2 >= plan->lowered.ops) b++;
    return b;
}

/* Each returns the first op at which the count must be another, and by how many bytes. */
struct seen {
    int op;
    int64_t more;
};

static struct seen wider(struct bench *b)
{
    struct buffer *v = victim(b->plan);
    v->bytes += ALIGNMENT;
    return (struct seen){v->birth, ALIGNMENT};
}

static struct seen narrower(struct bench *b)
{
    struct buffer *v = victim(b->plan);
    v->bytes -= ALIGNMENT;
    return (struct seen){v->birth, -ALIGNMENT};
}

static struct seen born_early(struct bench *b)
{
    struct buffer *v = victim(b->plan);
    return (struct seen){--v->birth, (int64_t)v->bytes};
}

static struct seen born_late(struct bench *b)
{
    struct buffer *v = victim(b->plan);
    return (struct seen){v->birth++, -(int64_t)v->bytes};
}

static struct seen dead_early(struct bench *b)
{
    struct buffer *v = victim(b->plan);
    return (struct seen){v->death--, -(int64_t)v->bytes};
}

static struct seen dead_late(struct bench *b)
{
    struct buffer *v = victim(b->plan);
    return (struct seen){++v->death, (int64_t)v->bytes};
}

static struct seen never_dead(struct bench *b)
{
    const struct lowered *l = &b->plan->lowered;
    int i = 0;
    while (l->buffer[i].death != l->ops - 1) i++;
    return (struct seen){l->buffer[i].death = l->ops, (int64_t)l->buffer[i].bytes};
}

static void *allocate_more(struct backend *backend, size_t bytes) { return host_allocate(backend, bytes + ALIGNMENT); }

static struct seen another_allocator(struct bench *b)
{
    static struct backend_kind kind;
    const struct lowered *l = &b->plan->lowered;
    int64_t born = 0;
    for (int i = 0; i < l->buffers; i++) born += l->buffer[i].birth == 0;
    kind = *b->backend->kind;
    kind.allocate = allocate_more;
    b->backend->kind = &kind;
    return (struct seen){0, born * ALIGNMENT};
}

static struct seen (*const wrong[])(struct bench *) = {wider,      narrower,  born_early, born_late,
                                                       dead_early, dead_late, never_dead, another_allocator};

Test(exec, dynamic_memory_is_counted_at_every_op)
{
    struct bench b;
    open_bench(&b);
    check(run(&b, MEMORY_DYNAMIC));
    check(run(&b, MEMORY_PLANNED));
    close_bench(&b);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char counted[UNIT_TEXT], predicted[UNIT_TEXT], op[128] = "the end", expected[512];
        open_bench(&b);
        const struct seen seen = wrong[i](&b);
        const size_t planned = b.plan->live[seen.op];
        if (seen.op < b.plan->lowered.ops) plan_op_text(b.plan, seen.op, op);
        snprintf(expected, sizeof expected, "at step 5, op %d (%s), the allocator counts %s, the plan predicted %s",
                 seen.op, op, exact_bytes_text((size_t)((int64_t)planned + seen.more), counted),
                 exact_bytes_text(planned, predicted));
        cr_expect(run(&b, MEMORY_DYNAMIC) == ST_FAILED && strstr(status_message(), expected), "%zu: %s\nexpected %s", i,
                  status_message(), expected);
        close_bench(&b);
    }
}
