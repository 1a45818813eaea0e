/* The digest and the sum of squares of one tensor on the device, some pieces at a time; the host waits for them. */
#include "parameter_update.h"

#include <assert.h>
#include <string.h>

#include "tensor_pieces.h"

_Static_assert((int)PIECE_BYTES == (int)DIGEST_PIECE && (int)PIECES_AT_ONCE == (int)DIGEST_PIECES_AT_ONCE &&
                   sizeof(struct xxh3) == sizeof(struct digest),
               "host and device agree on pieces and digests");

struct tensor {
    struct backend *backend;
    const char *data;
    size_t bytes;
};

/* Of count pieces from the first-th on; squares NULL: not wanted. Zeros where the device is lost, which wait reports.
 */
static void find(const struct tensor *t, size_t first, size_t count, struct digest *digest, double *squares)
{
    const struct backend_kind *kind = t->backend->kind;
    const size_t from = first * PIECE_BYTES;
    const struct tensor_pieces pieces = {.whole = {t->data + from, (int64_t)(t->bytes - from)},
                                         .count = (int64_t)count};
    struct xxh3 *found_digest;
    double *found_squares;
    memset(digest, 0, count * sizeof *digest);
    if (squares) memset(squares, 0, count * sizeof *squares);
    const cudaError_t error = piece_results_addresses(&found_digest, &found_squares);
    cuda_note(t->backend, error);
    if (error != cudaSuccess) return;
    launch_digests(cuda_of(t->backend)->stream, pieces, false, found_digest, squares ? found_squares : NULL);
    kind->download(t->backend, digest, found_digest, count * sizeof *digest);
    if (squares) kind->download(t->backend, squares, found_squares, count * sizeof *squares);
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
