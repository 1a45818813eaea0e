/* Contract: reading continues after an error, so that all are reported together; a wrong value keeps its default. */
#include "yaml/yaml_read.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

enum { SHOWN = 60 };
static const char *const kinds[] = {[YAML_BROKEN] = "nothing that can be read",
                                    [YAML_NULL] = "nothing",
                                    [YAML_TEXT] = "a word",
                                    [YAML_LIST] = "a list",
                                    [YAML_MAP] = "a map of keys"};

static const char *full_key(struct yaml_reader *r, const char *path, const char *key)
{
    const bool both = path && *path && key && *key;
    return region_text(r->region, "%s%s%s", path ? path : "", both ? "." : "", key ? key : "");
}

void yaml_read_error(struct yaml_reader *r, const struct yaml_tree *at, const char *path, const char *key,
                     const char *format, ...)
{
    char message[2048]; /* as long as one of fail()'s */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (at->kind == YAML_BROKEN) return; /* already reported */
    errors_add(r->errors, at->mark, full_key(r, path, key), "%s", message);
}

char *yaml_read_unknown(struct yaml_reader *r, const char *word, const char *const *words, const char *otherwise)
{
    struct setting any = {.type = SETTING_CHOICE, .values = words};
    char suggestion[TEXT_SUGGESTION];
    int shown = text_shown(word, SHOWN);
    return region_text(r->region, "'%.*s'%s is not known%s; expected %s", shown, word, word[shown] ? "..." : "",
                       *text_suggestion(word, words, suggestion) ? suggestion : otherwise,
                       setting_expected(&any, r->region));
}

/* Whether a text can stand in a list as it is. */
static bool plain_text(const char *text)
{
    return !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,%")];
}

static void read_list(struct yaml_reader *r, const struct yaml_tree *list, const char *path,
                      const struct setting *setting, void *object)
{
    const char **texts;
    int bad = -1;
    NEW(r->region, texts, (size_t)list->count);
    for (int i = 0; i < list->count; i++) {
        const struct yaml_tree *item = list->item[i];
        texts[i] = item->text;
        if (item->kind == YAML_TEXT && !(item->quoted && setting->type != SETTING_TEXTS)) continue;
        yaml_read_error(r, item, path, setting->key, "%s in a list; expected %s",
                        item->quoted ? "a text in quotes" : kinds[item->kind], setting_expected(setting, r->region));
        return;
    }
    if (setting_set_list(setting, object, (size_t)list->count, texts, r->region, &bad) != ST_OK)
        yaml_read_error(r, bad < 0 ? list : list->item[bad], path, setting->key, "%s", status_message());
}

const char *yaml_read_folder(const char *path, struct region *region)
{
    const char *slash = strrchr(path, '/');
    return region_text(region, "%.*s", slash ? (int)(slash - path + 1) : 0, path);
}

static const char *find_path(struct yaml_reader *r, const struct yaml_tree *at, const char *text)
{
    const char *beside = r->folder ? r->folder : "", *data = getenv("REMATCH_DATA");
    const char *below = data && *data ? region_text(r->region, "%s/", data) : NULL;
    const bool given = at->mark.source->argument > 0;
    const char *const folders[] = {given ? "" : beside, given ? beside : "", "experiments/", below ? below : ""};
    for (size_t i = 0; *text && *text != '/' && i < sizeof folders / sizeof *folders; i++) {
        const char *path = region_text(r->region, "%s%s", folders[i], text);
        if (access(path, F_OK) == 0) return path;
    }
    return text;
}

/* How several values are given, where value is a list of them or a text with commas; else "". */
static const char *guess_values(struct yaml_reader *r, const struct yaml_tree *value, const char *path,
                                const struct setting *setting)
{
    const bool text = value->kind == YAML_TEXT && strchr(value->text, ',') && plain_text(value->text);
    const char *list = text                                           ? region_text(r->region, "[%s]", value->text)
                       : value->kind == YAML_LIST && value->count > 1 ? yaml_tree_print(value, r->region)
                                                                      : NULL;
    const char *full = full_key(r, path, setting->key), *mark = value->mark.source->argument ? "'" : "";
    if (!list) return "";
    if (setting_is_list(setting)) return region_text(r->region, " (did you mean %s?)", list);
    if (!r->keys || !yaml_read_among(full, r->keys)) return "";
    return region_text(r->region, " (for several values: %ssweep%s{%s: %s}%s)", mark, *mark ? "=" : ": ", full, list,
                       mark);
}

/* The failure of setting_set(), with what may be meant before what is expected. */
static void wrong_value(struct yaml_reader *r, const struct yaml_tree *value, const char *path,
                        const struct setting *setting)
{
    const char *message = region_text(r->region, "%s", status_message()), *expected = strstr(message, "; expected");
    const int before = (int)(expected ? (size_t)(expected - message) : strlen(message));
    yaml_read_error(r, value, path, setting->key, "%.*s%s%s", before, message, guess_values(r, value, path, setting),
                    message + before);
}

