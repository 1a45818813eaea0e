/* libyaml's events have marks, anchors and tags; its document API would resolve aliases. */
#include "yaml/yaml_tree.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/text.h"
#include "console/utf8.h"

enum { FILE_MAX = 1 << 24, DEPTH_MAX = 64, KEYS_MAX = 1000 };

struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    const struct source *source;
    int column; /* characters of the source before the text that is parsed */
    struct region *region;
    struct errors *errors;
    bool stopped, hinted;
};

/* ---- files ---- */

enum status source_read(const char *path, struct region *region, struct source **source)
{
    char *text;
    TRY(file_read_text(path, FILE_MAX, region, &text));
    if (!strncmp(text, "\xEF\xBB\xBF", 3)) text += 3; /* a byte order mark, with which some editors begin a file */
    NEW(region, *source, 1);
    (*source)->name = region_text(region, "%s", path);
    (*source)->text = text;
    return ST_OK;
}

/* ---- marks and errors ---- */

static struct mark mark_of(const struct reader *r, yaml_mark_t start, yaml_mark_t end)
{
    int column = (int)start.column + 1 + (start.line ? 0 : r->column);
    int width = start.line == end.line && end.column > start.column ? (int)(end.column - start.column) : 1;
    return (struct mark){r->source, (int)start.line + 1, column, width};
}

static void stop(struct reader *r, struct mark mark, const char *message)
{
    if (!r->stopped) errors_add(r->errors, mark, NULL, "%s", message);
    r->stopped = true;
}

/* Refuses invalid UTF-8, control and invisible characters, and line breaks that only some editors count as lines. */
static bool check_text(struct reader *r, const char *text)
{
    struct mark mark = {r->source, 1, r->column + 1, 1};
    for (size_t left = strlen(text); left;) {
        const int n = utf8_length(text, left);
        const bool space = *text == '\n' || *text == '\t' || (*text == '\r' && text[1] == '\n');
        if (!n) return stop(r, mark, "this byte is not UTF-8"), false;
        if (!space && !utf8_plain_length(text, left))
            return stop(r, mark, "a control or invisible character, or a line break other than \\n"), false;
        mark.column = *text == '\n' ? 1 : mark.column + 1;
        mark.line += *text == '\n';
        text += n;
        left -= (size_t)n;
    }
    return true;
}

/* Moves to the next event; false at a syntax error. */
static bool next(struct reader *r)
{
    yaml_event_delete(&r->event);
    memset(&r->event, 0, sizeof r->event);
    if (r->stopped) return false;
    if (yaml_parser_parse(&r->parser, &r->event)) return true;
    const yaml_parser_t *p = &r->parser;
    struct mark mark = mark_of(r, p->problem_mark, p->problem_mark);
    const struct mark began = mark_of(r, p->context_mark, p->context_mark);
    const char *context =
        p->context ? region_text(r->region, ", %s that began at %d:%d", p->context, began.line, began.column) : "";
    const char *problem = p->problem ? p->problem : "cannot be read";
    return stop(r, mark, region_text(r->region, "not YAML: %s%s", problem, context)), false;
}

/* ---- nodes ---- */

struct yaml_tree *yaml_tree_make(enum yaml_kind kind, const char *text, struct mark mark, struct region *region)
{
    struct yaml_tree *tree = region_array(region, 1, sizeof *tree);
    *tree = (struct yaml_tree){.kind = kind, .text = text, .mark = mark};
    return tree;
}

static void append(struct yaml_tree *tree, struct yaml_tree *key, struct yaml_tree *item, struct region *region)
{
    region_grow(region, &tree->item, tree->count, sizeof *tree->item);
    region_grow(region, &tree->key, tree->count, sizeof *tree->key);
    tree->key[tree->count] = key;
    tree->item[tree->count++] = item;
}

/* Writes a file with every alias replaced by its value; JSON would put texts such as 1e-3 in quotes. */
#define EXPAND                                                                                                         \
    "python3 -c 'import sys, yaml; yaml.Dumper.ignore_aliases = lambda *_: True; "                                     \
    "yaml.dump(yaml.safe_load(sys.stdin), sys.stdout, sort_keys=False)' <FILE >NEW.yaml"

