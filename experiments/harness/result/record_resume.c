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
    table_read(h5, "/pieces", record_piece_columns, *count, piece, sizeof *piece, true, region);
    return piece;
}

/* Those of the past, the last of which ended as its file says, and this one. */
static void write_pieces(struct h5 *h5, struct result *past, uint32_t state)
{
    region_auto *region = region_create();
    struct record_piece *piece;
    struct utsname system = {0};
    char created[RECORD_TIME], cpu[256];
    const char *invocation = getenv("REMATCH_INVOCATION");
    size_t count = 0;
    uname(&system);
    if (past)
        piece = record_pieces_read(&past->h5, region, &count);
    else
        NEW(region, piece, 1);
    if (count) piece[count - 1].ended = past->now;
    piece[count++] = (struct record_piece){.step = past ? (uint32_t)past->steps : 0,
                                           .state = state,
                                           .created = record_time(created),
                                           .ended = "",
                                           .host = system.nodename,
                                           .cpu = machine_cpu(cpu),
                                           .kernel = system.release,
                                           .invocation = invocation ? invocation : ""};
    table_write(h5, "/pieces", "piece", record_piece_columns, count, piece, sizeof *piece);
}

bool record_last_eval(struct result *past, struct eval_record *eval)
{
    const uint64_t rows = result_committed_rows(past, "/eval/committed");
    if (!rows) return false;
    h5_read_rows(&past->h5, "/eval/step", NUMBER_U32, 1, rows - 1, 1, &eval->step);
    h5_read_rows(&past->h5, "/eval/accuracy", NUMBER_F32, 1, rows - 1, 1, &eval->accuracy);
    return true;
}

/* What an array has rows of, by how its path begins; the first row that fits counts. */
enum of { NOTHING, STEPS, EVALUATIONS, MEMORY_STEPS, ALL, OFS };
static const struct {
    const char *prefix;
    enum of of;
} arrays[] = {{"/steps/", STEPS},         {"/digests/", STEPS},         {"/eval/", EVALUATIONS},
              {"/memory/", MEMORY_STEPS}, {"/state/final/", NOTHING},   {"/state/gradient/", NOTHING},
              {"/state/initial/", ALL},   {"/state/average/", NOTHING}, {"/state/", STEPS}};

static uint64_t rows_of(void *counts, const char *path)
{
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (strncmp(path, arrays[i].prefix, strlen(arrays[i].prefix)) == 0) return ((uint64_t *)counts)[arrays[i].of];
    return 0;
}

enum status record_pieces(struct h5 *h5, const struct spec *spec, struct result *past, uint32_t state)
{
    write_pieces(h5, past, state);
    if (!past) return ST_OK;
    uint64_t counts[OFS] = {
        [STEPS] = past->steps, [EVALUATIONS] = result_committed_rows(past, "/eval/committed"), [ALL] = UINT64_MAX};
    for (size_t i = 0; i < past->steps; i++) counts[MEMORY_STEPS] += record_wants_memory(spec, (int64_t)i);
    h5_copy_rows(h5, &past->h5, rows_of, counts);
    if (h5_status(&past->h5) != ST_OK)
        return fail(ST_FAILED, "%s; --resume never runs it from the beginning", status_message());
    return h5_status(h5);
}
