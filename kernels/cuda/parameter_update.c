/* The update after a step's backward, in six launches for all parameters: squares of gradients are summed, the
 * gradients checked and digested, parameters and state updated and digested; a tensor's digest is that of its pieces'
 * digests. The room holds the tables of pieces, which are written once, and the results. Also the digest and the sum of
 * squares of one tensor, for which the host waits. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "kernels.h"

_Static_assert((int)PIECE_BYTES == (int)DIGEST_PIECE && sizeof(struct xxh3) == sizeof(struct digest),
               "host and device agree on pieces and digests");

/* Offsets in the room: first the tables, then the results. Pieces and tensors are in the order of enum digested: all
 * gradients, all parameters, all state. */
struct room {
    int64_t gradients, pieces; /* pieces of the gradients, and of everything */
    int64_t tensors;
    size_t piece, tensor, update, first; /* struct tensor_piece, struct tensor_piece, struct update_piece, int64_t */
    size_t tables;                       /* bytes of all four */
    size_t canonical, digest;            /* struct xxh3, of pieces and of tensors */
    size_t squares, sum, verdict;        /* double, double, struct verdict */
    size_t bytes;
};

/* Appends count members of bytes each; returns their offset. */
static size_t put(struct room *room, int64_t count, size_t bytes)
{
    const size_t offset = room->bytes;
    room->bytes += round_up((size_t)count * bytes);
    return offset;
}

static int64_t bytes_of(int64_t elements) { return elements * (int64_t)sizeof(float); }

/* Counts the pieces of a parameter with so many copies of state. */
static void count_pieces(struct room *room, int64_t elements, int states)
{
    room->gradients += pieces_of(bytes_of(elements));
    room->pieces += 2 * pieces_of(bytes_of(elements)) + pieces_of(states * bytes_of(elements));
}

/* The offsets, for count parameters whose pieces are counted. */
static struct room placed(struct room r, int count, int states)
{
    r.tensors = (int64_t)count * (states > 0 ? 3 : 2);
    r.piece = put(&r, r.pieces, sizeof(struct tensor_piece));
    r.tensor = put(&r, r.tensors, sizeof(struct tensor_piece));
    r.update = put(&r, r.gradients, sizeof(struct update_piece));
    r.first = put(&r, count + 1, sizeof(int64_t));
    r.tables = r.bytes;
    r.canonical = put(&r, r.pieces, sizeof(struct xxh3));
    r.digest = put(&r, r.tensors, sizeof(struct xxh3));
    r.squares = put(&r, r.gradients, sizeof(double));
    r.sum = put(&r, count, sizeof(double));
    r.verdict = put(&r, 1, sizeof(struct verdict));
    return r;
}

static struct room room_for(const struct update *update)
{
    struct room room = {0};
    for (int i = 0; i < update->count; i++) count_pieces(&room, update->tensor[i].elements, update->states);
    return placed(room, update->count, update->states);
}

static size_t update_bytes(const struct graph *graph, int states)
{
    struct room room = {0};
    for (int i = 0; i < graph->parameters; i++) count_pieces(&room, graph->parameter[i].elements, states);
    return placed(room, graph->parameters, states).bytes;
}

/* ---- the tables ---- */

static void fill_updates(const struct update_tensor *tensor, struct update_piece **next)
{
    for (int64_t from = 0; from < tensor->elements; from += PIECE_FLOATS) {
        const int64_t left = tensor->elements - from;
        *(*next)++ = (struct update_piece){.parameter = tensor->parameter + from,
                                           .gradient = tensor->gradient + from,
                                           .state = tensor->state ? tensor->state + from : NULL,
                                           .copy = tensor->elements,
                                           .elements = left < PIECE_FLOATS ? (int32_t)left : PIECE_FLOATS,
                                           .numbers = tensor->numbers};
    }
}

/* The pieces of a tensor; returns the array of their digests from canonical on, of which the tensor's digest is made.
 */
static struct tensor_piece fill_pieces(const void *data, int64_t bytes, struct tensor_piece **next,
                                       const struct xxh3 *canonical)
{
    for (int64_t from = 0; from < bytes; from += PIECE_BYTES) {
        const int64_t left = bytes - from;
        *(*next)++ = (struct tensor_piece){(const char *)data + from, left < PIECE_BYTES ? left : PIECE_BYTES};
    }
    return (struct tensor_piece){canonical, pieces_of(bytes) * (int64_t)sizeof *canonical};
}

/* Writes the tables, the start of the room, in host memory. */
static void fill_tables(const struct update *update, const struct room *room, char *tables)
{
    struct tensor_piece *const piece = (struct tensor_piece *)(void *)(tables + room->piece), *next = piece;
    struct tensor_piece *tensor = (struct tensor_piece *)(void *)(tables + room->tensor);
    struct update_piece *next_update = (struct update_piece *)(void *)(tables + room->update);
    int64_t *first = (int64_t *)(void *)(tables + room->first);
    const struct xxh3 *canonical = (const struct xxh3 *)(void *)((char *)update->room + room->canonical);
    const int copies[DIGESTEDS] = {1, 1, update->states};
    for (int what = 0; what < DIGESTEDS; what++)
        for (int i = 0; i < update->count && copies[what] > 0; i++) {
            const struct update_tensor *t = &update->tensor[i];
            const void *const data[DIGESTEDS] = {t->gradient, t->parameter, t->state};
            if (what == DIGESTED_GRADIENT) {
                first[i] = next - piece;
                first[i + 1] = first[i] + pieces_of(bytes_of(t->elements));
                fill_updates(t, &next_update);
            }
            *tensor++ =
                fill_pieces(data[what], copies[what] * bytes_of(t->elements), &next, canonical + (next - piece));
        }
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
    int i = 0;
    while (i < RULES && (strcmp(rules[i].optimizer, update->optimizer->name) || rules[i].states != update->states)) i++;
    return i;
}