static void refuse_extras(struct reader *r, struct mark mark, const void *anchor, const void *tag)
{
    const bool hint = anchor && !r->hinted && !r->source->argument;
    if (anchor)
        errors_add(r->errors, mark, NULL, "anchors (&name) are not allowed; write the value out%s",
                   hint ? ", or let a program do so: " EXPAND : "");
    r->hinted |= hint;
    if (tag) errors_add(r->errors, mark, NULL, "tags (!name) are not allowed");
}

static struct yaml_tree *read_scalar(struct reader *r, struct mark mark)
{
    const char *value = (const char *)r->event.data.scalar.value;
    bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    enum yaml_kind kind = plain && (!*value || !strcmp(value, "~") || !strcmp(value, "null")) ? YAML_NULL : YAML_TEXT;
    if (strlen(value) != r->event.data.scalar.length || !utf8_is_plain(value)) {
        errors_add(r->errors, mark, NULL,
                   "a text with a line break, a control or an invisible character; expected one line");
        kind = YAML_BROKEN;
    }
    refuse_extras(r, mark, r->event.data.scalar.anchor, r->event.data.scalar.tag);
    const char *text = kind == YAML_TEXT ? region_text(r->region, "%s", value) : NULL;
    struct yaml_tree *tree = yaml_tree_make(kind, text, mark, r->region);
    tree->quoted = !plain;
    return tree;
}

static struct yaml_tree *read_node(struct reader *r, int depth);

static void check_key(struct reader *r, const struct yaml_tree *map, const struct yaml_tree *key)
{
    if (map->count >= KEYS_MAX) stop(r, key->mark, "too many keys");
    if (key->kind != YAML_TEXT) stop(r, key->mark, "a key must be a word");
    int first = r->stopped ? -1 : yaml_tree_find(map, key->text);
    assert(first < 0 || map->key);
    if (first >= 0)
        errors_add(r->errors, key->mark, NULL, "duplicate key '%.*s'; first at line %d", text_shown(key->text, 60),
                   key->text, map->key[first]->mark.line);
}

/* The rest of a list or map, whose start is the current event. */
static struct yaml_tree *read_items(struct reader *r, struct yaml_tree *tree, int depth)
{
    yaml_event_type_t end = tree->kind == YAML_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    while (next(r) && r->event.type != end) {
        struct yaml_tree *key = NULL, *item;
        if (tree->kind == YAML_MAP) {
            if (!(key = read_node(r, depth)) || !next(r)) return NULL;
            check_key(r, tree, key);
        }
        if (!(item = read_node(r, depth))) return NULL;
        if (r->stopped) return NULL;
        append(tree, key, item, r->region);
    }
    return r->stopped ? NULL : tree;
}

/* The node whose first event is the current one; NULL: stopped. */
static struct yaml_tree *read_node(struct reader *r, int depth)
{
    const yaml_event_t *e = &r->event;
    struct mark mark = mark_of(r, e->start_mark, e->end_mark);
    if (depth >= DEPTH_MAX) return stop(r, mark, "nested too deeply"), NULL;
    switch (e->type) {
    case YAML_ALIAS_EVENT:
        errors_add(r->errors, mark, NULL, "aliases (*name) are not allowed; write the value out");
        return yaml_tree_make(YAML_BROKEN, NULL, mark, r->region);
    case YAML_SCALAR_EVENT:
        return read_scalar(r, mark);
    case YAML_SEQUENCE_START_EVENT:
        refuse_extras(r, mark, e->data.sequence_start.anchor, e->data.sequence_start.tag);
        return read_items(r, yaml_tree_make(YAML_LIST, NULL, mark, r->region), depth + 1);
    case YAML_MAPPING_START_EVENT:
        refuse_extras(r, mark, e->data.mapping_start.anchor, e->data.mapping_start.tag);
        return read_items(r, yaml_tree_make(YAML_MAP, NULL, mark, r->region), depth + 1);
    default:
        return stop(r, mark, "not YAML: a value was expected"), NULL;
    }
}

