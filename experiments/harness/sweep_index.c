/* Contract: an index is whole at every instant. Its rows are of one spec and one program; others are left out. */
#include <string.h>

#include "base/file.h"
#include "report/text_table.h"
#include "result/record_claim.h"
#include "sweep.h"
#include "yaml/yaml_tree.h"
#include "yaml/yaml_write.h"

void sweep_give_up(struct sweep *s, int point, const char *outcome, int code, const char *reason)
{
    struct point *p = &s->point[point];
    p->outcome = outcome;
    p->code = code;
    p->reason = region_text(s->region, "%s", reason);
    p->ran = true;
}

/* The spec, with all of its sweep, and the program: what a point's number and result depend on, but for data and
 * machine. */
static void find_key(struct sweep *s)
{
    const char *all = region_text(s->region, "%s%s", s->spec->resolved,
                                  yaml_tree_print(yaml_tree_get(s->spec->root, "sweep"), s->region));
    char spec[33];
    digest_print(digest_bytes(all, strlen(all)), spec);
    s->key = region_text(s->region, "%s-%s", spec, s->program);
}

/* Completes the rows; another process's of a point, if it has one. */
static void take_rows(struct sweep *s, const json_t *old)
{
    json_t *rows = json_object_get(old, "points");
    const char *key = json_string_at(old, "sweep");
    const bool same = key && !strcmp(key, s->key);
    json_decref(s->rows);
    s->rows = json_array();
    for (int i = 0; i < s->points; i++) {
        struct point *p = &s->point[i];
        json_t *row = same ? json_array_get(rows, (size_t)i) : NULL;
        PUT(p->row, "point", i + 1);
        for (int a = 0; a < s->spec->axes; a++) PUT(p->row, s->spec->axis[a].key, p->value[a]);
        PUT_ALL(p->row, KEY("outcome", p->outcome), KEY("bits", p->outcome), KEY("exit_code", p->code),
                KEY("reason", p->reason));
        const bool sound = json_number_at(row, "point") == i + 1 && json_string_at(row, "outcome");
        const bool theirs = (!p->own || p->elsewhere) && sound;
        json_array_append(s->rows, theirs ? row : p->row);
    }
}

static void write_csv(const void *of, FILE *out)
{
    const struct sweep *s = of;
    const char *keys = "point ";
    for (int a = 0; a < s->spec->axes; a++) keys = region_text(s->region, "%s%s ", keys, s->spec->axis[a].key);
    keys = region_text(s->region,
                       "%soutcome exit_code static_bytes live_peak_bytes arena_bytes peak_ratio live_ratio time_ratio "
                       "best_case_ratio side_by_side slowdown step_ns first_loss last_loss accuracy no_proof "
                       "first_difference_step first_difference unmet reason baseline variant",
                       keys);
    text_csv(s->rows, keys, out);
}

void sweep_index_print(const void *of, FILE *out)
{
    const struct sweep *s = of;
    json_t *all = OBJECT(KEY("experiment", s->spec->name), KEY("sweep", s->key));
    json_object_set(all, "points", s->rows);
    json_answer(all, "sweep", out);
}

static enum status update(struct sweep *s, const char *json, const char *csv)
{
    enum { BYTES_MOST = 1 << 28 };
    region_auto *region = region_create();
    char *text;
    TRY(record_file_check_plain(json));
    TRY(record_file_check_plain(csv));
    json_auto_t *old = file_read_text(json, BYTES_MOST, region, &text) == ST_OK ? json_loads(text, 0, NULL) : NULL;
    take_rows(s, old); /* NULL: there is none, or of no use */
    TRY(yaml_write_whole(json, sweep_index_print, s));
    return yaml_write_whole(csv, write_csv, s);
}

enum status sweep_index_update(struct sweep *s)
{
    struct record_claim claim;
    if (!s->key) find_key(s);
    TRY(record_folder(s->folder));
    TRY(record_claim_take(&claim, region_text(s->region, "%s/sweep.claim", s->folder)));
    const enum status status = update(s, region_text(s->region, "%s/sweep.json", s->folder),
                                      region_text(s->region, "%s/sweep.csv", s->folder));
    record_claim_release(&claim);
    return status;
}
