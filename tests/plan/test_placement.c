/* Placement: lifetimes of every kind, no overlap, nothing below the live peak and little above it; the least extent of
 * small instances by an exhaustive search; published instances. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/placement.h"
#include "plan/placement_search.h"
#include "tests/support/planned_networks.h"
#include "tests/support/thinning.h"

enum { BUFFERS_MAX = 200, OPS = 120 };

static size_t live_peak(const struct buffer *buffer, int buffers)
{
    size_t peak = 0;
    int last = 0;
    for (int i = 0; i < buffers; i++)
        if (buffer[i].death > last) last = buffer[i].death;
    for (int op = 0; op <= last; op++) {
        size_t live = 0;
        for (int i = 0; i < buffers; i++)
            if (buffer[i].birth <= op && op <= buffer[i].death) live += buffer[i].bytes;
        if (live > peak) peak = live;
    }
    return peak;
}

/* Places them in multiples of alignment, with the canonical search or without; returns the arena and its bound. */
static size_t place(struct buffer *buffer, int buffers, bool search, size_t alignment, const char *what, size_t *bound)
{
    size_t extent = 0, peak = live_peak(buffer, buffers);
    for (int i = 0; i < buffers; i++) buffer[i].offset = SIZE_MAX;
    const size_t found = placement_assign(buffer, buffers);
    *bound = peak;
    const size_t arena = search ? placement_search(buffer, buffers, found, bound) : found;
    for (int i = 0; i < buffers; i++) {
        const struct buffer *a = &buffer[i];
        cr_assert(a->offset % alignment == 0, "%s: buffer %d at %zu", what, i, a->offset);
        if (a->offset + a->bytes > extent) extent = a->offset + a->bytes;
        for (int j = 0; j < i; j++) {
            const struct buffer *b = &buffer[j];
            bool together = a->birth <= b->death && b->birth <= a->death;
            bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
            cr_assert(!together || apart, "%s: buffers %d and %d overlap", what, i, j);
        }
    }
    cr_assert(arena == extent, "%s: arena %zu, extent %zu", what, arena, extent);
    cr_assert(arena >= *bound && *bound >= peak, "%s: arena %zu, bound %zu, live peak %zu", what, arena, *bound, peak);
    return arena;
}

/* Places them and returns arena bytes : live peak. */
static double check(struct buffer *buffer, int buffers, const char *what)
{
    size_t bound;
    const size_t arena = place(buffer, buffers, false, ALIGNMENT, what, &bound), peak = live_peak(buffer, buffers);
    return peak ? (double)arena / (double)peak : 1;
}

static size_t draw_bytes(struct source *s)
{
    return ALIGNMENT * (size_t)(1 + (draw_below(s, 3) ? draw_below(s, 8) : draw_below(s, 2000)));
}

Test(placement, random_lifetimes)
{
    double sum = 0;
    enum { TRIES = 400 };
    for (uint32_t seed = 0; seed < TRIES; seed++) {
        struct source s = {seed, 0};
        struct buffer buffer[BUFFERS_MAX] = {{0}};
        int buffers = 1 + (int)draw_below(&s, BUFFERS_MAX);
        for (int i = 0; i < buffers; i++) {
            buffer[i].birth = (int)draw_below(&s, OPS);
            buffer[i].death = buffer[i].birth + (int)draw_below(&s, (uint32_t)(OPS - buffer[i].birth));
            buffer[i].bytes = draw_bytes(&s);
        }
        sum += check(buffer, buffers, "random lifetimes");
    }
    cr_assert(sum / TRIES < 1.006, "arena : live peak is %.3f on average", sum / TRIES);
}

/* As training makes them, at most four a node: values that live until their backward, gradients between neighbours,
 * scratch within an op; where segment is not 0, values that die early and are made again. Returns how many there are.
 */
static int draw_training(struct source *s, int nodes, int segment, struct buffer *buffer)
{
    int buffers = 0;
    for (int n = 0; n < nodes; n++) {
        int backward = 2 * nodes - n - 1, next = backward + 1 < 2 * nodes ? backward + 1 : backward;
        bool again = segment && n % segment;
        size_t bytes = draw_bytes(s);
        buffer[buffers++] = (struct buffer){.bytes = bytes, .birth = n, .death = again ? n + 1 : backward};
        if (again)
            buffer[buffers++] = (struct buffer){.bytes = bytes, .birth = backward - n % segment, .death = backward};
        buffer[buffers++] = (struct buffer){.bytes = bytes, .birth = backward, .death = next};
        if (n % 3 == 0)
            buffer[buffers++] = (struct buffer){.bytes = draw_bytes(s), .birth = backward, .death = backward};
    }
    return buffers;
}

