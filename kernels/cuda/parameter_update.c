/* The update after a step's backward, and the digest and the sum of squares of one tensor. The device computes the
 * digests and squares of pieces; the host digests pieces of at most XXH3_SHORT bytes, and a tensor's pieces' digests.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "kernels.h"

_Static_assert((int)PIECE_BYTES == (int)DIGEST_PIECE, "host and device agree on pieces");

/* In the device's memory, at a multiple of 4 bytes. */
struct tensor {
    struct backend *backend;
    const char *data;
    size_t bytes;
    const struct piece_result *found; /* the host's, of its pieces; NULL: not computed yet */
    const char *rest;                 /* the host's, of what is no longer in data: the bytes after the last whole piece,
                                         at most XXH3_SHORT; NULL: it is there */
};

/* ---- one tensor, some pieces at a time ---- */

/* Zeros where the device is lost, which wait reports. */
static void find(const struct tensor *t, size_t first, size_t count, struct piece_result *result)
{
    const struct cuda *cuda = cuda_of(t->backend);
    const size_t from = first * PIECE_BYTES, left = t->bytes - from;
    memset(result, 0, count * sizeof *result);
    launch_pieces(cuda->stream, t->data + from, (int64_t)(left < count * PIECE_BYTES ? left : count * PIECE_BYTES),
                  cuda->there->piece);
    t->backend->kind->download(t->backend, result, cuda->there->piece, count * sizeof *result);
}

static void find_digests(void *self, size_t first, size_t count, struct digest *digest)
{
    const struct tensor *t = self;
    const size_t end = (first + count) * PIECE_BYTES, rest = t->bytes % PIECE_BYTES;
    struct piece_result results[DIGEST_PIECES_AT_ONCE];
    if (!t->found) find(t, first, count, results);
    const struct piece_result *result = t->found ? t->found + first : results;
    for (size_t i = 0; i < count; i++) digest[i] = (struct digest){result[i].digest.low, result[i].digest.high};
    if (end > t->bytes && rest <= XXH3_SHORT) {
        char piece[XXH3_SHORT] = {0};
        if (t->rest)
            memcpy(piece, t->rest, rest);
        else
            t->backend->kind->download(t->backend, piece, t->data + t->bytes - rest, rest);
        digest[count - 1] = digest_bytes(piece, rest);
    }
}

struct digest cuda_digest(struct backend *backend, const void *data, size_t bytes)
{
    assert((uintptr_t)data % sizeof(float) == 0);
    return digest_pieces(bytes, find_digests, &(struct tensor){backend, data, bytes, NULL, NULL});
}

double cuda_squares(struct backend *backend, const float *x, size_t count)
{
    const struct tensor tensor = {backend, (const char *)x, count * sizeof *x, NULL, NULL};
    const size_t pieces = (size_t)pieces_of((int64_t)tensor.bytes);
    double total = 0;
    for (size_t done = 0; done < pieces; done += DIGEST_PIECES_AT_ONCE) {
        struct piece_result result[DIGEST_PIECES_AT_ONCE];
        const size_t now = pieces - done < DIGEST_PIECES_AT_ONCE ? pieces - done : DIGEST_PIECES_AT_ONCE;
        find(&tensor, done, now, result);
        for (size_t i = 0; i < now; i++) total += result[i].squares;
    }
    return total;
}

/* ---- the update of a step. The room holds struct piece_result of every piece: tensors in the order of enum digested,
 * and of each of these from the last parameter to the first, as gradients are summed; then of every gradient the bytes
 * after its last whole piece, if the host digests them. ---- */

enum { REST_BYTES = (XXH3_SHORT + 7) / 8 * 8 };

/* Bytes of the room for a parameter. */
static size_t room_bytes(int64_t elements, int states)
{
    const int64_t bytes = elements * (int64_t)sizeof(float);
    return (size_t)(2 * pieces_of(bytes) + pieces_of(states * bytes)) * sizeof(struct piece_result) + REST_BYTES;
}

static size_t update_bytes(const struct graph *graph, int states)
{
    size_t bytes = 0;
    for (int i = 0; i < graph->parameters; i++)
        if (graph->parameter[i].trained >= 0) bytes += room_bytes(graph->parameter[i].elements, states);
    return bytes;
}

static size_t results_bytes(const struct update *update)
{
    size_t bytes = 0;
    for (int i = 0; i < update->count; i++) bytes += room_bytes(update->tensor[i].elements, update->states);
    return bytes;
}

/* An optimizer's rule, by the copies of the parameters that it keeps as state. */
static const struct {
    const char *optimizer;
    int states;
    enum update_rule rule;
} rules[] = {{"sgd", 0, UPDATE_SGD}, {"sgd", 1, UPDATE_MOMENTUM}, {"adam", 2, UPDATE_ADAM}, {"adamw", 2, UPDATE_ADAM}};
enum { RULES = sizeof rules / sizeof *rules };

/* Its row; RULES where there is none. */
static int find_rule(const struct update *update)
{
    const int states = update->states - (update->settings.ema > 0);
    int i = 0;
    while (i < RULES && (strcmp(rules[i].optimizer, update->optimizer->name) || rules[i].states != states)) i++;
    return i;
}

static enum status update_prepare(struct backend *backend, const struct update *update)
{
    struct cuda *cuda = cuda_of(backend);
    if (find_rule(update) == RULES)
        return fail(ST_MISSING, "backend cuda has no optimizer %s with %d copies of the parameters as state",
                    update->optimizer->name, update->states);
    free(cuda->results);
    cuda->results = allocate(1, results_bytes(update));
    return ST_OK;
}

