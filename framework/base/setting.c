/* From text to a setting and back, for everything that a user may set. How strict reading is: text.h. */
#include "base/setting.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/region.h"
#include "base/text.h"

enum { SHOWN = 60 };                /* bytes of a wrong value in a message */
static const double exact = 0x1p53; /* a bound beyond it is no bound */

/* The items of lists. */
static const struct setting integer_item = {.key = "item", .type = SETTING_INT, .max = 0x1p63};
static const struct setting real_item = {.key = "item", .type = SETTING_REAL, .max = 1e15};
static const struct setting text_item = {.key = "item", .type = SETTING_TEXT};

static const struct {
    size_t size;
    const char *what;           /* is expected, where a range or words do not say it alone; of a list: its items */
    const struct setting *item; /* of a list; NULL: it is none */
} kinds[] = {
    [SETTING_INT] = {sizeof(int64_t), "an integer", NULL},
    [SETTING_REAL] = {sizeof(double), "a number", NULL},
    [SETTING_BOOL] = {sizeof(bool), "true or false", NULL},
    [SETTING_BYTES] = {sizeof(uint64_t), NULL, NULL},
    [SETTING_CHOICE] = {sizeof(int), NULL, NULL},
    [SETTING_TEXT] = {sizeof(const char *), "a text", NULL},
    [SETTING_PATH] = {sizeof(const char *), "a path", NULL},
    [SETTING_FOLDER] = {sizeof(const char *), "a path", NULL},
    [SETTING_INTS] = {sizeof(struct setting_list), "integers", &integer_item},
    [SETTING_REALS] = {sizeof(struct setting_list), "numbers", &real_item},
    [SETTING_TEXTS] = {sizeof(struct setting_list), "texts", &text_item},
};

const struct setting *setting_find(const struct setting *keys, const char *key)
{
    for (const struct setting *f = keys; f && f->key; f++)
        if (!strcmp(f->key, key)) return f;
    return NULL;
}

/* ---- reading and printing ---- */

static const char *read_word(const char *const *words, const char *text, int *index)
{
    for (*index = 0; words[*index]; ++*index)
        if (!strcmp(text, words[*index])) return NULL;
    return "is not known";
}

/* Reads a scalar; NULL, or what is wrong with text. */
static const char *read_scalar(const struct setting *setting, const char *text, void *to)
{
    int index;
    switch (setting->type) {
    case SETTING_INT:
        return text_to_int(text, to);
    case SETTING_REAL:
        return text_to_real(text, to);
    case SETTING_BYTES:
        return text_to_bytes(text, to);
    case SETTING_BOOL:
        *(bool *)to = !strcmp(text, "true");
        return *(bool *)to || !strcmp(text, "false") ? NULL : "is not a truth value";
    case SETTING_CHOICE:
        return read_word(setting->values, text, to);
    default:
        *(const char **)to = text;
        if (!*text) return "is empty";
        return setting->values ? read_word(setting->values, text, &index) : NULL;
    }
}

static char *print_list(const struct setting *setting, const struct setting_list *list, struct region *region)
{
    const struct setting *item = kinds[setting->type].item;
    const char *items = list->items;
    char *text = region_text(region, "[");
    for (size_t i = 0; i < list->count; i++)
        text = region_text(region, "%s%s%s", text, i ? ", " : "",
                           setting_print(item, items + i * kinds[item->type].size, region));
    return region_text(region, "%s]", text);
}

char *setting_print(const struct setting *setting, const void *object, struct region *region)
{
    const void *at = (const char *)object + setting->offset;
    const char *text;
    switch (setting->type) {
    case SETTING_INT:
        return region_text(region, "%" PRId64, *(const int64_t *)at);
    case SETTING_REAL:
        return text_from_real(*(const double *)at, region);
    case SETTING_BYTES:
        return text_from_bytes(*(const uint64_t *)at, region);
    case SETTING_BOOL:
        return region_text(region, "%s", *(const bool *)at ? "true" : "false");
    case SETTING_CHOICE:
        return region_text(region, "%s", setting->values[*(const int *)at]);
    case SETTING_INTS:
    case SETTING_REALS:
    case SETTING_TEXTS:
        return print_list(setting, at, region);
    default:
        text = *(const char *const *)at;
        return text_quote(text ? text : "", region);
    }
}