Test(placement, lifetimes_of_training)
{
    for (uint32_t seed = 0; seed < 200; seed++) {
        struct source s = {seed, 1};
        struct buffer buffer[BUFFERS_MAX] = {{0}};
        int nodes = 5 + (int)draw_below(&s, 40), segment = 1 + (int)draw_below(&s, 8);
        bool recomputations = draw_below(&s, 2);
        int buffers = draw_training(&s, nodes, recomputations ? segment : 0, buffer);
        double ratio = check(buffer, buffers, "lifetimes of training");
        cr_assert(ratio < 1.005, "seed %u: arena : live peak is %.3f", seed, ratio);
        cr_assert(recomputations || ratio < 1.0005, "seed %u, nothing recomputed: arena : live peak is %.3f", seed,
                  ratio);
    }
}

/* So many that each order is mended less often. */
Test(placement, thousands_of_buffers)
{
    enum { NODES = 600 };
    struct buffer *buffer = calloc(4 * NODES, sizeof *buffer);
    for (uint32_t seed = 0; seed < 3; seed++) {
        struct source s = {seed, 2};
        int buffers = draw_training(&s, NODES, 5 + (int)seed, buffer);
        double ratio = check(buffer, buffers, "thousands of buffers");
        cr_assert(buffers > 1500 && ratio < 1.005, "seed %u, %d buffers: arena : live peak is %.4f", seed, buffers,
                  ratio);
    }
    free(buffer);
}

Test(placement, corner_cases)
{
    cr_assert(placement_assign(NULL, 0) == 0);
    struct buffer one = {.bytes = 512, .birth = 3, .death = 3, .offset = 99};
    cr_assert(placement_assign(&one, 1) == 512 && one.offset == 0);
    struct buffer relay[OPS] = {{0}}; /* each dies where the next is born: two places are enough */
    for (int i = 0; i < OPS - 1; i++) relay[i] = (struct buffer){.bytes = 1024, .birth = i, .death = i + 1};
    cr_assert(check(relay, OPS - 1, "a relay") == 1);
}

Test(placement, is_a_pure_function)
{
    struct source s = {7, 0};
    struct buffer one[BUFFERS_MAX] = {{0}}, two[BUFFERS_MAX];
    for (int i = 0; i < BUFFERS_MAX; i++) {
        one[i].birth = (int)draw_below(&s, OPS / 2);
        one[i].death = one[i].birth + (int)draw_below(&s, OPS / 2);
        one[i].bytes = draw_bytes(&s);
    }
    memcpy(two, one, sizeof one);
    cr_assert(placement_assign(one, BUFFERS_MAX) == placement_assign(two, BUFFERS_MAX));
    for (int i = 0; i < BUFFERS_MAX; i++) cr_assert(one[i].offset == two[i].offset);
}

/* ---- the least extent ---- */

enum { FEW = 20 };

/* Whether the buffers from `next` on fit into `units` units, each at any offset that overlaps no earlier one. */
static bool fits(const struct buffer *buffer, int buffers, size_t units, int next, size_t *offset)
{
    if (next == buffers) return true;
    const struct buffer *new = &buffer[next];
    for (size_t at = 0; at + new->bytes <= units; at++) {
        bool free = true;
        for (int i = 0; i < next && free; i++)
            free = buffer[i].birth > new->death || new->birth > buffer[i].death || offset[i] >= at + new->bytes ||
                   offset[i] + buffer[i].bytes <= at;
        offset[next] = at;
        if (free && fits(buffer, buffers, units, next + 1, offset)) return true;
    }
    return false;
}

/* Buffers that fill `bytes` bytes at every op, so that a placement of no more has no gap. */
static int draw_full(struct source *s, int ops, uint32_t bytes, struct buffer *buffer)
{
    int buffers = 0;
    for (int op = 0; op < ops && buffers < FEW; op++) {
        uint32_t left = bytes;
        for (int i = 0; i < buffers; i++) left -= buffer[i].death >= op ? (uint32_t)buffer[i].bytes : 0;
        while (left && buffers < FEW) {
            const int death = op + (int)draw_below(s, 4);
            const uint32_t size = 1 + draw_below(s, 3);
            struct buffer *b = &buffer[buffers++];
            *b = (struct buffer){
                .bytes = size < left ? size : left, .birth = op, .death = death < ops ? death : ops - 1};
            left -= (uint32_t)b->bytes;
        }
    }
    return buffers;
}

