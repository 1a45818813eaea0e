#include "report/figures_text.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "console/columns.h"
#include "yaml/yaml_write.h"

enum { CELL = 64 };

/* What a table calls a figure whose key is no good head, and how it fits a narrow terminal, as in struct column. */
static const struct column_of_key {
    const char *key, *head;
    int rank, least;
} columns[] = {
    {"action", "action", 0, 12},
    {"arena_bytes", "arena", 2, 0},
    {"backward_flops", "backward", 3, 0},
    {"bytes", "", 0, 0},
    {"category", "", 0, 0},
    {"change_percent", "change", 1, 0},
    {"created", "created", 3, 0},
    {"experiment", "experiment", 1, 8},
    {"gradient_bytes", "gradient", 2, 0},
    {"fits", "fits this machine", 0, 0},
    {"forward_flops", "forward", 1, 0},
    {"gap_percent", "above bound", 1, 0},
    {"largest_batch", "batch", 0, 0},
    {"name", "", 0, 32},
    {"largest_tensors", "largest tensors there", 2, 0},
    {"live_bytes", "live", 0, 0},
    {"live_peak_bytes", "live peak", 2, 0},
    {"lr", "lr", 1, 0},
    {"op", "op", 0, 24},
    {"output_bytes", "output", 0, 0},
    {"outcome", "verdict", 0, 9},
    {"overrides", "overrides", 2, 10},
    {"pareto", "*", 0, 0},
    {"peak_bytes", "peak", 0, 0},
    {"peak_op", "peak set by", 3, 14},
    {"policy", "policy", 0, 8},
    {"run", "run", 0, 9},
    {"saved_bytes", "saved", 0, 0},
    {"scratch_bytes", "scratch", 4, 0},
    {"sets_peak", "<- peak", 0, 0},
    {"settings", "settings", 0, 16},
    {"shape", "output shape", 2, 0},
    {"saves", "saves", 0, 0},
    {"share_percent", "share", 4, 0},
    {"slowdown", "slowdown", 1, 0},
    {"stage", "stage", 0, 24},
    {"static_bytes", "static", 2, 0},
    {"step_ns", "step", 0, 0},
    {"stopped_by", "what stops it", 0, 26},
    {"total_ns", "time", 0, 0},
};

static struct column column_of(const char *key)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (!strcmp(columns[i].key, key))
            return (struct column){columns[i].head, .rank = columns[i].rank, .least = columns[i].least};
    return (struct column){key};
}

static bool ends(const char *key, const char *with) { return !strcmp(key, with) || text_ends(key, with); }

/* A number in the unit that its key ends with. */
static char *number_text(const char *key, const json_t *value, bool exact, char text[UNIT_TEXT])
{
    const double number = json_number_value(value);
    const bool bytes = ends(key, "bytes"), flops = ends(key, "flops");
    if (bytes && !exact) return bytes_text(number, text);
    if (flops && !exact) return flops_text(number, text);
    if (ends(key, "_ns")) return duration_text((uint64_t)number, text);
    const char *format = ends(key, "change_percent") ? "%+.1f %%"
                         : ends(key, "percent")      ? "%.1f %%"
                         : ends(key, "slowdown")     ? "%.4f"
                         : bytes                     ? "%.0f B"
                         : exact                     ? "%.15g"
                                                     : "%.9g";
    snprintf(text, UNIT_TEXT, format, number);
    return text;
}

/* A true flag is shown by its head. */
static const char *cell_text(const struct column *column, const char *key, const json_t *value, bool exact,
                             char text[UNIT_TEXT])
{
    if (json_is_string(value)) return json_string_value(value);
    if (json_is_true(value)) return column->head;
    return json_is_number(value) ? number_text(key, value, exact, text) : "";
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

void figures_table(const json_t *rows, const char *keys, int indent, bool exact, FILE *out)
{
    char key[COLUMNS_MOST][CELL];
    struct column column[COLUMNS_MOST];
    struct columns table;
    int count = 0;
    size_t i;
    json_t *row;
    for (; next_key(&keys, key[count]); count++) column[count] = column_of(key[count]);
    json_array_foreach(rows, i, row)
    {
        for (int c = 0; c < count; c++) column[c].right |= json_is_number(json_object_get(row, key[c]));
    }
    columns_begin(&table, column, count);
    table.indent = indent;
    json_array_foreach(rows, i, row)
    {
        char text[UNIT_TEXT];
        for (int c = 0; c < count; c++)
            columns_cell(&table, "%s", cell_text(&column[c], key[c], json_object_get(row, key[c]), exact, text));
    }
    columns_print(&table, out);
}

/* A text with a comma, a quote or the end of a line is quoted. */
static void write_cell(const json_t *value, FILE *out)
{
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    if (strpbrk(text, ",\"\n"))
        yaml_write_csv(text, "", out);
    else if (json_is_boolean(value))
        fputc(json_is_true(value) ? '1' : '0', out);
    else if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%.9g", json_real_value(value));
    else
        fputs(text, out);
}

void figures_csv(const json_t *rows, const char *keys, FILE *out)
{
    char key[CELL];
    size_t i;
    json_t *row;
    for (const char *at = keys; *at; at++) fputc(*at == ' ' ? ',' : *at, out);
    fputc('\n', out);
    json_array_foreach(rows, i, row)
    {
        for (const char *at = keys; next_key(&at, key);) {
            write_cell(json_object_get(row, key), out);
            fputc(*at ? ',' : '\n', out);
        }
    }
}

void figures_notes(const json_t *texts, const char *prefix, FILE *out)
{
    size_t i;
    json_t *text;
    json_array_foreach(texts, i, text) fprintf(out, "%s%s\n", prefix, json_string_value(text));
}
