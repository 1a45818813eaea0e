/* From text to a setting and back: the one walker of everything that a person may set. How strict it is: text.h. */
#include "base/setting.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/region.h"
#include "base/text.h"

enum { SHOWN = 60 };                /* bytes of a wrong value in a message */
static const double exact = 0x1p53; /* a bound beyond it is no bound */

const struct setting *setting_find(const struct setting *keys, const char *key)
{
    for (const struct setting *f = keys; f && f->key; f++)
        if (!strcmp(f->key, key)) return f;
    return NULL;
}

/* ---- reading and printing ---- */

static const char *read_int(const struct setting *setting, const char *text, void *to)
{
    (void)setting;
    return text_to_int(text, to);
}

static const char *read_real(const struct setting *setting, const char *text, void *to)
{
    (void)setting;
    return text_to_real(text, to);
}

static const char *read_bytes(const struct setting *setting, const char *text, void *to)
{
    (void)setting;
    return text_to_bytes(text, to);
}

/* Words are few: a linear search. */
static const char *read_word(const char *const *words, const char *text, int *index)
{
    for (*index = 0; words[*index]; ++*index)
        if (!strcmp(text, words[*index])) return NULL;
    return "is not known";
}

static const char *read_bool(const struct setting *setting, const char *text, void *to)
{
    (void)setting;
    *(bool *)to = !strcmp(text, "true");
    return *(bool *)to || !strcmp(text, "false") ? NULL : "is not a truth value";
}

static const char *read_choice(const struct setting *setting, const char *text, void *to)
{
    return read_word(setting->values, text, to);
}

static const char *read_text(const struct setting *setting, const char *text, void *to)
{
    int index;
    *(const char **)to = text;
    if (!*text) return "is empty";
    return setting->values ? read_word(setting->values, text, &index) : NULL;
}

static char *print_int(const struct setting *setting, const void *at, struct region *region)
{
    (void)setting;
    return region_text(region, "%" PRId64, *(const int64_t *)at);
}

static char *print_real(const struct setting *setting, const void *at, struct region *region)
{
    (void)setting;
    return text_from_real(*(const double *)at, region);
}

static char *print_bool(const struct setting *setting, const void *at, struct region *region)
{
    (void)setting;
    return region_text(region, "%s", *(const bool *)at ? "true" : "false");
}

static char *print_bytes(const struct setting *setting, const void *at, struct region *region)
{
    (void)setting;
    return text_from_bytes(*(const uint64_t *)at, region);
}

static char *print_choice(const struct setting *setting, const void *at, struct region *region)
{
    return region_text(region, "%s", setting->values[*(const int *)at]);
}

static char *print_text(const struct setting *setting, const void *at, struct region *region)
{
    const char *text = *(const char *const *)at;
    (void)setting;
    return text_quote(text ? text : "", region);
}

