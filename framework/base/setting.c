/* From text to a field and back: the one walker of everything that a person may set. How strict it is: text.h. */
#include "base/setting.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/region.h"
#include "base/text.h"

enum { SHOWN = 60 };                /* bytes of a wrong value in a message */
static const double exact = 0x1p53; /* a bound beyond it is no bound */

const struct field *field_find(const struct field *fields, const char *key)
{
    for (const struct field *f = fields; f && f->key; f++)
        if (!strcmp(f->key, key)) return f;
    return NULL;
}

/* ---- reading and printing ---- */

static const char *read_int(const struct field *field, const char *text, void *to)
{
    (void)field;
    return text_to_int(text, to);
}

static const char *read_real(const struct field *field, const char *text, void *to)
{
    (void)field;
    return text_to_real(text, to);
}

static const char *read_bytes(const struct field *field, const char *text, void *to)
{
    (void)field;
    return text_to_bytes(text, to);
}

/* Words are few: a linear search. */
static const char *read_word(const char *const *words, const char *text, int *index)
{
    for (*index = 0; words[*index]; ++*index)
        if (!strcmp(text, words[*index])) return NULL;
    return "is not known";
}

static const char *read_bool(const struct field *field, const char *text, void *to)
{
    (void)field;
    *(bool *)to = !strcmp(text, "true");
    return *(bool *)to || !strcmp(text, "false") ? NULL : "is not a truth value";
}

static const char *read_choice(const struct field *field, const char *text, void *to)
{
    return read_word(field->values, text, to);
}

static const char *read_text(const struct field *field, const char *text, void *to)
{
    int index;
    *(const char **)to = text;
    if (!*text) return "is empty";
    return field->values ? read_word(field->values, text, &index) : NULL;
}

static char *print_int(const struct field *field, const void *at, struct region *region)
{
    (void)field;
    return region_text(region, "%" PRId64, *(const int64_t *)at);
}

static char *print_real(const struct field *field, const void *at, struct region *region)
{
    (void)field;
    return text_from_real(*(const double *)at, region);
}

static char *print_bool(const struct field *field, const void *at, struct region *region)
{
    (void)field;
    return region_text(region, "%s", *(const bool *)at ? "true" : "false");
}

static char *print_bytes(const struct field *field, const void *at, struct region *region)
{
    (void)field;
    return text_from_bytes(*(const uint64_t *)at, region);
}

static char *print_choice(const struct field *field, const void *at, struct region *region)
{
    return region_text(region, "%s", field->values[*(const int *)at]);
}

static char *print_text(const struct field *field, const void *at, struct region *region)
{
    const char *text = *(const char *const *)at;
    (void)field;
    return text_quote(text ? text : "", region);
}

static char *print_list(const struct field *field, const void *at, struct region *region)
{
    const struct field_list *list = at;
    const char **item;
    size_t length = 3;
    if (NEW(region, item, list->count) != ST_OK) return NULL;
    for (size_t i = 0; i < list->count; i++) {
        item[i] = field->type == FIELD_INTS ? region_text(region, "%" PRId64, list->ints[i])
                                            : text_quote(list->texts[i], region);
        if (!item[i]) return NULL;
        length += strlen(item[i]) + 2;
    }
    char *text = region_array(region, length, 1), *end = text;
    if (!text) return NULL;
    *end++ = '[';
    for (size_t i = 0; i < list->count; i++) {
        if (i) end = stpcpy(end, ", ");
        end = stpcpy(end, item[i]);
    }
    *end = ']';
    return text;
}

/* ---- ranges, and what is expected ---- */

/* Sizes and lists without a range are free; numbers always have one. */
static bool bounded(const struct field *field)
{
    return field->max > 0 || field->min < 0 || field->type == FIELD_INT || field->type == FIELD_REAL;
}

static char *expect_number(const struct field *field, struct region *region)
{
    const char *what = field->type == FIELD_INT ? "an integer" : "a number";
    if (field->min == field->max) return region_text(region, "%.15g", field->min);
    if (fabs(field->min) >= exact && fabs(field->max) >= exact) return region_text(region, "%s", what);
    if (fabs(field->max) >= exact) return region_text(region, "%s of at least %.15g", what, field->min);
    return region_text(region, "%s of %.15g..%.15g", what, field->min, field->max);
}

