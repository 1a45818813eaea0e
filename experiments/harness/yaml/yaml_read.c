/* Contract: reading goes on after an error, so that all are told at once; what was wrong keeps its default. */
#include "yaml/yaml_read.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

enum { SHOWN = 60 };
static const char *const kinds[] = {[TREE_BROKEN] = "nothing that can be read",
                                    [TREE_NULL] = "nothing",
                                    [TREE_TEXT] = "a word",
                                    [TREE_LIST] = "a list",
                                    [TREE_MAP] = "a map of keys"};

void reading_error(struct reading *r, const struct tree *at, const char *path, const char *key, const char *format, ...)
{
    char message[2048]; /* as long as one of fail()'s */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (at->kind == TREE_BROKEN) return; /* told */
    bool both = path && *path && key && *key;
    const char *full = region_text(r->region, "%s%s%s", path ? path : "", both ? "." : "", key ? key : "");
    errors_add(r->errors, at->mark, full, "%s", message);
}

char *reading_unknown(struct reading *r, const char *word, const char *const *words)
{
    struct field any = {.type = FIELD_CHOICE, .values = words};
    const char *expected = field_expected(&any, r->region);
    char suggestion[TEXT_SUGGESTION];
    int shown = text_shown(word, SHOWN);
    return region_text(r->region, "'%.*s'%s is not known; expected %s%s", shown, word, word[shown] ? "..." : "",
                       expected ? expected : "another", text_suggestion(word, words, suggestion));
}

static const char *expected(struct reading *r, const struct field *field)
{
    const char *text = field_expected(field, r->region);
    return text ? text : "another";
}

static void read_list(struct reading *r, const struct tree *list, const char *path, const struct field *field,
                      void *object)
{
    const char **texts;
    int bad = -1;
    if (NEW(r->region, texts, (size_t)list->count) != ST_OK) return;
    for (int i = 0; i < list->count; i++) {
        const struct tree *item = list->item[i];
        texts[i] = item->text;
        if (item->kind == TREE_TEXT && !(item->quoted && field->type == FIELD_INTS)) continue;
        reading_error(r, item, path, field->key, "%s in a list; expected %s",
                      item->quoted ? "a text in quotes" : kinds[item->kind], expected(r, field));
        return;
    }
    if (field_set_list(field, object, (size_t)list->count, texts, r->region, &bad) != ST_OK)
        reading_error(r, bad < 0 ? list : list->item[bad], path, field->key, "%s", status_message());
}

const char *reading_folder(const char *path, struct region *region)
{
    const char *slash = strrchr(path, '/');
    return region_text(region, "%.*s", slash ? (int)(slash - path + 1) : 0, path);
}

static const char *find_path(struct reading *r, const struct tree *at)
{
    const char *beside = r->folder ? r->folder : "", *data = getenv("REMATCH_DATA");
    const char *below = data && *data ? region_text(r->region, "%s/", data) : NULL;
    const bool given = at->mark.source->argument > 0;
    const char *const folders[] = {given ? "" : beside, given ? beside : "", "experiments/", below ? below : ""};
    for (size_t i = 0; *at->text && *at->text != '/' && i < sizeof folders / sizeof *folders; i++) {
        const char *path = region_text(r->region, "%s%s", folders[i], at->text);
        if (path && access(path, F_OK) == 0) return path;
    }
    return at->text;
}

void reading_value(struct reading *r, const struct tree *value, const char *path, const struct field *field,
                   void *object)
{
    bool list = field->type == FIELD_INTS || field->type == FIELD_TEXTS;
    bool file = field->type == FIELD_PATH;
    bool words = file || field->type == FIELD_TEXT || field->type == FIELD_TEXTS || field->type == FIELD_CHOICE;
    if (list && value->kind == TREE_LIST)
        read_list(r, value, path, field, object);
    else if (value->kind != TREE_TEXT)
        reading_error(r, value, path, field->key, "%s; expected %s", kinds[value->kind], expected(r, field));
    else if (value->quoted && !words)
        reading_error(r, value, path, field->key, "a text in quotes; expected %s", expected(r, field));
    else if (field_set(field, object, file ? find_path(r, value) : value->text, r->region) != ST_OK)
        reading_error(r, value, path, field->key, "%s", status_message());
}

/* All keys a map may have. */
static const char *const *allowed(struct reading *r, const struct field *fields, const char *const *also)
{
    size_t count = 0, used = 0;
    const char **words;
    for (const struct field *f = fields; f && f->key; f++) count++;
    for (int i = 0; also && also[i]; i++) count++;
    if (NEW(r->region, words, count + 1) != ST_OK) return NULL;
    for (const struct field *f = fields; f && f->key; f++) words[used++] = f->key;
    for (int i = 0; also && also[i]; i++)
        if (!field_find(fields, also[i])) words[used++] = also[i];
    return words;
}

static bool among(const char *word, const char *const *words)
{
    for (int i = 0; words && words[i]; i++)
        if (!strcmp(word, words[i])) return true;
    return false;
}

static void unknown_key(struct reading *r, const struct tree *key, const char *path, const char *of,
                        const struct field *fields, const char *const *also)
{
    const char *const *words = allowed(r, fields, also);
    if (!words) return;
    if (!*words) {
        reading_error(r, key, path, key->text, "%s has no keys", of);
        return;
    }
    const char *list = "";
    char suggestion[TEXT_SUGGESTION];
    for (int i = 0; list && words[i]; i++) list = region_text(r->region, "%s%s%s", list, i ? "|" : "", words[i]);
    reading_error(r, key, path, key->text, "%s has no such key; expected one of %s%s", of, list ? list : "others",
                  text_suggestion(key->text, words, suggestion));
}

void reading_map(struct reading *r, const struct tree *map, const char *path, const char *of,
                 const struct field *fields, const char *const *also, void *object)
{
    if (fields && field_defaults(fields, object, r->region) != ST_OK)
        reading_error(r, map, path, NULL, "%s", status_message());
    if (map->kind != TREE_MAP) {
        reading_error(r, map, path, NULL, "%s; expected a map of keys", kinds[map->kind]);
        return;
    }
    for (int i = 0; i < map->count; i++) {
        const struct field *field = field_find(fields, map->key[i]->text);
        if (field)
            reading_value(r, map->item[i], path, field, object);
        else if (!among(map->key[i]->text, also))
            unknown_key(r, map->key[i], path, of, fields, also);
    }
    for (const struct field *f = fields; f && f->key; f++)
        if (!f->preset && tree_find(map, f->key) < 0)
            reading_error(r, map, path, f->key, "missing; expected %s", expected(r, f));
}

void reading_version(struct reading *r, const struct tree *root, const char *key, int version, const char *of)
{
    const struct field field = {key, FIELD_INT, 0, version, version, NULL, NULL, "of the format"};
    const struct tree *at = tree_get(root, key);
    int64_t value;
    if (at)
        reading_value(r, at, NULL, &field, &value);
    else
        reading_error(r, root, NULL, key, "missing; %s begins with %s: %d", of, key, version);
}