void yaml_read_value(struct yaml_reader *r, const struct yaml_tree *value, const char *path,
                     const struct setting *setting, void *object)
{
    const char *given = value->text;
    const bool list = setting_is_list(setting), file = setting->type == SETTING_PATH;
    const bool place = file || setting->type == SETTING_FOLDER;
    const bool words =
        place || setting->type == SETTING_TEXT || setting->type == SETTING_TEXTS || setting->type == SETTING_CHOICE;
    if (list && value->kind == YAML_LIST)
        read_list(r, value, path, setting, object);
    else if (value->kind != YAML_TEXT)
        yaml_read_error(r, value, path, setting->key, "%s%s; expected %s", kinds[value->kind],
                        guess_values(r, value, path, setting), setting_expected(setting, r->region));
    else if (value->quoted && !words)
        yaml_read_error(r, value, path, setting->key, "a text in quotes; expected %s",
                        setting_expected(setting, r->region));
    else if (place && file_expand(value->text, r->region, &given) != ST_OK)
        yaml_read_error(r, value, path, setting->key, "%s", status_message());
    else if (setting_set(setting, object, file ? find_path(r, value, given) : given, r->region) != ST_OK)
        wrong_value(r, value, path, setting);
}

bool yaml_read_among(const char *word, const char *const *words)
{
    for (int i = 0; words && words[i]; i++)
        if (!strcmp(word, words[i])) return true;
    return false;
}

/* What key of a spec the unknown one at path may mean: one of known, the keys of its map, or of another section. */
static const char *guess_key(struct yaml_reader *r, const char *path, const char *key, const char *const *known)
{
    const char **words = NULL, *full = full_key(r, path, key);
    const bool section = r->keys && !(path && strpbrk(path, ".["));
    char suggestion[TEXT_SUGGESTION];
    int count = 0;
    if (section && yaml_read_among(full, r->keys))
        return region_text(r->region, " (others do: rematch schema %s)", full);
    for (const char *const *lists[] = {known, section ? r->keys : NULL, NULL}, *const **list = lists; *list; list++)
        for (const char *const *word = *list; *word; word++) {
            region_grow(r->region, &words, count, sizeof *words);
            words[count++] = *word;
        }
    region_grow(r->region, &words, count, sizeof *words);
    words[count] = NULL;
    return region_text(r->region, "%s", text_suggestion(key, words, suggestion));
}

static void unknown_key(struct yaml_reader *r, const struct yaml_tree *key, const char *path, const char *of,
                        const struct setting *keys, const char *const *also)
{
    const char **known;
    size_t count = 0;
    for (const struct setting *f = keys; f && f->key; f++) count++;
    for (int i = 0; also && also[i]; i++) count++;
    NEW(r->region, known, count + 1);
    count = 0;
    for (const struct setting *f = keys; f && f->key; f++) known[count++] = f->key;
    for (int i = 0; also && also[i]; i++)
        if (!setting_find(keys, also[i])) known[count++] = also[i];
    const struct setting any = {.type = SETTING_CHOICE, .values = known};
    const char *guess = guess_key(r, path, key->text, known);
    if (count)
        yaml_read_error(r, key, path, key->text, "%s has no such key%s; expected %s", of, guess,
                        setting_expected(&any, r->region));
    else
        yaml_read_error(r, key, path, key->text, "%s has no keys%s", of, guess);
}

void yaml_read_map(struct yaml_reader *r, const struct yaml_tree *map, const char *path, const char *of,
                   const struct setting *keys, const char *const *also, void *object)
{
    if (keys && setting_defaults(keys, object, r->region) != ST_OK)
        yaml_read_error(r, map, path, NULL, "%s", status_message());
    if (map->kind != YAML_MAP) {
        yaml_read_error(r, map, path, NULL, "%s; expected a map of keys", kinds[map->kind]);
        return;
    }
    for (int i = 0; i < map->count; i++) {
        const struct setting *setting = setting_find(keys, map->key[i]->text);
        if (setting)
            yaml_read_value(r, map->item[i], path, setting, object);
        else if (!yaml_read_among(map->key[i]->text, also))
            unknown_key(r, map->key[i], path, of, keys, also);
    }
    for (const struct setting *f = keys; f && f->key; f++)
        if (!f->preset && yaml_tree_find(map, f->key) < 0)
            yaml_read_error(r, map, path, f->key, "missing; expected %s", setting_expected(f, r->region));
}

void yaml_read_version(struct yaml_reader *r, const struct yaml_tree *root, const char *key, int version,
                       const char *of)
{
    const struct setting setting = {key, SETTING_INT, 0, version, version, NULL, NULL, "of the format"};
    const struct yaml_tree *at = yaml_tree_get(root, key);
    int64_t value;
    if (at)
        yaml_read_value(r, at, NULL, &setting, &value);
    else
        yaml_read_error(r, root, NULL, key, "missing; %s begins with %s: %d", of, key, version);
}
