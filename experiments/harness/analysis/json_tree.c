#include "analysis/json_tree.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/region.h"
#include "console/utf8.h"

json_t *json_of_integer(int64_t value) { return json_integer(value); }
json_t *json_of_unsigned(uint64_t value) { return value > INT64_MAX ? json_null() : json_integer((json_int_t)value); }
json_t *json_of_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }
json_t *json_of_text(const char *text) { return text ? json_string(text) : json_null(); }
json_t *json_of_tree(json_t *tree) { return tree; }

json_t *json_put(json_t *object, const struct json_member *json_member)
{
    for (; json_member->key; json_member++) json_object_set_new(object, json_member->key, json_member->value);
    return object;
}

double json_number_at(const json_t *object, const char *key) { return json_number_value(json_object_get(object, key)); }

const char *json_string_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

void json_note(json_t *texts, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    json_array_append_new(texts, json_vsprintf(format, arguments));
    va_end(arguments);
}

json_t *json_of_plain(const char *text)
{
    freed_auto char *copy = strcpy(allocate(strlen(text) + 1, 1), text);
    utf8_clean(copy, "");
    return json_string(copy);
}

json_t *json_named(const char *const *name, const size_t *value, int count)
{
    json_t *all = json_object();
    for (int i = 0; i < count; i++) PUT(all, name[i], value[i]);
    return all;
}

json_t *json_rows(const json_t *columns)
{
    const char *key;
    json_t *rows = json_array(), *column;
    json_object_foreach ((json_t *)columns, key, column) {
        EACH (column, i, value) {
            if (i == json_array_size(rows)) json_array_append_new(rows, json_object());
            json_object_set(json_array_get(rows, i), key, value);
        }
    }
    return rows;
}

void json_write(json_t *json, FILE *out)
{
    json_dumpf(json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputc('\n', out);
    json_decref(json);
}

void json_answer(json_t *json, const char *name, FILE *out)
{
    json_t *all = json_object();
    json_object_set_new(all, "schema", json_sprintf("rematch/%s/1", name));
    json_object_update(all, json);
    json_decref(json);
    json_write(all, out);
}
