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
    float *values;
    size_t bytes;
    const struct digest *digest; /* of the last step */
};

/* ---- what it holds ---- */

static int copies(const struct job *job) { return job->plan->options.state_per_parameter; }

static int parts(const struct job *job)
{
    return job->graph->parameters * (copies(job) > 0 ? 2 : 1) + job->graph->states;
}

/* Parameters, the optimizer's state of each, running state. last: NULL where there is no digest yet. */
static struct state_part part_of(const struct state_file *f, const struct train_result *last, int i)
{
    const struct graph *graph = f->job->graph;
    const bool optimizer = copies(f->job) > 0 && i >= graph->parameters && i < 2 * graph->parameters;
    if (i < graph->parameters)
        return (struct state_part){"parameter", graph->parameter[i].name, executor_parameter(f->exec, i),
                                   parameter_bytes(&graph->parameter[i]), last ? &last->parameter[i] : NULL};
    i -= graph->parameters;
    if (optimizer)
        return (struct state_part){"optimizer state of", graph->parameter[i].name, executor_state(f->exec, i),
                                   (size_t)copies(f->job) * parameter_bytes(&graph->parameter[i]),
                                   last ? &last->parameter_state[i] : NULL};
    if (copies(f->job) > 0) i -= graph->parameters;
    return (struct state_part){"running state", graph->state[i].name, executor_running(f->exec, i),
                               parameter_bytes(&graph->state[i]), last ? &last->running_state[i] : NULL};
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

/* ---- writing ---- */

/* 0, or errno. */
static int put(int descriptor, const void *data, size_t bytes, off_t at)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t written = pwrite(descriptor, (const char *)data + done, bytes - done, at + (off_t)done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written < 0 ? errno : ENOSPC;
        sync_file_range(descriptor, at + (off_t)done, written, SYNC_FILE_RANGE_WRITE); /* a hint; fsync() reports */
        done += (size_t)written;
    }
    return 0;
}

/* A host's tensor from where it lies, a device's through room for a slice. */
static int put_part(int descriptor, struct backend *backend, const struct state_part *part, char *room, off_t at)
{
    int error = 0;
    for (size_t done = 0, count; done < part->bytes && !error; done += count) {
        count = part->bytes - done < SLICE ? part->bytes - done : SLICE;
        const char *from = (const char *)part->values + done;
        if (room) backend->kind->download(backend, room, from, count);
        error = put(descriptor, room ? room : from, count, at + (off_t)done);
    }
    return error;
}

static int put_all(int descriptor, const struct state_file *f, const struct heading *h)
{
    struct backend *backend = f->job->backend;
    char *room = backend->kind->device ? allocate(SLICE, 1) : NULL;
    off_t at = (off_t)h->bytes;
    int error = put(descriptor, h->head, h->bytes, 0);
    for (int i = 0; i < parts(f->job) && !error; i++) {
        const struct state_part part = part_of(f, NULL, i);
        error = put_part(descriptor, backend, &part, room, at);
        at += (off_t)part.bytes;
    }
    free(room);
    return error;
}

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
    for (int i = 0; i < parts(f->job); i++) h->digest[i] = *part_of(f, last, i).digest;
    *h->of_all = digest_of(h);
}

enum status state_file_write(const struct state_file *f, const struct train_result *last,
                             const struct state_figures *figures, const struct best_case *least)
{
    char path[RECORD_PATH];
    struct new_file fresh = {.path = state_file_path(f->path, path)};
    const struct heading h = heading_create(f->job);
    snprintf(fresh.name, sizeof fresh.name, "%s.new", path);
    fill(&h, f, last, figures, least);
    const int descriptor = new_file_create(fresh.name);
    int error = descriptor < 0 ? errno : put_all(descriptor, f, &h);
    if (descriptor >= 0 && close(descriptor) < 0 && !error) error = errno;
    free(h.head);
    if (!error) return new_file_publish(&fresh);
    new_file_drop(&fresh);
    return fail(ST_FAILED, "%s: cannot write: %s", path, strerror(error));
}

/* ---- reading ---- */

static enum status get_part(int descriptor, const char *path, struct backend *backend, const struct state_part *part,
                            char *room, uint64_t at)
{
    for (size_t done = 0, count; done < part->bytes; done += count) {
        count = part->bytes - done < SLICE ? part->bytes - done : SLICE;
        char *to = (char *)part->values + done;
        TRY(file_read(descriptor, path, at + done, count, room ? room : to));
        if (room) backend->kind->upload(backend, to, room, count);
    }
    return ST_OK;
}

/* The tensors, each of which must have its digest. */
static enum status get_parts(int descriptor, const char *path, const struct state_file *f, const struct heading *h,
                             char *room)
{
    struct backend *backend = f->job->backend;
    uint64_t at = h->bytes;
    for (int i = 0; i < parts(f->job); i++) {
        const struct state_part part = part_of(f, NULL, i);
        TRY(get_part(descriptor, path, backend, &part, room, at));
        if (!digest_equal(backend->kind->digest(backend, part.values, part.bytes), h->digest[i]))
            return fail(ST_FAILED, "%s: damaged: %s %s does not have its digest", path, part.what, part.name);
        at += part.bytes;
    }
    return ST_OK;
}

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
    TRY(file_read(descriptor, path, 0, h->bytes, h->head));
    TRY(check_head(path, f, h));
    TRY(check_recorded(path, f, h, past));
    char *room = f->job->backend->kind->device ? allocate(SLICE, 1) : NULL;
    const enum status status = get_parts(descriptor, path, f, h, room);
    free(room);
    return status;
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