/* ---- ranges and expectations ---- */

/* Sizes and lists may have no range; numbers always have one. */
static bool bounded(const struct setting *setting)
{
    return setting->max > 0 || setting->min < 0 || setting->type == SETTING_INT || setting->type == SETTING_REAL;
}

static char *expect_number(const struct setting *setting, const char *what, struct region *region)
{
    if (setting->min == setting->max) return region_text(region, "%.15g", setting->min);
    if (fabs(setting->min) >= exact && fabs(setting->max) >= exact) return region_text(region, "%s", what);
    if (fabs(setting->max) >= exact && setting->type == SETTING_REAL)
        return region_text(region, "%s of at least %.15g and at most %.15g", what, setting->min, setting->max);
    if (fabs(setting->max) >= exact)
        return region_text(region, "%s of at least %.15g%s", what, setting->min,
                           setting->max > exact ? "" : " and at most 2^53");
    return region_text(region, "%s of %.15g..%.15g", what, setting->min, setting->max);
}

static char *expect_bytes(const struct setting *setting, struct region *region)
{
    if (!bounded(setting) || setting->max >= exact) return region_text(region, "a size such as 64MiB, 1.5GiB or 4096");
    return region_text(region, "a size of %.15g to %.15g bytes, such as 64MiB, 1.5GiB or 4096", setting->min,
                       setting->max);
}

static char *expect_words(const struct setting *setting, struct region *region)
{
    char *text = region_text(region, "one of");
    for (int i = 0; setting->values[i]; i++)
        text = region_text(region, "%s%s%s", text, i ? "|" : " ", setting->values[i]);
    return text;
}

static char *expect_list(const struct setting *setting, const char *what, struct region *region)
{
    if (!bounded(setting)) return region_text(region, "a list of %s", what);
    if (setting->min == setting->max) return region_text(region, "a list of %.0f %s", setting->min, what);
    if (setting->max >= exact) return region_text(region, "a list of at least %.0f %s", setting->min, what);
    return region_text(region, "a list of %.0f to %.0f %s", setting->min, setting->max, what);
}

char *setting_expected(const struct setting *setting, struct region *region)
{
    const char *what = kinds[setting->type].what;
    if (setting->type == SETTING_INT || setting->type == SETTING_REAL) return expect_number(setting, what, region);
    if (setting->type == SETTING_BYTES) return expect_bytes(setting, region);
    if (setting_is_list(setting)) return expect_list(setting, what, region);
    return setting->values ? expect_words(setting, region) : region_text(region, "%s", what);
}

static bool is_text(const struct setting *setting)
{
    return setting->type == SETTING_TEXT || setting->type == SETTING_PATH || setting->type == SETTING_FOLDER;
}

bool setting_is_list(const struct setting *setting) { return kinds[setting->type].item != NULL; }

static bool out_of_range(const struct setting *setting, const void *at)
{
    double value = setting->min;
    if (!bounded(setting)) return false;
    if (setting->type == SETTING_INT) value = (double)*(const int64_t *)at;
    if (setting->type == SETTING_REAL) value = *(const double *)at;
    if (setting->type == SETTING_BYTES) value = (double)*(const uint64_t *)at;
    if (setting_is_list(setting)) value = (double)((const struct setting_list *)at)->count;
    return !(value >= setting->min && value <= setting->max);
}

bool setting_unset(const struct setting *setting, const void *object)
{
    const void *at = (const char *)object + setting->offset;
    if (is_text(setting)) return !*(const char *const *)at;
    if (setting_is_list(setting)) return !((const struct setting_list *)at)->count;
    if (setting->type == SETTING_BOOL && setting->min > 0) return *(const bool *)at;
    return out_of_range(setting, at); /* a NaN is in no range */
}

