/* Layout: the head, each op's least time, a digest of every tensor, the digest of all that, then the tensors in the
 * order of part_of(). Contract: the file named .state is always complete; a tensor is used only if its digest is that
 * of the step that computed it. */
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
enum { SLICE = 1 << 24 };

static const char magic[16] = "rematch state 1";

struct head {
    char magic[sizeof magic], id[RUN_ID_TEXT];
    uint64_t position;
    struct state_figures figures;
};

/* The head with the arrays behind it, as in the file. */
struct heading {
    struct head *head;
    uint64_t *op_ns;
    struct digest *digest, *of_all; /* one a tensor; of all before it */
    size_t bytes;
};

/* A tensor of the state, in the backend's memory. */
struct state_part {
    const char *what, *name;
    char *values;
    size_t bytes;
    const struct digest *digest; /* of the last step */
};

/* ---- what it holds ---- */

static int copies(const struct job *job) { return job->plan->options.state_per_parameter; }

static int parts(const struct job *job)
{
    return job->graph->parameters * (copies(job) > 0 ? 2 : 1) + job->graph->states;
}

/* Parameters, the optimizer's state of each, running state. last: NULL where no digest is wanted. */
static struct state_part part_of(const struct state_file *f, const struct train_result *last, int i)
{
    static const struct train_result none = {.loss = 0};
    const struct graph *g = f->job->graph;
    const struct train_result *r = last ? last : &none;
    const struct {
        const char *what;
        int count;
        const struct parameter *tensor;
        float *(*values)(struct executor *, int);
        size_t copies;
        const struct digest *digest;
    } kinds[] = {{"parameter", g->parameters, g->parameter, executor_parameter, 1, r->parameter},
                 {"optimizer state of", copies(f->job) > 0 ? g->parameters : 0, g->parameter, executor_state,
                  (size_t)copies(f->job), r->parameter_state},
                 {"running state", g->states, g->state, executor_running, 1, r->running_state}},
      *k = kinds;
    for (; i >= k->count; k++) i -= k->count;
    return (struct state_part){k->what, k->tensor[i].name, (char *)k->values(f->exec, i),
                               k->copies * parameter_bytes(&k->tensor[i]), last ? &k->digest[i] : NULL};
}

static struct heading heading_create(const struct job *job)
{
    const size_t ops = (size_t)job->plan->lowered.ops, tensors = (size_t)parts(job);
    struct heading h = {.bytes = sizeof *h.head + ops * sizeof *h.op_ns + (tensors + 1) * sizeof *h.digest};
    h.head = allocate(1, h.bytes);
    h.op_ns = (uint64_t *)(void *)(h.head + 1);
    h.digest = (struct digest *)(void *)(h.op_ns + ops);
    h.of_all = h.digest + tensors;
    return h;
}

static struct digest digest_of(const struct heading *h) { return digest_bytes(h->head, h->bytes - sizeof *h->of_all); }

char *state_file_path(const char *result, char path[RECORD_PATH])
{
    snprintf(path, RECORD_PATH, "%.1000s.state", result);
    return path;
}

bool state_file_exists(const char *result)
{
    char path[RECORD_PATH];
    return access(state_file_path(result, path), F_OK) == 0;
}