static enum status update_prepare(struct backend *backend, const struct update *update)
{
    if (find_rule(update) == RULES)
        return fail(ST_MISSING, "backend cuda has no optimizer %s with %d copies of the parameters as state",
                    update->optimizer->name, update->states);
    const struct room room = room_for(update);
    char *tables = allocate(1, room.tables);
    fill_tables(update, &room, tables);
    backend->kind->upload(backend, update->room, tables, room.tables);
    free(tables);
    return cuda_queued("table of the parameters' pieces");
}

/* ---- the update of a step ---- */

static void update_run(struct backend *backend, const struct update *update)
{
    const struct room r = room_for(update);
    const cudaStream_t stream = cuda_of(backend)->stream;
    char *const at = update->room;
    const struct tensor_piece *piece = (const struct tensor_piece *)(void *)(at + r.piece);
    struct xxh3 *canonical = (struct xxh3 *)(void *)(at + r.canonical);
    double *squares = (double *)(void *)(at + r.squares), *sum = (double *)(void *)(at + r.sum);
    struct verdict *verdict = (struct verdict *)(void *)(at + r.verdict);
    struct step_outcome *outcome = backend->outcome_now;

    cuda_phase(backend, PHASE_DIGEST);
    launch_digests(stream, (struct tensor_pieces){.table = piece, .count = r.gradients}, true, canonical, squares);
    launch_squares(stream, update->count, (const int64_t *)(void *)(at + r.first), squares, sum);
    launch_judgement(stream, update->count, sum,
                     (struct judgement){.clip = update->settings.clip,
                                        .loss = outcome->loss,
                                        .squares = &outcome->squares,
                                        .not_finite = &outcome->not_finite,
                                        .verdict = verdict});
    cuda_phase(backend, PHASE_OPTIMIZER);
    launch_update(stream, rules[find_rule(update)].rule, r.gradients,
                  (const struct update_piece *)(void *)(at + r.update), backend->now->numbers, verdict);
    cuda_phase(backend, PHASE_DIGEST);
    launch_digests(stream, (struct tensor_pieces){.table = piece + r.gradients, .count = r.pieces - r.gradients}, true,
                   canonical + r.gradients, NULL);
    launch_digests(
        stream,
        (struct tensor_pieces){.table = (const struct tensor_piece *)(void *)(at + r.tensor), .count = r.tensors},
        false, (struct xxh3 *)(void *)(at + r.digest), NULL);
}

static enum status update_collect(struct backend *backend, const struct update *update)
{
    const struct room r = room_for(update);
    const size_t bytes = (size_t)update->count * sizeof(struct digest);
    const char *from = (const char *)update->room + r.digest;
    for (int what = 0; what < DIGESTEDS && bytes > 0; what++)
        if (update->digest[what])
            backend->kind->download(backend, update->digest[what], from + (size_t)what * bytes, bytes);
    return cuda_queued("digests");
}

const struct update_kind cuda_update = {update_bytes, update_prepare, update_run, update_collect};

/* ---- one tensor, some pieces at a time ---- */

struct tensor {
    struct backend *backend;
    const char *data;
    size_t bytes;
};

/* Of count pieces from the first-th on; squares NULL: not wanted. Zeros where the device is lost, which wait reports.
 */
static void find(const struct tensor *t, size_t first, size_t count, struct digest *digest, double *squares)
{
    const struct cuda *cuda = cuda_of(t->backend);
    const struct backend_kind *kind = t->backend->kind;
    const size_t from = first * PIECE_BYTES;
    const struct tensor_pieces pieces = {.whole = {t->data + from, (int64_t)(t->bytes - from)},
                                         .count = (int64_t)count};
    memset(digest, 0, count * sizeof *digest);
    if (squares) memset(squares, 0, count * sizeof *squares);
    launch_digests(cuda->stream, pieces, false, cuda->there->digest, squares ? cuda->there->squares : NULL);
    kind->download(t->backend, digest, cuda->there->digest, count * sizeof *digest);
    if (squares) kind->download(t->backend, squares, cuda->there->squares, count * sizeof *squares);
}

static void find_digests(void *self, size_t first, size_t count, struct digest *digest)
{
    find(self, first, count, digest, NULL);
}

struct digest cuda_digest(struct backend *backend, const void *data, size_t bytes)
{
    assert((uintptr_t)data % sizeof(uint64_t) == 0);
    return digest_pieces(bytes, find_digests, &(struct tensor){backend, data, bytes});
}

double cuda_squares(struct backend *backend, const float *x, size_t count)
{
    assert((uintptr_t)x % sizeof(uint64_t) == 0);
    const struct tensor tensor = {backend, (const char *)x, count * sizeof *x};
    const size_t pieces = (size_t)pieces_of((int64_t)tensor.bytes);
    double total = 0;
    for (size_t done = 0; done < pieces; done += DIGEST_PIECES_AT_ONCE) {
        struct digest digest[DIGEST_PIECES_AT_ONCE];
        double squares[DIGEST_PIECES_AT_ONCE];
        const size_t now = pieces - done < DIGEST_PIECES_AT_ONCE ? pieces - done : DIGEST_PIECES_AT_ONCE;
        find(&tensor, done, now, digest, squares);
        for (size_t i = 0; i < now; i++) total += squares[i];
    }
    return total;
}
