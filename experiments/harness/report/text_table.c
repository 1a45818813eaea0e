#include "report/text_table.h"

#include <string.h>

#include "base/region.h"
#include "base/text.h"
#include "console/columns.h"

enum { CELL = 64 };

/* What a table calls a number whose key is no good head, how it fits a narrow terminal, as in struct column, and what
 * stands for null. */
static const struct label {
    const char *key, *head;
    int rank, least;
    const char *none;
} labels[] = {
    {"accuracy_percent", "accuracy"},
    {"action", "action", 0, 12},
    {"arena_bytes", "arena", 2, 0, "-"},
    {"backward_flops", "backward", 3},
    {"backward_time", "backward", 3},
    {"best_case_ratio", "best x", 3, 0, "-"},
    {"bytes", ""},
    {"category", ""},
    {"change_percent", "change", 1},
    {"created", "created", 3},
    {"experiment", "experiment", 1, 8},
    {"gradient_bytes", "gradient", 2},
    {"fits", "fits this machine"},
    {"forward_flops", "forward", 1},
    {"forward_time", "forward", 1},
    {"gap_percent", "above bound", 1},
    {"largest_batch", "batch"},
    {"name", "", 0, 32},
    {"largest_tensors", "largest tensors there", 2},
    {"live_bytes", "live"},
    {"last_loss", "last loss", 6, 0, "-"},
    {"live_peak_bytes", "live peak", 2, 0, "-"},
    {"live_ratio", "live x", 1, 0, "-"},
    {"lr", "lr", 1},
    {"op", "op", 0, 24},
    {"output_bytes", "output"},
    {"outcome", "verdict", 0, 9},
    {"overrides", "overrides", 2, 10},
    {"pareto", "*"},
    {"peak_bytes", "peak"},
    {"peak_op", "peak set by", 3, 14},
    {"peak_ratio", "peak x", 0, 0, "-"},
    {"planned_ratio", "planned", 5, 0, "-"},
    {"policy", "policy", 0, 8},
    {"remark", "", 0, 24},
    {"run", "run"},
    {"saved_bytes", "saved"},
    {"scratch_bytes", "scratch", 4},
    {"sets_peak", "<- peak"},
    {"settings", "settings", 0, 16, "as the spec sets it"},
    {"shape", "output shape", 2},
    {"share_percent", "share", 4},
    {"slowdown", "slowdown", 1},
    {"stage", "stage", 0, 24},
    {"static_bytes", "static", 2},
    {"step_ns", "step", 0, 0, "-"},
    {"stopped_by", "what stops it", 0, 26},
    {"time_ratio", "time x", 0, 0, "-"},
    {"total_ns", "time"},
};

static struct label label_of(const char *key)
{
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (!strcmp(labels[i].key, key)) return labels[i];
    return (struct label){.key = key, .head = key, .least = 8};
}

static bool ends(const char *key, const char *with) { return !strcmp(key, with) || text_ends(key, with); }

char *text_number(const char *key, double number, bool exact, char text[UNIT_TEXT])
{
    const bool bytes = ends(key, "bytes"), flops = ends(key, "flops");
    if (bytes && !exact) return bytes_text(number, text);
    if (flops && !exact) return flops_text(number, text);
    if (ends(key, "_ns")) return duration_text(number > 0 ? (uint64_t)number : 0, text);
    const char *format = ends(key, "change_percent") ? "%+.1f %%"
                         : ends(key, "percent")      ? "%.1f %%"
                         : ends(key, "slowdown")     ? "%.4f"
                         : ends(key, "_ratio")       ? "%.3f"
                         : bytes                     ? "%.0f B"
                         : exact                     ? "%.15g"
                                                     : "%.9g";
    snprintf(text, UNIT_TEXT, format, number);
    return text;
}

/* A true flag is shown as yes, or by a head of one character. */
static const char *cell_text(const struct label *label, const json_t *value, bool exact, char text[UNIT_TEXT])
{
    if (json_is_string(value)) return json_string_value(value);
    if (json_is_true(value)) return label->head[1] ? "yes" : label->head;
    if (json_is_number(value)) return text_number(label->key, json_number_value(value), exact, text);
    return label->none && json_is_null(value) ? label->none : "";
}