static char *expect_bool(const struct field *field, struct region *region)
{
    (void)field;
    return region_text(region, "true or false");
}

static char *expect_bytes(const struct field *field, struct region *region)
{
    if (!bounded(field) || field->max >= exact) return region_text(region, "a size such as 64MiB, 1.5GiB or 4096");
    return region_text(region, "a size of %.15g to %.15g bytes, such as 64MiB, 1.5GiB or 4096", field->min, field->max);
}

static char *expect_words(const struct field *field, struct region *region)
{
    if (!field->values) return region_text(region, "a text");
    char *text = region_text(region, "one of");
    for (int i = 0; text && field->values[i]; i++)
        text = region_text(region, "%s%s%s", text, i ? "|" : " ", field->values[i]);
    return text;
}

static char *expect_path(const struct field *field, struct region *region)
{
    (void)field;
    return region_text(region, "a path");
}

static char *expect_list(const struct field *field, struct region *region)
{
    const char *what = field->type == FIELD_INTS ? "integers" : "texts";
    if (!bounded(field)) return region_text(region, "a list of %s", what);
    if (field->min == field->max) return region_text(region, "a list of %.0f %s", field->min, what);
    if (field->max >= exact) return region_text(region, "a list of at least %.0f %s", field->min, what);
    return region_text(region, "a list of %.0f to %.0f %s", field->min, field->max, what);
}

/* ---- the types ---- */

static double number_int(const void *at) { return (double)*(const int64_t *)at; }
static double number_real(const void *at) { return *(const double *)at; }
static double number_bytes(const void *at) { return (double)*(const uint64_t *)at; }
static double number_list(const void *at) { return (double)((const struct field_list *)at)->count; }

/* What each type is to the walker; read: NULL, or what is wrong with the text; number: what the range bounds. */
static const struct {
    size_t size;
    const char *(*read)(const struct field *field, const char *text, void *to);
    char *(*print)(const struct field *field, const void *at, struct region *region);
    char *(*expected)(const struct field *field, struct region *region);
    double (*number)(const void *at);
} types[] = {
    [FIELD_INT] = {sizeof(int64_t), read_int, print_int, expect_number, number_int},
    [FIELD_REAL] = {sizeof(double), read_real, print_real, expect_number, number_real},
    [FIELD_BOOL] = {sizeof(bool), read_bool, print_bool, expect_bool, NULL},
    [FIELD_BYTES] = {sizeof(uint64_t), read_bytes, print_bytes, expect_bytes, number_bytes},
    [FIELD_CHOICE] = {sizeof(int), read_choice, print_choice, expect_words, NULL},
    [FIELD_TEXT] = {sizeof(const char *), read_text, print_text, expect_words, NULL},
    [FIELD_PATH] = {sizeof(const char *), read_text, print_text, expect_path, NULL},
    [FIELD_INTS] = {sizeof(struct field_list), NULL, print_list, expect_list, number_list},
    [FIELD_TEXTS] = {sizeof(struct field_list), NULL, print_list, expect_list, number_list},
};

char *field_expected(const struct field *field, struct region *region)
{
    return types[field->type].expected(field, region);
}

char *field_print(const struct field *field, const void *object, struct region *region)
{
    return types[field->type].print(field, (const char *)object + field->offset, region);
}

static bool out_of_range(const struct field *field, const void *at)
{
    if (!types[field->type].number || !bounded(field)) return false;
    double value = types[field->type].number(at);
    return !(value >= field->min && value <= field->max);
}

bool field_unset(const struct field *field, const void *object)
{
    const void *at = (const char *)object + field->offset;
    switch (field->type) {
    case FIELD_TEXT:
    case FIELD_PATH:
        return !*(const char *const *)at;
    case FIELD_REAL:
        return isnan(*(const double *)at) || out_of_range(field, at);
    case FIELD_INTS:
    case FIELD_TEXTS:
        return !((const struct field_list *)at)->count;
    default:
        return out_of_range(field, at);
    }
}

/* ---- setting ---- */