void state_file_remove(const char *result)
{
    struct new_file file;
    char path[RECORD_PATH];
    unlink(state_file_path(result, path));
    snprintf(file.name, sizeof file.name, "%s.new", path);
    new_file_drop(&file);
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

/* Reads the tensors, or writes them: a host's where they lie, a device's through room for a slice. */
static enum status move_parts(const struct state_file *f, int descriptor, const char *path, uint64_t at, bool write,
                              char *room)
{
    struct backend *b = f->job->backend;
    for (int i = 0; i < parts(f->job); i++) {
        const struct state_part part = part_of(f, NULL, i);
        for (size_t done = 0, count; done < part.bytes; done += count, at += count) {
            char *values = part.values + done, *there = room ? room : values;
            count = part.bytes - done < SLICE ? part.bytes - done : SLICE;
            if (write && room) b->kind->download(b, room, values, count);
            TRY((write ? put : file_read)(descriptor, path, at, count, there));
            if (!write && room) b->kind->upload(b, values, room, count);
        }
    }
    return ST_OK;
}

static enum status move_all(const struct state_file *f, int descriptor, const char *path, uint64_t at, bool write)
{
    char *room = f->job->backend->kind->device ? allocate(SLICE, 1) : NULL;
    const enum status status = move_parts(f, descriptor, path, at, write, room);
    free(room);
    return status;
}

/* ---- writing ---- */

static void fill(const struct heading *h, const struct state_file *f, const struct train_result *last,
                 const struct state_figures *figures, const struct best_case *least)
{
    memcpy(h->head->magic, magic, sizeof magic);
    snprintf(h->head->id, RUN_ID_TEXT, "%s", f->id);
    h->head->position = *executor_position(f->exec);
    h->head->figures = *figures;
    h->head->figures.rest_ns = least->rest_ns;
    h->head->figures.known = least->known;
    memcpy(h->op_ns, least->op_ns, (size_t)least->ops * sizeof *h->op_ns);
    for (int i = 0; i < parts(f->job); i++) {
        const struct digest *digest = part_of(f, last, i).digest;
        if (digest) h->digest[i] = *digest;
    }
    *h->of_all = digest_of(h);
}

enum status state_file_write(const struct state_file *f, const struct train_result *last,
                             const struct state_figures *figures, const struct best_case *least)
{
    char path[RECORD_PATH];
    struct new_file fresh = {.path = state_file_path(f->path, path)};
    snprintf(fresh.name, sizeof fresh.name, "%s.new", path);
    const int descriptor = new_file_create(fresh.name);
    if (descriptor < 0) return fail(ST_FAILED, "%s: cannot write: %s", path, strerror(errno));
    const struct heading h = heading_create(f->job);
    fill(&h, f, last, figures, least);
    enum status status = put(descriptor, path, 0, h.bytes, h.head);
    if (status == ST_OK) status = move_all(f, descriptor, path, h.bytes, true);
    free(h.head);
    if (close(descriptor) < 0 && status == ST_OK)
        status = fail(ST_FAILED, "%s: cannot write: %s", path, strerror(errno));
    if (status == ST_OK) return new_file_publish(&fresh);
    new_file_drop(&fresh);
    return status;
}

/* ---- reading ---- */

static enum status check_head(const char *path, const struct state_file *f, const struct heading *h)
{
    char id[RUN_ID_TEXT];
    if (memcmp(h->head->magic, magic, sizeof magic) != 0) return fail(ST_FAILED, "%s: not a state file", path);
    snprintf(id, sizeof id, "%.16s", h->head->id);
    if (strcmp(id, f->id) != 0) return fail(ST_FAILED, "%s: the state of run %s; expected %s", path, id, f->id);
    if (!digest_equal(digest_of(h), *h->of_all)) return fail(ST_FAILED, "%s: damaged: its head", path);
    return ST_OK;
}

/* The state after its last step has the digests that the result file has of that step. */
static enum status check_recorded(const char *path, const struct state_file *f, const struct heading *h,
                                  const struct result *past)
{
    const uint64_t steps = h->head->figures.steps;
    const size_t parameters = (size_t)f->job->graph->parameters, running = (size_t)f->job->graph->states;
    if (steps < 1 || steps > past->steps)
        return fail(ST_FAILED, "%s: after %" PRIu64 " steps, of which %s has %zu", path, steps, past->h5.path,
                    past->steps);
    const struct digest *digest = h->digest, *recorded[] = {past->parameters_digest, past->state, past->running_digest};
    const size_t count[] = {parameters, copies(f->job) > 0 ? parameters : 0, running};
    for (size_t i = 0; i < sizeof count / sizeof *count; digest += count[i++])
        if (count[i] && !digest_equal(digest_bytes(digest, count[i] * sizeof *digest), recorded[i][steps - 1]))
            return fail(ST_FAILED, "%s: not the state that %s has after step %" PRIu64, path, past->h5.path, steps - 1);
    return ST_OK;
}

static enum status get_all(int descriptor, const char *path, const struct state_file *f, const struct heading *h,
                           const struct result *past)
{
    struct backend *backend = f->job->backend;
    TRY(file_read(descriptor, path, 0, h->bytes, h->head));
    TRY(check_head(path, f, h));
    TRY(check_recorded(path, f, h, past));
    TRY(move_all(f, descriptor, path, h->bytes, false));
    for (int i = 0; i < parts(f->job); i++) {
        const struct state_part part = part_of(f, NULL, i);
        if (!digest_equal(backend->kind->digest(backend, part.values, part.bytes), h->digest[i]))
            return fail(ST_FAILED, "%s: damaged: %s %s does not have its digest", path, part.what, part.name);
    }
    return ST_OK;
}

enum status state_file_read(const struct state_file *f, const struct result *past, struct state_figures *figures,
                            struct best_case *least)
{
    char path[RECORD_PATH];
    int descriptor;
    uint64_t bytes;
    TRY(file_open(state_file_path(f->path, path), &descriptor, &bytes));
    const struct heading h = heading_create(f->job);
    const enum status status = get_all(descriptor, path, f, &h, past);
    if (status == ST_OK) {
        *figures = h.head->figures;
        *executor_position(f->exec) = h.head->position;
        least->rest_ns = figures->rest_ns;
        least->known = figures->known != 0;
        memcpy(least->op_ns, h.op_ns, (size_t)least->ops * sizeof *h.op_ns);
    }
    free(h.head);
    close(descriptor);
    return status;
}
