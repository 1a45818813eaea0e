/* What a run that goes on takes over from the unfinished file of its earlier processes. Contract: every committed step
 * is in the new file before that replaces the old one. */
#include "result/record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "job/machine.h"
#include "result/h5_write.h"

#define PIECE(member) offsetof(struct record_piece, member)

const struct field record_piece_columns[] = {
    {"step", NUMBER_U32, 1, PIECE(step), NULL, "first step that the piece recorded"},
    {"state", NUMBER_U32, 1, PIECE(state), NULL, "steps that it did not compute again: those before its state"},
    {"created", NUMBER_TEXT, 1, PIECE(created)},
    {"ended", NUMBER_TEXT, 1, PIECE(ended)},
    {"host", NUMBER_TEXT, 1, PIECE(host)},
    {"cpu", NUMBER_TEXT, 1, PIECE(cpu)},
    {"kernel", NUMBER_TEXT, 1, PIECE(kernel)},
    {"invocation", NUMBER_TEXT, 1, PIECE(invocation)},
    {0},
};

struct record_piece *record_pieces_read(struct h5 *h5, struct region *region, size_t *count)
{
    struct record_piece *piece;
    *count = (size_t)h5_rows(h5, "/pieces/piece");
    NEW(region, piece, *count + 1); /* and room for one more */
    table_read(h5, "/pieces", record_piece_columns, *count, piece, sizeof *piece, region);
    return piece;
}

/* Those of the past, the last of which ended as its file says, and this one. */
static void write_pieces(struct h5 *h5, struct result *past, uint32_t state)
{
    struct region *region = region_create();
    struct record_piece *piece;
    struct utsname system = {0};
    char created[RECORD_TIME], cpu[256], status[RESULT_STATUS];
    const char *invocation = getenv("REMATCH_INVOCATION");
    size_t count = 0;
    uname(&system);
    if (past)
        piece = record_pieces_read(&past->h5, region, &count);
    else
        NEW(region, piece, 1);
    if (count) piece[count - 1].ended = result_status(past, status);
    piece[count++] = (struct record_piece){.step = past ? (uint32_t)past->steps : 0,
                                           .state = state,
                                           .created = record_time(created),
                                           .ended = "",
                                           .host = system.nodename,
                                           .cpu = machine_cpu(cpu),
                                           .kernel = system.release,
                                           .invocation = invocation ? invocation : ""};
    table_write(h5, "/pieces", "piece", record_piece_columns, count, piece, sizeof *piece);
    region_destroy(region);
}

void record_copy_rows(struct h5 *h5, struct result *from, const char *path, enum number number, uint64_t width,
                      uint64_t rows, bool grows)
{
    enum { SLICE = 1 << 22 };
    const uint64_t bytes = width * h5_number_bytes(number), most = bytes < SLICE ? SLICE / bytes : 1;
    char *slice = allocate((size_t)(most < rows ? most : rows), (size_t)bytes);
    h5_expect_rows(&from->h5, path, number, (size_t)width, rows);
    for (uint64_t first = 0, count; first < rows && !from->h5.broken; first += count) {
        count = rows - first < most ? rows - first : most;
        h5_read_rows(&from->h5, path, number, (size_t)width, first, count, slice);
        if (from->h5.broken) break;
        if (grows)
            h5_append_rows(h5, path, count, slice);
        else
            h5_write_rows(h5, path, first, count, slice);
    }
    free(slice);
}

static void copy_table(struct h5 *h5, struct result *from, const char *group, const struct field *columns,
                       uint64_t rows)
{
    char path[64];
    for (const struct field *c = columns; c->name; c++) {
        snprintf(path, sizeof path, "%s/%s", group, c->name);
        record_copy_rows(h5, from, path, c->number, (uint64_t)c->width, rows, true);
    }
    snprintf(path, sizeof path, "%s/committed", group);
    record_copy_rows(h5, from, path, NUMBER_U8, 1, rows, true);
}

/* Evaluations whose row is committed: one may have been added only in part. */
static uint64_t evaluations(struct result *past)
{
    uint64_t rows = h5_rows_stored(&past->h5, "/eval/committed");
    uint8_t committed = 0;
    for (; rows; rows--) {
        h5_read_rows(&past->h5, "/eval/committed", NUMBER_U8, 1, rows - 1, 1, &committed);
        if (committed) break;
    }
    return rows;
}

bool record_last_eval(struct result *past, struct eval_record *eval)
{
    const uint64_t rows = evaluations(past);
    if (!rows) return false;
    h5_read_rows(&past->h5, "/eval/step", NUMBER_U32, 1, rows - 1, 1, &eval->step);
    h5_read_rows(&past->h5, "/eval/loss", NUMBER_F32, 1, rows - 1, 1, &eval->loss);
    h5_read_rows(&past->h5, "/eval/accuracy", NUMBER_F32, 1, rows - 1, 1, &eval->accuracy);
    return true;
}

static void copy_rows(struct h5 *h5, const struct job *job, struct result *past)
{
    const struct graph *graph = job->graph;
    const uint64_t steps = past->steps, values = (uint64_t)(graph->batch * shape_elements(&graph->value[0].shape));
    uint64_t wanted = 0;
    copy_table(h5, past, "/steps", record_step_columns, steps);
    copy_table(h5, past, "/eval", record_eval_columns, evaluations(past));
    for (uint64_t i = 0; i < steps; i++) wanted += record_wants_memory(job->spec, (int64_t)i);
    record_copy_rows(h5, past, "/memory/step", NUMBER_U32, 1, wanted, true);
    record_copy_rows(h5, past, "/memory/live", NUMBER_U64, (uint64_t)job->plan->lowered.ops, wanted, true);
    for (int i = 0; i < DIGESTS && job->spec->record_digests; i++)
        if (record_keeps(job, i))
            record_copy_rows(h5, past, digest_paths[i], NUMBER_U64,
                             2 * (uint64_t)(i == DIGESTS_RUNNING ? graph->states : graph->parameters), steps, true);
    if (job->spec->record_digests) record_copy_rows(h5, past, "/digests/step", NUMBER_U32, 1, steps, true);
    if (!job->spec->record_state) return;
    record_state_copy(h5, job, past);
    record_copy_rows(h5, past, "/state/step", NUMBER_U32, 1, steps, true);
    record_copy_rows(h5, past, "/state/x", NUMBER_F32, values, steps, true);
    record_copy_rows(h5, past, "/state/labels", NUMBER_I32, (uint64_t)graph->batch, steps, true);
}

enum status record_pieces(struct h5 *h5, const struct job *job, struct result *past, uint32_t state)
{
    write_pieces(h5, past, state);
    if (!past) return ST_OK;
    copy_rows(h5, job, past);
    TRY(h5_status(&past->h5));
    return h5_status(h5);
}