/* ---- setting ---- */

static enum status refuse(const struct setting *setting, const char *text, const char *why, struct region *region)
{
    char suggestion[TEXT_SUGGESTION] = "";
    int shown = text_shown(text, SHOWN);
    if (setting->values) text_suggestion(text, setting->values, suggestion);
    if (setting->type == SETTING_BYTES) text_size_suggestion(text, suggestion);
    return fail(ST_SPEC, "'%.*s'%s %s%s; expected %s", shown, text, text[shown] ? "..." : "", why, suggestion,
                setting_expected(setting, region));
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
        struct setting_list list;
    } value;
    const char *wrong = read_scalar(setting, text, &value);
    if (!wrong && ranged && out_of_range(setting, &value)) wrong = "is out of range";
    if (wrong) return refuse(setting, text, wrong, region);
    if (setting->check) TRY(setting->check(text));
    if (is_text(setting)) value.text = region_text(region, "%s", text);
    memcpy((char *)object + setting->offset, &value, kinds[setting->type].size);
    return ST_OK;
}

enum status setting_set(const struct setting *setting, void *object, const char *text, struct region *region)
{
    int bad;
    int64_t integer;
    double real;
    if (!setting_is_list(setting)) return set(setting, object, text, true, region);
    if ((setting->type == SETTING_INTS && text_to_int(text, &integer)) ||
        (setting->type == SETTING_REALS && text_to_real(text, &real)))
        return refuse(setting, text, "is no list", region);
    return setting_set_list(setting, object, 1, &text, region, &bad);
}

/* The items are set one by one as scalars, into a new array. */
static enum status set_list(const struct setting *setting, void *object, size_t count, const char *const *texts,
                            struct region *region, int *bad)
{
    const struct setting *item = kinds[setting->type].item;
    const size_t size = kinds[item->type].size;
    char *items = region_array(region, count, size);
    for (size_t i = 0; i < count; i++) {
        *bad = (int)i;
        TRY(set(item, items + i * size, texts[i], true, region));
    }
    const struct setting_list list = {.count = count, .items = items};
    memcpy((char *)object + setting->offset, &list, sizeof list);
    return ST_OK;
}

enum status setting_set_list(const struct setting *setting, void *object, size_t count, const char *const *texts,
                             struct region *region, int *bad)
{
    struct setting_list counted = {.count = count};
    *bad = -1;
    if (!out_of_range(setting, &counted)) return set_list(setting, object, count, texts, region, bad);
    return fail(ST_SPEC, "%zu item%s; expected %s", count, text_plural((int64_t)count),
                setting_expected(setting, region));
}

/* A list preset: words between brackets, separated by commas or spaces. */
static enum status preset_list(const struct setting *setting, void *object, struct region *region)
{
    char *text = region_text(region, "%s", setting->preset), *rest = NULL;
    const char **items;
    size_t count = 0;
    int bad;
    NEW(region, items, strlen(text) + 1);
    for (char *word = strtok_r(text, "[], ", &rest); word; word = strtok_r(NULL, "[], ", &rest)) items[count++] = word;
    return set_list(setting, object, count, items, region, &bad);
}

void setting_share(const struct setting *setting, void *object, const struct setting *other, const void *from)
{
    memcpy((char *)object + setting->offset, (const char *)from + other->offset, kinds[setting->type].size);
}

enum status setting_defaults(const struct setting *keys, void *object, struct region *region)
{
    for (const struct setting *f = keys; f && f->key; f++) {
        void *at = (char *)object + f->offset;
        memset(at, 0, kinds[f->type].size);
        if (f->type == SETTING_REAL) *(double *)at = NAN;
        if (!f->preset || !*f->preset) continue;
        TRY(setting_is_list(f) ? preset_list(f, object, region) : set(f, object, f->preset, false, region));
    }
    return ST_OK;
}
