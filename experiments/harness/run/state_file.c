/* Layout: the head, each op's least time, the digest of both, then the tensors in the order of find_kinds(). Contract:
 * the file named .state is always complete; tensors are used only if their digest is that of the step that computed
 * them. */
#include "run/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "job/run_id.h"
#include "yaml/new_file.h"

/* Bytes that are written or read at once: the disk works on them while the next are copied. */
enum { SLICE = 1 << 24, KINDS = 3 };

static const char magic[16] = "rematch state 2";

struct head {
    char magic[sizeof magic], id[RUN_ID_TEXT];
    uint64_t position;
    struct state_numbers numbers;
};

/* The head with what is behind it in the file. */
struct heading {
    struct head *head;
    uint64_t *op_ns;
    struct digest *digest; /* of all before it */
    size_t bytes;
};

/* The tensors of a kind, in the backend's memory. */
struct kind {
    const char *what;
    int count;
    const struct parameter *tensor;
    float *(*values)(struct executor *, int);
    size_t copies;
    size_t recorded; /* member of struct result: by step, the digest of their digests */
};

/* ---- what it holds ---- */

static void find_kinds(const struct job *job, struct kind kind[KINDS])
{
    const struct graph *g = job->graph;
    const int copies = job->plan->options.state_per_parameter;
    const struct kind all[KINDS] = {
        {"parameters", g->parameters, g->parameter, executor_parameter, 1, offsetof(struct result, parameters_digest)},
        {"optimizer state", copies > 0 ? g->parameters : 0, g->parameter, executor_state, (size_t)copies,
         offsetof(struct result, state)},
        {"running state", g->states, g->state, executor_running, 1, offsetof(struct result, running_digest)}};
    memcpy(kind, all, sizeof all);
}

static struct heading heading_create(const struct job *job)
{
    const size_t ops = (size_t)job->plan->lowered.ops;
    struct heading h = {.bytes = sizeof *h.head + ops * sizeof *h.op_ns + sizeof *h.digest};
    h.head = allocate(1, h.bytes);
    h.op_ns = (uint64_t *)(void *)(h.head + 1);
    h.digest = (struct digest *)(void *)(h.op_ns + ops);
    return h;
}

static struct digest digest_of(const struct heading *h) { return digest_bytes(h->head, h->bytes - sizeof *h->digest); }

static char *path_of(const char *result, char path[RECORD_PATH])
{
    snprintf(path, RECORD_PATH, "%.1000s.state", result);
    return path;
}

/* The new one, until it replaces the old one; path: of the old one, in the caller's memory. */
static struct new_file new_one(const char *result, char path[RECORD_PATH])
{
    struct new_file fresh = {.path = path_of(result, path)};
    snprintf(fresh.name, sizeof fresh.name, "%s.new", path);
    return fresh;
}

bool state_file_exists(const char *result)
{
    char path[RECORD_PATH];
    return access(path_of(result, path), F_OK) == 0;
}

void state_file_remove(const char *result)
{
    char path[RECORD_PATH];
    const struct new_file fresh = new_one(result, path);
    unlink(path);
    new_file_drop(&fresh);
}

static enum status put(int descriptor, const char *path, uint64_t at, size_t bytes, void *from)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t written = pwrite(descriptor, (const char *)from + done, bytes - done, (off_t)(at + done));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return fail(ST_FAILED, "%s: cannot write: %s", path, strerror(written ? errno : ENOSPC));
        sync_file_range(descriptor, (off_t)(at + done), written, SYNC_FILE_RANGE_WRITE); /* a hint; fsync() reports */
        done += (size_t)written;
    }
    return ST_OK;
}

/* Reads a tensor, or writes it: a host's where it lies, a device's through room for a slice. */
static enum status move_tensor(const struct state_file *f, int descriptor, const char *path, uint64_t *at, bool write,
                               char *values, size_t bytes, char *room)
{
    struct backend *b = f->job->backend;
    for (size_t count; bytes; bytes -= count, values += count, *at += count) {
        char *there = room ? room : values;
        count = bytes < SLICE ? bytes : SLICE;
        if (write && room) b->kind->download(b, room, values, count);
        TRY((write ? put : file_read)(descriptor, path, *at, count, there));
        if (!write && room) b->kind->upload(b, values, room, count);
    }
    return ST_OK;
}

static enum status move_all(const struct state_file *f, int descriptor, const char *path, uint64_t *at, bool write)
{
    struct kind kind[KINDS];
    freed_auto char *room = f->job->backend->kind->device ? allocate(SLICE, 1) : NULL;
    find_kinds(f->job, kind);
    for (const struct kind *k = kind; k < kind + KINDS; k++)
        for (int i = 0; i < k->count; i++)
            if (k->values(f->exec, i)) /* else it is not trained */
                TRY(move_tensor(f, descriptor, path, at, write, (char *)k->values(f->exec, i),
                                k->copies * parameter_bytes(&k->tensor[i]), room));
    return ST_OK;
}

