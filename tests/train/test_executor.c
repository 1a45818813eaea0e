/* memory: dynamic ends the step at any difference between the allocator's count and the plan, and names the op and both
 * numbers. memory: poison fills every buffer that is not live. */
#include "train/executor.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "backend/host.h"
#include "base/units.h"
#include "policies/policy.h"
#include "tests/support/allocations.h"
#include "tests/support/policy_text.h"
#include "tests/support/small_networks.h"
#include "tests/support/watched_network.h"

/* A net under `every` on `ref`, ready to run; look, where given, is called before each pass. */
struct bench {
    struct bound_net on;
    struct plan *plan;
};

static void check(enum status status) { cr_assert(status == ST_OK, "%s", status_message()); }

static void open_bench(struct bench *b, const struct net *net, watcher *look)
{
    const struct plan_options plan = {.lower = {.drop_dead = true}};
    b->on = net_bind(net, RELU_OUTPUT);
    if (look) watch(b->on.network, look);
    b->plan = policy_text_plan(b->on.network, "every", "", &plan);
}

static void close_bench(struct bench *b)
{
    plan_destroy(b->plan);
    net_release(&b->on);
}

/* One step, of a batch and parameters that are all zero. */
static enum status run(const struct bench *b, enum memory_mode memory)
{
    struct executor *exec;
    float loss[2];
    check(executor_create(b->plan, &(struct executor_options){.memory = memory, .seed = 3}, &exec));
    enum status status = executor_step(exec, 5, loss);
    cr_assert(b->on.backend->allocated.bytes == 0, "a step leaves nothing behind, however it ends");
    executor_destroy(exec);
    return status;
}

/* ---- steps that request wrong bytes ---- */

/* The first buffer that is written and read in the middle of the step. */
static struct buffer *victim(struct plan *plan)
{
    struct buffer *b = plan->lowered.buffer;
    while (b->birth <= 1 || b->death == b->birth || b->death + 2 >= plan->lowered.ops) b++;
    return b;
}

/* Each returns the first op at which the count must differ, and by how many bytes. */
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
    kind = *b->on.backend->kind;
    kind.allocate = allocate_more;
    b->on.backend->kind = &kind;
    return (struct seen){0, born * ALIGNMENT};
}

static struct seen (*const wrong[])(struct bench *) = {wider,      narrower,  born_early, born_late,
                                                       dead_early, dead_late, never_dead, another_allocator};

Test(exec, dynamic_memory_is_counted_at_every_op)
{
    struct bench b;
    open_bench(&b, &nets[1], NULL);
    check(run(&b, MEMORY_DYNAMIC));
    check(run(&b, MEMORY_PLANNED));
    close_bench(&b);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char counted[UNIT_TEXT], predicted[UNIT_TEXT], op[128] = "the end", expected[512];
        open_bench(&b, &nets[1], NULL);
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

/* ---- allocated bytes, counted at the allocator's calls, not from the plan's sizes ---- */

static struct {
    const struct plan *plan;
    size_t before; /* held outside of the step */
    int next, looked;
} held;

/* Passes come in the order of the plan's forwards and backwards; between them lie ops that call no kernel. */
static void look_at_held(const struct network *network, int node, const struct kernel_args *args, unsigned parts)
{
    (void)network, (void)args;
    const struct op *op = held.plan->lowered.op;
    while (op[held.next].kind != OP_FORWARD && op[held.next].kind != OP_BACKWARD) held.next++;
    cr_assert(op[held.next].node == node && op[held.next].parts == parts);
    const size_t now = allocations_held() - held.before, planned = held.plan->live[held.next];
    cr_expect(now == planned, "op %d: the allocator holds %zu bytes, planned are %zu", held.next, now, planned);
    held.next++;
    held.looked++;
}

Test(exec, dynamic_memory_allocates_what_is_planned)
{
    for (const struct net *net = nets; net->name; net++) {
        struct bench b;
        struct executor *exec;
        float loss[2];
        open_bench(&b, net, look_at_held);
        check(executor_create(b.plan, &(struct executor_options){.memory = MEMORY_DYNAMIC, .seed = 3}, &exec));
        held.plan = b.plan;
        held.before = allocations_held();
        held.next = held.looked = 0;
        check(executor_step(exec, 0, loss));
        int passes = 0;
        for (int i = 0; i < b.plan->lowered.ops; i++)
            passes += b.plan->lowered.op[i].kind == OP_FORWARD || b.plan->lowered.op[i].kind == OP_BACKWARD;
        cr_expect(held.looked == passes && allocations_held() == held.before, "%s: looked at %d of %d passes",
                  net->name, held.looked, passes);
        executor_destroy(exec);
        close_bench(&b);
    }
}

/* ---- poison ---- */

static int looked;

/* Nothing was written there since it was reserved, or since the last buffer there ended. */
static void expect_poison(const struct node *node, const char *what, const void *block, size_t bytes)
{
    const uint32_t *schedule = block;
    for (size_t i = 0; block && i < bytes / sizeof *schedule; i++)
        cr_assert(schedule[i] == 0x7fa0dead, "%s of %s: schedule %zu is %08x", what, node->name, i, schedule[i]);
    looked += block && bytes > 0;
}

static void look(const struct network *network, int index, const struct kernel_args *args, unsigned parts)
{
    const struct node *node = &network->graph->node[index];
    const struct footprint *f = &network->binding[index].footprint;
    if (!parts) {
        if (args->y != args->x[0]) expect_poison(node, "y", args->y, network->graph->value[node->output].bytes);
        if (args->save) expect_poison(node, "the saved tensors", args->saved, f->saved);
        expect_poison(node, "scratch", args->scratch, f->forward_scratch);
        return;
    }
    for (int k = 0; k < node->layer->inputs; k++)
        if (args->dx[k] != args->dy)
            expect_poison(node, "dx", args->dx[k], network->graph->value[node->inputs[k]].gradient_bytes);
}

Test(exec, new_buffers_hold_only_poison)
{
    for (const struct net *net = nets; net->name; net++) {
        struct bench b;
        struct executor *exec;
        float loss[2];
        open_bench(&b, net, look);
        check(executor_create(b.plan, &(struct executor_options){.memory = MEMORY_POISON, .seed = 3}, &exec));
        looked = 0;
        for (uint32_t step = 0; step < 2; step++) check(executor_step(exec, step, loss));
        cr_assert(looked > 2 * b.on.graph->nodes, "%s: %d buffers", net->name, looked);
        executor_destroy(exec);
        close_bench(&b);
    }
}