static char *print_list(const struct setting *setting, const void *at, struct region *region)
{
    const struct setting_list *list = at;
    const char **item;
    size_t length = 3;
    if (NEWLY(region, item, list->count) != ST_OK) return NULL;
    for (size_t i = 0; i < list->count; i++) {
        item[i] = setting->type == SETTING_INTS ? region_text(region, "%" PRId64, list->ints[i])
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
static bool bounded(const struct setting *setting)
{
    return setting->max > 0 || setting->min < 0 || setting->type == SETTING_INT || setting->type == SETTING_REAL;
}

static char *expect_number(const struct setting *setting, struct region *region)
{
    const char *what = setting->type == SETTING_INT ? "an integer" : "a number";
    if (setting->min == setting->max) return region_text(region, "%.15g", setting->min);
    if (fabs(setting->min) >= exact && fabs(setting->max) >= exact) return region_text(region, "%s", what);
    if (fabs(setting->max) >= exact) return region_text(region, "%s of at least %.15g", what, setting->min);
    return region_text(region, "%s of %.15g..%.15g", what, setting->min, setting->max);
}

static char *expect_bool(const struct setting *setting, struct region *region)
{
    (void)setting;
    return region_text(region, "true or false");
}

static char *expect_bytes(const struct setting *setting, struct region *region)
{
    if (!bounded(setting) || setting->max >= exact) return region_text(region, "a size such as 64MiB, 1.5GiB or 4096");
    return region_text(region, "a size of %.15g to %.15g bytes, such as 64MiB, 1.5GiB or 4096", setting->min,
                       setting->max);
}

static char *expect_words(const struct setting *setting, struct region *region)
{
    if (!setting->values) return region_text(region, "a text");
    char *text = region_text(region, "one of");
    for (int i = 0; text && setting->values[i]; i++)
        text = region_text(region, "%s%s%s", text, i ? "|" : " ", setting->values[i]);
    return text;
}

static char *expect_path(const struct setting *setting, struct region *region)
{
    (void)setting;
    return region_text(region, "a path");
}

static char *expect_list(const struct setting *setting, struct region *region)
{
    const char *what = setting->type == SETTING_INTS ? "integers" : "texts";
    if (!bounded(setting)) return region_text(region, "a list of %s", what);
    if (setting->min == setting->max) return region_text(region, "a list of %.0f %s", setting->min, what);
    if (setting->max >= exact) return region_text(region, "a list of at least %.0f %s", setting->min, what);
    return region_text(region, "a list of %.0f to %.0f %s", setting->min, setting->max, what);
}

/* ---- the types ---- */

static double number_int(const void *at) { return (double)*(const int64_t *)at; }
static double number_real(const void *at) { return *(const double *)at; }
static double number_bytes(const void *at) { return (double)*(const uint64_t *)at; }
static double number_list(const void *at) { return (double)((const struct setting_list *)at)->count; }

/* What each type is to the walker; read: NULL, or what is wrong with the text; number: what the range bounds. */
static const struct {
    size_t size;
    const char *(*read)(const struct setting *setting, const char *text, void *to);
    char *(*print)(const struct setting *setting, const void *at, struct region *region);
    char *(*expected)(const struct setting *setting, struct region *region);
    double (*number)(const void *at);
} types[] = {
    [SETTING_INT] = {sizeof(int64_t), read_int, print_int, expect_number, number_int},
    [SETTING_REAL] = {sizeof(double), read_real, print_real, expect_number, number_real},
    [SETTING_BOOL] = {sizeof(bool), read_bool, print_bool, expect_bool, NULL},
    [SETTING_BYTES] = {sizeof(uint64_t), read_bytes, print_bytes, expect_bytes, number_bytes},
    [SETTING_CHOICE] = {sizeof(int), read_choice, print_choice, expect_words, NULL},
    [SETTING_TEXT] = {sizeof(const char *), read_text, print_text, expect_words, NULL},
    [SETTING_PATH] = {sizeof(const char *), read_text, print_text, expect_path, NULL},
    [SETTING_INTS] = {sizeof(struct setting_list), NULL, print_list, expect_list, number_list},
    [SETTING_TEXTS] = {sizeof(struct setting_list), NULL, print_list, expect_list, number_list},
};

char *setting_expected(const struct setting *setting, struct region *region)
{
    return types[setting->type].expected(setting, region);
}

char *setting_print(const struct setting *setting, const void *object, struct region *region)
{
    return types[setting->type].print(setting, (const char *)object + setting->offset, region);
}

static bool out_of_range(const struct setting *setting, const void *at)
{
    if (!types[setting->type].number || !bounded(setting)) return false;
    double value = types[setting->type].number(at);
    return !(value >= setting->min && value <= setting->max);
}

bool setting_unset(const struct setting *setting, const void *object)
{
    const void *at = (const char *)object + setting->offset;
    switch (setting->type) {
    case SETTING_TEXT:
    case SETTING_PATH:
        return !*(const char *const *)at;
    case SETTING_REAL:
        return isnan(*(const double *)at) || out_of_range(setting, at);
    case SETTING_INTS:
    case SETTING_TEXTS:
        return !((const struct setting_list *)at)->count;
    default:
        return out_of_range(setting, at);
    }
}

/* ---- setting ---- */

static enum status refuse(const struct setting *setting, const char *text, const char *why, struct region *region)
{
    const char *expected = setting_expected(setting, region);
    char suggestion[TEXT_SUGGESTION] = "";
    int shown = text_shown(text, SHOWN);
    const char *dots = text[shown] ? "..." : "";
    if (!expected) return ST_FAILED;
    if (setting->values) text_suggestion(text, setting->values, suggestion);
    return fail(ST_SPEC, "'%.*s'%s %s; expected %s%s", shown, text, dots, why, expected, suggestion);
}

static enum status copy_text(const char *text, struct region *region, const char **out)
{
    *out = region_text(region, "%s", text);
    return *out ? ST_OK : ST_FAILED;
}

static enum status set(const struct setting *setting, void *object, const char *text, bool ranged,
                       struct region *region)
{
    union {
        int64_t integer;
        double real;
        bool truth;
        uint64_t bytes;
        int index;
        const char *text;
    } value;
    const char *wrong = types[setting->type].read(setting, text, &value);
    if (!wrong && ranged && out_of_range(setting, &value)) wrong = "is out of range";
    if (wrong) return refuse(setting, text, wrong, region);
    if (setting->check) TRY(setting->check(text));
    if (setting->type == SETTING_TEXT || setting->type == SETTING_PATH) TRY(copy_text(text, region, &value.text));
    memcpy((char *)object + setting->offset, &value, types[setting->type].size);
    return ST_OK;
}

static bool is_list(const struct setting *setting)
{
    return setting->type == SETTING_INTS || setting->type == SETTING_TEXTS;
}

enum status setting_set(const struct setting *setting, void *object, const char *text, struct region *region)
{
    int bad;
    int64_t item;
    if (!is_list(setting)) return set(setting, object, text, true, region);
    if (setting->type == SETTING_INTS && text_to_int(text, &item)) return refuse(setting, text, "is no list", region);
    return setting_set_list(setting, object, 1, &text, region, &bad);
}

/* A list: its items are set one by one as scalars, into an array of their own. */
static enum status set_list(const struct setting *setting, void *object, size_t count, const char *const *texts,
                            struct region *region, int *bad)
{
    static const struct setting integer = {.key = "item", .type = SETTING_INT, .max = 0x1p63};
    static const struct setting words = {.key = "item", .type = SETTING_TEXT};
    const struct setting *item = setting->type == SETTING_INTS ? &integer : &words;
    char *items = region_array(region, count, types[item->type].size);
    if (!items) return ST_FAILED;
    for (size_t i = 0; i < count; i++) {
        *bad = (int)i;
        TRY(set(item, items + i * types[item->type].size, texts[i], true, region));
    }
    struct setting_list list = {.count = count};
    if (setting->type == SETTING_INTS) list.ints = (const int64_t *)(void *)items;
    if (setting->type == SETTING_TEXTS) list.texts = (const char *const *)(void *)items;
    memcpy((char *)object + setting->offset, &list, sizeof list);
    return ST_OK;
}

enum status setting_set_list(const struct setting *setting, void *object, size_t count, const char *const *texts,
                             struct region *region, int *bad)
{
    struct setting_list counted = {.count = count};
    *bad = -1;
    if (!out_of_range(setting, &counted)) return set_list(setting, object, count, texts, region, bad);
    const char *expected = setting_expected(setting, region);
    if (!expected) return ST_FAILED;
    return fail(ST_SPEC, "%zu item%s; expected %s", count, text_plural((int64_t)count), expected);
}

/* A list preset: words between brackets, separated by commas or spaces. */
static enum status preset_list(const struct setting *setting, void *object, struct region *region)
{
    char *text = region_text(region, "%s", setting->preset), *rest = NULL;
    const char **items;
    size_t count = 0;
    int bad;
    if (!text) return ST_FAILED;
    NEW(region, items, strlen(text) + 1);
    for (char *word = strtok_r(text, "[], ", &rest); word; word = strtok_r(NULL, "[], ", &rest)) items[count++] = word;
    return set_list(setting, object, count, items, region, &bad);
}

enum status setting_defaults(const struct setting *keys, void *object, struct region *region)
{
    for (const struct setting *f = keys; f && f->key; f++) {
        void *at = (char *)object + f->offset;
        memset(at, 0, types[f->type].size);
        if (f->type == SETTING_REAL) *(double *)at = NAN;
        if (!f->preset || !*f->preset) continue;
        TRY(is_list(f) ? preset_list(f, object, region) : set(f, object, f->preset, false, region));
    }
    return ST_OK;
}