Test(placement, is_the_least_of_all_for_few_buffers)
{
    int above = 0;
    for (uint32_t seed = 0; seed < 5000; seed += THINNING) {
        struct source s = {seed, 3};
        struct buffer buffer[FEW] = {{0}};
        const int ops = 8 + (int)draw_below(&s, 5);
        const int buffers = draw_full(&s, ops, 5 + draw_below(&s, 2), buffer);
        size_t bound, offset[FEW], least = live_peak(buffer, buffers);
        const size_t arena = place(buffer, buffers, true, 1, "few buffers", &bound);
        for (; !fits(buffer, buffers, least, 0, offset); least++) above++;
        cr_assert(arena == least && bound == least, "seed %u: %zu, at least %zu; the least is %zu", seed, arena, bound,
                  least);
    }
    cr_assert(above >= 14 / THINNING, "the live peak is reached in all but %d", above);
}

/* ---- published instances ---- */

/* Rows of id, first instant, instant after the last, bytes. */
static int read_instance(const char *path, struct buffer *buffer, int room)
{
    int buffers = 0;
    char line[128];
    FILE *in = fopen(path, "r");
    if (!in) cr_skip_test("%s is missing", path);
    cr_assert(fgets(line, sizeof line, in), "%s", path);
    while (fgets(line, sizeof line, in)) {
        struct buffer b = {.bytes = 0};
        cr_assert(buffers < room && sscanf(line, "%*d,%d,%d,%zu", &b.birth, &b.death, &b.bytes) == 3, "%s", line);
        b.death--;
        buffer[buffers++] = b;
    }
    fclose(in);
    return buffers;
}

/* MiniMalloc's, which fit into the capacity in their name, and two networks' steps (SOMAS), which fit into the live
 * peak. */
Test(placement, published_instances)
{
    static const struct {
        const char *name;
        size_t capacity; /* 0: the live peak */
    } known[] = {{"A.1048576", 1 << 20}, {"B.1048576", 1 << 20},   {"C.1048576", 0},         {"D.1048576", 0},
                 {"E.1048576", 1 << 20}, {"resnet50-training", 0}, {"bert-base-training", 0}};
    enum { ROOM = 8192 };
    if (!getenv("REMATCH_DATA")) cr_skip_test("REMATCH_DATA is not set");
    struct buffer *buffer = calloc(ROOM, sizeof *buffer);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char path[512];
        size_t bound;
        snprintf(path, sizeof path, "%s/placement/%s.csv", getenv("REMATCH_DATA"), known[i].name);
        const int buffers = read_instance(path, buffer, ROOM);
        const size_t capacity = known[i].capacity ? known[i].capacity : live_peak(buffer, buffers);
        const size_t arena = place(buffer, buffers, true, 1, known[i].name, &bound);
        cr_assert(arena <= capacity, "%s: %zu bytes of %zu", known[i].name, arena, capacity);
    }
    free(buffer);
}

/* The buffers in another order, some split in size and some in time: what holds a placement of the whole ones holds
 * theirs. Returns how many there are. */
static int split(struct source *s, struct buffer *buffer, int buffers)
{
    for (int i = 0, whole = buffers; i < whole; i++) {
        struct buffer *b = &buffer[i];
        const int length = b->death - b->birth + 1, kilobytes = (int)(b->bytes / 1024);
        if (!draw_below(s, 3) && kilobytes > 2) {
            const size_t bytes = 1024 * (size_t)(1 + draw_below(s, (uint32_t)kilobytes - 1));
            buffer[buffers] = *b;
            buffer[buffers++].bytes = b->bytes - bytes;
            b->bytes = bytes;
        } else if (!draw_below(s, 3) && length > 10) {
            buffer[buffers] = *b;
            b->death = b->birth + (int)draw_below(s, (uint32_t)length - 1);
            buffer[buffers++].birth = b->death + 1;
        }
    }
    for (int i = buffers - 1; i > 0; i--) {
        const int j = (int)draw_below(s, (uint32_t)i + 1);
        const struct buffer swapped = buffer[i];
        buffer[i] = buffer[j];
        buffer[j] = swapped;
    }
    return buffers;
}

/* The published instances in parts and in another order, which have a placement of that size, too. */
Test(placement, published_instances_split)
{
    enum { ROOM = 1024 };
    if (!getenv("REMATCH_DATA")) cr_skip_test("REMATCH_DATA is not set");
    for (int name = 'A'; name <= 'E'; name++) {
        char path[512], what[2] = {(char)name};
        struct source s = {0, (uint32_t)name};
        struct buffer buffer[ROOM];
        size_t bound;
        snprintf(path, sizeof path, "%s/placement/%c.1048576.csv", getenv("REMATCH_DATA"), name);
        const int buffers = split(&s, buffer, read_instance(path, buffer, ROOM / 2));
        const size_t arena = place(buffer, buffers, true, 1, what, &bound);
        cr_assert(arena <= 1 << 20, "%s: %zu bytes", what, arena);
    }
}