static enum status refuse(const struct field *field, const char *text, const char *why, struct region *region)
{
    const char *expected = field_expected(field, region);
    char suggestion[TEXT_SUGGESTION] = "";
    int shown = text_shown(text, SHOWN);
    const char *dots = text[shown] ? "..." : "";
    if (!expected) return ST_FAILED;
    if (field->values) text_suggestion(text, field->values, suggestion);
    return fail(ST_SPEC, "'%.*s'%s %s; expected %s%s", shown, text, dots, why, expected, suggestion);
}

static enum status copy_text(const char *text, struct region *region, const char **out)
{
    *out = region_text(region, "%s", text);
    return *out ? ST_OK : ST_FAILED;
}

static enum status set(const struct field *field, void *object, const char *text, bool ranged, struct region *region)
{
    union {
        int64_t integer;
        double real;
        bool truth;
        uint64_t bytes;
        int index;
        const char *text;
    } value;
    const char *wrong = types[field->type].read(field, text, &value);
    if (!wrong && ranged && out_of_range(field, &value)) wrong = "is out of range";
    if (wrong) return refuse(field, text, wrong, region);
    if (field->check) TRY(field->check(text));
    if (field->type == FIELD_TEXT || field->type == FIELD_PATH) TRY(copy_text(text, region, &value.text));
    memcpy((char *)object + field->offset, &value, types[field->type].size);
    return ST_OK;
}

static bool is_list(const struct field *field) { return field->type == FIELD_INTS || field->type == FIELD_TEXTS; }

enum status field_set(const struct field *field, void *object, const char *text, struct region *region)
{
    int bad;
    int64_t item;
    if (!is_list(field)) return set(field, object, text, true, region);
    if (field->type == FIELD_INTS && text_to_int(text, &item)) return refuse(field, text, "is no list", region);
    return field_set_list(field, object, 1, &text, region, &bad);
}

/* A list: its items are set one by one as scalars, into an array of their own. */
static enum status set_list(const struct field *field, void *object, size_t count, const char *const *texts,
                            struct region *region, int *bad)
{
    static const struct field integer = {.key = "item", .type = FIELD_INT, .max = 0x1p63};
    static const struct field words = {.key = "item", .type = FIELD_TEXT};
    const struct field *item = field->type == FIELD_INTS ? &integer : &words;
    char *items = region_array(region, count, types[item->type].size);
    if (!items) return ST_FAILED;
    for (size_t i = 0; i < count; i++) {
        *bad = (int)i;
        TRY(set(item, items + i * types[item->type].size, texts[i], true, region));
    }
    struct field_list list = {.count = count};
    if (field->type == FIELD_INTS) list.ints = (const int64_t *)(void *)items;
    if (field->type == FIELD_TEXTS) list.texts = (const char *const *)(void *)items;
    memcpy((char *)object + field->offset, &list, sizeof list);
    return ST_OK;
}

enum status field_set_list(const struct field *field, void *object, size_t count, const char *const *texts,
                           struct region *region, int *bad)
{
    struct field_list counted = {.count = count};
    *bad = -1;
    if (!out_of_range(field, &counted)) return set_list(field, object, count, texts, region, bad);
    const char *expected = field_expected(field, region);
    if (!expected) return ST_FAILED;
    return fail(ST_SPEC, "%zu item%s; expected %s", count, text_plural((int64_t)count), expected);
}

/* A list preset: words between brackets, separated by commas or spaces. */
static enum status preset_list(const struct field *field, void *object, struct region *region)
{
    char *text = region_text(region, "%s", field->preset), *rest = NULL;
    const char **items;
    size_t count = 0;
    int bad;
    if (!text) return ST_FAILED;
    TRY(NEW(region, items, strlen(text) + 1));
    for (char *word = strtok_r(text, "[], ", &rest); word; word = strtok_r(NULL, "[], ", &rest)) items[count++] = word;
    return set_list(field, object, count, items, region, &bad);
}

enum status field_defaults(const struct field *fields, void *object, struct region *region)
{
    for (const struct field *f = fields; f && f->key; f++) {
        void *at = (char *)object + f->offset;
        memset(at, 0, types[f->type].size);
        if (f->type == FIELD_REAL) *(double *)at = NAN;
        if (!f->preset || !*f->preset) continue;
        TRY(is_list(f) ? preset_list(f, object, region) : set(f, object, f->preset, false, region));
    }
    return ST_OK;
}