static struct yaml_tree *read_document(struct reader *r)
{
    struct mark start = {r->source, 1, r->column + 1, 1};
    if (!next(r) || !next(r)) return NULL; /* the stream's start, then the document's */
    if (r->event.type != YAML_DOCUMENT_START_EVENT) return stop(r, start, "nothing in it"), NULL;
    if (r->event.data.document_start.version_directive ||
        r->event.data.document_start.tag_directives.start != r->event.data.document_start.tag_directives.end)
        errors_add(r->errors, mark_of(r, r->event.start_mark, r->event.start_mark), NULL,
                   "directives (%%YAML, %%TAG) are not allowed");
    if (!next(r)) return NULL;
    struct yaml_tree *tree = read_node(r, 0);
    if (!tree || !next(r) || !next(r)) return NULL; /* the document's end, then the stream's */
    if (r->event.type != YAML_STREAM_END_EVENT)
        return stop(r, mark_of(r, r->event.start_mark, r->event.end_mark), "a second document; expected one"), NULL;
    return tree;
}

struct yaml_tree *yaml_tree_parse(const struct source *source, size_t from, struct region *region,
                                  struct errors *errors)
{
    struct reader r = {.source = source, .region = region, .errors = errors};
    const char *text = source->text + from;
    for (size_t i = 0; i < from; i++) r.column += ((unsigned char)source->text[i] & 0xC0) != 0x80;
    if (!check_text(&r, text)) return NULL;
    if (!yaml_parser_initialize(&r.parser))
        return stop(&r, (struct mark){source, 0, 0, 0}, "libyaml cannot be initialised"), NULL;
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, strlen(text));
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    struct yaml_tree *tree = read_document(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return tree;
}

struct yaml_tree *yaml_tree_of_text(const char *text, struct region *region)
{
    struct source *source;
    NEW(region, source, 1);
    *source = (struct source){"resolved", text, 0};
    return yaml_tree_parse(source, 0, region, errors_create(region));
}

/* ---- editing and printing ---- */

struct yaml_tree *yaml_tree_copy(const struct yaml_tree *tree, struct region *region)
{
    struct yaml_tree *copy = yaml_tree_make(tree->kind, tree->text, tree->mark, region);
    for (int i = 0; i < tree->count; i++) append(copy, tree->key[i], tree->item[i], region);
    copy->quoted = tree->quoted;
    return copy;
}

int yaml_tree_find(const struct yaml_tree *map, const char *key)
{
    for (int i = 0; map && map->kind == YAML_MAP && i < map->count; i++)
        if (!strcmp(map->key[i]->text, key)) return i;
    return -1;
}

struct yaml_tree *yaml_tree_get(const struct yaml_tree *map, const char *key)
{
    int i = yaml_tree_find(map, key);
    return i < 0 ? NULL : map->item[i];
}

void yaml_tree_set(struct yaml_tree *map, const char *key, struct mark mark, struct yaml_tree *value,
                   struct region *region)
{
    int i = yaml_tree_find(map, key);
    if (value) {
        struct yaml_tree *node = yaml_tree_make(YAML_TEXT, key, mark, region);
        if (i < 0)
            append(map, node, value, region);
        else
            map->key[i] = node, map->item[i] = value;
        return;
    }
    if (i < 0) return;
    for (map->count--; i < map->count; i++) map->key[i] = map->key[i + 1], map->item[i] = map->item[i + 1];
}

/* Bare only where it reads back as the same scalar within flow lists and maps. */
static void print_text(FILE *out, const struct yaml_tree *tree, struct region *region)
{
    bool bare = !tree->quoted;
    for (const char *c = tree->text; *c; c++) bare = bare && (isalnum((unsigned char)*c) || strchr("_-+./", *c));
    fputs(bare ? tree->text : text_quote(tree->text, region), out);
}

static void print(FILE *out, const struct yaml_tree *tree, struct region *region)
{
    const bool map = tree->kind == YAML_MAP;
    if (tree->kind == YAML_NULL || tree->kind == YAML_BROKEN)
        fputs("null", out);
    else if (tree->kind == YAML_TEXT)
        print_text(out, tree, region);
    else
        fputc(map ? '{' : '[', out);
    for (int i = 0; i < tree->count; i++) {
        if (i) fputs(", ", out);
        if (map) print_text(out, tree->key[i], region);
        if (map) fputs(": ", out);
        print(out, tree->item[i], region);
    }
    if (map || tree->kind == YAML_LIST) fputc(map ? '}' : ']', out);
}

char *yaml_tree_print(const struct yaml_tree *tree, struct region *region)
{
    freed_auto char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    print(out, tree, region);
    fclose(out);
    return region_text(region, "%s", text);
}