static struct tensor tensor_of(struct backend *backend, const struct update *update, int what, int i)
{
    const struct update_tensor *t = &update->tensor[i];
    const void *const data[DIGESTEDS] = {t->gradient, t->parameter, t->state};
    const size_t copies[DIGESTEDS] = {1, 1, (size_t)update->states};
    return (struct tensor){backend, data[what], copies[what] * (size_t)t->elements * sizeof(float), NULL, NULL};
}

/* Computes the pieces of tensor i; returns how many there are. */
static int64_t queue_pieces(struct backend *backend, const struct update *update, int what, int i,
                            struct piece_result *result)
{
    const struct tensor t = tensor_of(backend, update, what, i);
    launch_pieces(cuda_of(backend)->stream, t.data, (int64_t)t.bytes, result);
    return pieces_of((int64_t)t.bytes);
}

static struct judgement judgement_of(const struct backend *backend, const struct update *update)
{
    struct step_outcome *outcome = backend->outcome_now;
    return (struct judgement){update->settings.clip, outcome->loss, &outcome->squares, &outcome->not_finite};
}

static void queue_update(struct backend *backend, const struct update *update, const struct update_part *p)
{
    const struct update_tensor *t = &update->tensor[p->tensor];
    launch_update(cuda_of(backend)->stream, rules[find_rule(update)].rule, t->parameter + p->first, p->gradient,
                  update_state(update, p), t->average ? t->average + p->first : NULL, p->count, t->elements,
                  &backend->now->numbers[t->numbers], judgement_of(backend, update));
}

/* From the results of its pieces in the room, or computed now; returns where the next tensors' results begin. */
static struct piece_result *judge_all(struct backend *backend, const struct update *update, bool computed)
{
    const cudaStream_t stream = cuda_of(backend)->stream;
    const struct judgement judgement = judgement_of(backend, update);
    struct piece_result *next = update->room;
    launch_fill(stream, 0, sizeof(double) / sizeof(uint32_t), judgement.squares);
    launch_fill(stream, UINT32_MAX, 1, judgement.not_finite);
    for (int i = update->count - 1; i >= 0; i--) {
        const int64_t pieces = pieces_of(update->tensor[i].elements * (int64_t)sizeof(float));
        if (!computed) queue_pieces(backend, update, DIGESTED_GRADIENT, i, next);
        launch_judgement(stream, i, pieces, next, judgement);
        next += pieces;
    }
    return next;
}

static void queue_digests(struct backend *backend, const struct update *update, struct piece_result *next)
{
    cuda_phase(backend, PHASE_DIGEST);
    for (int what = DIGESTED_PARAMETER; what < DIGESTEDS; what++)
        for (int i = update->count - 1; i >= 0; i--) next += queue_pieces(backend, update, what, i, next);
}

static void update_run(struct backend *backend, const struct update *update)
{
    cuda_phase(backend, PHASE_DIGEST);
    struct piece_result *next = judge_all(backend, update, false);
    cuda_phase(backend, PHASE_OPTIMIZER);
    for (int i = 0; i < update->count; i++)
        queue_update(backend, update,
                     &(struct update_part){i, 0, update->tensor[i].elements, update->tensor[i].gradient});
    queue_digests(backend, update, next);
}

/* Where the rest of tensor i's gradient is, in the room or in the host's copy of it. */
static char *rest_of(const struct update *update, int i, void *room)
{
    return (char *)room + results_bytes(update) - (size_t)(i + 1) * REST_BYTES;
}

static void update_part(struct backend *backend, const struct update *update, const struct update_part *p)
{
    const cudaStream_t stream = cuda_of(backend)->stream;
    const int64_t floats = PIECE_BYTES / (int)sizeof(float), elements = update->tensor[p->tensor].elements;
    struct piece_result *result = (struct piece_result *)update->room + p->first / floats;
    const size_t rest = (size_t)(elements % floats) * sizeof(float);
    for (int i = update->count - 1; i > p->tensor; i--)
        result += pieces_of(update->tensor[i].elements * (int64_t)sizeof(float));
    cuda_phase(backend, PHASE_DIGEST);
    launch_pieces(stream, p->gradient, p->count * (int64_t)sizeof(float), result);
    launch_judgement(stream, p->tensor, pieces_of(p->count * (int64_t)sizeof(float)), result,
                     judgement_of(backend, update));
    if (p->first + p->count == elements && rest > 0 && rest <= XXH3_SHORT)
        backend->kind->copy(backend, rest_of(update, p->tensor, update->room),
                            p->gradient + p->count - rest / sizeof(float), rest);
    cuda_phase(backend, PHASE_OPTIMIZER);
    queue_update(backend, update, p);
}

static void update_finish(struct backend *backend, const struct update *update)
{
    queue_digests(backend, update, judge_all(backend, update, true));
}

static enum status update_collect(struct backend *backend, const struct update *update)
{
    const struct piece_result *next = cuda_of(backend)->results;
    backend->kind->download(backend, cuda_of(backend)->results, update->room, results_bytes(update));
    for (int what = 0; what < DIGESTEDS; what++)
        for (int i = update->count - 1; i >= 0 && update->digest[what]; i--) {
            struct tensor t = tensor_of(backend, update, what, i);
            t.found = next;
            if (!t.data) t.rest = rest_of(update, i, cuda_of(backend)->results);
            next += pieces_of((int64_t)t.bytes);
            update->digest[what][i] = digest_pieces(t.bytes, find_digests, &t);
        }
    return cuda_queued("digests");
}

const struct update_kind cuda_update = {update_bytes, update_prepare, update_run,
                                        update_part,  update_finish,  update_collect};