/* The next of keys separated by blanks; false: there is none. */
static bool next_key(const char **keys, char key[CELL])
{
    const int length = (int)strcspn(*keys, " ");
    snprintf(key, CELL, "%.*s", length, *keys);
    *keys += length;
    *keys += strspn(*keys, " ");
    return length > 0;
}

void text_table(const json_t *rows, const char *keys, int indent, bool exact, FILE *out)
{
    region_auto *region = region_create();
    char key[COLUMNS_MOST][CELL];
    struct column column[COLUMNS_MOST];
    struct columns table = {.column = column, .indent = indent, .rows = (int)json_array_size(rows)};
    while (next_key(&keys, key[table.count])) table.count++;
    const char **cell = region_array(region, (size_t)table.rows * (size_t)table.count, sizeof *cell);
    table.cell = cell;
    for (int c = 0; c < table.count; c++) {
        const struct label label = label_of(key[c]);
        column[c] = (struct column){label.head, .rank = label.rank};
        for (int row = 0; row < table.rows; row++) {
            const json_t *value = json_object_get(json_array_get(rows, (size_t)row), key[c]);
            char text[UNIT_TEXT];
            column[c].right |= json_is_number(value);
            cell[row * table.count + c] = region_text(region, "%s", cell_text(&label, value, exact, text));
        }
        if (!column[c].right) column[c].least = label.least;
    }
    columns_print(&table, out);
}

static bool is_shared(const json_t *rows, const char *key)
{
    const json_t *first = json_object_get(json_array_get(rows, 0), key);
    EACH (rows, i, row)
        if (!json_equal(json_object_get(row, key), first)) return false;
    return json_array_size(rows) > 1;
}

const char *text_unshared(const json_t *rows, const char *keys, const char *keep, struct region *region, FILE *out)
{
    const char *rest = "", *said = "";
    char key[CELL], text[UNIT_TEXT];
    while (next_key(&keys, key)) {
        if (!strcmp(key, keep) || !is_shared(rows, key)) {
            rest = region_text(region, "%s%s%s", rest, *rest ? " " : "", key);
            continue;
        }
        const struct label label = label_of(key);
        const char *value = cell_text(&label, json_object_get(json_array_get(rows, 0), key), false, text);
        if (*value)
            said = region_text(region, "%s%s%s %s", said, *said ? ", " : "", *label.head ? label.head : key, value);
    }
    if (*said) fprintf(out, "all        %s\n", said);
    return rest;
}

/* A text with a comma, a quote or the end of a line is quoted. */
static void write_text(const char *text, FILE *out)
{
    const bool quoted = strpbrk(text, ",\"\n");
    if (quoted) fputc('"', out);
    for (; *text; text++) fprintf(out, *text == '"' ? "\"%c" : "%c", *text);
    if (quoted) fputc('"', out);
}

static void write_cell(const json_t *value, struct region *region, FILE *out)
{
    if (json_is_string(value))
        write_text(json_string_value(value), out);
    else if (json_is_boolean(value))
        fputc(json_is_true(value) ? '1' : '0', out);
    else if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fputs(text_from_real(json_real_value(value), region), out);
}

void text_csv(const json_t *rows, const char *keys, FILE *out)
{
    region_auto *region = region_create();
    char key[CELL];
    for (const char *at = keys; *at; at++) fputc(*at == ' ' ? ',' : *at, out);
    fputc('\n', out);
    EACH (rows, i, row) {
        for (const char *at = keys; next_key(&at, key);) {
            write_cell(json_object_get(row, key), region, out);
            fputc(*at ? ',' : '\n', out);
        }
    }
}

void text_notes(const json_t *texts, const char *prefix, FILE *out)
{
    for (size_t i = 0; i < json_array_size(texts); i++)
        fprintf(out, "%s%s\n", prefix, json_string_value(json_array_get(texts, i)));
}

void text_schedule(const char *schedule, FILE *out)
{
    enum { SHOWN = 40, SPARED = 8 };
    int steps = 1, at = 0;
    for (const char *c = schedule; *c; c++) steps += *c == ' ';
    const int shown = steps > SHOWN + SPARED ? SHOWN : steps;
    const char *end = schedule;
    for (; *end && at < shown; end++) at += *end == ' ';
    if (shown == steps)
        fputs(schedule, out);
    else
        fprintf(out, "%.*s... and %d more of %d steps; --json has all", (int)(end - schedule), schedule, steps - shown,
                steps);
}