/* ---- writing ---- */

static void fill(const struct heading *h, const struct state_file *f, const struct state_numbers *numbers,
                 const struct best_case *least)
{
    memcpy(h->head->magic, magic, sizeof magic);
    snprintf(h->head->id, RUN_ID_TEXT, "%s", f->id);
    h->head->position = *executor_position(f->exec);
    h->head->numbers = *numbers;
    h->head->numbers.rest_ns = least->rest_ns;
    h->head->numbers.known = least->known;
    memcpy(h->op_ns, least->op_ns, (size_t)least->ops * sizeof *h->op_ns);
    *h->digest = digest_of(h);
}

enum status state_file_write(const struct state_file *f, const struct state_numbers *numbers,
                             const struct best_case *least)
{
    char path[RECORD_PATH];
    const struct new_file fresh = new_one(f->path, path);
    const int descriptor = new_file_create(fresh.name);
    if (descriptor < 0) return fail(ST_FAILED, "%s: cannot write: %s", path, strerror(errno));
    const struct heading h = heading_create(f->job);
    fill(&h, f, numbers, least);
    enum status status = put(descriptor, path, 0, h.bytes, h.head);
    uint64_t at = h.bytes;
    if (status == ST_OK) status = move_all(f, descriptor, path, &at, true);
    free(h.head);
    if (close(descriptor) < 0 && status == ST_OK)
        status = fail(ST_FAILED, "%s: cannot write: %s", path, strerror(errno));
    if (status == ST_OK) status = new_file_sync(fresh.name, O_RDONLY);
    if (status != ST_OK) new_file_drop(&fresh);
    return status;
}

enum status state_file_place(const struct state_file *f)
{
    char path[RECORD_PATH];
    const struct new_file fresh = new_one(f->path, path);
    return new_file_end(&fresh, ST_OK);
}

/* ---- reading ---- */

static enum status check_head(const char *path, const struct state_file *f, const struct heading *h,
                              const struct result *past)
{
    char id[RUN_ID_TEXT];
    const uint64_t steps = h->head->numbers.steps;
    if (memcmp(h->head->magic, magic, sizeof magic) != 0) return fail(ST_FAILED, "%s: not a state file", path);
    snprintf(id, sizeof id, "%.16s", h->head->id);
    if (strcmp(id, f->id) != 0) return fail(ST_FAILED, "%s: the state of run %s; expected %s", path, id, f->id);
    if (!digest_equal(digest_of(h), *h->digest)) return fail(ST_FAILED, "%s: damaged: its head", path);
    if (steps < 1 || steps > past->steps)
        return fail(ST_FAILED, "%s: after %" PRIu64 " steps, of which %s has %zu", path, steps, past->h5.path,
                    past->steps);
    return ST_OK;
}

/* The state after its last step has the digests that the result file has of that step. */
static enum status check_tensors(const char *path, const struct state_file *f, uint64_t steps,
                                 const struct result *past)
{
    struct backend *b = f->job->backend;
    struct kind kind[KINDS];
    find_kinds(f->job, kind);
    for (const struct kind *k = kind; k < kind + KINDS; k++) {
        freed_auto struct digest *digest = allocate((size_t)k->count, sizeof *digest);
        const struct digest *recorded;
        memcpy(&recorded, (const char *)past + k->recorded, sizeof recorded);
        for (int i = 0; i < k->count; i++)
            if (k->values(f->exec, i))
                digest[i] = b->kind->digest(b, k->values(f->exec, i), k->copies * parameter_bytes(&k->tensor[i]));
        const struct digest all = digest_bytes(digest, (size_t)k->count * sizeof *digest);
        if (k->count && !digest_equal(all, recorded[steps - 1]))
            return fail(ST_FAILED, "%s: its %s is not what %s has after step %" PRIu64, path, k->what, past->h5.path,
                        steps - 1);
    }
    return ST_OK;
}

enum status state_file_read(const struct state_file *f, const struct result *past, struct state_numbers *numbers,
                            struct best_case *least)
{
    char path[RECORD_PATH];
    descriptor_auto int descriptor = -1;
    uint64_t bytes;
    TRY(file_open(path_of(f->path, path), &descriptor, &bytes));
    const struct heading h = heading_create(f->job);
    freed_auto struct head *head = h.head;
    TRY(file_read(descriptor, path, 0, h.bytes, head));
    TRY(check_head(path, f, &h, past));
    uint64_t at = h.bytes;
    TRY(move_all(f, descriptor, path, &at, false));
    if (at < bytes) return fail(ST_FAILED, "%s: damaged: longer than the %" PRIu64 " bytes written", path, at);
    TRY(check_tensors(path, f, head->numbers.steps, past));
    *numbers = head->numbers;
    *executor_position(f->exec) = head->position;
    least->rest_ns = numbers->rest_ns;
    least->known = numbers->known != 0;
    memcpy(least->op_ns, h.op_ns, (size_t)least->ops * sizeof *h.op_ns);
    return ST_OK;
}
