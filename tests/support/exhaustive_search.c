#include "exhaustive_search.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* due: stages that have not gone backward. values: bit i - 1 for a(i), i < due. sets: bit i - 1 for the saved tensors
 * of stage i <= due. head: persistent only; a(head) is live for the next op only, 0: none. */
struct state {
    int due, values, sets, head;
};

struct entry {
    int64_t time;
    int state;
};

struct search {
    const struct abstract_stage *stage; /* from 1 */
    int stages;
    int64_t budget;
    enum schedules among;
    int64_t *least; /* of each state, and 1; 0: not seen */
    struct entry *heap;
    int entries, room;
};

/* Digits to the bases stages + 1, 2^(stages - 1), 2^stages and stages. */
static int pack(const struct search *search, const struct state *s)
{
    const int n = search->stages;
    return ((((s->due << (n - 1)) | s->values) << n) | s->sets) * n + s->head;
}

static struct state unpack(const struct search *search, int code)
{
    const int n = search->stages, rest = code / n, mask = (1 << n) - 1;
    return (struct state){rest >> (2 * n - 1), (rest >> n) & (mask >> 1), rest & mask, code % n};
}

static void push(struct search *search, int64_t time, const struct state *to)
{
    int state = pack(search, to);
    if (search->least[state] && search->least[state] <= time + 1) return;
    search->least[state] = time + 1;
    if (search->entries == search->room) {
        search->room = search->room ? search->room * 2 : 1024;
        search->heap = realloc(search->heap, (size_t)search->room * sizeof *search->heap);
        cr_assert(search->heap != NULL);
    }
    int at = search->entries++;
    for (; at && search->heap[(at - 1) / 2].time > time; at = (at - 1) / 2)
        search->heap[at] = search->heap[(at - 1) / 2];
    search->heap[at] = (struct entry){time, state};
}

static struct entry pop(struct search *search)
{
    struct entry top = search->heap[0], last = search->heap[--search->entries];
    int at = 0;
    for (;;) {
        int child = 2 * at + 1;
        if (child + 1 < search->entries && search->heap[child + 1].time < search->heap[child].time) child++;
        if (child >= search->entries || search->heap[child].time >= last.time) break;
        search->heap[at] = search->heap[child];
        at = child;
    }
    search->heap[at] = last;
    return top;
}

/* Live bytes of a state, with the gradient of the next backward. */
static int64_t held(const struct search *search, const struct state *s)
{
    int64_t bytes = s->due < search->stages ? search->stage[s->due].gradient : 0;
    for (int i = 1; i <= s->due; i++) {
        if (i < s->due && (s->values >> (i - 1) & 1 || s->head == i)) bytes += search->stage[i].output;
        if (s->sets >> (i - 1) & 1) bytes += search->stage[i].saved;
    }
    return bytes;
}

static bool has_value(const struct state *s, int i) { return !i || s->head == i || s->values >> (i - 1) & 1; }

/* Forward of stage i: its outputs are live while it runs; the schedule decides what stays. */
static void forward(struct search *search, int64_t time, const struct state *s, int i, bool save)
{
    const struct abstract_stage *stage = &search->stage[i];
    struct state during = *s;
    if (search->among != ANY) during.head = s->head == i - 1 ? i - 1 : 0; /* of no use any more otherwise */
    int64_t bytes = held(search, &during) + stage->forward_scratch;
    if (!has_value(&during, i) || i == s->due) bytes += stage->output;
    if (save && !(s->sets >> (i - 1) & 1)) bytes += stage->saved;
    if (bytes > search->budget) return;
    struct state after = during;
    if (save) after.sets |= 1 << (i - 1);
    after.head = 0;
    time += (int64_t)stage->forward;
    if (i == s->due) {
        push(search, time, &after);
        return;
    }
    if (search->among != ANY && !(after.values >> (i - 1) & 1)) {
        struct state transient = after;
        transient.head = i;
        push(search, time, &transient);
    }
    after.values |= 1 << (i - 1);
    push(search, time, &after);
}

static bool is_ready(const struct search *search, const struct state *s)
{
    bool saved = s->sets >> (s->due - 1) & 1, needed = search->stage[s->due].saved || s->due == search->stages;
    return has_value(s, s->due - 1) && (saved || !needed);
}

static void backward(struct search *search, int64_t time, const struct state *s)
{
    const int i = s->due;
    const struct abstract_stage *stage = &search->stage[i];
    if (!is_ready(search, s)) return;
    struct state during = *s, input;
    if (during.head != i - 1) during.head = 0;
    int64_t bytes = held(search, &during) + stage->backward_scratch;
    if (i == search->stages) bytes += stage->gradient;
    if (bytes > search->budget) return;
    if (i > 1) { /* d(i - 1), beside a(i - 1) or, in an op of its own, after it */
        input = during;
        if (stage->split) input.values &= ~(1 << (i - 2)), input.head = 0;
        bytes += held(search, &input) - held(search, &during) + search->stage[i - 1].gradient;
        if (bytes > search->budget) return;
    }
    struct state after = during;
    after.due--;
    after.head = 0;
    after.sets &= (1 << after.due) - 1;
    after.values &= after.due ? (1 << (after.due - 1)) - 1 : 0;
    push(search, time + (int64_t)stage->backward, &after);
}

static void drop(struct search *search, int64_t time, const struct state *s)
{
    for (int i = 0; i < s->due; i++) {
        struct state less = *s;
        less.values &= ~(1 << i);
        if (less.values != s->values) push(search, time, &less);
        less = *s;
        less.sets &= ~(1 << i);
        if (less.sets != s->sets) push(search, time, &less);
    }
}

int64_t exhaustive_time(const struct abstract_stage *stage, int stages, int64_t budget, enum schedules among)
{
    struct search search = {.stage = stage - 1, .stages = stages, .budget = budget, .among = among};
    cr_assert(stages <= EXHAUSTIVE_STAGES_MAX);
    const size_t states = ((size_t)(stages + 1) << (2 * stages - 1)) * (size_t)stages;
    search.least = calloc(states, sizeof *search.least); /* most pages are never touched */
    cr_assert(search.least != NULL);
    int64_t found = -1;
    push(&search, 0, &(struct state){.due = stages});
    while (search.entries) {
        struct entry e = pop(&search);
        if (e.time + 1 != search.least[e.state]) continue;
        struct state s = unpack(&search, e.state);
        if (!s.due) {
            found = e.time;
            break;
        }
        int newest = s.due;
        while (among == IN_TURN && newest > 1 && !has_value(&s, newest - 1)) newest--;
        for (int i = among == IN_TURN ? newest : 1; i <= newest; i++) {
            if (!has_value(&s, i - 1)) continue;
            forward(&search, e.time, &s, i, false);
            forward(&search, e.time, &s, i, true);
        }
        backward(&search, e.time, &s);
        if (among == ANY) drop(&search, e.time, &s);
    }
    free(search.least);
    free(search.heap);
    return found;
}
