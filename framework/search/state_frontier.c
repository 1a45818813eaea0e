#include "search/state_frontier.h"

#include <stdlib.h>
#include <string.h>

#include "base/region.h"

static bool before(const struct frontier *l, int a, int b)
{
    const struct state *x = &l->state[a], *y = &l->state[b];
    if (x->estimate != y->estimate) return x->estimate < y->estimate;
    if (x->held != y->held) return x->held < y->held;
    return memcmp(&x->needs, &y->needs, sizeof x->needs) < 0;
}

static void place(struct frontier *l, int at, int state)
{
    l->heap[at] = state;
    l->state[state].at = at;
}

static void rise(struct frontier *l, int at)
{
    const int state = l->heap[at];
    for (; at && before(l, state, l->heap[(at - 1) / 2]); at = (at - 1) / 2) place(l, at, l->heap[(at - 1) / 2]);
    place(l, at, state);
}

struct state frontier_take(struct frontier *l)
{
    const int top = l->heap[0], last = l->heap[--l->heaped];
    int at = 0;
    for (int child; (child = 2 * at + 1) < l->heaped; at = child) {
        if (child + 1 < l->heaped && before(l, l->heap[child + 1], l->heap[child])) child++;
        if (!before(l, l->heap[child], last)) break;
        place(l, at, l->heap[child]);
    }
    if (l->heaped) place(l, at, last);
    l->state[top].at = -1;
    return l->state[top];
}

static void *grown(void *array, size_t count, size_t size)
{
    void *larger = allocate(2 * count, size);
    memcpy(larger, array, count * size);
    free(array);
    return larger;
}

static int *slot_of(const struct frontier *l, const struct needs *n)
{
    uint64_t hash = 0;
    for (int i = 0; i < WORDS; i++)
        hash = ((hash ^ n->y.word[i]) * UINT64_C(0x9e3779b97f4a7c15)) ^
               (n->saved.word[i] * UINT64_C(0xc2b2ae3d27d4eb4f)) ^ hash >> 29;
    size_t at = (size_t)((hash ^ hash >> 31) * UINT64_C(0xbf58476d1ce4e5b9) >> 20) & (size_t)(l->slots - 1);
    while (l->slot[at] && memcmp(&l->state[l->slot[at] - 1].needs, n, sizeof *n) != 0)
        at = (at + 1) & (size_t)(l->slots - 1);
    return &l->slot[at];
}

void frontier_begin(struct frontier *l, int event)
{
    *l = (struct frontier){.event = event, .room = 1024, .slots = 4096};
    l->state = allocate((size_t)l->room, sizeof *l->state);
    l->heap = allocate((size_t)l->room, sizeof *l->heap);
    l->slot = allocate((size_t)l->slots, sizeof *l->slot);
}

void frontier_end(struct frontier *l)
{
    free(l->state);
    free(l->heap);
    free(l->slot);
}

static void grow(struct frontier *l)
{
    l->state = grown(l->state, (size_t)l->room, sizeof *l->state);
    l->heap = grown(l->heap, (size_t)l->room, sizeof *l->heap);
    l->room *= 2;
    free(l->slot);
    l->slots *= 2;
    l->slot = allocate((size_t)l->slots, sizeof *l->slot);
    for (int i = 0; i < l->count; i++) *slot_of(l, &l->state[i].needs) = i + 1;
}

const struct state *frontier_find(const struct frontier *l, const struct needs *needs)
{
    const int slot = *slot_of(l, needs);
    return slot ? &l->state[slot - 1] : NULL;
}

void frontier_put(struct frontier *l, const struct state *state)
{
    int *slot = slot_of(l, &state->needs);
    if (!*slot && l->count == l->room) {
        grow(l);
        slot = slot_of(l, &state->needs);
    }
    const int index = *slot ? *slot - 1 : l->count++;
    const int at = *slot && l->state[index].at >= 0 ? l->state[index].at : l->heaped++;
    *slot = index + 1;
    l->state[index] = *state;
    place(l, at, index);
    rise(l, at);
}
